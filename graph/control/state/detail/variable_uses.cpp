#include "graph/control/state/detail/variable_uses.hpp"

#include <algorithm>
#include <charconv>

#include "graph/control/functions/recursion.hpp"

namespace troupe::detail {
namespace {

// Stands for what argument i of a function is bound to. No resource_key() begins so.
std::string argument_key(std::size_t i) { return "#" + std::to_string(i); }

const std::string& bound_to(const std::string& argument, const std::vector<std::string>& bound) {
  static const std::string nothing;
  std::size_t i = 0;
  std::from_chars(argument.data() + 1, argument.data() + argument.size(), i);
  return i < bound.size() ? bound[i] : nothing;
}

}  // namespace

void VariableUses::add(const VariableUses& other) {
  reads.insert(other.reads.begin(), other.reads.end());
  writes.insert(other.writes.begin(), other.writes.end());
  always.insert(other.always.begin(), other.always.end());
  in_loops.insert(other.in_loops.begin(), other.in_loops.end());
  loops = loops || other.loops;
}

VariableUsers::VariableUsers(const std::vector<FunctionDef>& functions, const OpRegistry& ops)
    : ops_(ops) {
  const Recursion recursion = find_recursion(functions, ops);
  for (std::size_t f = 0; f < functions.size(); ++f) {
    by_name_.emplace(functions[f].name, &functions[f]);
    if (recursion.calls_itself[f]) recursive_.insert(&functions[f]);
  }
}

bool VariableUsers::is_recursive(const NodeDef& call) const {
  if (call.op != "Call") return false;
  const FunctionDef* f = function(functions_of(call)[0]);
  return f && calls_itself(*f);
}

const FunctionDef* VariableUsers::function(const std::string& name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

Keys VariableUsers::keys_of(const std::vector<NodeDef>& nodes) const {
  Keys keys(nodes.size());
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const OpDef& op = op_of(nodes[id], ops_).def;
    const std::string& kind = op.external.resource;
    if (is_handle(op.role) && (kind == "variable" || kind == "dataset"))
      keys[id] = resource_key(nodes[id], ops_);
  }
  return keys;
}

Keys VariableUsers::keys_of(const FunctionDef& f, const std::vector<std::string>& bound) const {
  Keys keys(f.nodes.size());
  for (std::size_t i = 0; i < f.arguments.size() && i < bound.size(); ++i)
    keys[f.arguments[i]] = bound[i];
  return keys;
}

std::vector<std::string> VariableUsers::bound(const NodeDef& call, const Keys& keys) const {
  std::vector<std::string> out;
  for (std::size_t i = selectors(call); i < call.inputs.size(); ++i)
    out.push_back(keys[call.inputs[i].node]);
  return out;
}

VariableUses VariableUsers::of(const FunctionDef& f, const std::vector<std::string>& bound) {
  return of(f, bound, found_);
}

VariableUses VariableUsers::of(const FunctionDef& f, const std::vector<std::string>& bound,
                               Found& found) {
  if (std::all_of(bound.begin(), bound.end(), [](const auto& key) { return key.empty(); }))
    return {};
  const Known& inside = known(f);
  const auto bind = [&](const std::string& key) { return bound_to(key, bound); };
  const auto bind_item = [&](const std::string& item) {
    const std::string& key = inside.found.items.at(item);
    const std::string to = bind(key);
    return to.empty() ? to : to + item.substr(key.size());
  };
  const auto keys = [&](const std::set<std::string>& all) {
    std::set<std::string> out;
    for (const std::string& key : all)
      if (std::string to = bind(key); !to.empty()) out.insert(std::move(to));
    return out;
  };
  VariableUses uses;
  for (const std::string& item : inside.uses.reads) {
    std::string to = bind_item(item);
    if (to.empty()) continue;
    found.readers.try_emplace(to, inside.found.readers.at(item));
    found.items.try_emplace(to, bind(inside.found.items.at(item)));
    uses.reads.insert(std::move(to));
  }
  uses.writes = keys(inside.uses.writes);
  uses.always = keys(inside.uses.always);
  uses.in_loops = keys(inside.uses.in_loops);
  for (const std::string& key : inside.uses.writes) {
    const std::string to = bind(key);
    if (to.empty()) continue;
    found.writers.try_emplace(to, inside.found.writers.at(key));
    found.items.try_emplace(to, to);
    if (inside.found.datasets.contains(key)) found.datasets.insert(to);
  }
  uses.loops = inside.uses.loops && (!uses.reads.empty() || !uses.writes.empty());
  return uses;
}

const VariableUsers::Known& VariableUsers::known(const FunctionDef& f) {
  Known& known = known_[&f];
  if (known.whole || known.pass == pass_) return known;
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < f.arguments.size(); ++i) {
    const NodeDef& argument = f.nodes[f.arguments[i]];
    const bool handle = !argument.out_types.empty() && argument.out_types[0] == DType::resource;
    arguments.push_back(handle ? argument_key(i) : std::string());
  }
  const Keys keys = keys_of(f, arguments);
  // The outermost of functions that call each other looks at all of them until a pass finds nothing
  // new: each once in a pass, so that many of them take no longer than their number of passes.
  const bool outermost = pass_ == 0 && calls_itself(f);
  do {
    if (outermost) changed_ = false, pass_ = ++passes_;
    known.pass = pass_;
    ++looks_;
    VariableUses uses;
    Found found;
    for (const NodeDef& node : f.nodes) uses.add(of(node, keys, found));
    changed_ |= !(uses == known.uses);
    known.uses = std::move(uses);
    known.found = std::move(found);
  } while (outermost && changed_);
  known.whole = pass_ == 0;
  if (!outermost) return known;
  for (auto& [_, other] : known_) other.whole |= other.pass == pass_;
  pass_ = 0;
  return known;
}

VariableUses VariableUsers::of(const NodeDef& node, const Keys& keys, Found& found) {
  VariableUses uses;
  const OpInfo& op = op_of(node, ops_);
  if (std::string item = item_of(node, keys); !item.empty()) {
    found.readers.try_emplace(item, &node);
    found.items.try_emplace(item, keys[node.inputs[0].node]);
    uses.reads.insert(std::move(item));
  } else if (op.is(External::Order::write) || takes_element(node)) {
    for (Port in : node.inputs)
      if (const std::string& key = keys[in.node]; !key.empty()) {
        if (takes_element(node)) found.datasets.insert(key);
        found.writers.try_emplace(key, &node);
        found.items.try_emplace(key, key);
        uses.writes.insert(key);
      }
    uses.always = uses.writes;
  } else if (op.def.role == Role::call) {
    const std::vector<std::string> passed = bound(node, keys);
    bool first = true;
    for (const std::string& name : functions_of(node)) {
      const FunctionDef* f = function(name);
      if (!f) continue;
      const VariableUses inner = of(*f, passed, found);
      const std::set<std::string> before = std::move(uses.always);
      uses.add(inner);
      uses.always.clear();
      for (const std::string& key : inner.always)
        if (first || before.contains(key)) uses.always.insert(key);
      first = false;
    }
    if (node.op == "While") uses.always.clear();  // it may have no iteration
    if (node.op == "While" || is_recursive(node)) {
      uses.in_loops = uses.writes;
      uses.loops = !uses.reads.empty() || !uses.writes.empty();
    }
  }
  return uses;
}

bool VariableUsers::takes_element(const NodeDef& node) const {
  const External& external = op_of(node, ops_).def.external;
  return external.resource == "dataset" && external.verb == "next";
}

std::string VariableUsers::item_of(const NodeDef& node, const Keys& keys) const {
  const OpInfo& op = op_of(node, ops_);
  if (!op.is(External::Order::read) || node.inputs.empty()) return {};
  const std::string& key = keys[node.inputs[0].node];
  if (key.empty() || op.def.external.verb == "read") return key;
  return key + " " + op.def.external.verb + "?";
}

}  // namespace troupe::detail
