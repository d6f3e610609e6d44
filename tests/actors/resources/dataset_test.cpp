// Datasets in steps of every kind: which run gets which element.
#include <doctest/doctest.h>

#include "ops/api/generated.hpp"
#include "ops/api/math.hpp"
#include "ops/data/data.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// The labels of digits in order, as one element after the other shows them.
std::vector<std::int64_t> drawn_labels(std::int64_t count) {
  Graph g;
  auto [images, labels] = data::digits(count).batch(count).outputs(g);
  Session s(g, one_thread());
  auto fetched = s.run({labels});
  return {fetched[0].span<std::int64_t>().begin(), fetched[0].span<std::int64_t>().end()};
}

// Two examples an element, `count` in all, once.
struct Digits {
  explicit Digits(const Place& place, std::int64_t count = 8) {
    auto here = g.with_device(place.second);
    auto [x, y] = data::digits(count).batch(2).outputs(g);
    images = x;
    labels = y;
  }
  Graph g;
  Output images, labels;
};

// Which elements of two examples the batches are.
std::vector<std::int64_t> labels_of(const std::vector<Tensor>& batches) {
  std::vector<std::int64_t> all;
  for (const Tensor& t : batches)
    all.insert(all.end(), t.span<std::int64_t>().begin(), t.span<std::int64_t>().end());
  return all;
}

bool has_ended(const Status& status) {
  return status.code() == Code::out_of_range &&
         status.message().find("the dataset has ended") != std::string::npos;
}

}  // namespace

TEST_CASE("a step that writes nothing reads a dataset from its first element to its end") {
  const auto expected = drawn_labels(8);
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Digits d(place);
    PlacedSession s(d.g, place);
    auto step = s->compile({d.labels});
    std::vector<Tensor> batches;
    for (int i = 0; i < 4; ++i) batches.push_back(step.run()[0]);
    CHECK(labels_of(batches) == expected);
    for (int i = 0; i < 3; ++i) CHECK(has_ended(step.try_run().status()));
  }
}

TEST_CASE("commits of other steps skip no element") {
  const auto expected = drawn_labels(8);
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Digits d(place);
    Variable v = variable(d.g, "v", Tensor::scalar(0.0f));
    Op raise = assign_add(v, constant(d.g, 1.0f));
    Op add = assign_add(v, sum(cast<float>(d.labels)));
    PlacedSession s(d.g, place);
    s->init();
    auto other = s->compile({}, {raise});
    auto train = s->compile({d.labels}, {add});
    auto look = s->compile({d.labels});  // shares the dataset, and where it is read
    std::vector<Tensor> batches;
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k <= i; ++k) other.run();
      batches.push_back((i == 2 ? look : train).run()[0]);
    }
    CHECK(labels_of(batches) == expected);
  }
}

TEST_CASE("a run that fails leaves its element to the next one") {
  const auto expected = drawn_labels(8);
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Digits d(place);
    Output fed = placeholder<float>(d.g, PartialShape{-1});
    // Fails, after the element was taken, when what is fed does not fit.
    Output joined = cast<float>(d.labels) + fed;
    PlacedSession s(d.g, place);
    auto step = s->compile({d.labels, joined}, {}, {fed});
    Tensor fits = Tensor::zeros(DType::f32, {2}).value(),
           wrong = Tensor::zeros(DType::f32, {3}).value();
    std::vector<Tensor> batches;
    for (int i = 0; i < 4; ++i) {
      CHECK_FALSE(step.try_run({wrong}).ok());
      batches.push_back(step.run({fits})[0]);
    }
    CHECK(labels_of(batches) == expected);
  }
}

TEST_CASE("a step that reads a dataset twice gets the element of the run twice") {
  Graph g;
  auto [images, labels] = data::digits(4).batch(2).outputs(g);
  NodeSpec again;
  const NodeDef& next = g.node(labels.node());
  again.op = "NextElement";
  again.inputs = {Output(&g, next.inputs[0])};
  again.attrs = {{"types", next.attrs.find("types")->second},
                 {"shapes", next.attrs.find("shapes")->second}};
  Output second = g.add(std::move(again)).output(1);
  Session s(g, one_thread());
  auto step = s.compile({labels, second});
  for (int i = 0; i < 2; ++i) {
    auto fetched = step.run();
    CHECK(Tensor::same(fetched[0], fetched[1]));
  }
  CHECK(has_ended(step.try_run().status()));
}

TEST_CASE("replicas share out a dataset, and a step compiled for one goes on where they are") {
  const auto expected = drawn_labels(12);
  Graph g;
  auto [images, labels] = data::digits(12).batch(2).outputs(g);
  Output first = sum(cast<float>(labels));
  Cluster cluster = one_thread();
  cluster.replicas = 2;
  Session s(g, cluster);
  auto both = s.compile({first});
  auto one = s.compile({labels}, {}, {}, {.replicas = 1});
  auto mean_from = [&](std::size_t i) {
    float sum = 0;
    for (std::size_t k = i; k < i + 4; ++k) sum += float(expected[k]);
    return sum / 2;
  };
  CHECK(both.run()[0].item<float>() == mean_from(0));
  CHECK(labels_of({one.run()[0]}) == std::vector(expected.begin() + 4, expected.begin() + 6));
  CHECK(both.run()[0].item<float>() == mean_from(6));
  CHECK(has_ended(both.try_run().status()));  // one element is left for two
  CHECK(labels_of({one.run()[0]}) == std::vector(expected.begin() + 10, expected.end()));
}

TEST_CASE("a job that is restored reads its datasets on") {
  const auto expected = drawn_labels(8);
  JobState saved;
  auto make = [](Digits& d) {
    Variable v = variable(d.g, "v", Tensor::scalar(0.0f));
    return assign_add(v, sum(cast<float>(d.labels)) + v.value());
  };
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Digits before(place);
    Op train = make(before);
    {
      PlacedSession s(before.g, place);
      s->init();
      auto look = s->compile({before.labels});
      look.run();  // commits nothing, and moves the dataset on
      s->run({}, {train});
      saved = value_or_throw(s->try_state());
    }
    CHECK(saved.committed == 2);
    CHECK(saved.datasets == std::vector<DatasetPlace>{{{"", "data"}, 2, {}}});
    Digits after(place);
    train = make(after);
    PlacedSession s(after.g, place);
    Status other = s->try_restore(saved.variables, saved.committed, {{{"", "other"}, 1, {}}});
    CHECK(other.code() == Code::not_found);
    REQUIRE(s->try_restore(saved.variables, saved.committed, saved.datasets).ok());
    auto step = s->compile({after.labels}, {train});
    CHECK(labels_of({step.run()[0], step.run()[0]}) ==
          std::vector(expected.begin() + 4, expected.end()));
    CHECK(has_ended(step.try_run().status()));
  }
}

TEST_CASE("a reset lets the datasets of a container begin anew") {
  const auto expected = drawn_labels(8);
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Digits d(place);
    PlacedSession s(d.g, place);
    auto step = s->compile({d.labels});
    step.run();
    s->reset();
    CHECK(labels_of({step.run()[0]}) == std::vector(expected.begin(), expected.begin() + 2));
  }
}

TEST_CASE("a pass gives each element of a finite dataset once, and begins anew each time") {
  const auto expected = drawn_labels(7);
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Digits d(place, 7);  // the last element is short
    Output first = sum(cast<float>(d.labels));
    PlacedSession s(d.g, place);
    auto step = s->compile({d.labels});
    for (int times = 0; times < 2; ++times) {
      std::vector<Tensor> batches;
      for (const std::vector<Tensor>& fetched : step.pass()) batches.push_back(fetched[0]);
      CHECK(labels_of(batches) == expected);
    }
    int runs = 0;
    for (auto [labels] : s->compile({first}).pass<float>()) {
      CHECK(labels == float(expected[0] + expected[1]));
      if (++runs == 1) break;  // left at its first element
    }
    step.rewind();
    CHECK(labels_of({step.run()[0]}) == std::vector(expected.begin(), expected.begin() + 2));
    CHECK(step.next().has_value());
    for (int i = 0; i < 2; ++i) CHECK(step.next().has_value());
    for (int i = 0; i < 2; ++i) CHECK_FALSE(step.next().has_value());
  }
}

TEST_CASE("a pass leaves no element out, whatever the number of replicas") {
  const auto expected = drawn_labels(10);
  Graph g;
  auto [images, labels] = data::digits(10).batch(2).outputs(g);
  Output all = sum(cast<float>(labels));
  Cluster cluster = one_thread();
  cluster.replicas = 2;
  Session s(g, cluster);
  auto step = s.compile({all});
  float sum = 0;
  int runs = 0;
  for (auto [part] : step.pass<float>()) {
    sum += part;
    ++runs;
  }
  CHECK(runs == 5);
  float wanted = 0;
  for (std::int64_t label : expected) wanted += float(label);
  CHECK(sum == wanted);
}

TEST_CASE("a pass that fails says why, and what is out of range is not taken for an end") {
  Graph g;
  auto [images, labels] = data::digits(8).batch(2).outputs(g);
  Output table = constant<float>(g, {3}, {1, 2, 3});
  Output fetched = gather(table, labels + constant(g, std::int64_t{100}));
  Session s(g, one_thread());
  auto step = s.compile({fetched});
  auto next = step.try_next();
  CHECK_FALSE(next.ok());
  CHECK_THROWS_AS(
      [&] {
        for (auto& values : step.pass()) (void)values;
      }(),
      Error);
}

TEST_CASE("a dataset is not rewound while a run reads it, nor a step that reads none") {
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Graph g;
    Gate gate(g, place.second);
    auto [images, labels] = data::digits(8).batch(2).outputs(g);
    PlacedSession s(g, place);
    auto reads = s->compile({labels, gate.taken});
    auto none = s->compile({}, {gate.put}, {gate.fed});
    PendingRun run = reads.start();
    // It holds its element until the gate is fed.
    Status refused = reads.try_rewind();
    CHECK(refused.code() == Code::failed_precondition);
    CHECK(refused.message() == "dataset 'data' cannot begin anew: a run is reading it");
    none.run({Tensor::scalar(1.0f)});
    const auto first = run.get();
    CHECK(none.try_rewind().code() == Code::invalid_argument);
    REQUIRE(reads.try_rewind().ok());
    none.run({Tensor::scalar(2.0f)});
    CHECK(Tensor::same(reads.run()[0], first[0]));
  }
}

TEST_CASE("a pipeline of stages goes on where a job was when it is restored") {
  Tensor rows = Tensor::make(DType::i64, Shape{20}).value();
  for (int i = 0; i < 20; ++i) rows.mutable_data<std::int64_t>()[i] = i;
  for (const Place& place : kPlaces) {
    INFO(place.name);
    auto build = [&](Graph& g) {
      auto here = g.with_device(place.second);
      const auto part = data::tensors({rows});
      return data::interleave({part.shard(2, 0), part.shard(2, 1).shuffle(5)})
          .shuffle(7)
          .repeat()
          .batch(3, data::Remainder::drop)
          .prefetch(2)
          .outputs<1>(g)[0];
    };
    std::vector<Tensor> whole;
    JobState saved;
    {
      Graph g(3);
      Output x = build(g);
      Variable v = variable(g, "v", Tensor::scalar(std::int64_t{0}));
      Op add = assign_add(v, sum(x));
      PlacedSession s(g, place);
      s->init();
      auto step = s->compile({x}, {add});
      for (int i = 0; i < 15; ++i) {
        if (i == 6) saved = value_or_throw(s->try_state());
        whole.push_back(step.run()[0]);
      }
    }
    Graph g(3);
    Output x = build(g);
    Variable v = variable(g, "v", Tensor::scalar(std::int64_t{0}));
    Op add = assign_add(v, sum(x));
    PlacedSession s(g, place);
    s->restore(saved.variables, saved.committed, saved.datasets);
    auto step = s->compile({x}, {add});
    for (std::size_t i = 6; i < whole.size(); ++i) CHECK(Tensor::same(step.run()[0], whole[i]));
  }
}
