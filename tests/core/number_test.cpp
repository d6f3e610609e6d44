#include "core/number.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace troupe {
namespace {

TEST_CASE("a number is all of its text") {
  CHECK(parse_number<int>("-12") == -12);
  CHECK(parse_number<double>("0.001") == 0.001);
  CHECK(parse_number<float>("1e3") == 1000.0f);
  CHECK(parse_number<double>("-inf") == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(parse_number<float>("nan").value()));
  for (const char* text : {"", " 1", "1 ", "1,5", "0x10", "+1", "--1", "1.5.2", "e5", "one"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<double>(text));
    CHECK_FALSE(parse_number<float>(text));
    CHECK_FALSE(parse_number<std::int64_t>(text));
  }
  CHECK_FALSE(parse_number<int>("1.5"));
  CHECK_FALSE(parse_number<std::uint8_t>("256"));
}

TEST_CASE("a float too close to zero is zero and one too large is refused") {
  const std::string zeros(400, '0');
  for (const std::string& text : {std::string("1e-400"), std::string("0.00001e-330"),
                                  "0." + zeros + "1", std::string("123456e-500"),
                                  std::string("1e-99999999999999999999"), "1" + zeros + "e-900"}) {
    CAPTURE(text);
    CHECK(parse_number<double>(text) == 0.0);
    CHECK(parse_number<float>(text) == 0.0f);
    CHECK(std::signbit(parse_number<double>("-" + text).value()));
  }
  CHECK(parse_number<float>("1.5e-50") == 0.0f);
  CHECK(parse_number<double>("1.5e-50") == 1.5e-50);
  for (const std::string& text : {std::string("1e400"), "1" + zeros, std::string("0.001e800"),
                                  std::string("1e99999999999999999999"), "0." + zeros + "1e2000"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<double>(text));
    CHECK_FALSE(parse_number<float>("-" + text));
  }
  CHECK_FALSE(parse_number<float>("1e39"));
  CHECK(parse_number<double>("1e39") == 1e39);
  CHECK(parse_number<double>("0e400") == 0.0);
}

}  // namespace
}  // namespace troupe
