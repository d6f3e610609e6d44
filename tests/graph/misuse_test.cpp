// Functions of ops that ask shapes for what is not there.
#include <doctest/doctest.h>

#include "graph/builder.hpp"

using namespace troupe;

TEST_CASE("a shape function that asks for a dimension that is not there is an error of the node") {
  OpRegistry registry;
  REQUIRE(registry
              .add({.name = "Given",
                    .out = {"y"},
                    .types = "f32",
                    .attrs = {"shape: shape"},
                    .shape =
                        [](InferenceContext& c) {
                          c.set(0, *c.attrs().find("shape")->second.get<PartialShape>());
                          return ok_status();
                        }})
              .ok());
  REQUIRE(registry
              .add({.name = "Third",
                    .in = {"x"},
                    .out = {"y"},
                    .types = "f32",
                    .shape =
                        [](InferenceContext& c) {
                          c.set(0, PartialShape{c.shape(0).dim(2) * 2});
                          return ok_status();
                        }})
              .ok());
  GraphBuilder g(registry);
  const auto third = [&](PartialShape shape) {
    const Output x =
        g.add({.op = "Given", .attrs = {{"T", DType::f32}, {"shape", shape}}}).output();
    return g.try_add({.op = "Third", .inputs = {x}, .site = Site::here("net.cpp", 7)}).status();
  };
  CHECK(third({1, 2, 3}).ok());
  for (const PartialShape& shape : {PartialShape{1, 2}, PartialShape{}, PartialShape{1, 2, -1}}) {
    const Status status = third(shape);
    CAPTURE(status.text());
    CHECK_FALSE(status.ok());
    CHECK(status.message().find("dimension") != std::string::npos);
    CHECK(status.message().find("Given") != std::string::npos);  // where it came from
  }
}
