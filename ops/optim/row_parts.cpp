#include "ops/optim/row_parts.hpp"

#include "ops/api/generated.hpp"

namespace troupe::optim {

std::vector<RowPart> row_parts(const Output& gradient, bool scaled) {
  const NodeDef node = gradient.graph().node(gradient.node());
  const auto input = [&](std::size_t i) { return Output(&gradient.graph(), node.inputs[i]); };
  std::vector<RowPart> parts;
  if (node.op == "AddN") {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::vector<RowPart> more = row_parts(input(i), scaled);
      if (more.empty()) return {};
      parts.insert(parts.end(), more.begin(), more.end());
    }
  } else if (node.op == "GatherGrad") {
    const auto axis = node.attrs.find("axis");
    if (axis == node.attrs.end() || *axis->second.get<std::int64_t>() == 0)
      parts.push_back({input(1), input(0)});
  } else if (scaled && node.op == "ReplicaMean") {
    return row_parts(input(0), scaled);
  } else if (scaled && node.op == "Mul") {
    for (const std::size_t i : {0, 1}) {
      const PartialShape& shape = input(1 - i).shape();
      if (!shape.known_rank() || shape.rank() != 0) continue;
      parts = row_parts(input(i), scaled);
      for (RowPart& part : parts)
        part.factor = part.factor.empty() ? input(1 - i) : mul(part.factor, input(1 - i));
      break;
    }
  }
  return parts;
}

}  // namespace troupe::optim
