// Files that are larger than memory should be: what reading them takes. DATA_BYTES is their size,
// 2 GB unless told.
#include <algorithm>
#include <cstdlib>

#include "tests/ops/data/data_files.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t kMostMegabytes = 200;

std::uint64_t data_bytes() {
  const char* told = std::getenv("DATA_BYTES");
  return told ? std::strtoull(told, nullptr, 10) : std::uint64_t{2'000'000'000};
}

// Of this process's memory, the most since the last reset.
std::int64_t peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes / 1024;
    }
  FAIL("no VmHWM in /proc/self/status");
  return 0;
}
void reset_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
}

// A file of holes, with `start` in front.
std::string sparse(const DataDirectory& files, const std::string& name, const std::string& start,
                   std::uint64_t bytes) {
  const std::string path = files.write(name, start);
  std::filesystem::resize_file(path, bytes);
  return path;
}

std::string big_endian(std::uint64_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += char(value >> shift & 255);
  return out;
}

}  // namespace

TEST_CASE("[slow] the start, middle and end of large files are read in little memory") {
  const DataDirectory files;
  const std::uint64_t bytes = data_bytes();
  reset_peak();

  const std::string text = sparse(files, "text", "ab", bytes);
  auto windows = open_examples(data::text(text, {.window = 1000}).shuffle(1000).batch(100)).value();
  const std::uint64_t batches = *windows.elements();
  CHECK(batches == ((bytes - 1001) / 1000 + 100) / 100);
  for (std::uint64_t e : {std::uint64_t{0}, batches / 2, batches - 1, std::uint64_t{1}})
    CHECK(windows.element(e).ok());
  for (std::uint64_t e = 0; e < 2000; ++e) REQUIRE(windows.element(e).ok());

  const std::uint64_t rows = std::min<std::uint64_t>((bytes - 12) / 1000, 0xffffffff);
  const std::string idx =
      sparse(files, "idx", std::string("\0\0\x08\x02", 4) + big_endian(rows) + big_endian(1000),
             12 + rows * 1000);
  auto examples = open_examples(data::Examples::of("idx [1000]", {idx}).batch(64)).value();
  for (std::uint64_t e : {std::uint64_t{0}, *examples.elements() / 2, *examples.elements() - 1})
    CHECK(examples.element(e).ok());

  // A text without lines ends the reading, not the memory.
  CHECK(open_examples(data::lines(text)).value().element(0).status().code() == Code::data_loss);

  CHECK(peak_megabytes() <= kMostMegabytes);
  MESSAGE(bytes << " bytes, at most " << peak_megabytes() << " MB of memory");
}

TEST_CASE("[slow] a large CSV file is read from start to end in little memory") {
  const DataDirectory files;
  const std::string path = files.path("csv");
  const std::uint64_t bytes = data_bytes() / 10;
  std::int64_t records = 0;
  {
    std::ofstream out(path, std::ios::binary);
    for (std::uint64_t written = 0; written < bytes; ++records) {
      const std::string record = std::to_string(records) + ",0.5,\"some text, in quotes\"\n";
      out << record;
      written += record.size();
    }
    REQUIRE(out.flush());
  }
  reset_peak();
  const std::vector<data::CsvColumn> columns = {
      {.dtype = DType::i64}, {.dtype = DType::f32}, {.dtype = DType::string}};
  auto pipeline =
      open_examples(data::csv(path, columns, {.header = false}).shuffle(10'000).batch(500)).value();
  std::int64_t seen = 0, sum = 0;
  for (std::uint64_t e = 0;; ++e) {
    auto values = pipeline.element(e);
    if (is_dataset_end(values.status())) break;
    REQUIRE(values.ok());
    for (std::int64_t number : (*values)[0].span<std::int64_t>()) sum += number, ++seen;
  }
  CHECK(seen == records);
  CHECK(sum == records * (records - 1) / 2);
  CHECK(pipeline.element(0).ok());  // back to the start
  CHECK(peak_megabytes() <= kMostMegabytes);
  MESSAGE(bytes << " bytes, at most " << peak_megabytes() << " MB of memory");
}
