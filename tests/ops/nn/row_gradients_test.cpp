// Optimizers where the gradient of a large table is some of its rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

constexpr std::int64_t kTableRows = 4096, kTableColumns = 16;

Tensor sine_table(double scale) {
  Tensor t = value_or_throw(Tensor::make(DType::f32, Shape{kTableRows, kTableColumns}));
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data<float>()[i] = float(std::sin(double(i)) * scale);
  return t;
}

Tensor uniform_rows(std::int64_t rows) {
  Tensor t = value_or_throw(Tensor::make(DType::f32, Shape{rows, kTableColumns}));
  std::fill_n(t.mutable_data<float>(), t.elements(), 0.75f);
  return t;
}

bool graph_has(const Graph& g, std::string_view op) {
  const auto& nodes = g.def().nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](const NodeDef& n) { return n.op == op; });
}

using Loss = std::function<Output(Graph& g, const Variable& table)>;

// With duplicates, and in two dimensions.
Output one_gather(Graph& g, const Variable& table) {
  const Output ids = constant(g, {{7, 3, 7}, {4095, 0, 7}});
  const Output x = gather(table, ids);
  return sum(x * x * x);
}
// From two places, with indices of two types; the second takes some of the first one's rows.
Output two_gathers(Graph& g, const Variable& table) {
  const Output x = gather(table, constant(g, {std::int64_t{5}, std::int64_t{9}}));
  const Output y = gather(table, constant(g, {std::int32_t{9}, std::int32_t{9}, std::int32_t{1}}));
  return sum(x * x) + sum(y * y * y);
}

// The table after three steps, by its rows or as a whole.
template <class Rule>
Tensor table_after(const Rule& rule, const Loss& loss, bool whole, std::string_view sparse_op) {
  Graph g;
  const Variable table = variable(g, "table", sine_table(0.5));
  optim::Gradients gradients = optim::gradients(loss(g, table));
  if (whole) gradients[0].value = gradients[0].value * 1.0f;
  const Op train = rule.apply(gradients);
  CHECK(graph_has(g, sparse_op) == !whole);
  Interpreter run(g);
  run.init();
  for (int i = 0; i < 3; ++i) run.run({}, {train});
  return run.variable(table);
}

bool same_table(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::equal(a.data<float>(), a.data<float>() + a.elements(), b.data<float>());
}

}  // namespace

TEST_CASE("a table changes by the rows of its gradient as it does by all of it, to the bit") {
  const optim::Sgd sgd{.lr = 0.1};
  const Tensor by_sgd = table_after(sgd, one_gather, false, "ApplySparseGradientDescent");
  CHECK(same_table(by_sgd, table_after(sgd, one_gather, true, "ApplySparseGradientDescent")));
  CHECK(!same_table(by_sgd, sine_table(0.5)));
  const optim::Adagrad adagrad{.lr = 0.1};
  CHECK(same_table(table_after(adagrad, one_gather, false, "ApplySparseAdagrad"),
                   table_after(adagrad, one_gather, true, "ApplySparseAdagrad")));
}

TEST_CASE("rows of several Gathers add up") {
  // In another order than whole gradients: not to the bit.
  const optim::Sgd sgd{.lr = 0.1};
  const Tensor rows = table_after(sgd, two_gathers, false, "ApplySparseGradientDescent"),
               whole = table_after(sgd, two_gathers, true, "ApplySparseGradientDescent");
  double apart = 0;
  for (std::int64_t i = 0; i < rows.elements(); ++i)
    apart = std::max(apart, std::fabs(double(rows.data<float>()[i]) - whole.data<float>()[i]));
  CHECK(apart < 1e-6);
}

namespace {

// Every optimizer that can leave rows alone, with the op that does.
void each_lazy(const std::function<void(std::function<Op(const optim::Gradients&)> apply,
                                        std::string_view op)>& f) {
  const auto one = [&](const auto& rule, std::string_view op) {
    CAPTURE(op);
    f([rule](const optim::Gradients& gradients) { return rule.apply(gradients); }, op);
  };
  one(optim::Adam{.lr = 0.1, .lazy = true}, "ApplySparseAdam");
  one(optim::AdamW{.lr = 0.1, .weight_decay = 0.1, .lazy = true}, "ApplySparseAdamW");
  one(optim::Momentum{.lr = 0.1, .lazy = true}, "ApplySparseMomentum");
  one(optim::Momentum{.lr = 0.1, .nesterov = true, .lazy = true}, "ApplySparseMomentum");
  one(optim::RmsProp{.lr = 0.1, .momentum = 0.5, .lazy = true}, "ApplySparseRMSProp");
  one(optim::RmsProp{.lr = 0.1, .momentum = 0.5, .centered = true, .lazy = true},
      "ApplySparseCenteredRMSProp");
  one(optim::Adadelta{.lr = 0.5, .lazy = true}, "ApplySparseAdadelta");
  one(optim::Ftrl{.lr = 0.1, .l1 = 0.01, .l2 = 0.1, .lazy = true}, "ApplySparseFtrl");
  one(optim::ProximalSgd{.lr = 0.1, .l1 = 0.1, .l2 = 0.1, .lazy = true},
      "ApplySparseProximalGradientDescent");
  one(optim::ProximalAdagrad{.lr = 0.1, .l1 = 0.1, .l2 = 0.1, .lazy = true},
      "ApplySparseProximalAdagrad");
}

std::vector<float> row_of(const Tensor& table, std::int64_t i) {
  const float* at = table.data<float>() + i * table.dim(1);
  return {at, at + table.dim(1)};
}

}  // namespace

TEST_CASE("a lazy optimizer does to the rows of a step what it does to a table of them") {
  // With duplicates, which are added up in their order.
  const std::vector<std::int64_t> rows{7, 3, 4095, 0}, ids{0, 1, 0, 2, 3, 0};
  each_lazy([&](const auto& apply, std::string_view op) {
    Graph g;
    const Tensor start = sine_table(0.5);
    Tensor part = value_or_throw(Tensor::make(DType::f32, Shape{4, kTableColumns}));
    std::vector<std::int64_t> from;
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::copy_n(start.data<float>() + rows[i] * kTableColumns, kTableColumns,
                  part.mutable_data<float>() + std::int64_t(i) * kTableColumns);
    for (const std::int64_t id : ids) from.push_back(rows[std::size_t(id)]);
    const Variable table = variable(g, "table", start), few = variable(g, "few", part);
    const auto loss = [&](const Variable& v, const std::vector<std::int64_t>& at) {
      const Output x = gather(v, constant(g, Tensor::of<std::int64_t>(Shape{6}, at)));
      return sum(x * x * x);
    };
    optim::Gradients whole = optim::gradients(loss(few, ids), {few});
    whole[0] = {few, whole[0].value + 0.0f};  // no rows any more
    const Op train = apply(optim::gradients(loss(table, from), {table})), other = apply(whole);
    REQUIRE(graph_has(g, op));
    Interpreter run(g);
    run.init();
    for (int step = 0; step < 3; ++step) run.run({}, {train, other});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(row_of(run.variable(table), rows[i]) == row_of(run.variable(few), std::int64_t(i)));
      CHECK(row_of(run.variable(table), rows[i]) != row_of(start, rows[i]));
    }
    for (const std::int64_t i : {1, 8, 4000})
      CHECK(row_of(run.variable(table), i) == row_of(start, i));
  });
}

TEST_CASE("a lazy optimizer leaves alone what a step does not touch, of tables of any size") {
  for (const std::int64_t size : {10, 4096})
    each_lazy([size](const auto& apply, std::string_view op) {
      Graph g;
      const Variable table = variable(g, "table", uniform_rows(size));
      const Output id = placeholder<std::int64_t>(g, {1});
      const Op train = apply(optim::gradients(sum(square(gather(table, id)))));
      REQUIRE(graph_has(g, op));
      Interpreter run(g);
      run.init();
      const auto row = [&](std::int64_t i) { return row_of(run.variable(table), i); };
      const auto step = [&](std::int64_t i) {
        run.run({}, {train}, {{id.node(), Tensor::of<std::int64_t>(Shape{1}, {i})}});
      };
      const auto first = row(3), second = row(8);
      step(3);
      CHECK(row(3) != first);
      CHECK(row(8) == second);
      const auto after = row(3);
      step(8);
      CHECK(row(3) == after);
      CHECK(row(8) != second);
    });
}

TEST_CASE("what lazy and whole updates do to other rows differs where documented") {
  // Ftrl makes 0 of what has seen no gradient, proximal steps move it there, moments decay.
  const auto other_row = [](const auto& rule) {
    Graph g;
    const Variable table = variable(g, "table", sine_table(0.5));
    const Op train = rule.minimize(sum(square(gather(table, constant(g, {std::int64_t{3}})))));
    Interpreter run(g);
    run.init();
    run.run({}, {train});
    return row_of(run.variable(table), 8);
  };
  const auto start = row_of(sine_table(0.5), 8);
  CHECK(other_row(optim::Ftrl{}) == std::vector<float>(kTableColumns, 0.f));
  CHECK(other_row(optim::Ftrl{.lazy = true}) == start);
  CHECK(other_row(optim::ProximalSgd{.l1 = 1e-3}) != start);
  CHECK(other_row(optim::ProximalSgd{.l1 = 1e-3, .lazy = true}) == start);
  CHECK(other_row(optim::AdamW{}) != start);
  CHECK(other_row(optim::AdamW{.lazy = true}) == start);
}

TEST_CASE("a lazy optimizer gets the rows of a gradient that is clipped by norm") {
  each_lazy([&](const auto& apply, std::string_view op) {
    const auto trained = [&](double limit, bool clip) {
      Graph g;
      const Variable table = variable(g, "table", sine_table(0.5));
      const Variable bias = variable(g, "bias", 1.f);
      const std::vector<std::int64_t> ids{3, 7, 3};
      const Output loss = sum(square(gather(table, constant(g, ids)))) + square(bias);
      auto gradients = optim::gradients(loss);
      if (clip) gradients = optim::clip_by_global_norm(std::move(gradients), limit);
      const Op train = apply(gradients);
      Interpreter run(g);
      run.init();
      CHECK(graph_has(g, op));
      for (int i = 0; i < 3; ++i) run.run({}, {train});
      return run.variable(table);
    };
    const Tensor whole = trained(0, false), loose = trained(1e6, true), tight = trained(1e-3, true);
    CHECK(same_table(whole, loose));
    CHECK_FALSE(same_table(whole, tight));
    CHECK(row_of(tight, 8) == row_of(sine_table(0.5), 8));
  });
}

TEST_CASE("a lazy optimizer gets the rows of a gradient that is scaled by scalars") {
  const auto trained = [](float scale) {
    Graph g;
    const Variable table = variable(g, "table", sine_table(0.5));
    const Output factor = placeholder<float>(g, PartialShape::scalar());
    const Output rows = gather(table, constant(g, std::vector<std::int64_t>{3, 7, 3}));
    optim::Gradients gradients = optim::gradients(sum(square(rows)) * scale);
    for (optim::Gradient& each : gradients.each) each.value = factor * each.value / (scale * 2);
    const Op train = optim::Adam{.lr = 0.1, .lazy = true}.apply(gradients);
    Interpreter run(g);
    run.init();
    for (int i = 0; i < 3; ++i) run.run({}, {train}, {{factor.node(), Tensor::scalar(2.f)}});
    return run.variable(table);
  };
  const Tensor plain = trained(1);
  CHECK(same_table(plain, trained(1024)));
  CHECK(row_of(plain, 8) == row_of(sine_table(0.5), 8));
  CHECK(row_of(plain, 3) != row_of(sine_table(0.5), 3));
}

TEST_CASE("a gradient that is in a sum many times over is not taken apart") {
  Graph g;
  const Variable table = variable(g, "table", sine_table(0.5));
  Output x = table.value();
  for (int i = 0; i < 40; ++i) x = x + x;
  const Output loss = sum(gather(x, constant(g, std::vector<std::int64_t>{3})));
  CHECK(optim::gradients(loss).size() == 1);
}

TEST_CASE("a lazy optimizer refuses a gradient that is no longer one of rows") {
  const auto refused = [](const auto& changed) {
    each_lazy([&](const auto& apply, std::string_view) {
      Graph g;
      const Variable table = variable(g, "table", sine_table(0.5));
      const Variable dense = variable(g, "dense", sine_table(0.5));
      const Output loss =
          sum(square(gather(table, constant(g, {std::int64_t{3}})))) + sum(square(dense));
      CHECK_THROWS_WITH_AS(apply(changed(optim::gradients(loss))),
                           doctest::Contains("the gradient of 'table' was that of rows"), Error);
    });
  };
  refused([](auto gradients) { return optim::clip_by_value(gradients, -1, 1); });
  refused([](auto gradients) { return optim::accumulate(gradients, 2); });
}

TEST_CASE("Momentum cannot be lazy with a decay of all rows") {
  Graph g;
  const Variable table = variable(g, "table", sine_table(0.5));
  const Output loss = sum(square(gather(table, constant(g, {std::int64_t{3}}))));
  CHECK_THROWS_WITH_AS((optim::Momentum{.weight_decay = 0.1, .lazy = true}.minimize(loss)),
                       doctest::Contains("choose one"), Error);
}

TEST_CASE("a gradient of more than rows, and that of a small table, is a whole one") {
  Graph g;
  const Variable table = variable(g, "table", sine_table(0.5));
  const Variable small = variable(g, "small", Tensor::of<float>(Shape{2, 2}, {1, 2, 3, 4}));
  const Output ids = constant(g, {std::int64_t{1}, std::int64_t{1}});
  const Output loss = sum(square(gather(table, ids))) + sum(table * table) +
                      sum(square(gather(small, ids))) + sum(gather(table, ids, 1));
  optim::Sgd{.lr = 0.1}.minimize(loss);
  optim::Sgd{.lr = 0.1, .weight_decay = 0.1}.minimize(sum(square(gather(table, ids))));
  CHECK(!graph_has(g, "ApplySparseGradientDescent"));
}

TEST_CASE("rows change nothing in a run that is left out") {
  Graph g;
  const Variable table = variable(g, "table", sine_table(0.5));
  optim::Gradients gradients = optim::gradients(one_gather(g, table));
  const Output when = placeholder<bool>(g, {});
  gradients.when = when;
  const Op train = optim::Sgd{.lr = 0.1}.apply(gradients);
  REQUIRE(graph_has(g, "ApplySparseGradientDescentWhen"));
  Interpreter run(g);
  run.init();
  run.run({}, {train}, {{when.node(), Tensor::scalar(false)}});
  CHECK(same_table(run.variable(table), sine_table(0.5)));
  run.run({}, {train}, {{when.node(), Tensor::scalar(true)}});
  CHECK(!same_table(run.variable(table), sine_table(0.5)));
}
