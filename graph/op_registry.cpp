#include "graph/op_registry.hpp"

#include <algorithm>

#include "graph/detail/op_parser.hpp"
#include "graph/detail/suggest.hpp"

namespace troupe {

Status OpRegistry::add(OpDef def) {
  TROUPE_TRY(OpInfo info, detail::parse_op(std::move(def)));
  std::string name = info.def.name;
  auto [at, added] = ops_.try_emplace(std::move(name), std::move(info));
  if (!added) return already_exists("op '" + at->first + "' is registered already");
  return ok_status();
}

const OpInfo* OpRegistry::find(std::string_view name) const {
  auto at = ops_.find(name);
  return at == ops_.end() ? nullptr : &at->second;
}

Expected<const OpInfo*> OpRegistry::lookup(std::string_view name) const {
  if (const OpInfo* op = find(name)) return op;
  std::vector<std::string> known;
  for (const OpInfo* op : all()) known.push_back(op->def.name);
  return not_found("there is no op " + quoted(name) + detail::suggest(name, known));
}

std::vector<const OpInfo*> OpRegistry::all() const {
  std::vector<const OpInfo*> out;
  for (const auto& [name, info] : ops_) out.push_back(&info);
  std::ranges::sort(out, {}, [](const OpInfo* op) { return std::string_view(op->def.name); });
  return out;
}

}  // namespace troupe
