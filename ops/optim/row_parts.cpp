#include "ops/optim/row_parts.hpp"

#include <set>

#include "ops/api/generated.hpp"

namespace troupe::optim {
namespace {

// The same gradient may be in a sum many times over: so many more parts than there are gradients.
constexpr std::size_t kMostAgain = 1024;

bool is_scalar(const Output& x) { return x.shape().known_rank() && x.shape().rank() == 0; }

class Parts {
 public:
  explicit Parts(bool scaled) : scaled_(scaled) {}
  // False: something else than rows is in it. `factor`: of it; empty: 1.
  bool add(const Output& gradient, const Output& factor) {
    const NodeDef node = gradient.graph().node(gradient.node());
    const auto input = [&](std::size_t i) { return Output(&gradient.graph(), node.inputs[i]); };
    const auto times = [&](const Output& by) { return factor.empty() ? by : mul(factor, by); };
    if (node.op == "AddN") {
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (!add(input(i), factor)) return false;
      return true;
    }
    if (node.op == "GatherGrad") {
      const auto axis = node.attrs.find("axis");
      if (axis != node.attrs.end() && *axis->second.get<std::int64_t>() != 0) return false;
      parts.push_back({input(1), input(0), factor});
      seen_.insert(gradient.node());
      return parts.size() <= seen_.size() + kMostAgain;
    }
    if (!scaled_) return false;
    if (node.op == "ReplicaMean") return add(input(0), factor);
    if (node.op == "Mul" && is_scalar(input(1))) return add(input(0), times(input(1)));
    if (node.op == "Mul" && is_scalar(input(0))) return add(input(1), times(input(0)));
    if (node.op == "Div" && is_scalar(input(1)))
      return add(input(0), factor.empty() ? reciprocal(input(1)) : div(factor, input(1)));
    return false;
  }
  std::vector<RowPart> parts;

 private:
  const bool scaled_;
  std::set<NodeId> seen_;
};

}  // namespace

std::vector<RowPart> row_parts(const Output& gradient, bool scaled) {
  Parts all(scaled);
  return all.add(gradient, {}) ? std::move(all.parts) : std::vector<RowPart>();
}

}  // namespace troupe::optim
