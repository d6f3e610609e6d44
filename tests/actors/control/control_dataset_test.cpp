// Elements of datasets that loops take: which they are, and which the next run takes.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "ops/api.hpp"
#include "ops/data/data.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// The labels of digits, one each.
std::vector<double> drawn_labels(std::int64_t count) {
  Graph g;
  auto [images, labels] = data::digits(count).batch(count).outputs(g);
  Session s(g, one_thread());
  auto fetched = s.run({labels});
  const auto all = fetched[0].span<std::int64_t>();
  return {all.begin(), all.end()};
}

// A dataset of these, taken wherever next() stands.
struct Labels {
  Labels(Graph& g, const char* device, std::int64_t count) : g(g) {
    auto there = g.with_device(device);
    auto [x, y] = data::digits(count).batch(1).outputs(g);
    const NodeDef& first = g.node(y.node());
    handle = Output(&g, first.inputs[0]);
    attrs = first.attrs;
  }
  Output next() {
    return sum(cast<double>(g.add(NodeSpec{.op = "NextElement",
                                           .inputs = {handle},
                                           .attrs = attrs,
                                           .name = "next",
                                           .site = Site::here()})
                                .output(1)));
  }
  Graph& g;
  Output handle;
  AttrMap attrs;
};

using Step = std::function<Output(Output i, Output sum)>;

// A sum over n iterations.
Output sum_over(Graph& g, const Output& n, const Step& step) {
  return std::get<1>(while_loop(
      std::tuple{constant(g, 0), constant(g, 0.0)}, [&](Output i, Output) { return i < n; },
      [&](Output i, Output sum) {
        return std::tuple{i + 1, step(i, sum)};
      }));
}

// sum = 10 sum + label: whose digits are the labels in their order.
double digits(const std::vector<double>& labels, std::size_t from, std::size_t to) {
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum = sum * 10 + labels[i];
  return sum;
}

Output trips(Graph& g) { return placeholder<std::int32_t>(g, PartialShape::scalar(), "n"); }

}  // namespace

TEST_CASE("a loop takes elements of a dataset, and a resumed job those behind them") {
  const auto labels = drawn_labels(12);
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    struct Program {
      explicit Program(const Place& place) : data(g, place.second, 12), n(trips(g)) {
        Variable seen = variable(g, "seen", Tensor::scalar(0.0));
        read_digits = sum_over(g, n, [&](Output, Output sum) { return sum * 10.0 + data.next(); });
        trained = sum_over(g, n, [&](Output, Output) {
          Op add = assign_add(seen, data.next());
          return read(seen, {add});
        });
      }
      double run(Session& s, const Output& what, std::int32_t times) const {
        return s.run({what}, {}, {{n, Tensor::scalar(times)}})[0].item<double>();
      }
      Graph g;
      Labels data;
      Output n, read_digits, trained;
    };
    JobState saved;
    {
      Program before(place);
      PlacedSession s(before.g, place);
      s->init();
      CHECK(before.run(*s, before.read_digits, 3) == digits(labels, 0, 3));
      CHECK(before.run(*s, before.read_digits, 0) == 0);
      CHECK(before.run(*s, before.trained, 2) == labels[3] + labels[4]);
      saved = value_or_throw(s->try_state());
      CHECK(before.run(*s, before.read_digits, 1) == digits(labels, 5, 6));
    }
    CHECK(saved.datasets == std::vector<DatasetPlace>{{{"", "data"}, 5, {}}});
    Program after(place);
    PlacedSession s(after.g, place);
    s->restore(saved.variables, saved.committed, saved.datasets);
    CHECK(after.run(*s, after.read_digits, 5) == digits(labels, 5, 10));
    CHECK(after.run(*s, after.trained, 2) == labels[3] + labels[4] + labels[10] + labels[11]);
  }
}

TEST_CASE("branches, loops and functions in a loop take elements in the order of the program") {
  const auto labels = drawn_labels(40);
  Graph g;
  Labels data(g, "", 40);
  Output n = trips(g);
  Function two = g.function("two", {f64_scalar}, {f64_scalar}, [&](Function&, Output sum) {
    Output one = sum * 10.0 + data.next();
    return one * 10.0 + data.next();
  });
  Output all = sum_over(g, n, [&](Output i, Output sum) {
    Output odd = cond(
        mod(i, constant(g, 2)) == 1, [&] { return two(sum); }, [&] { return sum * 1.0; });
    return sum_over(g, i, [&](Output, Output inner) { return inner + data.next(); }) + odd;
  });
  Session s(g, one_thread());
  std::size_t at = 0;
  for (int times : {4, 0, 1, 3}) {
    double wanted = 0;
    for (int i = 0; i < times; ++i) {
      double next = wanted;
      if (i % 2 == 1) next = (wanted * 10 + labels[at]) * 10 + labels[at + 1], at += 2;
      for (int j = 0; j < i; ++j) next += labels[at++];
      wanted = next;
    }
    CAPTURE(times);
    CHECK(s.run({all}, {}, {{n, Tensor::scalar(times)}})[0].item<double>() == wanted);
  }
}

TEST_CASE("loops of one run take elements one after the other, behind the one outside of them") {
  const auto labels = drawn_labels(12);
  Graph g;
  Labels data(g, "", 12);
  Output n = trips(g);
  auto loop = [&] {
    return sum_over(g, n, [&](Output, Output sum) { return sum * 10.0 + data.next(); });
  };
  Output first = loop(), outside = data.next(), second = loop();
  Session s(g, one_thread());
  auto out = s.run({first, outside, second}, {}, {{n, Tensor::scalar(2)}});
  CHECK(out[1].item<double>() == labels[0]);
  CHECK(out[0].item<double>() == digits(labels, 1, 3));
  CHECK(out[2].item<double>() == digits(labels, 3, 5));
  out = s.run({outside, second}, {}, {{n, Tensor::scalar(0)}});
  CHECK(out[0].item<double>() == labels[5]);
  CHECK(s.run({outside})[0].item<double>() == labels[6]);
  CHECK(s.run({second}, {}, {{n, Tensor::scalar(1)}})[0].item<double>() == labels[7]);
}

TEST_CASE("the end of a dataset in a loop is told with node and iteration, and nothing is taken") {
  const auto labels = drawn_labels(4);
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Labels data(g, place.second, 4);
    Output n = trips(g);
    Output all = sum_over(g, n, [&](Output, Output sum) { return sum * 10.0 + data.next(); });
    PlacedSession s(g, place);
    auto run = [&](std::int32_t times) {
      return s->try_run({all}, {}, {{n, Tensor::scalar(times)}});
    };
    CHECK(value_or_throw(run(1))[0].item<double>() == labels[0]);
    for (int i = 0; i < 2; ++i) {
      const Status ended = run(5).status();
      CHECK(ended.code() == Code::out_of_range);
      for (const char* part : {"the dataset has ended", "in iteration 3 of", "next"})
        CHECK_MESSAGE(ended.text().find(part) != std::string::npos, ended.text());
    }
    CHECK(value_or_throw(run(3))[0].item<double>() == digits(labels, 1, 4));
    CHECK(run(1).status().code() == Code::out_of_range);
    CHECK(run(0).ok());
  }
}

TEST_CASE("replicas take every other element in their loops") {
  const auto labels = drawn_labels(12);
  Graph g;
  Labels data(g, "", 12);
  Output n = trips(g);
  Variable v = variable(g, "v", Tensor::scalar(0.0));
  Output own = sum_over(g, n, [&](Output, Output sum) { return sum * 10.0 + data.next(); });
  Op add = assign_add(v, own * own);
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({}, {add}, {n}, {.replicas = 2});
  auto number = [&](std::size_t from, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum = sum * 10 + labels[from + 2 * i];
    return sum;
  };
  double wanted = 0;
  auto run = [&](std::int32_t times, std::size_t from) {
    step.run({Tensor::scalar(times)});
    for (std::size_t r = 0; r < 2; ++r) wanted += std::pow(number(from + r, std::size_t(times)), 2);
    CHECK(s.run({read(v)})[0].item<double>() == wanted);
  };
  run(3, 0);
  run(2, 6);
}

TEST_CASE("runs whose loops take elements follow one another, whoever issues them") {
  const auto labels = drawn_labels(12);
  double total = 0;
  for (double label : labels) total += label;
  Graph g;
  Labels data(g, "", 12);
  Variable v = variable(g, "v", Tensor::scalar(0.0));
  Output loop = sum_over(g, constant(g, 2), [&](Output, Output) {
    Op add = assign_add(v, data.next());
    return read(v, {add});
  });
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({loop});
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c)
    clients.emplace_back([&] {
      for (int i = 0; i < 2; ++i) (void)step.run();
    });
  for (std::thread& client : clients) client.join();
  CHECK(s.run({read(v)})[0].item<double>() == total);
  CHECK(step.try_run().status().code() == Code::out_of_range);
}

TEST_CASE("where a loop takes no elements of a dataset is said with the line") {
  Graph g;
  Labels data(g, "", 4);
  Output n = trips(g);
  Output in_condition = while_loop(
      constant(g, 0), [&](Output i) { return cast<double>(i) < data.next(); },
      [&](Output i) { return i + 1; });
  Output in_branch = cond(
      n > 0, [&] { return sum_over(g, n, [&](Output, Output sum) { return sum + data.next(); }); },
      [&] { return constant(g, 0.0); });
  Session s(g, one_thread());
  for (auto& [loop, why] :
       {std::pair{in_condition,
                  "the condition of a loop writes no variables and takes no elements"},
        {in_branch, "in a loop that stands in the branch or function of"}}) {
    const Status refused = s.try_run({loop}, {}, {{n, Tensor::scalar(1)}}).status();
    CHECK(refused.code() == Code::unimplemented);
    CHECK_MESSAGE(refused.text().find(why) != std::string::npos, refused.text());
    CHECK(refused.text().find("control_dataset_test.cpp") != std::string::npos);
  }
}
