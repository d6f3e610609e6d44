// Stages that filter, take apart, put side by side and keep examples; numbers as a source.
#include "ops/api.hpp"
#include "tests/ops/data/values.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

data::Examples rows_of_numbers(std::initializer_list<std::int64_t> values) {
  return data::tensors({Tensor::of<std::int64_t>(Shape{std::int64_t(values.size())}, values)});
}

std::vector<std::int64_t> first_components(const data::Examples& examples) {
  const auto all = elements_in_order(examples);
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  std::vector<std::int64_t> out;
  for (const Values& values : *all)
    for (const std::int64_t x : values[0].span<std::int64_t>()) out.push_back(x);
  return out;
}

using RowNumbers = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a range gives numbers, with an end or without") {
  CHECK(first_components(data::range(4)) == RowNumbers{0, 1, 2, 3});
  CHECK(first_components(data::range(0)).empty());
  auto endless = open_examples(data::range().skip(1'000'000'000'000).batch(2)).value();
  CHECK(endless.element(5).value()[0].data<std::int64_t>()[1] == 1'000'000'000'011);
  CHECK(data::range(-2).signature().status().code() == Code::invalid_argument);
  check_places(data::range(20).shuffle(6, 1).repeat(2), 3);
}

TEST_CASE("zipped datasets stand side by side, as long as the shortest") {
  const auto both = data::zip({rows_of_numbers({1, 2, 3}), data::range(5).batch(2)});
  const auto all = elements_in_order(both);
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  REQUIRE(all->size() == 3);
  CHECK((*all)[1].size() == 2);
  CHECK((*all)[1][0].item<std::int64_t>() == 2);
  CHECK(Tensor::same((*all)[2][1], Tensor::of<std::int64_t>({1}, {4})));
  check_places(both.shuffle(2, 1).repeat(3), 3);
  auto far = open_examples(data::zip({rows_of_numbers({1, 2, 3}).repeat(), data::range()}).repeat())
                 .value();
  CHECK(far.element(3'000'000'000'001).value()[0].item<std::int64_t>() == 2);
  CHECK(tells(data::zip({}).signature().status(), "the list of datasets is empty"));
}

TEST_CASE("examples are parted in their rows, and rows of different lengths follow each other") {
  const auto whole = data::range(7);
  CHECK(first_components(whole.batch(3).unbatch()) == RowNumbers{0, 1, 2, 3, 4, 5, 6});
  check_places(whole.batch(3).unbatch().repeat(2), 4);
  // At once where all have as many rows.
  auto far = open_examples(data::range().batch(4, data::Remainder::drop).unbatch()).value();
  CHECK(far.element(4'000'000'000'003).value()[0].item<std::int64_t>() == 4'000'000'000'003);
  CHECK(tells(whole.unbatch().signature().status(), "examples of i64[] have no rows"));
  const auto unequal =
      data::tensors({Tensor::of<float>({1, 2}, {1, 2}), Tensor::of<float>({1, 3}, {1, 2, 3})});
  CHECK(tells(unequal.unbatch().signature().status(), "differ in rows"));
  const DataDirectory files;
  const std::string lines = files.write("lines", "ab\n\nabc\n");
  CHECK(first_components(data::lines(lines, data::Vocabulary("abc")).unbatch()) ==
        RowNumbers{0, 1, 0, 1, 2});
  const std::string empty = files.write("empty", "\n\n");
  CHECK(first_components(data::lines(empty).unbatch()).empty());
  CHECK(first_components(data::lines(empty).unbatch().repeat()).empty());
  // Without end, and without a row.
  CHECK(tells(error_in_order(data::lines(empty).repeat().unbatch()), "100000 examples without"));
}

TEST_CASE("a row does not keep the example that it was a part of") {
  const auto parts = data::tensors({Tensor::zeros(DType::f32, Shape{2, 1024, 256}).value()});
  auto rows = open_examples(parts.unbatch()).value();
  for (const std::uint64_t i : {0, 1, 1024})
    CHECK(rows.element(i).value()[0].buffer().size() <= 4096);  // 1 KiB, of 1 MiB
}

TEST_CASE("a cache gives the first pass again, and reads nothing twice") {
  const auto shuffled = data::range(9).shuffle(9, 3);
  const auto once = first_components(shuffled);
  auto twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  CHECK(first_components(shuffled.cache().repeat(2)) == twice);
  CHECK(first_components(shuffled.repeat(2)) != twice);
  check_places(shuffled.cache().shuffle(4, 1).repeat(3), 6);
  const DataDirectory files;
  const std::string path = files.write("lines", "ab\ncd\n");
  auto pipeline =
      open_examples(data::lines(path, data::Vocabulary("abcd")).cache().repeat()).value();
  REQUIRE(pipeline.element(1).ok());
  files.write("lines", "");  // the same file, without content
  std::filesystem::resize_file(path, 0);
  CHECK(Tensor::same(pipeline.element(2).value()[0], Tensor::of<std::int64_t>({2}, {0, 1})));
  const Status full = error_in_order(data::range(100'000).cache(100'000));
  CHECK(full.code() == Code::resource_exhausted);
  CHECK_MESSAGE(tells(full, "a cache of more than 100000 bytes, at example "), full.text());
  CHECK(tells(error_in_order(data::range(2).repeat().cache()), "a cache of examples without end"));
  CHECK(data::range(2).cache(0).signature().status().code() == Code::invalid_argument);
}

TEST_CASE("datasets follow each other, or take turns in blocks") {
  const auto a = rows_of_numbers({1, 2, 3}), b = rows_of_numbers({10, 20}),
             c = rows_of_numbers({100});
  CHECK(first_components(data::concatenate({a, b, c})) == RowNumbers{1, 2, 3, 10, 20, 100});
  CHECK(first_components(data::interleave({a, b, c}, {.block = 2})) ==
        RowNumbers{1, 2, 10, 20, 100, 3});
  CHECK(first_components(data::interleave({a, b, c}, {.at_once = 2})) ==
        RowNumbers{1, 10, 2, 20, 3, 100});
  auto far = open_examples(data::concatenate({a, b, c}).repeat()).value();
  CHECK(far.element(6'000'000'000'004).value()[0].item<std::int64_t>() == 20);
  CHECK(data::interleave({a}, {.at_once = -1}).signature().status().code() ==
        Code::invalid_argument);
  CHECK(data::interleave({a}, {.block = 0}).signature().status().code() == Code::invalid_argument);
}

TEST_CASE("functions of filters and maps are checked where they are given") {
  Graph g;
  const auto numbers = data::range(4);
  CHECK_THROWS_WITH_AS(numbers.filter(g, [](Output x) { return x + 1; }),
                       doctest::Contains("filter: function"), Error);
  CHECK_THROWS_AS(numbers.batch(2).filter(g, [](Output x) { return x < 1; }), Error);
  CHECK_THROWS_AS(numbers.map(g, [](Output x) { return x; }, {.parallel = 0}), Error);
  CHECK_THROWS_AS(numbers.map(g, [](Output x) { return x; }, {.parallel = 257}), Error);
  CHECK(numbers.map(g, [](Output x) { return x; }, {.parallel = 256}).signature().ok());
  const auto [half] =
      data::generate(g, 10, [](Output i) { return cast<float>(i) / 2.0f; }).outputs(g);
  CHECK(half.dtype() == DType::f32);
  const auto [row] =
      numbers.flat_map(g,
                       [](Output i) {
                         return concat({reshape(i, {1}), reshape(i, {1})}, 0);
                       })
          .outputs<1>(g);
  CHECK(row.shape() == PartialShape::scalar());
}
