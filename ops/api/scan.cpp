#include "ops/api/scan.hpp"

#include <algorithm>

#include "ops/api/generated.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/scan_shapes.hpp"

namespace troupe {
namespace {

Output number(GraphBuilder& g, std::int64_t value) {
  return g.add("Const", {}, {{"T", DType::i64}, {"value", Tensor::scalar(value)}});
}

// Where nodes beside x are added: a body that is open, or the body that is differentiated.
GraphBuilder& builder_of(const Output& x) {
  return x.graph().is_tape() ? x.graph() : x.graph().root();
}

// The first dimension of all of them, as far as it is known. Throws where they differ.
std::int64_t known_length(const std::vector<Output>& xs, const Site& site) {
  std::int64_t length = PartialShape::kUnknown;
  for (const Output& x : xs) {
    check_given("scan: a tensor", x, site);
    if (!x.shape().known_rank()) continue;
    if (x.shape().rank() == 0)
      throw Error(
          invalid_argument("scan: '" + x.name() + "' is a scalar, which has no slices").at(site));
    const std::int64_t n = x.shape().dim(0);
    if (n == PartialShape::kUnknown) continue;
    if (length != PartialShape::kUnknown && length != n)
      throw Error(invalid_argument("scan: '" + x.name() + "' has " + std::to_string(n) +
                                   " slices, another tensor " + std::to_string(length))
                      .at(site));
    length = n;
  }
  return length;
}

bool all_known(const std::vector<Output>& xs) {
  return std::all_of(xs.begin(), xs.end(),
                     [](const Output& x) { return x.shape().known_rank() && x.shape().known(0); });
}

// How many slices there are. A run fails where they are not equally many.
Output length_of(const std::vector<Output>& xs, const std::vector<Output>& lists,
                 const Site& site) {
  Output length = list_length(lists[0], site);
  if (xs.size() == 1 || all_known(xs)) return length;
  GraphBuilder& g = builder_of(length);
  std::vector<Op> equal;
  for (std::size_t k = 1; k < lists.size(); ++k) {
    Output same = g.add("Equal", {length, list_length(lists[k], site)}, {}, site);
    NodeSpec check{.op = "Assert", .inputs = {same}, .site = site};
    check.attrs = {{"message", std::string("scan: the tensors have different numbers of slices")}};
    equal.push_back(g.add(std::move(check)));
  }
  auto checked = g.with_control(std::move(equal));
  return identity(length, site);
}

}  // namespace

detail::Scanned detail::scan(const std::vector<Output>& xs, const std::vector<Output>& state,
                             std::size_t outputs, const ScanBody& body, const LoopOptions& options,
                             Site site) {
  return scan(xs, state, outputs, body, options, std::move(site), {});
}

detail::Scanned detail::scan(const std::vector<Output>& xs, const std::vector<Output>& state,
                             std::size_t outputs, const ScanBody& body, const LoopOptions& options,
                             Site site, const StackedShape& stacked_shape) {
  if (xs.empty()) throw Error(invalid_argument("scan: there is no tensor").at(site));
  if (!options.shapes.empty() && options.shapes.size() != state.size())
    throw Error(invalid_argument("scan: there are " + std::to_string(options.shapes.size()) +
                                 " shapes for a state of " + std::to_string(state.size()))
                    .at(site));
  for (const Output& value : state) check_given("scan: a value of the first state", value, site);
  const std::int64_t length = known_length(xs, site);
  GraphBuilder& g = builder_of(xs[0]);
  std::vector<Output> lists;
  for (const Output& x : xs) lists.push_back(list_unstack(x, site));
  const Output n = length_of(xs, lists, site);

  std::vector<ValueType> variables{i64_scalar};
  for (std::size_t s = 0; s < state.size(); ++s)
    variables.push_back(
        {state[s].dtype(), options.shapes.empty() ? state[s].shape() : options.shapes[s]});
  variables.resize(1 + state.size() + outputs, {DType::list, PartialShape::unknown()});
  std::vector<ValueType> made;  // by the body
  const std::size_t first_list = 1 + state.size();
  auto next = [&](const std::vector<Output>& v) {
    std::vector<Output> slices;
    for (std::size_t k = 0; k < xs.size(); ++k)
      slices.push_back(list_get(lists[k], v[0], xs[k].dtype(), {}, site));
    const Scanned step = body({v.begin() + 1, v.begin() + std::ptrdiff_t(first_list)}, slices);
    for (const Output& value : step.stacked)
      check_given("scan: what the body returns", value, site);
    std::vector<Output> out{g.add("Add", {v[0], number(g, 1)}, {}, site)};
    out.insert(out.end(), step.state.begin(), step.state.end());
    for (std::size_t k = 0; k < outputs; ++k) {
      made.push_back({step.stacked[k].dtype(), step.stacked[k].shape()});
      out.push_back(list_push(v[first_list + k], step.stacked[k], site));
    }
    return out;
  };
  auto first = [&] {
    std::vector<Output> values{number(g, 0)};
    values.insert(values.end(), state.begin(), state.end());
    for (const ValueType& type : made)
      values.push_back(list_empty(g, type.dtype, {.shape = type.shape}, site));
    return values;
  };
  const Op loop = detail::loop(
      g, variables, first,
      [&](const std::vector<Output>& v) {
        return std::vector<Output>{g.add("Less", {v[0], n}, {}, site)};
      },
      next, options, site);
  Scanned all;
  for (std::size_t s = 0; s < state.size(); ++s) all.state.push_back(loop.output(int(1 + s)));
  std::vector<Output> shapes(outputs);  // that the graph does not know
  for (std::size_t k = 0; k < outputs; ++k)
    if (stacked_shape && !made[k].shape.fully_known()) shapes[k] = stacked_shape(k);
  // What comes after them comes after what the loop did on other devices, too.
  auto behind = g.with_control({loop});
  for (std::size_t k = 0; k < outputs; ++k) {
    const Output list = loop.output(int(first_list + k));
    const auto& [dtype, row] = made[k];
    all.stacked.push_back(shapes[k].empty()
                              ? list_stack(list, dtype, {.shape = row, .length = length}, site)
                              : list_unstack_grad(list, shapes[k], dtype, site));
  }
  return all;
}

}  // namespace troupe
