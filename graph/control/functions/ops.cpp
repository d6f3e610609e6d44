#include "graph/control/functions/ops.hpp"

namespace troupe {

std::vector<std::string> functions_of(const NodeDef& call) {
  auto text = [&](const char* name) { return *call.attrs.at(name).get<std::string>(); };
  if (call.op == "Call") return {text("function")};
  if (call.op == "If") return {text("else_branch"), text("then_branch")};
  if (call.op == "While") return {text("cond"), text("body")};
  return *call.attrs.at("branches").get<std::vector<std::string>>();
}

void set_functions_of(std::string_view op, AttrMap& attrs, const std::vector<std::string>& names) {
  auto set = [&](const char* attr, Attr value) { attrs.insert_or_assign(attr, std::move(value)); };
  if (op == "Call") return set("function", Attr(names[0]));
  if (op == "Case") return set("branches", Attr(names));
  const bool branches = op == "If";
  set(branches ? "else_branch" : "cond", Attr(names[0]));
  set(branches ? "then_branch" : "body", Attr(names[1]));
}

std::size_t loop_variables(const NodeDef& loop) {
  return std::size_t(*loop.attrs.at("variables").get<std::int64_t>());
}

PartialShape common_shape(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank() || a.rank() != b.rank()) return PartialShape::unknown();
  PartialShape out = a;
  for (int i = 0; i < a.rank(); ++i)
    if (a[i] != b[i]) out.set_dim(i, PartialShape::kUnknown);
  return out;
}

}  // namespace troupe
