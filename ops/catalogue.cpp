#include "ops/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/name.hpp"
#include "ops/detail/catalogue_names.hpp"
#include "ops/detail/gradient_trial.hpp"
#include "ops/detail/op_files.hpp"

namespace troupe::ops {
namespace {

constexpr std::string_view kOther = "other";

std::string group_of(const std::string& file) {
  const std::size_t end = file.rfind('/');
  if (end == std::string::npos) return std::string(kOther);
  const std::size_t begin = file.rfind('/', end - 1) + 1;
  return file.substr(begin, end - begin);
}

void find_gradients(const OpRegistry& registry, CatalogueEntry& entry) {
  const OpDef& def = entry.op->def;
  entry.reason = def.no_gradient;
  // A call, and the loops of which something was saved, have the gradients of the ops in their
  // functions, of any order; a composite those of the ops that it is built of.
  const bool of_others =
      def.composite != nullptr || def.role == Role::call || def.role == Role::saved;
  if (of_others && entry.reason.empty()) {
    entry.gradient = entry.second = Flow::yes;
  } else if (def.grad != nullptr) {
    const detail::GradientTrial found = detail::try_gradients(registry, *entry.op);
    entry.gradient = found.first ? Flow::yes : Flow::no;
    entry.second = found.second ? Flow::yes : Flow::no;
    entry.reason = found.refusal;
  }
  if (!entry.reason.empty()) entry.gradient = entry.second = Flow::none;
}

CatalogueEntry describe(const OpTable& table, const OpInfo& op, std::string file) {
  CatalogueEntry entry{.op = &op, .group = group_of(file), .internal = is_internal_op(op.def.name)};
  entry.file = std::move(file);
  find_gradients(table.ops, entry);
  for (const DeviceType& type : table.devices.all())
    if (const auto* kernel = table.kernels.find(op.def.name, type.name);
        kernel != nullptr && kernel->runs != KernelRegistry::Entry::Runs::beside_gpu)
      entry.devices.push_back(type.name);
  for (const detail::OtherNames& other : detail::other_names()) {
    if (other.op != op.def.name) continue;
    entry.tensorflow = other.tensorflow;
    entry.paper = other.paper;
  }
  return entry;
}

std::string list(const std::vector<std::string>& parts, std::string_view none = "") {
  return parts.empty() ? std::string(none) : fmt::format("{}", fmt::join(parts, ", "));
}

// Lines of at most 98 columns, indented by two.
std::string wrapped(const std::string& text) {
  std::string out, line = " ";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (line.size() + 1 + (end - at) > 98) out += line + "\n", line = " ";
    line += " " + text.substr(at, end - at);
    at = end + 1;
  }
  return out + line + "\n";
}

// Why there is no kernel where none is needed.
std::string where(const CatalogueEntry& entry) {
  if (!entry.devices.empty()) return list(entry.devices);
  return entry.op->def.role == Role::kernel ? "none" : "any: the runtime executes it";
}

std::string gradient_text(const CatalogueEntry& entry) {
  if (entry.gradient == Flow::none) return "none: " + entry.reason;
  return fmt::format("{}, of second order {}", flow_name(entry.gradient), flow_name(entry.second));
}

// Of a cell: a bar would end it.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

// The first sentence of the documentation. Three dots end none.
std::string summary(const std::string& doc) {
  for (std::size_t at = 1; at + 1 < doc.size(); ++at) {
    const bool end = doc[at] == '.' && doc[at - 1] != '.' && doc[at + 1] == ' ';
    if (end) return doc.substr(0, at + 1);
  }
  return doc;
}

// Long lists of dtypes in a word each; the page says which.
std::string short_dtypes(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"f32 f64 f16 bf16", "floats"},
      {"i8 i16 i32 i64 u8 u16 u32 u64", "integers"},
      {"c64 c128", "complex"}};
  for (const auto& [types, word] : kWords)
    if (const std::size_t at = text.find(types); at != std::string::npos)
      text.replace(at, types.size(), word);
  return text;
}

std::string row(const CatalogueEntry& entry) {
  const OpDef& def = entry.op->def;
  std::vector<std::string> others;
  if (!entry.tensorflow.empty()) others.push_back(entry.tensorflow);
  if (!entry.paper.empty()) others.push_back(entry.paper + " (paper)");
  return fmt::format("| `{}` | {} | {} | {} | {} | {} / {} | {} | {} | {} |\n", def.name,
                     cell(code(list(def.in))), cell(code(list(def.out))),
                     cell(code(list(def.attrs))), cell(short_dtypes(entry.dtypes())),
                     flow_name(entry.gradient), flow_name(entry.second),
                     list(entry.devices, "runtime"), cell(list(others)), cell(summary(def.doc)));
}

bool is_named(const CatalogueEntry& entry, std::string_view name) {
  if (name.empty()) return false;
  if (entry.paper == name || entry.tensorflow == name) return true;
  const std::size_t both = entry.tensorflow.find(" / ");  // one op here, two there
  return both != std::string::npos && (std::string_view(entry.tensorflow).substr(0, both) == name ||
                                       std::string_view(entry.tensorflow).substr(both + 3) == name);
}

}  // namespace

std::string_view flow_name(Flow flow) {
  return flow == Flow::yes ? "yes" : flow == Flow::no ? "no" : "none";
}

bool is_internal_op(std::string_view name) {
  return name.starts_with('_') || name.ends_with("Grad") || name.ends_with("When");
}

std::string CatalogueEntry::dtypes() const {
  const AttrSpec* type = op->attr("T");
  if (type == nullptr) return "";
  std::vector<std::string_view> names;
  for (DType dtype : type->types) names.push_back(dtype_name(dtype));
  return names.empty() ? "any" : fmt::format("{}", fmt::join(names, " "));
}

std::vector<CatalogueEntry> catalogue(const OpTable& table) {
  const auto files = detail::op_files();
  std::vector<CatalogueEntry> entries;
  for (const OpInfo* op : table.ops.all()) {
    auto file = files.find(op->def.name);
    entries.push_back(describe(table, *op, file == files.end() ? "" : file->second));
  }
  return entries;
}

Expected<const CatalogueEntry*> find_op(const std::vector<CatalogueEntry>& entries,
                                        std::string_view name) {
  std::vector<std::string> known;
  for (const CatalogueEntry& entry : entries) {
    if (entry.op->def.name == name) return &entry;
    known.push_back(entry.op->def.name);
  }
  for (const CatalogueEntry& entry : entries)
    if (is_named(entry, name)) return &entry;
  const std::vector<std::string> near = near_names(name, known);
  return not_found(fmt::format("there is no op {}{}{}{}", quoted(name),
                               near.empty() ? "" : "; did you mean ", list(near),
                               near.empty() ? "" : "?"));
}

std::vector<CatalogueFinding> check_catalogue(const std::vector<CatalogueEntry>& entries) {
  std::vector<CatalogueFinding> findings;
  for (const CatalogueEntry& entry : entries) {
    if (entry.internal) continue;
    const OpDef& def = entry.op->def;
    auto lacks = [&](bool it, std::string what) {
      if (it) findings.push_back({def.name, std::move(what)});
    };
    lacks(def.doc.size() < 5 || !def.doc.ends_with('.'), "documentation of whole sentences");
    const bool composite = def.composite != nullptr;
    lacks(!composite && def.shape == nullptr, "a shape function");
    const bool on_cpu =
        std::find(entry.devices.begin(), entry.devices.end(), "CPU") != entry.devices.end();
    lacks(def.role == Role::kernel && !composite && !on_cpu, "a CPU kernel");
    lacks(entry.gradient == Flow::no, "a gradient, or the reason why it has none (no_gradient)");
    lacks(entry.gradient == Flow::yes && entry.second == Flow::no, "a gradient of second order");
  }
  for (const detail::OtherNames& other : detail::other_names())
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const CatalogueEntry& e) { return e.op->def.name == other.op; }))
      findings.push_back({std::string(other.op), "a definition: only catalogue_names.cpp has it"});
  return findings;
}

std::string op_text(const CatalogueEntry& entry) {
  const OpDef& def = entry.op->def;
  std::string out = def.name + "\n" + wrapped(def.doc);
  auto lines = [&](std::string_view title, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    out += fmt::format("{}:\n", title);
    for (const std::string& text : texts) out += "  " + text + "\n";
  };
  auto line = [&](std::string_view title, const std::string& text) {
    if (!text.empty()) out += fmt::format("{:<12}{}\n", std::string(title) + ":", text);
  };
  lines("inputs", def.in);
  lines("outputs", def.out);
  lines("attributes", def.attrs);
  line("T", entry.dtypes());
  line("on the host", list(def.host));
  line("gradient", gradient_text(entry));
  line("kernels", where(entry));
  line("TensorFlow", entry.tensorflow);
  line("paper", entry.paper);
  line("defined in", entry.file);
  return out;
}

std::string catalogue_markdown(const std::vector<CatalogueEntry>& entries) {
  std::map<std::string, std::string> tables;
  std::size_t ops = 0;
  for (const CatalogueEntry& entry : entries) {
    if (entry.internal) continue;
    tables[entry.group] += row(entry);
    ++ops;
  }
  std::string out = fmt::format(
      R"(# Ops

<!-- Written by troupe-gen from the op definitions; do not edit. `./dev gen` writes it again. -->

The {} ops that programs use, by the folder of `ops/kernels/` that defines them. `troupe ops NAME` prints
one in full. Those that only gradients and the runtime add are left out: `troupe ops --all`.

- Inputs and outputs are of dtype `T` unless their name is followed by another type; `T...` is a list.
- Dtypes are those of `T`: "floats" are f32, f64, f16 and bf16; "integers" i8 to i64 and u8 to u64; "complex"
  c64 and c128.
- Attributes without a default must be given, or follow from the inputs.
- Gradient: of first / of second order. "none": by the op's nature, such as one of integers; `troupe ops NAME`
  says why.
- Kernels: the types of device that have one. "runtime": executed by the runtime on any device, such as what
  reads a variable or calls a function.
- Elsewhere: the name of the op in TensorFlow, or in Table 1 of its paper, where that differs.
)",
      ops);
  for (const auto& [group, rows] : tables)
    out += fmt::format(
        "\n## {}\n\n| Op | Inputs | Outputs | Attributes | Dtypes | Gradient | Kernels | Elsewhere "
        "| "
        "What it does |\n|---|---|---|---|---|---|---|---|---|\n{}",
        group, rows);
  return out;
}

}  // namespace troupe::ops
