#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "devices/cuda/diagnosis.hpp"
#include "ops/catalogue.hpp"
#include "ops/cuda/functions.hpp"
#include "ops/cuda/measure.hpp"

namespace troupe {
namespace {

using nlohmann::json;

struct KernelsOptions {
  std::string name, cache;
  std::vector<std::string> architectures = {"sm_80", "sm_90", "sm_100"};
};

// Of the functions of one family, for one architecture.
struct Family {
  int functions = 0, faults = 0;
  cuda::Resources most;  // each of any of them
  std::size_t bytes = 0;
  void add(const cuda::Measured& one) {
    ++functions;
    faults += !one.fault.empty();
    most.registers = std::max(most.registers, one.resources.registers);
    most.spilled = std::max(most.spilled, one.resources.spilled);
    most.stack = std::max(most.stack, one.resources.stack);
    most.shared = std::max(most.shared, one.resources.shared);
    bytes += one.bytes;
  }
};
using Families = std::map<std::pair<std::string, std::string>, Family>;  // and architectures

json as_json(const cuda::Resources& r) {
  return {
      {"registers", r.registers}, {"spilled", r.spilled}, {"stack", r.stack}, {"shared", r.shared}};
}

json as_json(const cuda::Measured& one, const std::string& architecture) {
  json out = as_json(one.resources);
  out.update({{"function", one.name},
              {"family", one.family()},
              {"architecture", architecture},
              {"budget", one.budget},
              {"bytes", one.bytes}});
  if (!one.fault.empty()) out["fault"] = one.fault;
  return out;
}

json as_json(const Families& families) {
  json rows = json::array();
  for (const auto& [of, family] : families) {
    json row = as_json(family.most);
    row.update({{"family", of.first},
                {"architecture", of.second},
                {"functions", family.functions},
                {"faults", family.faults},
                {"bytes", family.bytes}});
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_row(const cuda::Measured& one, const std::string& architecture) {
  const cuda::Resources& r = one.resources;
  print_out("{:<52} {:<7} {:>9} {:>6} {:>8} {:>6} {:>7}{}\n", one.name, architecture, r.registers,
            one.budget, r.spilled, r.stack, r.shared,
            one.fault.empty() ? "" : "  FAULT: " + one.fault);
}

void print_families(const Families& families) {
  print_out(
      "\n{:<21} {:<7} {:>9} {:>9} {:>8} {:>6} {:>7} {:>9}  (most of a function; all images)\n",
      "family", "for", "functions", "registers", "spilled", "stack", "shared", "bytes");
  for (const auto& [of, family] : families)
    print_out("{:<21} {:<7} {:>9} {:>9} {:>8} {:>6} {:>7} {:>9}{}\n", of.first, of.second,
              family.functions, family.most.registers, family.most.spilled, family.most.stack,
              family.most.shared, family.bytes,
              family.faults == 0 ? "" : fmt::format("  {} faults", family.faults));
}

// Those whose names begin with `name`, by families.
std::map<std::string, std::vector<cuda::GpuFunction>> functions_of(const std::string& name) {
  std::map<std::string, std::vector<cuda::GpuFunction>> families;
  for (cuda::GpuFunction& function : cuda::all_functions(ops::builtin())) {
    const std::string its = cuda::function_name(function.type);
    if (its.starts_with(name))
      families[its.substr(0, its.find('_'))].push_back(std::move(function));
  }
  return families;
}

int run_kernels(const KernelsOptions& options, const Printing& printing) {
  const auto begin = std::chrono::steady_clock::now();
  const auto families = functions_of(options.name);
  if (families.empty())
    return report_usage(
        not_found("no function of a GPU has a name that begins with '" + options.name + "'"),
        printing);
  const cuda::Search search = cuda::Search::standard();
  // The compiler that plans of this machine use, if it has a driver.
  const int driver = cuda::look_for_driver(search).driver.version;
  if (const cuda::Finding nvrtc = cuda::nvrtc_finding(search, driver); nvrtc.state != "ready")
    return report_error(failed_precondition("NVRTC is " + nvrtc.text), printing);
  auto nvrtc = cuda::open_nvrtc(search, driver);
  if (!nvrtc.ok()) return report_error(nvrtc.status(), printing);
  const cuda::Compiler compiler(std::move(*nvrtc), cuda::ImageCache(options.cache));
  if (!printing.json)
    print_out("{:<52} {:<7} {:>9} {:>6} {:>8} {:>6} {:>7}\n", "function", "for", "registers",
              "budget", "spilled", "stack", "shared");
  Families sums;
  json rows = json::array();
  int functions = 0, faults = 0;
  for (const std::string& architecture : options.architectures)
    for (const auto& [family, members] : families)
      for (const cuda::Measured& one : cuda::measure(compiler, members, architecture)) {
        ++functions;
        faults += !one.fault.empty();
        sums[{family, architecture}].add(one);
        if (printing.json)
          rows.push_back(as_json(one, architecture));
        else
          print_row(one, architecture);
      }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (printing.json) {
    print_json({{"nvrtc", cuda::version_text(compiler.nvrtc().version)},
                {"fake", compiler.nvrtc().fake},
                {"seconds", took.count()},
                {"faults", faults},
                {"functions", std::move(rows)},
                {"families", as_json(sums)}});
  } else {
    print_families(sums);
    print_out("\n{} functions in {:.1f} s, {} faults\n", functions, took.count(), faults);
  }
  return faults == 0 ? 0 : 1;
}

}  // namespace

void add_kernels(CommandLine& line) {
  auto options = std::make_shared<KernelsOptions>();
  Command c = line.command(
      "kernels", "Compile the kernels for NVIDIA GPUs ahead of time, and print what they take");
  c.option("name", options->name, "only functions whose names begin with this, e.g. MatMul");
  c.option("--arch", options->architectures, "architectures to compile for").list();
  c.option(
      "--cache", options->cache,
      "folder to leave the compiled functions in, where devices find them if TROUPE_CUDA_CACHE "
      "names it");
  c.runs([options, &line] { return run_kernels(*options, line.printing()); });
}

}  // namespace troupe
