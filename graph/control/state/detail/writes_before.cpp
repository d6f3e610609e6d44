#include "graph/control/state/detail/writes_before.hpp"

#include <algorithm>

namespace troupe::detail {

std::size_t WritesBefore::number(const std::string& key) {
  const auto [at, added] = numbers_.try_emplace(key, writes_.size());
  if (added) writes_.emplace_back();
  return at->second;
}

void WritesBefore::come_after(NodeId id, NodeId other) {
  std::vector<std::uint32_t>& mine = of_[id];
  const std::vector<std::uint32_t>& its = of_[other];
  if (mine.size() < its.size()) mine.resize(its.size(), 0);
  for (std::size_t v = 0; v < its.size(); ++v) mine[v] = std::max(mine[v], its[v]);
}

void WritesBefore::visit(NodeId id) {
  for (Port in : nodes_[id].inputs) come_after(id, in.node);
  for (NodeId c : nodes_[id].control) come_after(id, c);
}

void WritesBefore::come_after_all(NodeId id, const std::string& key) {
  const std::vector<NodeId>& writes = writes_[number(key)];
  if (!writes.empty()) come_after(id, writes.back());
}

void WritesBefore::write(NodeId id, const std::string& key) {
  come_after_all(id, key);
  const std::size_t v = number(key);
  writes_[v].push_back(id);
  if (of_[id].size() <= v) of_[id].resize(v + 1, 0);
  of_[id][v] = std::uint32_t(writes_[v].size());
}

std::size_t WritesBefore::before(NodeId id, const std::string& key) const {
  const auto at = numbers_.find(key);
  return at == numbers_.end() || at->second >= of_[id].size() ? 0 : of_[id][at->second];
}

std::size_t WritesBefore::count(const std::string& key) const {
  const auto at = numbers_.find(key);
  return at == numbers_.end() ? 0 : writes_[at->second].size();
}

}  // namespace troupe::detail
