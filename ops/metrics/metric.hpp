// Measures of a model over many runs, as state of the graph.
#pragma once

#include <string_view>

#include "ops/api/variable.hpp"
#include "ops/graph_api.hpp"

namespace troupe::metrics {

// A measure over all runs since its reset:
//
//   auto accuracy = metrics::accuracy(g.scope("accuracy"), argmax(logits), labels);
//   session.run({}, {accuracy.reset});
//   for (...) session.run({}, {accuracy.update});
//   float all = session.run({accuracy.value})[0].item<double>();
//
// State is made in the scope that is given, in variables that no optimizer touches and that a
// checkpoint holds. A run's update takes effect when the run commits: `value` is as of the run's
// snapshot, without what the same run adds. With replicas, each adds its part. Counts are i64
// and sums f64: a long evaluation loses nothing.
struct Metric {
  Op update;
  Output value;
  Op reset;  // to what it was after Session::init; not together with update in one run
};

// `predictions`, which have the shape of `labels`. Other shapes are refused in the name of the
// measure `what`: by Error where the graph knows them, else by the run. Nothing is broadcast, since
// a mean over [n] against [n,1] would count n times as much.
Output of_one_shape(Output predictions, Output labels, std::string_view what, const Site& site);

// A variable of zeros in the scope that is open, and the write that makes it so again.
struct Tally {
  Variable sum;
  Op reset;
};
Tally tally(GraphBuilder& g, std::string_view name, DType dtype, const Shape& shape,
            const Site& site);

}  // namespace troupe::metrics
