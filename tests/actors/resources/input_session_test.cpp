// Datasets of files in sessions: their functions, their positions in a saved job, their errors.
#include <doctest/doctest.h>

#include <fstream>

#include "ops/api.hpp"
#include "ops/data/data.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

// Records of a number and as many values, in two files.
std::vector<std::string> write_records(const TemporaryDir& dir, int count) {
  std::vector<std::string> paths;
  for (const data::Packing packing : {data::Packing::none, data::Packing::gzip}) {
    paths.push_back(dir.path() + "/records-" + std::to_string(paths.size()));
    data::RecordWriter writer(paths.back(), packing);
    for (int i = 0; i < count; ++i) {
      std::vector<float> values(std::size_t(1 + i % 3), float(i));
      throw_if_error(writer.write(value_or_throw(data::tf_example(
          {{"id", Tensor::scalar(std::int64_t{i})},
           {"values", Tensor::of<float>(Shape{std::int64_t(values.size())}, values)}}))));
    }
    throw_if_error(writer.finish());
  }
  return paths;
}

// Everything that has a position of its own.
Output build_input(Graph& g, const Place& place, const std::vector<std::string>& paths) {
  auto here = g.with_device(place.second);
  const auto parsed =
      data::tf_records(paths, {.at_once = 2})
          .parse_example({{.name = "id", .dtype = DType::i64}, {.name = "values", .shape = {-1}}})
          .skip_errors(2);
  return data::zip({parsed, data::range()})
      .filter(g, [](Output id, Output, Output) { return mod(id, id * 0 + 4) != 3; })
      .shuffle(5)
      .map(g,
           [](Output id, Output values, Output place_of) {
             return cast<float>(id * 100 + place_of) + sum(values) +
                    random_uniform(values.graph(), PartialShape::scalar());
           },
           {.parallel = 3})
      .repeat()
      .batch(4)
      .unbatch()
      .batch(3)
      .prefetch(2)
      .outputs<1>(g)[0];
}

}  // namespace

TEST_CASE("a job that goes on reads the same records, draws the same numbers, on any processes") {
  const TemporaryDir dir;
  const auto paths = write_records(dir, 11);
  std::vector<std::vector<Tensor>> all;
  for (const Place& place : kPlaces) {
    INFO(place.name);
    JobState saved;
    std::vector<Tensor>& whole = all.emplace_back();
    {
      Graph g(3);
      Output x = build_input(g, place, paths);
      Variable v = variable(g, "v", Tensor::scalar(0.0f));
      PlacedSession s(g, place);
      s->init();
      auto step = s->compile({x, v.value()});
      for (int i = 0; i < 12; ++i) {
        if (i == 5) saved = value_or_throw(s->try_state());
        whole.push_back(step.run()[0]);
      }
    }
    Graph g(3);
    Output x = build_input(g, place, paths);
    Variable v = variable(g, "v", Tensor::scalar(0.0f));
    PlacedSession s(g, place);
    s->restore(saved.variables, saved.committed, saved.datasets);
    auto step = s->compile({x, v.value()});
    for (std::size_t i = 5; i < whole.size(); ++i) CHECK(Tensor::same(step.run()[0], whole[i]));
  }
  for (std::size_t i = 0; i < 12; ++i) CHECK(Tensor::same(all[0][i], all[1][i]));
  CHECK_FALSE(Tensor::same(all[0][0], all[0][6]));
}

TEST_CASE("a map gives the same, however many examples it computes at once") {
  std::vector<std::vector<Tensor>> all;
  for (const std::int64_t parallel : {1, 2, 7}) {
    Graph g(5);
    Output x = data::generate(g, 20,
                              [&](Output i) {
                                return cast<float>(i) + random_uniform(i.graph(), PartialShape{3});
                              },
                              {.parallel = parallel})
                   .repeat(2)
                   .outputs<1>(g)[0];
    Session s(g, one_thread());
    auto step = s.compile({x});
    std::vector<Tensor>& got = all.emplace_back();
    for (int i = 0; i < 40; ++i) got.push_back(step.run()[0]);
    CHECK(step.try_run().status().code() == Code::out_of_range);
  }
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(Tensor::same(all[0][i], all[1][i]));
    CHECK(Tensor::same(all[0][i], all[2][i]));
  }
}

TEST_CASE("an example that several compute at once fails its run, and others are there") {
  Graph g;
  Output x = data::range(9)
                 .map(g,
                      [](Output i) {
                        assert_(i != 4, {.message = "it is four"});
                        return i * i;
                      },
                      {.parallel = 3})
                 .outputs<1>(g)[0];
  Session s(g, one_thread());
  auto step = s.compile({x});
  std::vector<std::int64_t> got;
  for (int i = 0; i < 4; ++i) got.push_back(step.run()[0].item<std::int64_t>());
  for (int i = 0; i < 2; ++i)
    CHECK(step.try_run().status().text().find("it is four") != std::string::npos);
  CHECK(got == std::vector<std::int64_t>{0, 1, 4, 9});
}

TEST_CASE("a filter or a map of several at once that does not end ends with the session") {
  for (const bool filters : {false, true}) {
    Graph g;
    const auto for_ever = [](Output i) {
      return while_loop(
          i, [](Output v) { return v >= 0; }, [](Output v) { return v + 1; });
    };
    const auto numbers = data::range(30);
    Output x = filters
                   ? numbers.filter(g, [&](Output i) { return for_ever(i) < 0; }).outputs<1>(g)[0]
                   : numbers.map(g, for_ever, {.parallel = 4}).outputs<1>(g)[0];
    Session s(g, one_thread());
    auto step = s.compile({x});
    RunOptions options;
    options.timeout = std::chrono::milliseconds(20);
    CHECK(step.try_run({}, options).status().code() == Code::deadline_exceeded);
  }
}

TEST_CASE("what a function of a dataset fails on is told with the record it comes from") {
  const TemporaryDir dir;
  const auto paths = write_records(dir, 3);
  Graph g;
  const auto ids =
      data::tf_records({paths[0]}).parse_example({{.name = "id", .dtype = DType::i64}});
  Output x = ids.map(g,
                     [](Output id) {
                       assert_(id < 2, {.message = "too large"});
                       return id;
                     })
                 .outputs<1>(g)[0];
  Session s(g, one_thread());
  auto step = s.compile({x});
  step.run();
  step.run();
  const std::string text = step.try_run().status().text();
  INFO(text);
  CHECK(text.find("too large") != std::string::npos);
  CHECK(text.find("in record 2 at byte") != std::string::npos);
  CHECK(text.find(paths[0]) != std::string::npos);
}

TEST_CASE("lines of text become numbers of words and of hashes, in batches of any lengths") {
  const TemporaryDir dir;
  std::ofstream(dir.path("a.txt")) << "the cat sat\n\nthe dog\n";
  Graph g;
  const Tensor words = Tensor::of<std::string>({3}, {"the", "cat", "sat"});
  auto [ids, hashes] =
      data::text_lines({dir.path("a.txt")})
          .map(g,
               [&](Output line) {
                 const Output parts = string_split(line).parts;
                 return std::pair{
                     vocabulary_index(parts, words, {.missing = 3}),
                     string_hash(string_join({parts, constant(parts.graph(), Tensor::scalar("!"))}),
                                 10)};
               })
          .padded_batch(3, {{.value = -1}, {.value = -1}})
          .outputs(g);
  Session s(g, one_thread());
  const std::vector<Tensor> got = s.run({ids, hashes});
  CHECK(Tensor::same(got[0], Tensor::of<std::int64_t>({3, 3}, {0, 1, 2, -1, -1, -1, 0, 3, -1})));
  CHECK(got[1].shape() == Shape{3, 3});
  CHECK(got[1].data<std::int64_t>()[0] == got[1].data<std::int64_t>()[6]);
}

TEST_CASE("a filter takes a function of the graph by its name") {
  Graph g;
  const Function odd =
      g.function("odd", {i64_scalar}, {ValueType{DType::bool_, PartialShape::scalar()}},
                 [](Function&, Output x) { return mod(x, x * 0 + 2) == 1; });
  Output x = data::range(5).filter(odd).outputs<1>(g)[0];
  Session s(g, one_thread());
  auto step = s.compile({x});
  CHECK(step.run()[0].item<std::int64_t>() == 1);
  CHECK(step.run()[0].item<std::int64_t>() == 3);
  CHECK(step.try_run().status().code() == Code::out_of_range);
}
