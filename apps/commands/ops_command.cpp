#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "ops/catalogue.hpp"

namespace troupe {
namespace {

using nlohmann::json;

struct OpsOptions {
  std::string name;
  std::string device;
  bool all = false;
  bool check = false;
};

json arguments(const std::vector<ArgSpec>& specs, const std::vector<std::string>& texts) {
  json out = json::array();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::size_t colon = texts[i].find(':');
    std::string type = "T";
    if (colon != std::string::npos)
      type = texts[i].substr(texts[i].find_first_not_of(' ', colon + 1));
    out.push_back({{"name", specs[i].name}, {"type", type}, {"host", specs[i].host}});
  }
  return out;
}

// What JSON has as such, and anything else as definitions write it.
json value(const Attr& attr) {
  if (const auto* v = attr.get<std::int64_t>()) return *v;
  if (const auto* v = attr.get<bool>()) return *v;
  if (const auto* v = attr.get<std::string>()) return *v;
  return attr.text();
}

json attributes(const OpInfo& op) {
  json out = json::array();
  for (const AttrSpec& attr : op.attrs) {
    json one = {{"name", attr.name}, {"kind", attr.kind}};
    if (attr.fallback) one["default"] = value(*attr.fallback);
    for (DType type : attr.types) one["types"].push_back(dtype_name(type));
    if (!attr.strings.empty()) one["values"] = attr.strings;
    out.push_back(std::move(one));
  }
  return out;
}

json as_json(const ops::CatalogueEntry& entry) {
  const OpDef& def = entry.op->def;
  json out = {{"name", def.name},
              {"doc", def.doc},
              {"inputs", arguments(entry.op->in, def.in)},
              {"outputs", arguments(entry.op->out, def.out)},
              {"attributes", attributes(*entry.op)},
              {"gradient", flow_name(entry.gradient)},
              {"second_gradient", flow_name(entry.second)},
              {"devices", entry.devices},
              {"group", entry.group},
              {"file", entry.file},
              {"internal", entry.internal}};
  if (!entry.reason.empty()) out["no_gradient"] = entry.reason;
  if (!entry.tensorflow.empty()) out["tensorflow"] = entry.tensorflow;
  if (!entry.paper.empty()) out["paper"] = entry.paper;
  return out;
}

// One line for people: what it takes and gives, and what is known of it.
std::string line_of(const ops::CatalogueEntry& entry) {
  const OpDef& def = entry.op->def;
  std::string text =
      fmt::format("{}({}) -> ({})", def.name, fmt::join(def.in, ", "), fmt::join(def.out, ", "));
  if (!def.attrs.empty()) text += fmt::format("  [{}]", fmt::join(def.attrs, ", "));
  if (std::string types = entry.dtypes(); !types.empty()) text += "  T: " + types;
  text += fmt::format(
      "  gradient: {}/{}  on: {}", flow_name(entry.gradient), flow_name(entry.second),
      entry.devices.empty() ? "runtime" : fmt::format("{}", fmt::join(entry.devices, " ")));
  if (!entry.tensorflow.empty()) text += "  TensorFlow: " + entry.tensorflow;
  if (!entry.paper.empty()) text += "  paper: " + entry.paper;
  return text;
}

int print_one(const std::vector<ops::CatalogueEntry>& entries, const std::string& name,
              const Printing& printing) {
  auto found = ops::find_op(entries, name);
  if (!found.ok()) return report_usage(found.status(), printing);
  if (printing.json)
    print_json(as_json(**found));
  else
    print_out("{}", ops::op_text(**found));
  return 0;
}

int check(const std::vector<ops::CatalogueEntry>& entries, const Printing& printing) {
  const auto findings = ops::check_catalogue(entries);
  json rows = json::array();
  for (const auto& finding : findings) {
    rows.push_back({{"op", finding.op}, {"missing", finding.missing}});
    if (!printing.json) print_out("{} lacks {}\n", finding.op, finding.missing);
  }
  if (printing.json) print_json(rows);
  return findings.empty() ? 0 : 1;
}

// The device type that somebody names in upper or lower case.
Expected<std::string> device_type(std::string name) {
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  const DeviceTypes& types = ops::builtin().devices;
  if (types.find(name) != nullptr) return name;
  std::string known;
  for (const DeviceType& type : types.all()) known += " " + type.name;
  return not_found("there is no type of device '" + name + "'; known are" + known);
}

int run_ops(const OpsOptions& options, const Printing& printing) {
  std::string device;
  if (!options.device.empty()) {
    auto type = device_type(options.device);
    if (!type.ok()) return report_usage(type.status(), printing);
    device = *type;
  }
  const auto entries = ops::catalogue(ops::builtin());
  if (!options.name.empty()) return print_one(entries, options.name, printing);
  if (options.check) return check(entries, printing);
  json rows = json::array();
  for (const auto& entry : entries) {
    if (entry.internal && !options.all) continue;
    // What the runtime executes needs no kernel.
    const bool here = device.empty() || entry.op->def.role != Role::kernel ||
                      std::count(entry.devices.begin(), entry.devices.end(), device) > 0;
    if (!here) continue;
    if (printing.json)
      rows.push_back(as_json(entry));
    else
      print_out("{}\n", line_of(entry));
  }
  if (printing.json) print_json(rows);
  return 0;
}

}  // namespace

void add_ops(CommandLine& line) {
  auto options = std::make_shared<OpsOptions>();
  Command c = line.command("ops", "Print the ops that programs can use, or one of them in full");
  Option name = c.option("name", options->name, "op to describe, also by its TensorFlow name");
  Option device =
      c.option("--device", options->device, "only ops that run on this type of device, e.g. cpu");
  device.not_with(name);
  Option all = c.flag("--all", options->all,
                      "also ops that only gradients and the runtime add (_*, *Grad, *When)");
  all.not_with(name);
  c.flag("--check", options->check,
         "fail if a public op lacks documentation, a shape function, a CPU kernel or a gradient")
      .not_with(name)
      .not_with(device)
      .not_with(all);
  c.runs([options, &line] { return run_ops(*options, line.printing()); });
}

}  // namespace troupe
