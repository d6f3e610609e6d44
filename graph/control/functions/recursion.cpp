#include "graph/control/functions/recursion.hpp"

#include <algorithm>

#include "graph/control/functions/ops.hpp"

namespace troupe {
namespace {

constexpr std::size_t kUnseen = ~std::size_t{0};

// Tarjan's algorithm, iterative: untrusted functions could overflow the stack.
class CycleSearch {
 public:
  CycleSearch(const std::vector<FunctionDef>& functions, const OpRegistry& ops)
      : calls_(functions.size()), seen_(functions.size(), kUnseen), low_(functions.size()) {
    out_.calls_itself.assign(functions.size(), false);
    out_.has_effects.assign(functions.size(), false);
    out_.stays_in_place.assign(functions.size(), true);
    out_.depth.assign(functions.size(), 0);
    devices_.assign(functions.size(), {});
    on_stack_.assign(functions.size(), false);
    std::unordered_map<std::string_view, std::size_t> by_name;
    for (std::size_t f = 0; f < functions.size(); ++f) by_name.emplace(functions[f].name, f);
    for (std::size_t f = 0; f < functions.size(); ++f) {
      for (const NodeDef& node : functions[f].nodes) {
        const OpDef& op = op_of(node, ops).def;
        if (has_effect(op)) out_.has_effects[f] = true;
        if (op.role == Role::external) out_.stays_in_place[f] = false;
        come_to(f, node.device);
        if (op.role != Role::call) continue;
        for (const std::string& name : functions_of(node))
          if (auto at = by_name.find(name); at != by_name.end()) calls_[f].push_back(at->second);
      }
      std::sort(calls_[f].begin(), calls_[f].end());
      calls_[f].erase(std::unique(calls_[f].begin(), calls_[f].end()), calls_[f].end());
    }
  }

  Recursion run() {
    for (std::size_t f = 0; f < calls_.size(); ++f)
      if (seen_[f] == kUnseen) search(f);
    return std::move(out_);
  }

 private:
  struct Visit {
    std::size_t function = 0, next = 0;
  };

  void search(std::size_t first) {
    open(first);
    while (!path_.empty()) {
      Visit& at = path_.back();
      if (at.next < calls_[at.function].size()) {
        const std::size_t called = calls_[at.function][at.next++];
        if (seen_[called] == kUnseen)
          open(called);
        else if (on_stack_[called])
          low_[at.function] = std::min(low_[at.function], seen_[called]);
        continue;
      }
      const std::size_t f = at.function;
      path_.pop_back();
      if (!path_.empty()) {
        std::size_t& around = low_[path_.back().function];
        around = std::min(around, low_[f]);
      }
      if (low_[f] == seen_[f]) close(f);
    }
  }

  void open(std::size_t f) {
    seen_[f] = low_[f] = next_++;
    on_stack_[f] = true;
    stack_.push_back(f);
    path_.push_back({f});
  }

  // Nodes that name no device run where the call does.
  void come_to(std::size_t f, const std::string& device) {
    if (device.empty()) return;
    if (!devices_[f].empty() && devices_[f] != device) out_.stays_in_place[f] = false;
    devices_[f] = device;
  }

  // `first` and the functions above it call each other; all others that they call are done.
  void close(std::size_t first) {
    const auto begin = std::find(stack_.rbegin(), stack_.rend(), first).base() - 1;
    const bool several = stack_.end() - begin > 1;
    bool effects = false;
    std::size_t below = 0;
    for (auto f = begin; f != stack_.end(); ++f)
      for (std::size_t called : calls_[*f]) below = std::max(below, out_.depth[called]);
    for (auto f = begin; f != stack_.end(); ++f)
      out_.depth[*f] = below + std::size_t(stack_.end() - begin);
    for (auto f = begin; f != stack_.end(); ++f) {
      on_stack_[*f] = false;
      out_.inner_first.push_back(*f);
      effects = effects || out_.has_effects[*f];
      for (std::size_t called : calls_[*f]) {
        effects = effects || out_.has_effects[called];
        if (!out_.stays_in_place[called]) out_.stays_in_place[*f] = false;
        come_to(*f, devices_[called]);
        if (called == *f) out_.calls_itself[*f] = true;
      }
    }
    for (auto f = begin; f != stack_.end(); ++f) {
      if (several) out_.calls_itself[*f] = true;
      out_.has_effects[*f] = effects;
    }
    stack_.erase(begin, stack_.end());
  }

  std::vector<std::vector<std::size_t>> calls_;
  std::vector<std::string> devices_;  // by function: a device that its nodes name
  std::vector<std::size_t> seen_, low_, stack_;
  std::vector<bool> on_stack_;
  std::vector<Visit> path_;
  std::size_t next_ = 0;
  Recursion out_;
};

}  // namespace

bool has_effect(const OpDef& op) {
  if (op.role == Role::kernel) return op.stateful && !op.random;
  const External& e = op.external;
  return op.role == Role::external &&
         (e.order == External::Order::write || e.commits || e.changes || e.fills);
}

Status check_call_depth(const std::vector<FunctionDef>& functions, const OpRegistry& ops) {
  constexpr std::size_t kDeepest = 1000;
  const Recursion found = find_recursion(functions, ops);
  for (std::size_t f = 0; f < functions.size(); ++f)
    if (found.depth[f] > kDeepest)
      return resource_exhausted("functions call each other more than " + std::to_string(kDeepest) +
                                " deep, at '" + functions[f].name + "'")
          .at(functions[f].site);
  return ok_status();
}

Recursion find_recursion(const std::vector<FunctionDef>& functions, const OpRegistry& ops) {
  return CycleSearch(functions, ops).run();
}

}  // namespace troupe
