#include "serialization/tf_record.hpp"

#include <doctest/doctest.h>

#include <random>

#include "tests/contains.hpp"
#include "tests/serialization/faulty_files.hpp"
#include "tests/serialization/random_values.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;
using troupe::test::contains;

namespace {

std::span<const std::byte> record_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string frames_of(const std::vector<std::string>& records) {
  std::vector<std::byte> out;
  for (const std::string& record : records) append_tf_record(out, record_bytes(record));
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

struct ReadRecords {
  std::vector<std::string> records;
  Status end;
  std::uint64_t offset = 0;
};

ReadRecords read_records(const std::string& path, std::uint64_t most = TfRecordReader::kMostBytes) {
  auto file = disk().open(path);
  REQUIRE(file.ok());
  TfRecordReader reader(**file, path, most);
  ReadRecords out;
  for (;;) {
    auto record = reader.next();
    out.end = record.status();
    out.offset = reader.offset();
    if (!record.ok() || !*record) break;
    out.records.emplace_back(reinterpret_cast<const char*>((*record)->data()), (*record)->size());
  }
  if (!out.end.ok()) CHECK(reader.next().status() == out.end);
  return out;
}

}  // namespace

TEST_CASE("a record has the frame that TensorFlow writes") {
  const unsigned char want[] = {5,    0,   0,   0,   0,   0,   0,    0,    0xea, 0xb2, 0x04,
                                0x3e, 'h', 'e', 'l', 'l', 'o', 0xbb, 0x1f, 0x1c, 0x19};
  CHECK(frames_of({"hello"}) == std::string(reinterpret_cast<const char*>(want), sizeof want));
  CHECK(masked_crc32c(record_bytes("123456789")) == 0xc78ab0e5u);
}

TEST_CASE("records come back from a file as they were written") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  TemporaryDir dir;
  std::vector<std::string> records = {"", "a", std::string(100'000, '\0')};
  for (std::uint64_t i = v.below(20); i > 0; --i) records.push_back(v.word());
  auto file = disk().create(dir.path("r"));
  REQUIRE(file.ok());
  TfRecordWriter writer(**file);
  for (const std::string& record : records) REQUIRE(writer.write(record_bytes(record)).ok());
  const ReadRecords back = read_records(dir.path("r"));
  CHECK(back.end.ok());
  CHECK(back.records == records);
  CHECK(dir.read("r") == frames_of(records));
}

TEST_CASE("a file without a byte has no records") {
  TemporaryDir dir;
  dir.write("r", "");
  const ReadRecords back = read_records(dir.path("r"));
  CHECK(back.end.ok());
  CHECK(back.records.empty());
}

TEST_CASE(
    "each cut and each changed byte of a file of records ends it with the offset of a frame") {
  TemporaryDir dir;
  const std::vector<std::string> records = {"first", "", "third one"};
  const std::string whole = frames_of(records);
  std::vector<std::size_t> begins = {0};
  for (const std::string& record : records) begins.push_back(begins.back() + 16 + record.size());
  const auto frame_of = [&](std::size_t byte) {
    std::size_t i = 0;
    while (begins[i + 1] <= byte) ++i;
    return i;
  };
  const auto check_lost = [&](std::size_t byte) {
    const ReadRecords back = read_records(dir.path("r"));
    const std::size_t frame = frame_of(byte);
    CHECK(back.end.code() == Code::data_loss);
    CHECK(contains(back.end.message(), dir.path("r")));
    CHECK(contains(back.end.message(), "at byte " + std::to_string(begins[frame]) + ":"));
    CHECK(back.offset == begins[frame]);
    CHECK(back.records == std::vector<std::string>(records.begin(), records.begin() + long(frame)));
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i);
    std::string changed = whole;
    changed[i] = char(changed[i] ^ 0x40);
    dir.write("r", changed);
    check_lost(i);
    if (std::find(begins.begin(), begins.end(), i) != begins.end()) continue;
    dir.write("r", whole.substr(0, i));
    check_lost(i);
  }
}

TEST_CASE("a record that claims to be long is refused before memory is taken for it") {
  TemporaryDir dir;
  std::vector<std::byte> frame;
  for (const std::uint64_t length : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    const auto bytes = std::as_bytes(std::span(&length, 1));
    const std::uint32_t sum = masked_crc32c(bytes);
    frame.assign(bytes.begin(), bytes.end());
    const auto more = std::as_bytes(std::span(&sum, 1));
    frame.insert(frame.end(), more.begin(), more.end());
    frame.resize(frame.size() + 100);
    dir.write("r", {reinterpret_cast<const char*>(frame.data()), frame.size()});
    CHECK(read_records(dir.path("r")).end.code() == Code::data_loss);
  }
  dir.write("r", frames_of({"small", "not so small"}));
  const ReadRecords back = read_records(dir.path("r"), 5);
  CHECK(back.records == std::vector<std::string>{"small"});
  CHECK(back.end.code() == Code::resource_exhausted);
  CHECK(contains(back.end.message(), "at byte 21: it has 12 bytes, more than 5"));
}

TEST_CASE("a full disk is an error of the record that it has no room for") {
  FaultyFiles files(1);
  REQUIRE(files.make_dirs("d").ok());
  auto file = files.create("d/r");
  REQUIRE(file.ok());
  TfRecordWriter writer(**file);
  CHECK(writer.write(record_bytes("a")).ok());
  files.fail_at(files.calls());
  CHECK(writer.write(record_bytes("b")).code() == Code::resource_exhausted);
}
