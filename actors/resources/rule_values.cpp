#include "actors/resources/rule_values.hpp"

#include <set>
#include <string>

#include "actors/resources/variable_store.hpp"
#include "core/hash.hpp"
#include "graph/graph.hpp"
#include "serialization/resource_state.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t kMostContributions = 1024;  // limit on replicas

void write_value(const UpdateRule& rule, StateWriter& out) {
  NodeDef node;
  node.name = rule.node;
  node.op = rule.op;
  node.attrs = rule.attrs;
  out.node(node);
  out.number(std::uint64_t(rule.combine));
  out.number(rule.replicas);
  out.number(rule.some_replicas);
  out.number(rule.targets.size());
  for (const std::string& target : rule.targets) out.text(target);
}

UpdateRule read_value(StateReader& in) {
  const NodeDef node = in.node();
  UpdateRule rule;
  rule.op = node.op;
  rule.node = node.name;
  rule.attrs = node.attrs;
  const std::uint64_t combine = in.number(), replicas = in.number();
  if (combine > std::uint64_t(Combine::rows)) in.refuse("a rule that combines in an unknown way");
  if (replicas < 1 || replicas > kMostContributions)
    in.refuse("a rule of too many replicas, or none");
  rule.combine = Combine(combine);
  rule.replicas = std::uint32_t(replicas);
  rule.some_replicas = in.flag();
  std::set<std::string> different;
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    rule.targets.push_back(in.text());
    if (!different.insert(rule.targets.back()).second) in.refuse("a rule with a target twice");
  }
  if (rule.targets.empty()) in.refuse("a rule without a target");
  return rule;
}

std::uint64_t hash_of_value(const UpdateRule& rule) {
  StateWriter out;
  write_value(rule, out);
  const ResourceState value = out.take();
  return hash_bytes(value.words.data(), value.words.size());
}

bool same_rule(const UpdateRule& a, const UpdateRule& b) {
  return a.op == b.op && a.node == b.node && a.attrs == b.attrs && a.combine == b.combine &&
         a.replicas == b.replicas && a.some_replicas == b.some_replicas && a.targets == b.targets;
}

}  // namespace

std::uint64_t rule_hash(const UpdateRule& rule) {
  return rule.hash != 0 ? rule.hash : hash_of_value(rule);
}

void ToldRules::write(const UpdateRule& rule, StateWriter& out) {
  const std::uint64_t hash = rule_hash(rule);
  const bool is_new = told_.insert(hash).second;
  out.number(hash);
  out.number(is_new);
  if (is_new) write_value(rule, out);
}

Expected<std::shared_ptr<const UpdateRule>> KnownRules::read(StateReader& in) {
  const std::uint64_t hash = in.number();
  if (in.flag()) {
    TROUPE_TRY(auto rule, make(in, hash));
    auto [at, fresh] = known_.emplace(hash, rule);
    if (!fresh && !same_rule(*at->second, *rule))
      return invalid_argument("two rules have one hash: '" + at->second->node + "' and '" +
                              rule->node + "'");
    return at->second;
  }
  auto known = known_.find(hash);
  if (known != known_.end()) return known->second;
  return failed_precondition("a record names a rule that was not told");
}

Expected<std::shared_ptr<const UpdateRule>> KnownRules::make(StateReader& in,
                                                             std::uint64_t hash) const {
  const UpdateRule value = read_value(in);
  if (!in.ok()) return in.end();
  if (hash_of_value(value) != hash)
    return invalid_argument("the rule of node '" + value.node + "' does not have the hash " +
                            std::to_string(hash));
  TROUPE_TRY(auto rule, rules_.make(value));
  if (same_rule(*rule, value)) return rule;
  return invalid_argument("the rule of node '" + value.node + "' is not what its op says");
}

}  // namespace troupe
