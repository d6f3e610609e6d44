#include "graph/detail/op_parser.hpp"

#include <algorithm>
#include <set>

#include "graph/detail/attr_parser.hpp"

namespace troupe::detail {
namespace {

// Of outputs: what stands before the attribute whose dtype theirs is made of.
constexpr std::pair<std::string_view, DType (*)(DType)> kDerived[] = {{"real of ", real_of},
                                                                      {"complex of ", complex_of}};

// Takes one definition apart; `info_` is what becomes of it.
class OpParser {
 public:
  explicit OpParser(OpDef def) { info_.def = std::move(def); }

  Expected<OpInfo> parse() {
    OpDef& def = info_.def;
    if (!valid_word(def.name)) return invalid_argument("an op's name is letters, digits and _");
    def.stateful = def.stateful || def.random;
    TROUPE_TRY(declared_attrs());
    TROUPE_TRY(type_attr());
    for (const std::string& text : def.in) TROUPE_TRY(argument(text, info_.in));
    for (const std::string& text : def.out) TROUPE_TRY(argument(text, info_.out));
    TROUPE_TRY(host());
    TROUPE_TRY(reduce());
    TROUPE_TRY(consistent());
    return std::move(info_);
  }

 private:
  AttrSpec* attr(std::string_view name) { return const_cast<AttrSpec*>(info_.attr(name)); }

  Status declared_attrs() {
    for (const std::string& text : info_.def.attrs) {
      TROUPE_TRY(AttrSpec spec, parse_attr(text));
      if (attr(spec.name)) return invalid_argument("attribute '" + spec.name + "' stands twice");
      info_.attrs.push_back(std::move(spec));
    }
    return ok_status();
  }

  // `types` declares T, or says which types a T of the attributes may be.
  Status type_attr() {
    if (info_.def.types.empty()) return ok_status();
    std::vector<DType> types;
    for (std::string_view word : words(info_.def.types)) {
      auto type = parse_dtype(word);
      if (!type) return invalid_argument("types: '" + std::string(word) + "' is no dtype");
      types.push_back(*type);
    }
    AttrSpec* t = attr("T");
    if (!t) t = &*info_.attrs.insert(info_.attrs.begin(), AttrSpec{.name = "T", .kind = "type"});
    if (t->kind != "type") return invalid_argument("attribute T must be a type");
    if (!t->types.empty()) return invalid_argument("the types of T are declared twice");
    t->types = std::move(types);
    return check_fallback(*t);
  }

  Status argument(const std::string& text, std::vector<ArgSpec>& list) {
    std::size_t colon = text.find(':');
    ArgSpec arg{.name = std::string(trim(std::string_view(text).substr(0, colon)))};
    if (!valid_word(arg.name)) return invalid_argument("'" + text + "' is no argument");
    for (const ArgSpec& other : list)
      if (other.name == arg.name) return invalid_argument("argument '" + arg.name + "' twice");
    std::string_view type = colon == std::string::npos
                                ? std::string_view("T")
                                : trim(std::string_view(text).substr(colon + 1));
    constexpr std::string_view kHandleOf = "resource of ";
    if (type.starts_with(kHandleOf)) {
      auto held = parse_dtype(type.substr(kHandleOf.size()));
      if (!held || *held == DType::invalid || *held == DType::resource)
        return invalid_argument("argument '" + text + "': a handle is of a dtype");
      arg.held = *held;
      type = type.substr(0, kHandleOf.find(' '));
    }
    for (const auto& [prefix, derived] : kDerived)
      if (type.starts_with(prefix) && &list == &info_.out) {
        arg.derived = derived;
        type.remove_prefix(prefix.size());
        break;
      }
    bool many = type.ends_with("...");
    if (many) type.remove_suffix(3);
    if (auto dtype = parse_dtype(type); dtype && !many && *dtype != DType::invalid) {
      arg.kind = ArgSpec::Kind::fixed;
      arg.dtype = *dtype;
    } else if (!valid_word(type) || dtype) {
      return invalid_argument("argument '" + text + "': '" + std::string(type) + "' is no type");
    } else {
      arg.type_attr = std::string(type);
      TROUPE_TRY(arg.kind, kind_of(arg, many));
    }
    if (arg.derived != nullptr) TROUPE_TRY(check_derived(arg, text));
    list.push_back(std::move(arg));
    return ok_status();
  }

  Status check_derived(const ArgSpec& arg, const std::string& text) const {
    const AttrSpec* type = arg.kind == ArgSpec::Kind::attr ? info_.attr(arg.type_attr) : nullptr;
    if (type == nullptr || type->types.empty())
      return invalid_argument("argument '" + text + "' is made of no declared types");
    for (DType t : type->types)
      if (arg.derived(t) == DType::invalid)
        return invalid_argument("argument '" + text + "': there is none for " +
                                std::string(dtype_name(t)));
    return ok_status();
  }

  // Finds or makes the attributes that a polymorphic argument stands on.
  Expected<ArgSpec::Kind> kind_of(const ArgSpec& arg, bool many) {
    const AttrSpec* type = attr(arg.type_attr);
    if (!type && many && arg.type_attr == "types") {
      info_.attrs.push_back({.name = "types", .kind = "list(type)"});
      return ArgSpec::Kind::types;
    }
    if (!type && arg.type_attr == "T") {  // no `types`: any element type
      info_.attrs.insert(info_.attrs.begin(), AttrSpec{.name = "T", .kind = "type"});
      type = attr("T");
    }
    if (!type)
      return invalid_argument("argument '" + arg.name + "' has type " + arg.type_attr +
                              ", which no attribute declares");
    if (many && type->kind == "list(type)") return ArgSpec::Kind::types;
    if (type->kind != "type")
      return invalid_argument("attribute '" + arg.type_attr + "' is used as a type but is a " +
                              type->kind);
    if (!many) return ArgSpec::Kind::attr;
    if (const AttrSpec* n = attr("N"); n && n->kind != "int")
      return invalid_argument("attribute N must be an int");
    if (!attr("N")) info_.attrs.push_back({.name = "N", .kind = "int"});
    return ArgSpec::Kind::list;
  }

  Status host() {
    for (const std::string& name : info_.def.host) {
      bool found = false;
      for (auto* list : {&info_.in, &info_.out})
        for (ArgSpec& arg : *list)
          if (arg.name == name) found = arg.host = true;
      if (!found) return invalid_argument("host: there is no argument '" + name + "'");
    }
    return ok_status();
  }

  Status reduce() {
    for (const std::string& name : info_.def.reduce)
      if (std::none_of(info_.in.begin(), info_.in.end(),
                       [&](const ArgSpec& arg) { return arg.name == name; }))
        return invalid_argument("reduce: there is no input '" + name + "'");
    return ok_status();
  }

  Status consistent() {
    const OpDef& def = info_.def;
    if (def.grad && !def.no_gradient.empty())
      return invalid_argument("has a gradient function and no_gradient");
    if (def.commutative && (info_.in.size() != 2 || info_.in[0].kind == ArgSpec::Kind::list ||
                            info_.in[0].kind == ArgSpec::Kind::types))
      return invalid_argument("commutative ops have two inputs");
    if (def.role == Role::kernel && !def.reduce.empty() &&
        (info_.in.size() != 1 || info_.in[0].kind != ArgSpec::Kind::list))
      return invalid_argument("a kernel that reduces takes one list");
    if (def.composite && def.role != Role::kernel)
      return invalid_argument("a composite has no role of its own");
    return ok_status();
  }

  OpInfo info_;
};

}  // namespace

Expected<OpInfo> parse_op(OpDef def) {
  std::string name = def.name;
  auto info = OpParser(std::move(def)).parse();
  if (!info.ok()) return invalid_argument("op '" + name + "': " + info.status().message());
  return info;
}

}  // namespace troupe::detail
