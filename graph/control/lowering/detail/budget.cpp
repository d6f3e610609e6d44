#include "graph/control/lowering/detail/budget.hpp"

#include <algorithm>

#include "graph/control/functions/ops.hpp"

namespace troupe::detail {
namespace {

// The most nodes and edges after lowering: kFreeWork, plus kWorkPerGiven for each one of the graph,
// but no more than kMostWork.
constexpr std::size_t kMostWork = std::size_t{1} << 20;
constexpr std::size_t kFreeWork = std::size_t{1} << 14;
constexpr std::size_t kWorkPerGiven = 64;
// If that is not enough, functions larger than this are called instead of copied.
constexpr std::size_t kMostCopied = std::size_t{1} << 12;

std::size_t weight_of(const NodeDef& node) { return 1 + node.inputs.size() + node.control.size(); }

// Counts nodes and edges. most + 1 stands for all larger numbers.
class InlinedSize {
 public:
  // `called`: by function, whether it is called rather than copied.
  InlinedSize(const FunctionTable& functions, const std::vector<bool>& called,
              const OpRegistry& ops, std::size_t most)
      : functions_(functions),
        called_(called),
        ops_(ops),
        most_(most),
        sizes_(functions.all().size(), 0) {}

  // The size of a function. REQUIRES: the functions that it calls were measured.
  std::size_t measure(std::size_t f) {
    std::size_t size = 1;
    for (const NodeDef& node : functions_.all()[f].nodes) {
      size = added(size, weight_of(node));
      if (role_of(node, ops_) == Role::call) size = added(size, of(node));
    }
    return sizes_[f] = size;
  }

  // Whether it calls a function that is called rather than copied.
  bool calls_one(std::size_t f) const {
    const auto& nodes = functions_.all()[f].nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](const NodeDef& node) {
      const FunctionDef* g = node.op == "Call" ? functions_.find(functions_of(node)[0]) : nullptr;
      return g && called_[functions_.index(*g)];
    });
  }

  // The size of a call. A recursive function adds nothing: it exists once, and is called. The
  // condition of a loop counts twice: it is also computed before the loop.
  std::size_t of(const NodeDef& call) const {
    std::vector<std::string> names = functions_of(call);
    if (call.op == "While" && !names.empty()) names.push_back(names.front());
    std::size_t size = 0;
    for (const std::string& name : names) {
      const FunctionDef* function = functions_.find(name);
      if (!function) continue;
      const std::size_t f = functions_.index(*function);
      if (functions_.recursion().calls_itself[f]) continue;
      if (call.op != "Call" || !called_[f]) size = added(size, sizes_[f]);
    }
    return size;
  }

 private:
  std::size_t added(std::size_t a, std::size_t b) const { return std::min(a + b, most_ + 1); }

  const FunctionTable& functions_;
  const std::vector<bool>& called_;
  const OpRegistry& ops_;
  const std::size_t most_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

Budget::Budget(const FunctionTable& functions, const OpRegistry& ops)
    : functions_(functions), ops_(ops), called_(functions.all().size(), false) {}

Status Budget::check_size(const std::vector<NodeDef>& nodes) {
  std::size_t given = 0;
  for (const NodeDef& node : nodes) given += weight_of(node);
  for (const FunctionDef& f : functions_.all())
    for (const NodeDef& node : f.nodes) given += weight_of(node);
  most_work_ = std::min(kMostWork, kFreeWork + kWorkPerGiven * given);

  InlinedSize sizes(functions_, called_, ops_, most_work_);
  auto all = [&](std::size_t most) {  // the call at which `most` is exceeded
    std::size_t size = 0;
    for (const NodeDef& node : nodes)
      if (role_of(node, ops_) == Role::call && (size += sizes.of(node)) > most) return &node;
    return static_cast<const NodeDef*>(nullptr);
  };
  const Recursion& recursion = functions_.recursion();
  for (std::size_t f : recursion.inner_first) sizes.measure(f);
  if (all(most_work_ / 2))
    for (std::size_t f : recursion.inner_first)  // and their callers: each place has its own copy
      called_[f] =
          (sizes.measure(f) > kMostCopied || sizes.calls_one(f)) && recursion.stays_in_place[f];
  const NodeDef* node = all(most_work_);
  if (!node) return ok_status();
  const FunctionDef* first = functions_.find(functions_of(*node).front());
  return in_node(too_much(first ? called(*first) : "it"), *node);
}

Status Budget::spend(std::size_t more, const std::string& what) {
  work_ += more;
  return work_ <= most_work_ ? ok_status() : too_much(what);
}

// Counts names, too: they grow with each level.
Status Budget::spend_on(const FunctionDef& f, const Place& place) {
  std::size_t work = 1;
  for (const NodeDef& node : f.nodes)
    work += 1 + node.inputs.size() + node.control.size() +
            (place.prefix.size() + node.name.size()) / 64;
  return spend(work, called(f));
}

Status Budget::too_much(const std::string& what) const {
  return resource_exhausted("with " + what + " the step has more than " +
                            std::to_string(most_work_) + " nodes and edges of functions");
}

}  // namespace troupe::detail
