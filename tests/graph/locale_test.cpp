// Definitions of ops under a locale with a decimal comma.
#include <doctest/doctest.h>

#include "graph/op_registry.hpp"
#include "tests/comma_locale.hpp"

using namespace troupe;

TEST_CASE("a definition's default float is read with a point under any locale") {
  const test::CommaLocale comma;
  OpRegistry registry;
  const Status added = registry.add(
      {.name = "Scaled", .attrs = {"rate: float = 0.001", "rates: list(float) = [1.5e-3, 2]"}});
  REQUIRE_MESSAGE(added.ok(), added.text());
  CHECK(*registry.find("Scaled")->attr("rate")->fallback == Attr(0.001));
  CHECK(registry.find("Scaled")->attr("rate")->fallback->text() == "0.001");
  CHECK(*registry.find("Scaled")->attr("rates")->fallback == Attr(std::vector<double>{1.5e-3, 2}));
  CHECK_FALSE(registry.add({.name = "Comma", .attrs = {"rate: float = 0,5"}}).ok());
}
