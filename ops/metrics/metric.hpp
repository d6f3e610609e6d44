// Metrics over many runs, kept in variables of the graph.
#pragma once

#include <string_view>

#include "ops/api/variable.hpp"
#include "ops/graph_api.hpp"

namespace troupe::metrics {

// A metric over all runs since its last reset:
//
//   auto accuracy = metrics::accuracy(g.scope("accuracy"), argmax(logits), labels);
//   session.run({}, {accuracy.reset});
//   for (...) session.run({}, {accuracy.update});
//   float all = session.run({accuracy.value})[0].item<double>();
//
// Its state is in variables in the given scope, which are not trainable and are part of
// checkpoints. An update takes effect when its run commits, so `value` does not include the update
// of the same run. With replicas, each replica adds its part. Counts are i64 and sums f64, so long
// evaluations do not lose precision.
struct Metric {
  Op update;
  Output value;
  Op reset;  // back to the initial state; must not run together with `update`
};

// Returns `predictions` after checking that they have the shape of `labels`, without broadcasting:
// [n] against [n,1] would count n * n pairs. Throws Error, in the name of the metric `what`, if the
// shapes are known to differ; otherwise the run checks them.
Output of_one_shape(Output predictions, Output labels, std::string_view what, const Site& site);

// A variable of zeros in the current scope, and the write that resets it to zero.
struct Tally {
  Variable sum;
  Op reset;
};
Tally tally(GraphBuilder& g, std::string_view name, DType dtype, const Shape& shape,
            const Site& site);

}  // namespace troupe::metrics
