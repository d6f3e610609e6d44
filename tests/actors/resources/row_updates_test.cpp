// Writes of some rows of a variable, also in loops.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Rows = std::vector<double>;

Tensor table_of(const Rows& rows) {
  return Tensor::of<double>({std::int64_t(rows.size() / 2), 2}, rows);
}

Output repeat(Graph& g, std::int32_t times, const std::function<void(Output)>& body) {
  return while_loop(
      constant(g, 0), [&](Output i) { return i < times; },
      [&](Output i) {
        body(i);
        return i + 1;
      });
}

void check_rows(Session& s, const Variable& v, const Rows& wanted) {
  CHECK(Tensor::same(s.run({read(v)})[0], table_of(wanted)));
}

Tensor ids_of(std::initializer_list<std::int64_t> ids) {
  return Tensor::of<std::int64_t>({std::int64_t(ids.size())}, ids);
}

}  // namespace

TEST_CASE("rows of a variable are added to, subtracted from and replaced in their order") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v = variable_on(g, place.second, "v", table_of({1, 2, 3, 4, 5, 6}));
    Output ids = placeholder<std::int64_t>(g, {-1}, "ids"),
           rows = placeholder<double>(g, {-1, 2}, "rows");
    Op add = scatter_add(v, ids, rows), sub = scatter_sub(v, ids, rows),
       update = scatter_update(v, ids, rows);
    PlacedSession s(g, place);
    s->init();
    auto run = [&](const Op& op, std::initializer_list<std::int64_t> at, const Rows& values) {
      s->run({}, {op}, {{ids, ids_of(at)}, {rows, table_of(values)}});
    };
    run(add, {2, 0, 2}, {1, 1, 2, 2, 3, 3});
    check_rows(*s, v, {3, 4, 3, 4, 9, 10});
    run(sub, {1, 1}, {1, 0, 1, 0});
    check_rows(*s, v, {3, 4, 1, 4, 9, 10});
    run(update, {0, 1, 0}, {7, 7, 8, 8, 9, 9});
    check_rows(*s, v, {9, 9, 8, 8, 9, 10});
    run(add, {}, {});
    check_rows(*s, v, {9, 9, 8, 8, 9, 10});
    run(update, {2}, {1, 2});
    check_rows(*s, v, {9, 9, 8, 8, 1, 2});
  }
}

TEST_CASE("rows that a variable does not have are refused, and nothing is written") {
  Graph g;
  Variable v = variable(g, "v", table_of({1, 2, 3, 4}));
  Output ids = placeholder<std::int64_t>(g, {-1}, "ids"), rows = placeholder<double>(g, {-1, -1});
  Op add = scatter_add(v, ids, rows);
  Op other = assign_add(v, constant(g, table_of({1, 1, 1, 1})));
  Output in_loop = repeat(g, 3, [&](Output i) {
    scatter_add(v, cast<std::int64_t>(i) + std::int64_t{0},
                constant(g, Tensor::of<double>({2}, {1, 1})));
  });
  Session s(g, one_thread());
  s.init();
  auto refused = [&](std::initializer_list<std::int64_t> at, Tensor values) {
    return s.try_run({}, {add, other}, {{ids, ids_of(at)}, {rows, values}}).status();
  };
  for (std::int64_t id : {std::int64_t{-1}, std::int64_t{2}}) {
    const Status status = refused({0, id}, table_of({1, 1, 1, 1}));
    CHECK(status.code() == Code::invalid_argument);
    CHECK_MESSAGE(status.text().find("indices[1] = " + std::to_string(id) + " is outside [0, 2)") !=
                      std::string::npos,
                  status.text());
  }
  CHECK(refused({0}, Tensor::of<double>({1, 3}, {1, 2, 3})).code() == Code::invalid_argument);
  CHECK(refused({0, 1}, table_of({1, 1})).code() == Code::invalid_argument);
  check_rows(s, v, {1, 2, 3, 4});
  const Status status = s.try_run({in_loop}).status();
  CHECK_MESSAGE(status.text().find("is outside [0, 2)") != std::string::npos, status.text());
  CHECK_MESSAGE(status.text().find("in iteration 2 of") != std::string::npos, status.text());
  check_rows(s, v, {1, 2, 3, 4});
  CHECK_THROWS_AS(scatter_add(v, constant(g, ids_of({2})), constant(g, table_of({1, 1}))), Error);
  CHECK_THROWS_AS(scatter_add(v, ids, constant(g, 1.0)), Error);
}

TEST_CASE("replicas write rows of their own, one replica after the other") {
  Graph g;
  Output queue = queue_on(g, "");
  Output fed = placeholder<float>(g, PartialShape::scalar(), "fed");
  Op put = enqueue(queue, {fed});
  Output id = reshape(cast<std::int64_t>(take_from(queue)), {1});
  Variable v = variable(g, "v", table_of({0, 0, 0, 0, 0, 0}));
  Output row = reshape(cast<double>(id) + 1.0, {1, 1}) * constant(g, table_of({1, 10}));
  Op add = scatter_add(v, id, row);
  Session s(g, one_thread());
  s.init();
  auto run = [&](float first, float second) {
    for (float x : {first, second}) s.run({}, {put}, {{fed, Tensor::scalar(x)}});
    s.compile({}, {add}, {}, {.replicas = 2}).run();
  };
  run(0, 2);
  check_rows(s, v, {1, 10, 0, 0, 3, 30});
  run(1, 1);
  check_rows(s, v, {1, 10, 4, 40, 3, 30});
}

TEST_CASE("an optimizer takes the mean of the rows of all replicas") {
  Graph g;
  Output queue = queue_on(g, "");
  Output fed = placeholder<float>(g, PartialShape::scalar(), "fed");
  Op put = enqueue(queue, {fed});
  Output id = reshape(cast<std::int64_t>(take_from(queue)), {1});
  // Large enough to be worth it.
  Variable v = variable(g, "v", table_of(Rows(std::size_t{1} << 16, 0.0)));
  Op train = optim::Sgd{.lr = 1}.minimize(sum(gather(v, id) * constant(g, table_of({1, 4}))));
  Session s(g, one_thread());
  s.init();
  auto run = [&](float first, float second) {
    for (float x : {first, second}) s.run({}, {put}, {{fed, Tensor::scalar(x)}});
    s.compile({}, {train}, {}, {.replicas = 2}).run();
  };
  Output seen = gather(v, constant(g, ids_of({0, 3, (1 << 15) - 1, 1})));
  run(0, 3);
  CHECK(Tensor::same(s.run({seen})[0], table_of({-0.5, -2, -0.5, -2, 0, 0, 0, 0})));
  run((1 << 15) - 1, (1 << 15) - 1);
  CHECK(Tensor::same(s.run({seen})[0], table_of({-0.5, -2, -0.5, -2, -1, -4, 0, 0})));
}

TEST_CASE("an optimizer in a loop changes rows") {
  Graph g;
  Variable v = variable(g, "v", table_of(Rows(std::size_t{1} << 16, 0.0)));
  Output every = repeat(g, 5, [&](Output i) {
    Output at = reshape(mod(cast<std::int64_t>(i), constant(g, std::int64_t{3})), {1});
    optim::Sgd{.lr = 1}.minimize(sum(gather(v, at) * constant(g, table_of({1, 4}))));
  });
  Session s(g, one_thread());
  s.init();
  s.run({every});
  CHECK(Tensor::same(s.run({gather(v, constant(g, ids_of({0, 1, 2, 3})))})[0],
                     table_of({-2, -8, -2, -8, -1, -4, 0, 0})));
}

TEST_CASE("a loop updates rows of a variable") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v = variable_on(g, place.second, "v", table_of({0, 0, 0, 0, 0, 0}));
    Output every = repeat(g, 5, [&](Output i) {
      Output at = reshape(mod(cast<std::int64_t>(i), constant(g, std::int64_t{3})), {1});
      scatter_add(v, at, reshape(cast<double>(i) + 1.0, {1, 1}) * constant(g, table_of({1, 10})));
    });
    Output some = repeat(g, 5, [&](Output i) {
      cond(
          i > 2,
          [&] {
            scatter_update(v, constant(g, ids_of({1})), gather(read(v), constant(g, ids_of({0}))));
            return constant(g, 0);
          },
          [&] {
            scatter_sub(v, constant(g, ids_of({0, 0})), constant(g, table_of({1, 1, 1, 1})));
            return constant(g, 0);
          });
    });
    PlacedSession s(g, place);
    s->init();
    s->run({every});
    check_rows(*s, v, {5, 50, 7, 70, 3, 30});
    s->run({some});
    check_rows(*s, v, {-1, 44, -1, 44, 3, 30});
  }
}

TEST_CASE("a loop updates rows of two variables") {
  Graph g;
  Variable a = variable(g, "a", table_of({1, 1, 2, 2})),
           b = variable(g, "b", table_of({0, 0, 0, 0}));
  Output loop = repeat(g, 4, [&](Output i) {
    Output at = reshape(mod(cast<std::int64_t>(i), constant(g, std::int64_t{2})), {1});
    Output other = std::int64_t{1} - at;
    Op first = scatter_add(a, at, gather(read(b), other));
    scatter_add(b, other, gather(read(a, {first}), at));
  });
  Session s(g, one_thread());
  s.init();
  s.run({loop});
  double x[] = {1, 2}, y[] = {0, 0};
  for (int i = 0; i < 4; ++i) x[i % 2] += y[1 - i % 2], y[1 - i % 2] += x[i % 2];
  check_rows(s, a, {x[0], x[0], x[1], x[1]});
  check_rows(s, b, {y[0], y[0], y[1], y[1]});
}

TEST_CASE("sparse updates in a loop stay sparse") {
  constexpr std::int64_t kRows = 1 << 20;
  constexpr std::int32_t kTimes = 4000;  // with a copy of 64 MB each they would take minutes
  Graph g;
  Variable v = variable(g, "v", Tensor::zeros(DType::f64, {kRows, 8}).value());
  Output one = constant(g, Tensor::of<double>({1, 8}, std::vector<double>(8, 1)));
  auto place_of = [&](const Output& i) {
    return reshape(mod(cast<std::int64_t>(i), constant(g, std::int64_t{3})), {1}) *
           constant(g, std::int64_t{1000});
  };
  Output blind = repeat(g, kTimes, [&](Output i) { scatter_add(v, place_of(i), one); });
  Output reads = repeat(g, kTimes, [&](Output i) {
    Output at = place_of(i);
    scatter_update(v, at, gather(read(v), at) * constant(g, 2.0) + one);
    cond(
        mod(i, constant(g, 2)) == 0,
        [&] { scatter_sub(v, at, gather(read(v), at) * constant(g, 0.5)); }, [] {});
  });
  Session s(g, one_thread());
  s.init();
  const auto began = std::chrono::steady_clock::now();
  // What is there at most beside the variable: the loop's own copy of it.
  auto run = [&](Output loop) {
    const std::uint64_t before = s.memory(true)[0].in_use;
    s.run({loop});
    return s.memory()[0].peak - before;
  };
  constexpr std::uint64_t kTable = kRows * 8 * 8, kSmall = 1 << 20;
  CHECK(run(blind) < kTable + kSmall);
  const Tensor added = s.run({gather(read(v), constant(g, ids_of({0, 1000, 2000, 1})))})[0];
  const double sums[] = {1334, 1333, 1333, 0};
  for (int r = 0; r < 4; ++r) CHECK(added.data<double>()[8 * r + 7] == sums[r]);
  CHECK(run(reads) < kTable + kSmall);
  CHECK(seconds_since(began) < 10);
}
