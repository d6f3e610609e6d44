#include "core/feeds.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("feeds are checked by number, type and shape, and the error names the feed") {
  const std::vector<FeedSpec> specs = {{"x", DType::f32, PartialShape({-1, 2})},
                                       {"n", DType::i64, PartialShape::scalar()}};
  const Tensor n = Tensor::scalar<std::int64_t>(1);
  auto said = [&](std::vector<Tensor> feeds) { return check_feeds(specs, feeds).text(); };
  CHECK(check_feeds(specs, {Tensor::of<float>({1, 2}, {1, 2}), n}).ok());
  CHECK(check_feeds(specs, {Tensor::of<float>({0, 2}, {}), n}).ok());
  CHECK(said({n}) == "invalid_argument: the step takes 2 feeds, not 1");
  CHECK(said({Tensor::of<float>({2}, {1, 2}), n}) ==
        "invalid_argument: feed 'x' takes f32[?,2], not f32[2]");
  CHECK(said({Tensor::of<float>({1, 2}, {1, 2}), Tensor::scalar(1.0f)}) ==
        "invalid_argument: feed 'n' takes i64[], not f32[]");
  CHECK(said({Tensor{}, n}) == "invalid_argument: feed 'x' takes f32[?,2], not nothing");
}
