#include "ops/nn/embedding.hpp"

#include "graph/slicing.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/nn/initial.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

namespace {

void check_bags(const Bags& bags, const Site& site) {
  check_given("embedding_lookup: the ids of the bags", bags.ids, site);
  check_given("embedding_lookup: the bags of the ids", bags.bag, site);
  check_given("embedding_lookup: the number of bags", bags.count, site);
  if (bags.ids.shape().known_rank() && bags.ids.shape().rank() == 1) return;
  throw Error(
      invalid_argument("embedding_lookup: the ids of bags are [n], not " + bags.ids.shape().text())
          .at(site));
}

}  // namespace

Output embedding_lookup(const Table& table, Output ids, Site site) {
  check_given("embedding_lookup: the table", table, site);
  check_given("embedding_lookup: the ids", ids, site);
  return table.rows(ids, std::move(site));
}

Bags bags(Output ids, Output lengths, Site site) {
  check_given("bags: the ids", ids, site);
  check_given("bags: the lengths", lengths, site);
  const bool fits = ids.shape().known_rank() && ids.shape().rank() == 2 &&
                    PartialShape::merge(lengths.shape(), PartialShape{ids.shape()[0]}).ok();
  if (!fits)
    throw Error(invalid_argument("bags: ids are [bags, most] with lengths [bags], not " +
                                 ids.shape().text() + " and " + lengths.shape().text())
                    .at(site));
  GraphBuilder& g = ids.graph();
  const Output zero = constant<std::int64_t>(g, 0, site), one = constant<std::int64_t>(g, 1, site);
  const Output most = dimension(ids, 1, site);
  // One length is not that of all bags.
  if (!ids.shape().known(0) || !lengths.shape().known(0))
    lengths = reshape_beside(lengths, ids, 1, {}, site);
  // A length looked up among all that there may be: another one fails the run.
  const Output length = gather(range(zero, add(most, one, site), one, site), lengths, {}, site);
  const Output inside = less(range(zero, most, one, site), expand_dims(length, 1, site), site);
  const Output at = where(inside, site);  // [n, 2]
  return {gather_nd(ids, at, site), squeeze(slice(at, {0, 0}, {-1, 1}, site), {.axes = {1}}, site),
          dimension(ids, 0, site)};
}

Output embedding_lookup(const Table& table, const Bags& bags, const LookupOptions& options,
                        Site site) {
  check_given("embedding_lookup: the table", table, site);
  check_bags(bags, site);
  const auto sums = [&](Output x) { return unsorted_segment_sum(x, bags.bag, bags.count, site); };
  Output rows = table.rows(bags.ids, site);
  Output weights = options.weights;
  if (!weights.empty()) {
    if (!PartialShape::merge(weights.shape(), bags.ids.shape()).ok())
      throw Error(invalid_argument("embedding_lookup: the weights of ids " +
                                   bags.ids.shape().text() + " are " + weights.shape().text())
                      .at(site));
    weights = reshape_beside(weights, bags.ids, 1, {}, site);  // a single one fails the run
  }
  if (weights.empty() && options.combiner == Combiner::mean)
    return unsorted_segment_mean(rows, bags.bag, bags.count, site);
  if (!weights.empty()) rows = mul(rows, expand_dims(weights, 1, site), site);
  const Output sum = sums(rows);
  if (options.combiner == Combiner::sum) return sum;
  Output each = weights.empty()
                    ? fill(shape(bags.ids, {}, site), Operand(1.0, site).beside(rows), site)
                    : weights;
  if (options.combiner == Combiner::sqrtn) each = square(each, site);
  const Output by = sums(each), none = equal(by, Operand(0.0, site).beside(by), site);
  Output divisor = select(none, Operand(1.0, site).beside(by), by, site);
  if (options.combiner == Combiner::sqrtn) divisor = sqrt(divisor, site);
  return select(expand_dims(none, 1, site), Operand(0.0, site).beside(sum),
                div(sum, expand_dims(divisor, 1, site), site), site);
}

Embedding::Embedding(Module& parent, std::string_view name, std::int64_t rows, std::int64_t size,
                     const Options& options, Site site)
    : Module(parent, name) {
  check_sizes("Embedding", {rows, size}, site);
  auto inside = scope().enter();
  table_ = partitioned_variable(
      "W", Shape{rows, size},
      [&](std::string_view part, const Shape& shape) {
        const Output first = random_standard_normal(
            graph(), PartialShape(shape), {.dtype = options.dtype, .stddev = options.stddev}, site);
        return parameter(part, first, site);
      },
      {options.shards, options.how}, site);
}

Output Embedding::operator()(Output ids, Site site) const {
  check_given("Embedding: `ids`", ids, site);
  auto inside = scope().enter();
  return table_.rows(ids, std::move(site));
}

Output Embedding::operator()(const Bags& bags, const LookupOptions& options, Site site) const {
  auto inside = scope().enter();
  return embedding_lookup(table_, bags, options, std::move(site));
}

}  // namespace troupe::nn
