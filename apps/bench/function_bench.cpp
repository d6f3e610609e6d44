#include "apps/bench/function_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "apps/troupe.hpp"

namespace troupe {
namespace {

constexpr double kFunctionSeconds = 0.1;
constexpr int kFunctionRunsFirst = 5;  // before the clock starts

template <class T, class Draw>
Tensor drawn(const FunctionInput& input, Draw draw) {
  Tensor t = value_or_throw(Tensor::make(dtype_of<T>, input.shape));
  T* const data = t.mutable_data<T>();
  for (std::int64_t i = 0; i < t.elements(); ++i) data[i] = T(draw());
  if (input.sorted) std::sort(data, data + t.elements());
  return t;
}

Tensor fed_value(const FunctionInput& input) {
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> uniform(input.low, input.high);
  const auto draw = [&] { return uniform(random); };
  const auto whole = [&] { return std::floor(uniform(random)); };
  switch (input.dtype) {
    case DType::i32:
      return drawn<std::int32_t>(input, whole);
    case DType::i64:
      return drawn<std::int64_t>(input, whole);
    case DType::bool_:
      return drawn<bool>(input, [&] { return uniform(random) > 0; });
    default:
      return drawn<float>(input, draw);
  }
}

Expected<BenchRow> time_function(const std::string& name, const FunctionCase& c, int threads,
                                 const BenchOptions& options, PeerRounds& peers) {
  Graph graph(1);
  std::vector<Output> fed;
  std::vector<Tensor> values;
  for (const FunctionInput& input : c.inputs) {
    values.push_back(fed_value(input));
    fed.push_back(placeholder(graph, input.dtype, PartialShape(input.shape)));
  }
  const FunctionCase::Built built = c.build(graph, fed);
  Cluster cluster = options.cluster;
  cluster.threads = threads;
  Session session(graph, cluster);
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(CompiledStep compiled, session.try_compile(built.outputs, built.targets, fed));
  peers.begin(c.name);
  const auto run = [&] { return compiled.try_run(values).status(); };
  TROUPE_TRY(BenchRow row, time_in_turns(name, options.rounds,
                                         {kFunctionSeconds, 3, kFunctionRunsFirst}, peers, run));
  TROUPE_TRY(session.try_close());
  return row;
}

}  // namespace

Expected<std::vector<BenchRow>> bench_functions(const BenchOptions& options, int threads,
                                                PeerRounds& peers) {
  std::vector<BenchRow> rows;
  for (const FunctionCase& c : function_cases()) {
    const std::string name = fmt::format("kernels.api.{}.t{}", c.name, threads);
    if (!wanted(options, name)) continue;
    TROUPE_TRY(BenchRow row, time_function(name, c, threads, options, peers));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace troupe
