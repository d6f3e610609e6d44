// NPY and NPZ files: rows of arrays, in any order of bytes and indices, stored and deflated.
#include <zlib.h>

#include "ops/data/arrays/npy.hpp"
#include "tests/ops/data/gzip.hpp"
#include "tests/ops/data/values.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

template <class T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string npy_file(const std::string& descr, const std::string& shape, const std::string& content,
                     bool fortran = false) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  return std::string("\x93NUMPY\1\0", 8) + little_endian(std::uint16_t(header.size())) + header +
         content;
}

template <class T>
std::string bytes_of_values(std::initializer_list<T> values) {
  std::string out;
  for (T value : values) out += little_endian(value);
  return out;
}

std::string deflated_bytes(const std::string& content) {
  const std::string packed = gzip(content);  // without its header of 10 bytes and trailer of 8
  return packed.substr(10, packed.size() - 18);
}

struct ZipMember {
  std::string name, content;
  bool deflate = false;
};

// As numpy.savez writes it; `wide`: with the sizes in fields of 64 bits.
std::string zip_file(const std::vector<ZipMember>& members, bool wide = false) {
  std::string out, directory;
  for (const ZipMember& member : members) {
    const std::string packed = member.deflate ? deflated_bytes(member.content) : member.content;
    const auto crc = std::uint32_t(crc32(0, reinterpret_cast<const Bytef*>(member.content.data()),
                                         uInt(member.content.size())));
    const std::uint32_t wide_size = 0xffffffff;
    const std::string method = little_endian(std::uint16_t(member.deflate ? 8 : 0));
    const std::string sizes = wide ? little_endian(wide_size) + little_endian(wide_size)
                                   : little_endian(std::uint32_t(packed.size())) +
                                         little_endian(std::uint32_t(member.content.size()));
    const std::string extra = wide ? little_endian(std::uint16_t(1)) +
                                         little_endian(std::uint16_t(16)) +
                                         little_endian(std::uint64_t(member.content.size())) +
                                         little_endian(std::uint64_t(packed.size()))
                                   : "";
    const std::string common = little_endian(std::uint16_t(20)) + std::string(2, '\0') + method +
                               std::string(4, '\0') + little_endian(crc) + sizes +
                               little_endian(std::uint16_t(member.name.size())) +
                               little_endian(std::uint16_t(extra.size()));
    directory += little_endian(0x02014b50u) + little_endian(std::uint16_t(20)) + common +
                 std::string(10, '\0') + little_endian(std::uint32_t(out.size())) + member.name +
                 extra;
    out += little_endian(0x04034b50u) + common + member.name + extra + packed;
  }
  const auto begin = out.size();
  out += directory;
  if (wide) {
    const auto end64 = out.size();
    out += little_endian(0x06064b50u) + little_endian(std::uint64_t(44)) + std::string(12, '\0') +
           little_endian(std::uint64_t(members.size())) +
           little_endian(std::uint64_t(members.size())) +
           little_endian(std::uint64_t(directory.size())) + little_endian(std::uint64_t(begin));
    out += little_endian(0x07064b50u) + little_endian(0u) + little_endian(std::uint64_t(end64)) +
           little_endian(1u);
  }
  const auto n = std::uint16_t(wide ? 0xffff : members.size());
  out += little_endian(0x06054b50u) + std::string(4, '\0') + little_endian(n) + little_endian(n) +
         little_endian(std::uint32_t(wide ? 0xffffffff : directory.size())) +
         little_endian(std::uint32_t(wide ? 0xffffffff : begin)) + little_endian(std::uint16_t(0));
  return out;
}

Tensor all_rows(const data::Examples& examples) {
  const auto all = elements_in_order(examples.batch(1000));
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  REQUIRE(all->size() == 1);
  return (*all)[0][0];
}

}  // namespace

TEST_CASE("rows of an NPY file are examples") {
  const DataDirectory files;
  const std::string path =
      files.write("x.npy", npy_file("<f4", "(3, 2)", bytes_of_values<float>({0, 1, 2, 3, 4, 5})));
  files.write("y.npy.gz", gzip(npy_file("<i8", "(3,)", bytes_of_values<std::int64_t>({7, 8, 9}))));
  const auto both =
      data::npy({{.name = path, .shape = {2}}, {.name = files.path("y.npy"), .dtype = DType::i64}});
  const auto all = elements_in_order(both);
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  REQUIRE(all->size() == 3);
  CHECK(Tensor::same((*all)[1][0], Tensor::of<float>({2}, {2, 3})));
  CHECK((*all)[2][1].item<std::int64_t>() == 9);
  check_places(both.shuffle(2, 1).repeat(2).batch(2), 3);
  CHECK(open_examples(both.repeat()).value().element(3'000'000'000'000).ok());
}

TEST_CASE("elements of every kind are read, big-endian ones too, and arrays in Fortran's order") {
  const DataDirectory files;
  const auto read = [&](const std::string& content, DType dtype, const PartialShape& row) {
    return all_rows(
        data::npy({{.name = files.write("a.npy", content), .dtype = dtype, .shape = row}}));
  };
  CHECK(Tensor::same(
      read(npy_file(">f8", "(1,)", std::string("\x3f\xf8\0\0\0\0\0\0", 8)), DType::f64, {}),
      Tensor::of<double>({1}, {1.5})));
  CHECK(Tensor::same(read(npy_file(">i2", "(2,)", std::string("\1\2\xff\xfe", 4)), DType::i16, {}),
                     Tensor::of<std::int16_t>({2}, {258, -2})));
  CHECK(Tensor::same(
      read(npy_file(">c8", "(1,)", std::string("\x3f\x80\0\0\x40\0\0\0", 8)), DType::c64, {}),
      Tensor::of<std::complex<float>>({1}, {{1, 2}})));
  CHECK(Tensor::same(read(npy_file("|b1", "(3,)", std::string("\0\1\5", 3)), DType::bool_, {}),
                     Tensor::of<bool>({3}, {false, true, true})));
  CHECK(Tensor::same(read(npy_file("|u1", "(2, 1, 2)", "abcd"), DType::u8, {1, 2}),
                     Tensor::of<std::uint8_t>({2, 1, 2}, {'a', 'b', 'c', 'd'})));
  CHECK(Tensor::same(
      read(npy_file("|S3", "(3,)", std::string("abcd\0\0\0x\0", 9)), DType::string, {}),
      Tensor::of<std::string>({3}, {"abc", "d", std::string("\0x", 2)})));
  CHECK(Tensor::same(
      read(npy_file("<U2", "(2,)", bytes_of_values<std::uint32_t>({0xe4, 0x1f600, 'b', 0})),
           DType::string, {}),
      Tensor::of<std::string>({2}, {"\xc3\xa4\xf0\x9f\x98\x80", "b"})));
  CHECK(
      Tensor::same(read(npy_file(">U1", "(1,)", std::string("\0\0\x20\xac", 4)), DType::string, {}),
                   Tensor::of<std::string>({1}, {"\xe2\x82\xac"})));
  // a[i,j,k] = 100 i + 10 j + k
  std::string fortran;
  std::vector<std::int32_t> c;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) fortran += little_endian(std::int32_t(100 * i + 10 * j + k));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k) c.push_back(100 * i + 10 * j + k);
  CHECK(Tensor::same(read(npy_file("<i4", "(2, 3, 2)", fortran, true), DType::i32, {3, 2}),
                     Tensor::of<std::int32_t>(Shape{2, 3, 2}, c)));
  CHECK(read(npy_file("<i4", "(2, 0)", "", true), DType::i32, {0}).shape() == Shape{2, 0});
}

TEST_CASE("headers are read however they are written, and wrong ones refused") {
  const auto parse = [](std::string dictionary, int version = 1) {
    const std::string length = version == 1 ? little_endian(std::uint16_t(dictionary.size()))
                                            : little_endian(std::uint32_t(dictionary.size()));
    return parse_npy_header(std::string("\x93NUMPY") + char(version) + '\0' + length + dictionary);
  };
  for (int version : {1, 2, 3}) {
    const auto header =
        parse("{\"shape\":(3L,4,),'fortran_order':True ,'descr':\"=u2\"}  \n", version);
    REQUIRE_MESSAGE(header.ok(), header.status().text());
    CHECK(header->shape == Shape{3, 4});
    CHECK(header->fortran);
    CHECK(header->dtype == DType::u16);
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"", "that is no dictionary"},
      {"{", "that is no dictionary"},
      {"{}", "without 'descr'"},
      {"{'descr': '<f4', 'fortran_order': False}", "without 'descr'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "more behind"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "neither True nor False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "no tuple of numbers"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2}", "no tuple of numbers"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': [2]}", "no tuple of numbers"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
       "no tuple of numbers"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "rank"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}",
       "that no file holds"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "["},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "an array of records"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "the kind '|O'"},
      {"{'descr': '|O8', 'fortran_order': False, 'shape': (2,)}", "the kind '|O8'"},
      {"{'descr': '<f3', 'fortran_order': False, 'shape': (2,)}", "the kind '<f3'"},
      {"{'descr': '<U0', 'fortran_order': False, 'shape': (2,)}", "the kind '<U0'"},
      {"{'descr': '<U999999999999', 'fortran_order': False, 'shape': (2,)}", "the kind"},
      {"{'more': 1}", "with 'more'"},
  };
  for (const auto& [text, says] : wrong) {
    const Status status = parse(text).status();
    const char *header = text, *expected = says;  // clang 14: no lambda captures such a binding
    CHECK_MESSAGE(tells(status, expected), std::string(header) << ": " << status.text());
    CHECK(status.code() != Code::internal);
  }
  CHECK(tells(parse("{}", 4).status(), "version 4.0"));
  CHECK(tells(parse_npy_header(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12)).status(),
              "header of 4294967295 bytes"));
}

TEST_CASE("arrays that are not as declared are refused by file") {
  const DataDirectory files;
  const std::string good = npy_file("<f4", "(3, 2)", bytes_of_values<float>({0, 1, 2, 3, 4, 5}));
  const std::string path = files.write("x.npy", good),
                    other = files.write("y.npy",
                                        npy_file("<f4", "(2,)", bytes_of_values<float>({1, 2})));
  const auto error = [&](const std::vector<data::NumpyArray>& arrays) {
    return error_in_order(data::npy(arrays));
  };
  CHECK(tells(error({{.name = path}}), "rows of f32[2], not of f32[]"));
  CHECK(tells(error({{.name = path, .dtype = DType::f64, .shape = {2}}}), "not of f64[2]"));
  CHECK(
      tells(error({{.name = path, .shape = {2}}, {.name = other}}), "arrays differ in length: 3"));
  CHECK(error({{.name = path, .shape = PartialShape::unknown()}}).ok());
  CHECK(tells(error({{.name = files.write("s.npy", npy_file("<f4", "()", "abcd"))}}),
              "an array without rows"));
  CHECK(tells(error({{.name = files.write("s.npy", good + "x"), .shape = {2}}}),
              "with 25 bytes of data, not 24"));
  CHECK(tells(
      error({{.name = files.write(
                  "u.npy", npy_file("<U1", "(2,)", bytes_of_values<std::uint32_t>({'a', 0xd800}))),
              .dtype = DType::string}}),
      "code point 55296, which is no character (in record 1 at byte"));
  CHECK(data::npy({}).signature().status().code() == Code::invalid_argument);
}

TEST_CASE("every damage to an NPY file is an error or changes what it says of its elements") {
  const std::string content = npy_file("<f4", "(2,)", bytes_of_values<float>({1, 2}));
  const auto all = data::npy({{.name = "x.npy"}});
  // There is no checksum: other elements, in another order of bytes, are all that may come of it.
  const int errors = check_damages(content, all, [](const std::vector<Values>& read) {
    return read.size() == 2 && read[0][0].shape() == Shape();
  });
  CHECK(errors > 250);
}

TEST_CASE("arrays of an NPZ file are read, stored and deflated, with narrow and wide sizes") {
  const DataDirectory files;
  const std::string x = npy_file("<f4", "(3, 2)", bytes_of_values<float>({0, 1, 2, 3, 4, 5})),
                    y = npy_file("<i8", "(3,)", bytes_of_values<std::int64_t>({7, 8, 9}));
  for (const bool deflate : {false, true})
    for (const bool wide : {false, true}) {
      const std::string path =
          files.write("a.npz", zip_file({{"x.npy", x, deflate}, {"y.npy", y, false}}, wide));
      const auto both =
          data::npz(path, {{.name = "y", .dtype = DType::i64}, {.name = "x", .shape = {2}}});
      const auto all = elements_in_order(both);
      REQUIRE_MESSAGE(all.ok(), all.status().text());
      REQUIRE(all->size() == 3);
      CHECK((*all)[2][0].item<std::int64_t>() == 9);
      CHECK(Tensor::same((*all)[2][1], Tensor::of<float>({2}, {4, 5})));
      check_places(both.shuffle(2, 1).repeat(2), 3);
      const Status absent = error_in_order(data::npz(path, {{.name = "z"}}));
      CHECK(absent.code() == Code::not_found);
      CHECK(tells(absent, "there is no member 'z.npy'"));
      CHECK(tells(absent, "a.npz"));
    }
}

TEST_CASE("every damage to an NPZ file is an error or changes nothing") {
  const std::string x = npy_file("<i2", "(3,)", bytes_of_values<std::int16_t>({1, 2, 3}));
  const auto right = [](const std::vector<Values>& all) {
    return all.size() == 3 && all[2][0].item<std::int16_t>() == 3;
  };
  for (const bool deflate : {false, true}) {
    const auto all = data::npz("a.npz", {{.name = "x", .dtype = DType::i16}});
    const std::string content = zip_file({{"x.npy", x, deflate}}, deflate);
    CHECK(check_damages(content, all, right) > int(content.size()));
  }
}

TEST_CASE("a member that becomes more than it says is refused before it does") {
  const DataDirectory files;
  const std::string x = npy_file("<i2", "(3,)", bytes_of_values<std::int16_t>({1, 2, 3}));
  // 16 MiB of zeros, and a directory that speaks of 134 bytes.
  std::string content = zip_file({{"x.npy", x + std::string(std::size_t{16} << 20, '\0'), true}});
  const std::size_t size = content.size() - 22 - 46 - 5 + 24;
  content.replace(size, 4, little_endian(std::uint32_t(x.size())));
  const auto error = [&](const std::string& archive) {
    return error_in_order(
        data::npz(files.write("a.npz", archive), {{.name = "x", .dtype = DType::i16}}));
  };
  CHECK_MESSAGE(tells(error(content), "more than the 134 bytes that the archive says"),
                error(content).text());
  // And one that speaks of 2^63.
  std::string wide = zip_file({{"x.npy", x, true}}, true);
  const std::size_t at =
      wide.find(little_endian(std::uint64_t(x.size())), wide.find(little_endian(0x02014b50u)));
  wide.replace(at, 8, little_endian(std::uint64_t{1} << 63));
  CHECK_MESSAGE(tells(error(wide), "9223372036854775808 bytes when unpacked"), error(wide).text());
  CHECK(tells(error("no archive at all, but as long as one would be"), "no ZIP archive"));
  CHECK(tells(error(""), "no ZIP archive"));
}
