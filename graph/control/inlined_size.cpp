// How much becomes of calls, before any of it is made: functions that call each other twice a level
// would fill any memory on their way to the limit.
#include <algorithm>

#include "troupe/graph/control/detail/inline.hpp"

namespace troupe::detail {
namespace {

// What becomes of a graph is in proportion to it.
constexpr std::size_t kMostWork = std::size_t{1} << 20;
constexpr std::size_t kFreeWork = std::size_t{1} << 15;
constexpr std::size_t kWorkPerGiven = 64;

std::size_t weight_of(const NodeDef& node) { return 1 + node.inputs.size() + node.control.size(); }

class InlinedSize {
 public:
  InlinedSize(const std::vector<FunctionDef>& functions, const Recursion& recursion,
              const OpRegistry& ops, std::size_t most)
      : functions_(functions),
        recursion_(recursion),
        ops_(ops),
        most_(most),
        sizes_(functions.size(), kUnknown) {
    for (std::size_t f = 0; f < functions.size(); ++f) by_name_.emplace(functions[f].name, f);
  }

  // Nodes and edges; one more than `most` stands for all that is more.
  std::size_t of(const NodeDef& call) {
    std::size_t size = 0;
    for (std::size_t f : called_by(call)) size = added(size, of(f));
    return size;
  }

 private:
  static constexpr std::size_t kUnknown = ~std::size_t{0};
  std::size_t added(std::size_t a, std::size_t b) const { return std::min(a + b, most_ + 1); }

  // Of a loop the condition stands before it, too.
  std::vector<std::size_t> called_by(const NodeDef& call) const {
    std::vector<std::size_t> out;
    for (const std::string& name : functions_of(call))
      if (auto at = by_name_.find(name); at != by_name_.end()) out.push_back(at->second);
    if (call.op == "While" && !out.empty()) out.push_back(out.front());
    return out;
  }

  // Those that it calls come first. Without recursion: functions come from outside.
  std::size_t of(std::size_t function) {
    std::vector<std::size_t> open{function};
    while (!open.empty()) {
      const std::size_t f = open.back();
      if (sizes_[f] != kUnknown) {
        open.pop_back();
        continue;
      }
      std::size_t size = 1;
      const std::size_t before = open.size();
      for (const NodeDef& node : functions_[f].nodes) {
        size = added(size, weight_of(node));
        if (role_of(node, ops_) != Role::call) continue;
        for (std::size_t called : called_by(node)) {
          if (recursion_.calls_itself[called]) continue;  // is there once, and is called
          if (sizes_[called] == kUnknown)
            open.push_back(called);
          else
            size = added(size, sizes_[called]);
        }
      }
      if (open.size() > before) continue;
      sizes_[f] = size;
      open.pop_back();
    }
    return sizes_[function];
  }

  const std::vector<FunctionDef>& functions_;
  const Recursion& recursion_;
  const OpRegistry& ops_;
  const std::size_t most_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

Status Inliner::check_size(const std::vector<NodeDef>& nodes) {
  std::size_t given = 0, all = 0;
  for (const NodeDef& node : nodes) given += weight_of(node);
  for (const FunctionDef& f : functions_)
    for (const NodeDef& node : f.nodes) given += weight_of(node);
  most_work_ = std::min(kMostWork, kFreeWork + kWorkPerGiven * given);
  InlinedSize sizes(functions_, recursion_, ops_, most_work_);
  for (const NodeDef& node : nodes) {
    if (role_of(node, ops_) != Role::call) continue;
    all += sizes.of(node);
    if (all <= most_work_) continue;
    const auto first = by_name_.find(functions_of(node).front());
    return in_node(too_much(first == by_name_.end() ? "it" : called(*first->second)), node);
  }
  return ok_status();
}

}  // namespace troupe::detail
