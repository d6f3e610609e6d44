#include "graph/detail/node_check.hpp"

#include <algorithm>

#include "graph/detail/attr_parser.hpp"
#include "graph/detail/suggest.hpp"

namespace troupe::detail {
namespace {

using Inputs = std::span<const InferenceContext::Input>;
using Kind = ArgSpec::Kind;

template <class T>
const T* find_attr(const AttrMap& attrs, std::string_view name) {
  auto at = attrs.find(name);
  return at == attrs.end() ? nullptr : at->second.get<T>();
}

// How many flat inputs `arg` takes; nullopt while its attribute is missing.
std::optional<std::int64_t> count_of(const ArgSpec& arg, const AttrMap& attrs) {
  if (arg.kind == Kind::list) {
    auto* n = find_attr<std::int64_t>(attrs, "N");
    return n ? std::optional(*n) : std::nullopt;
  }
  if (arg.kind == Kind::types) {
    auto* types = find_attr<std::vector<DType>>(attrs, arg.type_attr);
    return types ? std::optional(std::int64_t(types->size())) : std::nullopt;
  }
  return 1;
}

std::string signature(const OpInfo& op) {
  std::string out;
  for (const ArgSpec& arg : op.in) {
    bool many = arg.kind == Kind::list || arg.kind == Kind::types;
    out += (out.empty() ? "" : ", ") + arg.name + (many ? "..." : "");
  }
  return out.empty() ? "none" : out;
}

// One node on its way through the check.
class Check {
 public:
  Check(const OpInfo& op, NodeDef& node, Inputs inputs, FunctionRef<std::string(int)> producer)
      : op_(op), node_(node), inputs_(inputs), producer_(producer) {}

  Status run() {
    TROUPE_TRY(given_attrs());
    TROUPE_TRY(counts());
    TROUPE_TRY(types());
    TROUPE_TRY(defaults());
    TROUPE_TRY(input_types());
    return outputs();
  }

 private:
  Status given_attrs() {
    for (auto& [name, value] : node_.attrs) {
      const AttrSpec* spec = op_.attr(name);
      if (!spec) return unknown_attr(name);
      TROUPE_TRY(accept(*spec, value));
    }
    return ok_status();
  }

  Status unknown_attr(const std::string& name) {
    std::vector<std::string> known;
    for (const AttrSpec& spec : op_.attrs) known.push_back(spec.name);
    return invalid_argument("has no attribute " + quoted(name) + suggest(name, known));
  }

  Status wrong_count(std::string_view what) {
    return invalid_argument("takes " + std::string(what) + " (" + signature(op_) + "), got " +
                            std::to_string(inputs_.size()));
  }

  // The length of the one list whose attribute is missing follows from the number of inputs. All
  // "T..." arguments share the length N.
  Status counts() {
    if (inputs_.size() > kMaxPorts) return wrong_count("at most 65535 inputs");
    std::int64_t rest = std::int64_t(inputs_.size()), lists = 0;
    const ArgSpec* open = nullptr;  // a "types..." argument without its attribute
    for (const ArgSpec& arg : op_.in) {
      std::optional<std::int64_t> n = count_of(arg, node_.attrs);
      if (n && (*n < 0 || *n > std::int64_t(kMaxPorts)))
        return invalid_argument("attribute 'N' is " + std::to_string(*n));
      if (n) rest -= *n;
      if (n) continue;
      if (arg.kind == Kind::list) ++lists;
      if (arg.kind == Kind::types && open)
        return invalid_argument("attribute '" + open->type_attr + "' is missing");
      if (arg.kind == Kind::types) open = &arg;
    }
    if (lists > 0 && open) return invalid_argument("attribute 'N' is missing");
    if (rest < 0 || (lists == 0 && !open && rest > 0))
      return wrong_count(std::to_string(std::int64_t(inputs_.size()) - rest) + " inputs");
    if (lists > 0) {
      if (rest % lists != 0) return wrong_count("lists of one length");
      node_.attrs.emplace("N", Attr(rest / lists));
    }
    if (open) node_.attrs.emplace(open->type_attr, Attr(types_at(*open, rest)));
    auto* n = find_attr<std::int64_t>(node_.attrs, "N");
    bool counted = std::any_of(op_.in.begin(), op_.in.end(),
                               [](const ArgSpec& arg) { return arg.kind == Kind::list; });
    return counted && n && *n < 1 ? wrong_count("at least one of a list") : ok_status();
  }

  std::vector<DType> types_at(const ArgSpec& open, std::int64_t count) {
    std::int64_t first = 0;
    for (const ArgSpec& arg : op_.in) {
      if (&arg == &open) break;
      first += count_of(arg, node_.attrs).value_or(0);
    }
    std::vector<DType> out;
    for (std::int64_t i = first; i < first + count; ++i)
      out.push_back(inputs_[std::size_t(i)].dtype);
    return out;
  }

  // Type attributes not given are what the first input of that type says.
  Status types() {
    std::int64_t i = 0;
    for (const ArgSpec& arg : op_.in) {
      const std::int64_t n = count_of(arg, node_.attrs).value_or(0);
      if ((arg.kind == Kind::attr || arg.kind == Kind::list) && n > 0 &&
          !node_.attrs.contains(arg.type_attr)) {
        Attr type(inputs_[std::size_t(i)].dtype);
        if (Status s = accept(*op_.attr(arg.type_attr), type); !s.ok())
          return invalid_argument(arg.name + " is " + type.text() + " (from " + producer_(int(i)) +
                                  "), but " + s.message());
        node_.attrs.emplace(arg.type_attr, std::move(type));
      } else if (arg.kind == Kind::types) {  // may have been filled in from the inputs
        TROUPE_TRY(accept(*op_.attr(arg.type_attr), node_.attrs.at(arg.type_attr)));
      }
      i += n;
    }
    return ok_status();
  }

  Status defaults() {
    for (const AttrSpec& spec : op_.attrs) {
      if (node_.attrs.contains(spec.name)) continue;
      if (!spec.fallback)
        return invalid_argument("attribute '" + spec.name + "' (" + spec.kind + ") is missing");
      node_.attrs.emplace(spec.name, *spec.fallback);
    }
    return ok_status();
  }

  Status input_types() {
    TROUPE_TRY(std::vector<DType> wanted, arg_types(op_.in, node_.attrs));
    if (wanted.size() != inputs_.size())
      return wrong_count(std::to_string(wanted.size()) + " inputs");
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (inputs_[i].dtype != wanted[i])
        return invalid_argument("Input " + std::to_string(i) + " of node " + node_.name +
                                " was passed " + std::string(dtype_name(inputs_[i].dtype)) +
                                " from " + producer_(int(i)) + ", expected " +
                                std::string(dtype_name(wanted[i])) + " (argument " +
                                input_label(op_, node_.attrs, int(i)) + ")");
    return ok_status();
  }

  // Where the op's function asks a shape for what is not there, that is its error.
  Status infer(InferenceContext& context) {
    try {
      return op_.def.shape ? op_.def.shape(context) : ok_status();
    } catch (const Error& e) {
      return e.status();
    }
  }

  Status outputs() {
    TROUPE_TRY(node_.out_types, arg_types(op_.out, node_.attrs));
    InferenceContext context(op_, node_.attrs, inputs_, node_.out_types.size());
    TROUPE_TRY(infer(context));
    node_.out_shapes = context.result();
    for (const PartialShape& shape : node_.out_shapes) {
      if (!shape.known_rank()) continue;
      TROUPE_TRY(PartialShape::make(shape.dims()));
      // The element count of a known shape must fit, and be computed without a check later.
      if (shape.fully_known()) TROUPE_TRY(Shape::make(shape.dims()));
    }
    return ok_status();
  }

  const OpInfo& op_;
  NodeDef& node_;
  Inputs inputs_;
  FunctionRef<std::string(int)> producer_;
};

}  // namespace

Expected<std::vector<DType>> arg_types(const std::vector<ArgSpec>& args, const AttrMap& attrs) {
  std::vector<DType> out;
  for (const ArgSpec& arg : args) {
    std::int64_t n = count_of(arg, attrs).value_or(0);
    if (n < 0 || std::uint64_t(n) + out.size() > kMaxPorts)
      return invalid_argument("argument '" + arg.name + "' is a list of " + std::to_string(n));
    if (arg.kind == Kind::types) {
      auto& types = *find_attr<std::vector<DType>>(attrs, arg.type_attr);
      out.insert(out.end(), types.begin(), types.end());
    } else {
      out.insert(out.end(), std::size_t(n), arg.type(attrs));
    }
  }
  return out;
}

std::string input_label(const OpInfo& op, const AttrMap& attrs, int i) {
  for (const ArgSpec& arg : op.in) {
    std::int64_t n = count_of(arg, attrs).value_or(0);
    bool many = arg.kind == Kind::list || arg.kind == Kind::types;
    if (i < n) return many ? arg.name + "[" + std::to_string(i) + "]" : arg.name;
    i -= int(n);
  }
  return "input " + std::to_string(i);
}

Status check_name_of_program(std::string_view name) {
  if (!name.starts_with('.')) return ok_status();
  return invalid_argument(quoted(name) +
                          " begins with a dot, as only the names of nodes that a session adds do");
}

Status check_site(const Site& site) {
  constexpr std::size_t kMaxFile = 4096;
  const bool printable = std::none_of(site.file.begin(), site.file.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (printable && site.file.size() <= kMaxFile) return ok_status();
  return invalid_argument("the site's file name is not printable");
}

Status check_handle(const OpInfo& op, const NodeDef& node, int i, const NodeDef& handle) {
  if (std::size_t(i) >= op.in.size() || op.in[std::size_t(i)].dtype != DType::resource)
    return ok_status();
  auto differs = [&](const Attr& wanted, const Attr& is) {
    return invalid_argument(input_label(op, node.attrs, i) + " of node '" + node.name + "' (" +
                            node.op + ") must be a handle of " + wanted.text() + ", but '" +
                            handle.name + "' (" + handle.op + ") is of " + is.text());
  };
  auto type = handle.attrs.find("T");
  DType wanted = op.held_by(op.in[std::size_t(i)], node.attrs);
  if (type != handle.attrs.end() && wanted != DType::invalid && type->second != Attr(wanted))
    return differs(wanted, type->second);
  auto mine = node.attrs.find("types"), its = handle.attrs.find("types");
  if (mine != node.attrs.end() && its != handle.attrs.end() && mine->second != its->second)
    return invalid_argument(node.op + " of " + mine->second.text() + " cannot use the handle '" +
                            handle.name + "' (" + handle.op + " of " + its->second.text() + ")");
  return ok_status();
}

Status check_node(const OpInfo& op, NodeDef& node, Inputs inputs,
                  FunctionRef<std::string(int)> producer) {
  Status s = Check(op, node, inputs, producer).run();
  if (s.ok()) return s;
  return Status::from_parts(s.code(), op.def.name + ": " + s.message(), s.site(), s.trail());
}

}  // namespace troupe::detail
