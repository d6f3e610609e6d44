// IDX and gzip files that are wrong in one place: each is refused by name, and no memory is taken
// for what they only claim.
#include <doctest/doctest.h>

#include <map>

#include "ops/data/dataset.hpp"
#include "tests/ops/data/gzip.hpp"

using namespace troupe;

namespace {

std::string idx(std::initializer_list<std::uint32_t> dims, std::size_t bytes) {
  std::string out = {0, 0, 8, char(dims.size())};
  for (std::uint32_t d : dims)
    for (int shift = 24; shift >= 0; shift -= 8) out += char(d >> shift & 255);
  return out + std::string(bytes, '\1');
}

std::string with(std::string text, std::size_t at, char byte) {
  text[at] = byte;
  return text;
}

struct Input {
  const char* what;
  std::string content;
  const char* says;
};

std::vector<Input> inputs() {
  const std::string good = idx({4}, 4), packed = gzip(good);
  const std::size_t end = packed.size();
  return {
      {"nothing", "", "not an IDX file"},
      {"one byte", good.substr(0, 1), "not an IDX file"},
      {"half a magic number", good.substr(0, 3), "not an IDX file"},
      {"a magic number alone", good.substr(0, 4), "inside its header"},
      {"half a dimension", good.substr(0, 6), "inside its header"},
      {"a header alone", good.substr(0, 8), "shape [4] with 0 bytes"},
      {"a byte too few", good.substr(0, 11), "shape [4] with 3 bytes"},
      {"a byte too many", good + "x", "shape [4] with 5 bytes"},
      {"text", "P5 28 28 255 and so on", "not an IDX file"},
      {"a first byte that is not zero", with(good, 0, 1), "not an IDX file"},
      {"a second byte that is not zero", with(good, 1, 1), "not an IDX file"},
      {"signed bytes", with(good, 2, 9), "kind 8"},
      {"floats", with(good, 2, 13), "kind 8"},
      {"a kind that is none", with(good, 2, char(255)), "kind 8"},
      {"rank 0", with(good, 3, 0), "rank 0"},
      {"rank 9", with(good, 3, 9), "rank 9"},
      {"rank 255", with(good, 3, char(255)), "rank 255"},
      {"another rank than it has", with(good, 3, 2), "bytes of data"},
      {"4 GiB claimed", idx({~0u}, 4), "with 4 bytes"},
      {"2^62 claimed", idx({1u << 31, 1u << 31}, 4), "with 4 bytes"},
      {"2^64 claimed", idx({1u << 31, 1u << 31, 4}, 4), "shape"},
      {"a product that overflows to 4", idx({1u << 31, 1u << 31, 1u << 31, 1u << 31, 4}, 4),
       "shape"},
      {"none claimed, some there", idx({0}, 4), "with 4 bytes"},
      {"little endian dimensions", idx({0x04000000}, 4), "with 4 bytes"},
      {"gzip: a magic number alone", packed.substr(0, 2), "gzip"},
      {"gzip: a header alone", packed.substr(0, 10), "gzip"},
      {"gzip: another method", with(packed, 2, 9), "gzip"},
      {"gzip: flags that nobody knows", with(packed, 3, char(0xe0)), "gzip"},
      {"gzip: a block of no kind", with(packed, 10, 7), "gzip"},
      {"gzip: a wrong checksum", with(packed, end - 8, char(packed[end - 8] ^ 1)), "gzip"},
      {"gzip: a wrong length", with(packed, end - 4, 77), "gzip"},
      {"gzip: no trailer", packed.substr(0, end - 8), "gzip"},
      {"gzip: half a trailer", packed.substr(0, end - 3), "gzip"},
      {"gzip: a byte after the end", packed + "x", "1 bytes stand after"},
      {"gzip: another file after the end", packed + packed, "more than 12 bytes when unpacked"},
      {"gzip: nothing packed", gzip(""), "not an IDX file"},
      {"gzip: text packed", gzip("some text that is no IDX file at all"), "not an IDX file"},
      {"gzip: packed twice", gzip(packed), "not an IDX file"},
      {"gzip: a header that claims 4 GiB", gzip(idx({~0u}, 4)), "with 4 bytes"},
      {"gzip: a byte too many", gzip(good + "x"), "more than 12 bytes when unpacked"},
      {"gzip: a bomb of 64 MiB", gzip(idx({4}, std::size_t{64} << 20)), "more than 12 bytes"},
      {"gzip: a bomb of zeros", gzip(std::string(std::size_t{64} << 20, '\0')), "kind 8"},
  };
}

}  // namespace

TEST_CASE("hostile data files by hand are refused by name") {
  NodeDef def;
  def.name = "train";
  def.op = "Dataset";
  def.attrs = {{"source", std::string("idx")},
               {"files", std::vector<std::string>{"labels"}},
               {"batch", std::int64_t{1}},
               {"shuffle", std::int64_t{0}},
               {"seed", std::int64_t{1}},
               {"repeat", std::int64_t{1}},
               {"drop_remainder", false},
               {"limit", std::int64_t{0}},
               {"first", std::int64_t{0}},
               {"digits_seed", std::int64_t{1}},
               {"types", std::vector<DType>{DType::i64}},
               {"shapes", std::vector<PartialShape>{PartialShape::unknown()}}};
  const auto all = inputs();
  for (const Input& input : all) {
    INFO(std::string(input.what));
    auto open = [&](const std::string& path) -> Expected<DataFilePtr> {
      return memory_file(path, input.content);
    };
    Status status = open_dataset(def, open).status();
    CHECK(!status.ok());
    CHECK_MESSAGE(status.text().find(input.says) != std::string::npos, status.text());
    CHECK_MESSAGE(status.text().find("'labels'") != std::string::npos, status.text());
  }
  MESSAGE("hostile inputs by hand: " << all.size());
}
