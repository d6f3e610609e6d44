#include "ops/gen/wrapper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "graph/node_query.hpp"

namespace troupe::gen {

namespace {

using Kind = ArgSpec::Kind;

// Words a function or parameter cannot have: keywords that are plausible names, and macros.
constexpr std::array<std::string_view, 34> kTaken = {
    "and",    "assert",  "auto",   "bool",   "break", "case", "char",  "class",  "const",
    "delete", "default", "do",     "double", "else",  "enum", "errno", "export", "float",
    "for",    "if",      "int",    "long",   "new",   "not",  "or",    "return", "short",
    "signed", "static",  "switch", "this",   "union", "void", "while"};

struct KindType {
  std::string_view kind, type;
};
constexpr std::array<KindType, 12> kTypes = {{{"int", "std::int64_t"},
                                              {"float", "double"},
                                              {"bool", "bool"},
                                              {"string", "std::string"},
                                              {"type", "DType"},
                                              {"shape", "PartialShape"},
                                              {"tensor", "Tensor"},
                                              {"list(int)", "std::vector<std::int64_t>"},
                                              {"list(float)", "std::vector<double>"},
                                              {"list(string)", "std::vector<std::string>"},
                                              {"list(type)", "std::vector<DType>"},
                                              {"list(shape)", "std::vector<PartialShape>"}}};

std::string_view type_of(const AttrSpec& attr) {
  for (const KindType& k : kTypes)
    if (k.kind == attr.kind) return k.type;
  return "Attr";
}

// Whether moving a value of this kind saves a copy.
bool is_moved(const AttrSpec& attr) {
  return attr.kind != "int" && attr.kind != "float" && attr.kind != "bool" && attr.kind != "type";
}

std::string dtype_literal(DType type) {
  std::string name(dtype_name(type));
  return "DType::" + (name == "bool" ? "bool_" : name);
}

std::string shape_literal(const PartialShape& shape) {
  if (!shape.known_rank()) return "PartialShape()";
  if (shape.rank() == 0) return "PartialShape::scalar()";
  return fmt::format("PartialShape{{{}}}", fmt::join(shape.dims(), ", "));
}

std::string number_literal(double v) {
  if (std::isnan(v)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(v))
    return std::string(v < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
  return fmt::format("{}", v);
}

std::string text_literal(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

template <class T, class F>
std::string list_literal(const std::vector<T>& list, F element) {
  std::vector<std::string> parts;
  for (const T& v : list) parts.push_back(element(v));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

// The default of an attribute as C++ writes it.
struct Literal {
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return number_literal(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return text_literal(v); }
  std::string operator()(DType v) const { return dtype_literal(v); }
  std::string operator()(const PartialShape& v) const { return shape_literal(v); }
  std::string operator()(const Tensor&) const { return "{}"; }
  template <class T>
  std::string operator()(const std::vector<T>& v) const {
    return list_literal(v, [](const T& e) { return Literal()(e); });
  }
};

// What becomes of one attribute in the wrapper.
enum class Place { inferred, parameter, option };

// Options that say where in a shape something happens, or how far. Where one of them is the first
// of an op's options, the options can be given by position, too.
constexpr std::array<std::string_view, 5> kPlaces = {"axis", "axes", "perm", "strides", "padding"};

bool is_many(const ArgSpec& arg) { return arg.kind == Kind::list || arg.kind == Kind::types; }

Place place_of(const OpInfo& op, const AttrSpec& attr) {
  for (const ArgSpec& arg : op.in) {
    if (arg.kind != Kind::fixed && arg.type_attr == attr.name) return Place::inferred;
    if (arg.kind == Kind::list && attr.name == "N") return Place::inferred;
  }
  return attr.fallback ? Place::option : Place::parameter;
}

std::string safe(std::string name) {
  if (std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end()) name += '_';
  return name;
}

std::string parameter_name(const AttrSpec& attr) {
  return attr.name == "T" ? "dtype" : snake_case(attr.name);
}

// Lines of at most 100 columns, each behind "// ".
std::string comment(const std::string& text) {
  std::string out, line = "//";
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find(' ', at), text.size());
    if (line.size() + 1 + (end - at) > 100) out += line + "\n", line = "//";
    line += " " + text.substr(at, end - at);
    at = end + 1;
  }
  return out + line + "\n";
}

// Collects one wrapper's pieces.
class Writer {
 public:
  explicit Writer(const OpInfo& op) : op_(op), name_(op.def.name) {
    for (const AttrSpec& attr : op.attrs) places_.push_back(place_of(op, attr));
    const auto operands = std::count_if(op.in.begin(), op.in.end(), is_of_T);
    const bool gradient = !op.in.empty() && op.in[0].name == "dy";
    takes_numbers_ = op.def.elementwise && operands > 1 && !gradient;
  }

  Wrapper write() {
    Wrapper w;
    w.declaration = options() + results() + comment(op_.def.name + ": " + op_.def.doc) +
                    signature(true) + ";\n" + by_position();
    w.definition = signature(false) + " {\n" + body() + "}\n";
    return w;
  }

 private:
  static bool is_of_T(const ArgSpec& arg) { return arg.kind == Kind::attr && arg.type_attr == "T"; }
  // A number in the place of such an input becomes a constant of the other ones' dtype.
  bool is_operand(const ArgSpec& arg) const { return takes_numbers_ && is_of_T(arg); }

  bool has_options() const {
    return std::find(places_.begin(), places_.end(), Place::option) != places_.end();
  }
  bool needs_graph() const { return op_.in.empty(); }
  bool lists_outputs() const { return std::any_of(op_.out.begin(), op_.out.end(), is_many); }

  std::string options() const {
    if (!has_options()) return "";
    std::string out = "struct " + name_ + "Options {\n";
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const AttrSpec& attr = op_.attrs[i];
      if (places_[i] != Place::option) continue;
      out += fmt::format("  {} {} = {};", type_of(attr), parameter_name(attr),
                         std::visit(Literal(), attr.fallback->value()));
      if (!attr.strings.empty()) out += "  // " + fmt::format("{}", fmt::join(attr.strings, ", "));
      out += "\n";
    }
    return out + "};\n";
  }

  std::string results() const {
    if (op_.out.size() < 2 || lists_outputs()) return "";
    std::string out = "struct " + name_ + "Outputs {\n";
    for (const ArgSpec& arg : op_.out) out += "  Output " + safe(snake_case(arg.name)) + ";\n";
    return out + "};\n";
  }

  std::string result_type() const {
    if (op_.out.empty()) return "Op";
    if (lists_outputs()) return "std::vector<Output>";
    return op_.out.size() == 1 ? "Output" : name_ + "Outputs";
  }

  std::string signature(bool declaration) const {
    std::vector<std::string> parameters = leading_parameters();
    if (has_options())
      parameters.push_back("const " + name_ + "Options& options" + (declaration ? " = {}" : ""));
    parameters.push_back(declaration ? "Site site = Site::here()" : "Site site");
    return wrapped(result_type() + " " + snake_case(name_) + "(", parameters);
  }

  // Those before the options.
  std::vector<std::string> leading_parameters() const {
    std::vector<std::string> parameters;
    if (needs_graph()) parameters.push_back("GraphBuilder& g");
    for (const ArgSpec& arg : op_.in) {
      const char* type = is_many(arg)      ? "const std::vector<Output>& "
                         : is_operand(arg) ? "const Operand& "
                                           : "Output ";
      parameters.push_back(type + safe(snake_case(arg.name)));
    }
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i] == Place::parameter)
        parameters.push_back(
            fmt::format("{} {}", type_of(op_.attrs[i]), parameter_name(op_.attrs[i])));
    return parameters;
  }

  // The first option, if it is one of kPlaces. Not of gradients, which clients do not ask for.
  const AttrSpec* leading_place() const {
    for (const ArgSpec& arg : op_.in)
      if (arg.name == "dy") return nullptr;
    const auto first = std::find(places_.begin(), places_.end(), Place::option);
    if (first == places_.end()) return nullptr;
    const AttrSpec& attr = op_.attrs[std::size_t(first - places_.begin())];
    return std::find(kPlaces.begin(), kPlaces.end(), attr.name) == kPlaces.end() ? nullptr : &attr;
  }

  // The same function with its options as parameters, in their order. A template, so that the
  // other one is taken where both fit: sum(x, {}).
  std::string by_position() const {
    const AttrSpec* first = leading_place();
    if (!first) return "";
    const bool number = first->kind == "int";
    std::vector<std::string> parameters = leading_parameters(), arguments, set;
    for (const std::string& parameter : parameters)
      arguments.push_back(parameter.substr(parameter.rfind(' ') + 1));
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] != Place::option) continue;
      const AttrSpec& attr = op_.attrs[i];
      const std::string name = parameter_name(attr);
      set.push_back(fmt::format(".{0} = {0}", name));
      if (&attr == first)
        parameters.push_back(fmt::format("{} {}",
                                         number                     ? "T"
                                         : attr.kind == "list(int)" ? "Ints"
                                                                    : type_of(attr),
                                         name));
      else
        parameters.push_back(fmt::format("{} {} = {}", attr.kind == "bool" ? "Flag" : type_of(attr),
                                         name, std::visit(Literal(), attr.fallback->value())));
    }
    parameters.push_back("Site site = Site::here()");
    set.front() = "{" + set.front();
    set.back() += "}";
    arguments.insert(arguments.end(), set.begin(), set.end());
    arguments.push_back("std::move(site)");
    return (number ? "template <Integer T>\n" : "template <class = void>\n") +
           wrapped(result_type() + " " + snake_case(name_) + "(", parameters) + " {\n" +
           wrapped("  return " + snake_case(name_) + "(", arguments) + ";\n}\n";
  }

  static std::string wrapped(std::string line, const std::vector<std::string>& parameters) {
    std::string out;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      std::string part = parameters[i] + (i + 1 < parameters.size() ? ", " : ")");
      if (line.size() + part.size() > 98)
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n", line = "    ";
      line += part;
    }
    return out + line;
  }

  std::string inputs() const {
    bool lists = std::any_of(op_.in.begin(), op_.in.end(), is_many);
    std::vector<std::string> parts, operands;
    for (const ArgSpec& arg : op_.in)
      if (is_operand(arg)) operands.push_back("&" + safe(snake_case(arg.name)));
    for (const ArgSpec& arg : op_.in) {
      const std::string name = safe(snake_case(arg.name));
      parts.push_back(is_operand(arg) ? fmt::format("value_beside({}, {{{}}}, site)", name,
                                                    fmt::join(operands, ", "))
                                      : name);
    }
    return fmt::format("{}{}{}", lists ? "flat_inputs({" : "{", fmt::join(parts, ", "),
                       lists ? "})" : "}");
  }

  std::string body() const {
    std::string out = fmt::format("  NodeSpec node{{.op = \"{}\"}};\n", name_);
    if (!op_.in.empty()) out += "  node.inputs = " + inputs() + ";\n";
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] == Place::inferred) continue;
      const bool option = places_[i] == Place::option;
      const std::string value = (option ? "options." : "") + parameter_name(op_.attrs[i]);
      out += fmt::format("  node.attrs.emplace(\"{}\", {});\n", op_.attrs[i].name,
                         option || !is_moved(op_.attrs[i]) ? value : "std::move(" + value + ")");
    }
    out += "  node.site = std::move(site);\n";
    const std::string add = needs_graph() ? "g.add(std::move(node))" : "add_node(std::move(node))";
    if (op_.out.empty()) return out + "  return " + add + ";\n";
    if (lists_outputs()) return out + "  return " + add + ".outputs();\n";
    if (op_.out.size() == 1) return out + "  return " + add + ".output();\n";
    std::vector<std::string> outputs;
    for (std::size_t i = 0; i < op_.out.size(); ++i)
      outputs.push_back(fmt::format("op.output({})", i));
    return out + fmt::format("  Op op = {};\n  return {{{}}};\n", add, fmt::join(outputs, ", "));
  }

  const OpInfo& op_;
  const std::string& name_;
  std::vector<Place> places_;
  bool takes_numbers_ = false;
};

}  // namespace

std::string snake_case(std::string_view name) {
  auto upper = [&](std::size_t i) { return i < name.size() && name[i] >= 'A' && name[i] <= 'Z'; };
  auto lower = [&](std::size_t i) { return i < name.size() && name[i] >= 'a' && name[i] <= 'z'; };
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    // A word begins at a capital that follows a small letter, or that a small letter follows.
    if (i > 0 && upper(i) && name[i - 1] != '_' && (lower(i - 1) || lower(i + 1))) out += '_';
    out += upper(i) ? char(name[i] - 'A' + 'a') : name[i];
  }
  return safe(std::move(out));
}

bool has_wrapper(const OpInfo& op) {
  // What a client makes of these is more than a node, or not always this one: ops/api/constant.hpp,
  // variable.hpp, control.hpp, math.hpp.
  for (const char* by_hand : {"Const", "Placeholder", "Variable", "Abs"})
    if (op.def.name == by_hand) return false;
  // A session makes these, and what they carry.
  if (op.def.external.resource == "*" || op.def.external.resource == "shards") return false;
  const Role role = op.def.role;
  if (role == Role::call || role == Role::argument || role == Role::saved ||
      role == Role::switch_ || role == Role::merge || role == Role::control_trigger ||
      is_loop_role(role))
    return false;
  return op.def.role != Role::send && op.def.role != Role::recv && op.def.role != Role::copy &&
         !op.def.name.starts_with('_');
}

Wrapper write_wrapper(const OpInfo& op) { return Writer(op).write(); }

}  // namespace troupe::gen
