// How much becomes of calls, before any of it is made: functions that call each other twice a level
// would fill any memory on their way to the limit.
#include <algorithm>

#include "graph/control/lowering/detail/inline.hpp"

namespace troupe::detail {
namespace {

// What becomes of a graph is in proportion to it.
constexpr std::size_t kMostWork = std::size_t{1} << 20;
constexpr std::size_t kFreeWork = std::size_t{1} << 14;
constexpr std::size_t kWorkPerGiven = 64;
// Where that is not enough, functions that would take as much are called.
constexpr std::size_t kMostCopied = std::size_t{1} << 12;

std::size_t weight_of(const NodeDef& node) { return 1 + node.inputs.size() + node.control.size(); }

// Nodes and edges; one more than `most` stands for all that is more.
class InlinedSize {
 public:
  // `called`: by function, what is called rather than copied.
  InlinedSize(const std::vector<FunctionDef>& functions, const Recursion& recursion,
              const std::vector<bool>& called, const OpRegistry& ops, std::size_t most)
      : functions_(functions),
        recursion_(recursion),
        called_(called),
        ops_(ops),
        most_(most),
        sizes_(functions.size(), 0) {
    for (std::size_t f = 0; f < functions.size(); ++f) by_name_.emplace(functions[f].name, f);
  }

  // Of a function. REQUIRES: those that it calls were measured.
  std::size_t measure(std::size_t f) {
    std::size_t size = 1;
    for (const NodeDef& node : functions_[f].nodes) {
      size = added(size, weight_of(node));
      if (role_of(node, ops_) == Role::call) size = added(size, of(node));
    }
    return sizes_[f] = size;
  }

  // It calls a function that is called rather than copied.
  bool calls_one(std::size_t f) const {
    const auto& nodes = functions_[f].nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](const NodeDef& node) {
      const auto at = node.op == "Call" ? by_name_.find(functions_of(node)[0]) : by_name_.end();
      return at != by_name_.end() && called_[at->second];
    });
  }

  // Of a call. What recurses is there once, and is called. Of a loop the condition stands before
  // it, too.
  std::size_t of(const NodeDef& call) const {
    std::vector<std::string> names = functions_of(call);
    if (call.op == "While" && !names.empty()) names.push_back(names.front());
    std::size_t size = 0;
    for (const std::string& name : names) {
      const auto at = by_name_.find(name);
      if (at == by_name_.end() || recursion_.calls_itself[at->second]) continue;
      if (call.op != "Call" || !called_[at->second]) size = added(size, sizes_[at->second]);
    }
    return size;
  }

 private:
  std::size_t added(std::size_t a, std::size_t b) const { return std::min(a + b, most_ + 1); }

  const std::vector<FunctionDef>& functions_;
  const Recursion& recursion_;
  const std::vector<bool>& called_;
  const OpRegistry& ops_;
  const std::size_t most_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

// Where copies of all would be too many, functions that take much are called if they can be.
Status Inliner::check_size(const std::vector<NodeDef>& nodes) {
  std::size_t given = 0;
  for (const NodeDef& node : nodes) given += weight_of(node);
  for (const FunctionDef& f : functions_)
    for (const NodeDef& node : f.nodes) given += weight_of(node);
  most_work_ = std::min(kMostWork, kFreeWork + kWorkPerGiven * given);

  InlinedSize sizes(functions_, recursion_, called_, ops_, most_work_);
  auto all = [&](std::size_t most) {  // the call with which there is more
    std::size_t size = 0;
    for (const NodeDef& node : nodes)
      if (role_of(node, ops_) == Role::call && (size += sizes.of(node)) > most) return &node;
    return static_cast<const NodeDef*>(nullptr);
  };
  for (std::size_t f : recursion_.inner_first) sizes.measure(f);
  if (all(most_work_ / 2))
    for (std::size_t f : recursion_.inner_first)  // those around, too: each place has its own
      called_[f] =
          (sizes.measure(f) > kMostCopied || sizes.calls_one(f)) && recursion_.stays_in_place[f];
  const NodeDef* node = all(most_work_);
  if (!node) return ok_status();
  const auto first = by_name_.find(functions_of(*node).front());
  return in_node(too_much(first == by_name_.end() ? "it" : called(*first->second)), *node);
}

}  // namespace troupe::detail
