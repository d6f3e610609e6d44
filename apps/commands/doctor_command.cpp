#include <nlohmann/json.hpp>

#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "core/processors.hpp"
#include "devices/cuda/diagnosis.hpp"
#include "ops/isa.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

int run_doctor(const Printing& printing) {
  const int processors = usable_processors();
  const std::string level = ops::isa_name(ops::isa_level());
  const cuda::Diagnosis found = cuda::diagnose(cuda::Search::standard());
  if (printing.json) {
    nlohmann::json parts = nlohmann::json::array();
    for (const cuda::Finding& f : found.findings) {
      nlohmann::json part = {{"part", f.part}, {"state", f.state}, {"text", f.text}};
      if (!f.wheel.empty()) part["wheel"] = f.wheel;
      parts.push_back(std::move(part));
    }
    print_json({{"cpu", {{"processors", processors}, {"level", level}}},
                {"cuda", {{"ready", found.ready()}, {"fake", found.fake}, {"parts", parts}}}});
    return 0;
  }
  print_out("{:<10}{} processors, kernels for x86-64-{}\n", "cpu", processors, level);
  for (const cuda::Finding& f : found.findings) print_out("{:<10}{}\n", f.part, f.text);
  return 0;
}

}  // namespace

void add_doctor(CommandLine& line) {
  Command c = line.command("doctor", "Print what of this machine can be used, and what is missing");
  c.runs([&line] { return run_doctor(line.printing()); });
}

}  // namespace troupe
