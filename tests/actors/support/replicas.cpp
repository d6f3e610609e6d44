#include "tests/actors/support/replicas.hpp"

#include <doctest/doctest.h>

#include "tests/actors/support/sessions.hpp"

namespace troupe::test {

void check_counts_of_replicas(const std::function<Output(Graph&, Output n)>& count) {
  Graph g;
  auto batches = data::digits(64).batch(8).repeat().outputs(g);
  Output n = cast<std::int32_t>(max(batches[1]));
  Output counted = count(g, n);
  Variable counts = variable(g, "counts", Tensor::scalar(0.0f));
  Variable maxima = variable(g, "maxima", Tensor::scalar(0.0f));
  Op both =
      group(g, {assign_add(counts, cast<float>(counted)), assign_add(maxima, cast<float>(n))});
  Cluster cluster = one_thread();
  cluster.replicas = 2;
  Session s(g, cluster);
  s.init();
  auto step = s.compile({}, {both});
  for (int i = 0; i < 3; ++i) step.run();
  auto out = s.run({read(counts), read(maxima)});
  CHECK(out[0].item<float>() == out[1].item<float>());
  CHECK(out[0].item<float>() > 0);
}

}  // namespace troupe::test
