#include "graph/op_def.hpp"

#include "graph/detail/node_check.hpp"

namespace troupe {

OpDef::~OpDef() = default;

NodeId GraphDef::find(std::string_view name) const {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].name == name) return NodeId(i);
  return kNoNode;
}

const FunctionDef* GraphDef::function(std::string_view name) const {
  for (const FunctionDef& f : functions)
    if (f.name == name) return &f;
  return nullptr;
}

DType ArgSpec::type(const AttrMap& attrs) const {
  if (kind == Kind::fixed) return dtype;
  const DType said = *attrs.find(type_attr)->second.get<DType>();
  return derived != nullptr ? derived(said) : said;
}

const AttrSpec* OpInfo::attr(std::string_view name) const {
  for (const AttrSpec& spec : attrs)
    if (spec.name == name) return &spec;
  return nullptr;
}

DType OpInfo::held_by(const ArgSpec& arg, const AttrMap& attrs) const {
  if (arg.held != DType::invalid) return arg.held;
  auto t = attrs.find("T");
  const DType* type = t == attrs.end() ? nullptr : t->second.get<DType>();
  return type ? *type : DType::invalid;
}

std::string OpInfo::input_name(const NodeDef& node, int i) const {
  return detail::input_label(*this, node.attrs, i);
}

}  // namespace troupe
