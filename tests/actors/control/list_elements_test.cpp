// Elements of lists whose shapes only a run knows.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/contains.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Three numbers, in a shape that is fed.
struct Reshaped {
  explicit Reshaped(Graph& g) : shape(placeholder<std::int64_t>(g, {-1}, "shape")) {
    x = reshape(constant(g, Tensor::of<double>({3}, {1, 2, 3})), shape);
  }
  // Empty: there is none.
  std::string error_of(Session& s, const Output& y, std::vector<std::int64_t> dims) const {
    const Tensor fed = Tensor::of<std::int64_t>({std::int64_t(dims.size())}, dims);
    auto got = s.try_run({y}, {}, {{shape, fed}});
    return got.ok() ? "" : got.status().text();
  }
  Output shape, x;
};

}  // namespace

TEST_CASE("an element of another shape than those of its array is an error of its own line") {
  Graph g;
  Reshaped fed(g);
  TensorArray ta(g, DType::f64, {.element = {3}});
  Site written = Site::here();
  TensorArray made = ta.push(fed.x);
  Session s(g, one_thread());
  const std::string text = fed.error_of(s, made.size(), {3, 1});
  CHECK_MESSAGE(contains(text, "the shape is [3,1], and should be [3]"), text);
  CHECK_MESSAGE(contains(text, written.file + ":" + std::to_string(written.line + 1)), text);
  CHECK(fed.error_of(s, made.size(), {3}).empty());
}

TEST_CASE(
    "an element of another shape than is known of its list is an error when it is taken off") {
  Graph g;
  Reshaped fed(g);
  Output list = list_push(list_empty(g, DType::f64, {.shape = {3}}), fed.x);
  Session s(g, one_thread());
  for (const Output& y : {list_get(list, constant(g, 0), DType::f64),
                          list_pop(list, DType::f64).value, list_stack(list, DType::f64)}) {
    CAPTURE(y.name());
    CHECK(fed.error_of(s, y, {3}).empty());
    const std::string text = fed.error_of(s, y, {1, 3});
    CHECK_MESSAGE(contains(text, "[1,3], not [3]"), text);
  }
}
