// Input pipelines of one kind: stages in the order of the calls, names for what the source fixes,
// and the end of a dataset that is empty.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "ops/data/pipeline.hpp"
#include "tests/ops/data/data_files.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

data::Examples counting(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(i);
  return data::tensors({Tensor::of<std::int64_t>(Shape{n}, all)});
}

// One component of all elements of a pipeline that ends.
std::vector<std::vector<std::int64_t>> elements_of(const data::Examples& examples,
                                                   std::size_t component = 0) {
  Pipeline pipeline = open_examples(examples).value();
  std::vector<std::vector<std::int64_t>> all;
  for (std::uint64_t e = 0;; ++e) {
    const auto element = pipeline.element(e);
    if (!element.ok()) {
      CHECK_MESSAGE(is_dataset_end(element.status()), element.status().text());
      return all;
    }
    const auto values = (*element)[component].span<std::int64_t>();
    all.emplace_back(values.begin(), values.end());
    REQUIRE(all.size() < 1000);
  }
}
using Lists = std::vector<std::vector<std::int64_t>>;

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status().text();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("pictures take their stages in the order of the calls, as every dataset does") {
  const auto labels = [](const data::Examples& pictures) { return elements_of(pictures, 1); };
  const Lists all = labels(data::digits(6));
  CHECK(all.size() == 6);
  CHECK(labels(data::digits(6).skip(2).take(3)) == Lists(all.begin() + 2, all.begin() + 5));
  CHECK(labels(data::digits(6).take(3).skip(2)) == Lists(all.begin() + 2, all.begin() + 3));
  // A batch before the end of a pass, and batches across it.
  CHECK(labels(data::digits(3).batch(2).repeat(2)).size() == 4);
  CHECK(labels(data::digits(3).repeat(2).batch(2)).size() == 3);
  // Of batches, not of examples.
  CHECK(labels(data::digits(6).batch(2).take(2)).size() == 2);
}

TEST_CASE("names are bound to what a source is known to give") {
  Graph g;
  const auto [x, y] = data::digits(8).shuffle(8, 1).batch(4).repeat().prefetch(2).outputs(g);
  CHECK(x.shape() == PartialShape{4, 28, 28, 1});
  CHECK(y.dtype() == DType::i64);
  const auto [picture, label] = data::cifar10("folder").batch(4).outputs(g);
  CHECK(picture.shape() == PartialShape{-1, 32, 32, 3});
  const auto [now, next] = data::tales(100, {.window = 8}).outputs(g);
  CHECK(now.shape() == PartialShape{8});
  const auto [line] = data::lines("file").padded_batch(2).outputs(g);
  CHECK(line.shape() == PartialShape{-1, -1});
  // A function says by what it returns how many there are.
  const auto [a, b, c] = data::digits(8)
                             .map(g,
                                  [](Output p, Output l) {
                                    return std::tuple{p, l, l + 1};
                                  })
                             .batch(2)
                             .outputs(g);
  CHECK(c.shape() == PartialShape{-1});
  const auto [only] = data::digits(8).map(g, [](Output, Output l) { return l; }).outputs(g);
  const data::Examples rows = data::zip({data::digits(8), data::digits(8), data::range(8)});
  const auto [difference, number] = rows.map(g,
                                             [](Output, Output l, Output, Output m, Output i) {
                                               return std::pair{l - m, i};
                                             })
                                        .outputs(g);
  CHECK(difference.dtype() == DType::i64);
  CHECK(number.shape() == PartialShape::scalar());
  CHECK(rows.filter(g, [](Output, Output l, Output, Output, auto) { return l < 5; })
            .signature()
            .ok());
  CHECK(only.dtype() == DType::i64);
  // What is known when the program runs is asked for by number.
  const auto [u, v] =
      data::csv("file", {{.dtype = DType::f32}, {.dtype = DType::i64}}).outputs<2>(g);
  CHECK(v.dtype() == DType::i64);
  CHECK(data::csv("file", {{}, {}, {}}).outputs(g).size() == 3);
  CHECK(has(refusal([&] { data::csv("file", {{}}).outputs<2>(g); }),
            "outputs<2>: elements have 1 components: f32[]"));
  CHECK(data::digits(8).outputs<2>(g).size() == 2);
}

TEST_CASE("a short batch is left out before passes without end unless told, and kept otherwise") {
  CHECK(elements_of(counting(5).batch(2)) == Lists{{0, 1}, {2, 3}, {4}});
  CHECK(elements_of(counting(5).batch(2).repeat(2)).size() == 6);
  CHECK(elements_of(counting(5).batch(2).repeat().take(4)) ==
        Lists{{0, 1}, {2, 3}, {0, 1}, {2, 3}});
  CHECK(elements_of(counting(5).batch(2, data::Remainder::keep).repeat().take(4)) ==
        Lists{{0, 1}, {2, 3}, {4}, {0, 1}});
  CHECK(elements_of(counting(5).batch(2, data::Remainder::drop)) == Lists{{0, 1}, {2, 3}});
  CHECK(elements_of(counting(5).repeat().batch(2).take(3)) == Lists{{0, 1}, {2, 3}, {4, 0}});
  // Of one of two sources, its own passes count.
  CHECK(elements_of(
            data::interleave({counting(3).batch(2), counting(1).batch(1).repeat()}).take(5)) ==
        Lists{{0, 1}, {0}, {2}, {0}, {0}});
  // Passes over both are those of each.
  const auto half = counting(3).batch(2);
  for (const auto& both : {data::interleave({half, half}), data::zip({half, half})}) {
    CHECK(both.signature().value()[0].shape == PartialShape{-1});
    CHECK(both.repeat().signature().value()[0].shape == PartialShape{2});
    CHECK(data::interleave({both.repeat(), both}).signature().value()[0].shape == PartialShape{-1});
  }
  CHECK(elements_of(data::interleave({half, half}).repeat().take(3)) ==
        Lists{{0, 1}, {0, 1}, {0, 1}});
  CHECK(
      elements_of(
          data::interleave({half, counting(3).batch(2, data::Remainder::keep)}).repeat().take(4)) ==
      Lists{{0, 1}, {0, 1}, {2}, {0, 1}});
  CHECK(counting(5).batch(2).signature().value()[0].shape == PartialShape{-1});
  CHECK(counting(5).batch(2).repeat().signature().value()[0].shape == PartialShape{2});
}

TEST_CASE("an empty dataset ends at once, whatever stands over it") {
  const DataDirectory files;
  const auto header_alone = files.write("empty.csv", "a,b\n");
  files.write("train-images-idx3-ubyte",
              std::string("\0\0\x08\x03\0\0\0\0\0\0\0\x1c\0\0\0\x1c", 16));
  files.write("train-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\0", 8));
  const data::Examples empty[] = {
      counting(0),
      counting(5).take(0),
      counting(5).skip(7),
      counting(5).repeat(0),
      counting(1).shard(2, 1),
      counting(0).shuffle(4, 1),
      counting(0).batch(2),
      counting(0).batch(2, data::Remainder::drop),
      counting(0).repeat(),
      counting(0).batch(2).repeat(),
      counting(0).shuffle(4, 1).batch(2).repeat().prefetch(2),
      data::interleave({counting(0), counting(0)}),
      data::digits(0),
      data::digits(9).take(0),
      data::shapes(0),
      data::idx(files.path("")),
      data::csv(header_alone, {{}, {}}),
      data::csv(header_alone, {{}, {}}).shuffle(3, 1).batch(2).repeat(),
      data::lines(files.write("none", "")),
  };
  std::size_t number = 0;
  for (const data::Examples& examples : empty) {
    INFO("dataset " << number++);
    auto pipeline = open_examples(examples);
    REQUIRE_MESSAGE(pipeline.ok(), pipeline.status().text());
    for (std::uint64_t e : {0, 0, 7}) {
      const Status status = pipeline->element(e).status();
      CHECK_MESSAGE(is_dataset_end(status), status.text());
      CHECK(status.message() == "the dataset has ended: it has 0 elements");
    }
  }
}

TEST_CASE(
    "what is wrong with a list of columns, tensors or paddings is said in the caller's words") {
  Graph g;
  const auto rows = counting(4);
  const std::pair<data::Examples, const char*> wrong[] = {
      {data::csv("file", {}), "csv: the list of columns is empty"},
      {data::tensors({}), "tensors: the list is empty"},
      {data::interleave({}), "interleave: the list of datasets is empty"},
      {rows.padded_batch(2, {{}, {}, {}}),
       "padded_batch: paddings for 3 components, and examples have 1: i64[]"},
  };
  for (const auto& [examples, says] : wrong) {
    const auto& dataset = examples;  // clang 14: no lambda captures a structured binding
    const std::string message = refusal([&] { dataset.outputs(g); });
    CHECK_MESSAGE(has(message, says), message);
    CHECK_FALSE(has(message, "arguments"));
  }
}

namespace {

class Counted final : public ExampleFunction {
 public:
  explicit Counted(int& calls) : calls_(calls) {}
  const Signature& arguments() const override { return signature_; }
  const Signature& results() const override { return signature_; }
  Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t) override {
    ++calls_;
    return values;
  }

 private:
  const Signature signature_{{DType::i64, PartialShape::scalar()}};
  int& calls_;
};

}  // namespace

TEST_CASE("of elements on the way to one, those that nobody awaits are not computed") {
  Graph g(7);
  int calls = 0;
  const std::vector<ExampleFunctionPtr> functions = {std::make_shared<Counted>(calls)};
  const auto examples = counting(48).shuffle(5, 1).map(g, [](Output i) { return i + 0; }).batch(2);
  const auto open = [&](const char* name) {
    return open_examples(examples, g, functions, name).value();
  };
  std::vector<Tensor> all;
  Pipeline whole = open("whole");
  for (std::uint64_t e = 0; e < 24; ++e) all.push_back(whole.element(e).value()[0]);
  // Two of four replicas, which ask in either order.
  Pipeline part = open("part");
  const auto awaited = [](std::uint64_t e) { return e % 4 == 1 || e % 4 == 2; };
  calls = 0;
  for (std::uint64_t run = 0; run < 6; ++run)
    for (const std::uint64_t replica : {1 + run % 2, 2 - run % 2}) {
      const std::uint64_t e = 4 * run + replica;
      CHECK(Tensor::same(part.element(e, awaited).value()[0], all[e]));
    }
  CHECK(calls == 24);
  // One that was not awaited is made all the same.
  CHECK(Tensor::same(part.element(19, awaited).value()[0], all[19]));
}
