// What a client reads, writes and is told under a locale with a decimal comma.
#include <doctest/doctest.h>

#include <cmath>

#include "ops/api.hpp"
#include "ops/data/pipeline.hpp"
#include "ops/optim/optim.hpp"
#include "tests/comma_locale.hpp"
#include "tests/ops/data/data_files.hpp"

using namespace troupe;

namespace {

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status().message();
  }
  return {};
}

}  // namespace

TEST_CASE("a CSV cell is read with a point under any locale") {
  test::DataDirectory folder;
  const std::string path = folder.write("a.csv", "1.5e-50,2.5,1e-400\n-1.5e-50,1e3,-1e-400\n");
  const test::CommaLocale comma;
  const data::Examples rows =
      data::csv(path, {{.dtype = DType::f32}, {.dtype = DType::f64}, {.dtype = DType::f64}},
                {.header = false});
  auto pipeline = test::open_examples(rows);
  REQUIRE_MESSAGE(pipeline.ok(), pipeline.status().text());
  for (std::uint64_t n : {0, 1}) {
    auto row = pipeline->element(n);
    REQUIRE_MESSAGE(row.ok(), row.status().text());
    CHECK((*row)[0].item<float>() == 0);
    CHECK((*row)[1].item<double>() == (n == 0 ? 2.5 : 1000));
    CHECK((*row)[2].item<double>() == 0);
    CHECK(std::signbit((*row)[2].item<double>()) == (n == 1));
  }
}

TEST_CASE("messages and texts have points under any locale") {
  const test::CommaLocale comma;
  Graph g;
  const Output n = constant(g, std::int64_t{3});
  CHECK(message_of([&] { n + 1234.5; }) == "1234.5 is no i64");
  CHECK(message_of([&] { optim::constant_rate(-0.25); }).ends_with("not -0.25"));
  CHECK(Tensor::scalar(1234.5f).text() == "f32[] {1234.5}");
  CHECK(Attr(0.5).text() == "0.5");
}
