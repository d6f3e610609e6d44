// ops/data: pipelines, drawn digits, IDX files.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "ops/data/byte_stream.hpp"
#include "ops/data/digits.hpp"
#include "ops/data/pipeline.hpp"
#include "tests/ops/data/data_files.hpp"
#include "tests/ops/data/gzip.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Example i is the number i, twice: as a row of two and as a label.
std::vector<Tensor> numbered(std::int64_t count) {
  Tensor rows = Tensor::make(DType::i64, Shape{count, 2}).value();
  Tensor labels = Tensor::make(DType::i64, Shape{count}).value();
  for (std::int64_t i = 0; i < count; ++i) {
    rows.mutable_data<std::int64_t>()[2 * i] = i;
    rows.mutable_data<std::int64_t>()[2 * i + 1] = 10 * i;
    labels.mutable_data<std::int64_t>()[i] = i;
  }
  return {rows, labels};
}

std::vector<std::int64_t> labels_of(Pipeline& pipeline, std::uint64_t element) {
  auto batch = pipeline.element(element);
  REQUIRE_MESSAGE(batch.ok(), batch.status().text());
  auto span = (*batch)[1].span<std::int64_t>();
  return {span.begin(), span.end()};
}

std::string idx_file(std::vector<std::uint8_t> dims, std::size_t bytes) {
  std::string out = {0, 0, 8, char(dims.size())};
  for (std::uint8_t d : dims) out += {0, 0, 0, char(d)};
  for (std::size_t i = 0; i < bytes; ++i) out += char(i);
  return out;
}

NodeDef dataset_node(std::string source, std::vector<std::string> files, std::int64_t limit,
                     std::int64_t side) {
  NodeDef def;
  def.name = "train";
  def.op = "Dataset";
  def.attrs = {{"source", source},
               {"files", files},
               {"batch", 2},
               {"shuffle", 0},
               {"seed", 0},
               {"repeat", 1},
               {"limit", limit},
               {"first", 1},
               {"digits_seed", 7},
               {"prefetch", 0},
               {"drop_remainder", false},
               {"types", std::vector<DType>{DType::f32, DType::i64}},
               {"shapes", std::vector<PartialShape>{{-1, side, side, 1}, {-1}}}};
  return def;
}

}  // namespace

TEST_CASE("a pipeline in order gives the examples in batches, the last one short") {
  auto pipeline = open_examples(data::tensors(numbered(5)).batch(2)).value();
  CHECK(pipeline.elements() == 3u);
  CHECK(labels_of(pipeline, 0) == std::vector<std::int64_t>{0, 1});
  CHECK(labels_of(pipeline, 2) == std::vector<std::int64_t>{4});
  auto rows = pipeline.element(1).value()[0];
  CHECK(Tensor::same(rows, Tensor::of<std::int64_t>(Shape{2, 2}, {2, 20, 3, 30})));
  CHECK(pipeline.element(3).status().code() == Code::out_of_range);
}

TEST_CASE("a pipeline that drops the remainder has full batches only, epoch after epoch") {
  auto pipeline =
      open_examples(data::tensors(numbered(5)).batch(2, data::Remainder::drop).repeat()).value();
  CHECK_FALSE(pipeline.elements().has_value());
  CHECK(labels_of(pipeline, 2'000'001) == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("each epoch of a shuffled pipeline is another permutation of all examples") {
  auto pipeline =
      open_examples(data::tensors(numbered(40)).shuffle(40, 3).batch(7).repeat(2)).value();
  std::vector<std::vector<std::int64_t>> epochs(2);
  for (std::uint64_t e = 0; e < 12; ++e)
    for (std::int64_t label : labels_of(pipeline, e)) epochs[e / 6].push_back(label);
  CHECK(epochs[0] != epochs[1]);
  for (auto& epoch : epochs) {
    CHECK_FALSE(std::is_sorted(epoch.begin(), epoch.end()));
    std::sort(epoch.begin(), epoch.end());
    std::vector<std::int64_t> all(40);
    std::iota(all.begin(), all.end(), 0);
    CHECK(epoch == all);
  }
}

TEST_CASE("an element depends on its index and the seed, not on what was asked before") {
  const auto source = data::tensors(numbered(30));
  const auto examples = source.shuffle(30, 9).batch(4).repeat();
  auto forwards = open_examples(examples).value();
  auto jumping = open_examples(examples).value();
  auto other_seed = open_examples(source.shuffle(30, 10).batch(4)).value();
  std::vector<std::vector<std::int64_t>> seen;
  for (std::uint64_t e = 0; e < 24; ++e) seen.push_back(labels_of(forwards, e));
  for (std::uint64_t e : {23, 0, 17, 8, 1, 22, 9}) CHECK(labels_of(jumping, e) == seen[e]);
  CHECK(labels_of(other_seed, 0) != seen[0]);
}

TEST_CASE("a window shows no example more than a window ahead of its place") {
  auto pipeline = open_examples(data::tensors(numbered(1000)).shuffle(10, 1).batch(1000)).value();
  const auto order = labels_of(pipeline, 0);
  bool moved = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(order[i] < std::int64_t(i) + 10);
    moved = moved || order[i] != std::int64_t(i);
  }
  CHECK(moved);
}

TEST_CASE("a pipeline refuses what it cannot serve, saying why") {
  std::vector<Tensor> uneven = {numbered(3)[0], numbered(4)[1]};
  CHECK(data::tensors(uneven).signature().status().message() ==
        "components differ in length: [3,2] and [4]");
  const auto three = data::tensors(numbered(3));
  for (const auto& wrong : {data::tensors({}), three.batch(0)})
    CHECK(wrong.signature().status().code() == Code::invalid_argument);
  CHECK(open_examples(three.batch(4, data::Remainder::drop)).status().message() ==
        "a batch of 4 is never full with 3 examples an epoch");
}

TEST_CASE("pictures become floats between 0 and 1 with a channel, labels 64-bit integers") {
  auto pipeline = open_examples(data::digits(10).batch(5)).value();
  auto batch = pipeline.element(0).value();
  CHECK(batch[0].dtype() == DType::f32);
  CHECK(batch[0].shape() == Shape{5, 28, 28, 1});
  CHECK(batch[1].dtype() == DType::i64);
  auto pixels = batch[0].span<float>();
  CHECK(*std::min_element(pixels.begin(), pixels.end()) >= 0);
  float ink = *std::max_element(pixels.begin(), pixels.end());
  CHECK(ink > 0.6f);
  CHECK(ink <= 1);
}

TEST_CASE("a drawn digit is a function of seed and index") {
  auto all = digit_set(5, 0, 64).value();
  auto part = digit_set(5, 20, 8).value();
  CHECK(Tensor::same(part[0], all[0].rows(20, 28).clone().value()));
  CHECK(Tensor::same(part[1], all[1].rows(20, 28).clone().value()));
  CHECK_FALSE(Tensor::same(all[0], digit_set(6, 0, 64).value()[0]));
  CHECK(digit_set(5, 0, -1).status().code() == Code::invalid_argument);
}

TEST_CASE("drawn digits show all ten about equally often, and no two pictures are the same") {
  auto set = digit_set(2, 0, 2000).value();
  int count[10] = {};
  for (std::uint8_t label : set[1].span<std::uint8_t>()) ++count[label];
  for (int n : count) CHECK(n > 140);
  std::vector<std::string> pictures;
  for (int i = 0; i < 2000; ++i) {
    const auto* p = set[0].data<char>() + i * 784;
    pictures.emplace_back(p, p + 784);
  }
  std::sort(pictures.begin(), pictures.end());
  CHECK(std::adjacent_find(pictures.begin(), pictures.end()) == pictures.end());
}

TEST_CASE("an IDX file is read back, and every damage is named") {
  auto open = [&](const std::string& content) {
    NodeDef def = dataset_node("idx", {"rows"}, 0, 0);
    def.attrs.insert_or_assign("first", std::int64_t{0});
    def.attrs.insert_or_assign("types", std::vector<DType>{DType::u8});
    def.attrs.insert_or_assign("shapes", std::vector<PartialShape>{PartialShape::unknown()});
    return open_dataset(def, [&](const std::string& path) -> Expected<DataFilePtr> {
      return memory_file(path, content);
    });
  };
  const std::string good = idx_file({2, 3, 1, 1}, 6);
  auto pipeline = open(good).value();
  CHECK(Tensor::same(pipeline.element(0).value()[0],
                     Tensor::of<std::uint8_t>(Shape{2, 3, 1, 1}, {0, 1, 2, 3, 4, 5})));
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK(open(good.substr(0, length)).status().code() == Code::data_loss);
  CHECK(open(good + "x").status().code() == Code::data_loss);
  std::string floats = good;
  floats[2] = 13;
  CHECK(open(floats).status().code() == Code::data_loss);
  CHECK(open(std::string("\0\0\x08\x08", 4) + std::string(32, '\xff')).status().code() ==
        Code::invalid_argument);
}

TEST_CASE("a read behind the end of a file fails alike, on a disk and in memory") {
  const DataDirectory dir;
  (void)dir.write("short", "four");
  const DataFilePtr files[] = {open_local_file(dir.path("short")).value(),
                               memory_file(dir.path("short"), "four")};
  for (const DataFilePtr& file : files) {
    char bytes[4] = {};
    CHECK(file->read_at(0, bytes).ok());
    const Status status = file->read_at(2, bytes);
    CHECK(status.code() == Code::failed_precondition);
    CHECK(status.message() == "file '" + dir.path("short") + "' ends before byte 6");
  }
}

TEST_CASE("a large read behind the end of a file fails alike, wherever its memory lies") {
  const DataDirectory dir;
  const std::string content(100'000, 'a');
  (void)dir.write("long", content);
  const DataFilePtr files[] = {open_local_file(dir.path("long")).value(),
                               memory_file(dir.path("long"), content)};
  constexpr std::size_t kPage = 4096, kBytes = 200'000;
  std::vector<char> memory(kBytes + 2 * kPage);
  char* const page =
      memory.data() + (kPage - reinterpret_cast<std::uintptr_t>(memory.data()) % kPage);
  for (const DataFilePtr& file : files)
    for (const std::size_t behind : {0, 1, 16, 31, 32}) {
      CAPTURE(behind);
      const std::span<char> out(page + behind, kBytes);
      const Status status = file->read_at(0, out);
      CHECK(status.message() == "file '" + dir.path("long") + "' ends before byte 200000");
      REQUIRE(file->read_at(0, out.first(content.size())).ok());
      CHECK(std::string(out.data(), content.size()) == content);
    }
}

TEST_CASE("gzip content is unpacked up to a limit, and damage is found") {
  auto unpack = [](const std::string& content, std::uint64_t most = 1'000'000) {
    return read_content(memory_file("x", content), most);
  };
  const std::string plain(100'000, 'a');
  const std::string packed = gzip(plain);
  CHECK(unpack(packed).value() == plain);
  CHECK(unpack(plain).value() == plain);
  CHECK(unpack(packed, 1000).status().code() == Code::resource_exhausted);
  CHECK(unpack(packed.substr(0, packed.size() / 2)).status().code() == Code::data_loss);
  CHECK(unpack("\x1f\x8bnonsense").status().code() == Code::data_loss);
}

TEST_CASE("a dataset of files finds the compressed ones and names the one that is missing") {
  std::map<std::string, std::string> disk = {{"images", idx_file({4, 2, 2}, 16)},
                                             {"labels.gz", gzip(idx_file({4}, 4))}};
  auto read = [&](const std::string& path) -> Expected<DataFilePtr> {
    auto found = disk.find(path);
    if (found == disk.end()) return not_found("no file '" + path + "'");
    return memory_file(path, found->second);
  };
  auto pipeline = open_dataset(dataset_node("idx", {"images", "labels"}, 0, 2), read).value();
  CHECK(pipeline.elements() == 2);  // of two examples, from `first`, which is 1
  CHECK(labels_of(pipeline, 0) == std::vector<std::int64_t>{1, 2});

  Status missing = open_dataset(dataset_node("idx", {"images", "other"}, 0, 2), read).status();
  CHECK(missing.code() == Code::not_found);
  CHECK(missing.message().find("'other'") != std::string::npos);

  auto drawn = open_dataset(dataset_node("digits", {}, 9, 28), read).value();
  auto expected = digit_set(7, 1, 9).value();
  CHECK(labels_of(drawn, 0)[0] == expected[1].data<std::uint8_t>()[0]);
  CHECK(open_dataset(dataset_node("digits", {}, 0, 28), read).status().code() ==
        Code::invalid_argument);

  Status other_size = open_dataset(dataset_node("idx", {"images", "labels"}, 0, 28), read).status();
  CHECK(other_size.message() ==
        "dataset 'train' declares elements of f32[?,28,28,1], i64[?], but its files hold "
        "f32[?,2,2,1], i64[?]");
}
