#include "core/utf8.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("text of any bytes becomes UTF-8") {
  for (const char* good : {"", "a", "gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC", "\xF0\x9F\x8E\xAD"}) {
    CAPTURE(good);
    CHECK(is_utf8(good));
    CHECK(as_utf8(good) == good);
  }
  for (const char* bad : {"\xC3", "\xFF", "\xED\xA0\x80", "\xC0\x80", "\xF5\x80\x80\x80"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_utf8(bad));
    CHECK(as_utf8(bad).starts_with("\xEF\xBF\xBD"));
    CHECK(is_utf8(as_utf8(bad)));
  }
  CHECK(utf8_character("") == 0);
  CHECK(utf8_character("\xE2\x82\xAC.") == 3);
  CHECK(as_utf8("a\xFFz") == "a\xEF\xBF\xBDz");
}
