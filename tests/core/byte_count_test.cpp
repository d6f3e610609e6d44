#include "core/byte_count.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("numbers of bytes are read with their units") {
  auto read = [](const char* text) { return value_or_throw(parse_byte_count("--size", text)); };
  CHECK(read("0") == 0);
  CHECK(read("65536") == 65536);
  CHECK(read("3KiB") == 3 << 10);
  CHECK(read("512MiB") == 512ull << 20);
  CHECK(read("2GiB") == 2ull << 30);
  CHECK(read("1TiB") == 1ull << 40);
  CHECK(read("16777215TiB") == 16777215ull << 40);
  for (const char* bad : {"", "GiB", "-1", "1.5GiB", "2GB", "2 GiB", "2gib", "16777216TiB", "1KiBs",
                          "99999999999999999999"}) {
    CAPTURE(bad);
    const Status refused = parse_byte_count("--size", bad).status();
    CHECK(refused.code() == Code::invalid_argument);
    CHECK(refused.message().starts_with("--size wants a number of bytes"));
  }
}

TEST_CASE("numbers of bytes are written in the largest unit of which there is one") {
  CHECK(byte_count_text(0) == "0 bytes");
  CHECK(byte_count_text(1023) == "1023 bytes");
  CHECK(byte_count_text(1024) == "1 KiB");
  CHECK(byte_count_text(1536) == "1.5 KiB");
  CHECK(byte_count_text((1 << 20) - 1) == "1023.9 KiB");
  CHECK(byte_count_text(2ull << 30) == "2 GiB");
  CHECK(byte_count_text(~0ull) == "16777215.9 TiB");
}
