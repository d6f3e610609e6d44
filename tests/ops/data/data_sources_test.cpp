// Sources of examples: what they read, and what they say of files that are not as they should be.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/hash.hpp"
#include "ops/data/digits.hpp"
#include "ops/data/shapes.hpp"
#include "ops/data/tales.hpp"
#include "tests/ops/data/data_files.hpp"
#include "tests/ops/data/gzip.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Values = std::vector<Tensor>;

std::vector<Values> all_of(const data::Examples& examples) {
  Pipeline pipeline = open_examples(examples).value();
  std::vector<Values> all;
  for (;;) {
    auto values = pipeline.element(all.size());
    if (!values.ok()) {
      CHECK_MESSAGE(is_dataset_end(values.status()), values.status().text());
      return all;
    }
    all.push_back(std::move(values).value());
  }
}

// What goes wrong first, in opening it or reading it in order.
Status first_error(const data::Examples& examples) {
  auto pipeline = open_examples(examples);
  if (!pipeline.ok()) return pipeline.status();
  for (std::uint64_t e = 0;; ++e) {
    const auto values = pipeline->element(e);
    if (!values.ok()) return is_dataset_end(values.status()) ? Status() : values.status();
  }
}

bool says(const Status& status, std::string_view text) {
  return status.text().find(text) != std::string::npos;
}

std::vector<std::int64_t> numbers(const Tensor& t) {
  return {t.span<std::int64_t>().begin(), t.span<std::int64_t>().end()};
}

std::string cifar_file(std::initializer_list<int> labels) {
  std::string out;
  for (int label : labels) {
    out += char(label);
    for (int i = 0; i < 3072; ++i) out += char((i / 1024 + 1) * 50 + label + i % 7);
  }
  return out;
}

const std::vector<data::CsvColumn> kColumns = {
    {.dtype = DType::i64}, {.dtype = DType::f32, .missing = "-1.5"}, {.dtype = DType::string}};

}  // namespace

TEST_CASE("a text gives windows of characters and what follows each of them") {
  const DataDirectory files;
  const std::string text =
      "abcabd\xff"
      "cab";  // as bytes: a b c d and one more
  const std::string path = files.write("text", text);
  const auto vocabulary = data::Vocabulary::of_file(path);
  CHECK(vocabulary.size() == 5);
  CHECK(vocabulary.characters() == "abcd\xff");
  CHECK(vocabulary.encode("dad") == std::vector<std::int64_t>{3, 0, 3});
  CHECK(vocabulary.decode({2, 0, 1, 4}) == "cab\xff");
  CHECK(vocabulary.try_encode("abe").status().code() == Code::invalid_argument);
  CHECK(vocabulary.try_decode({5}).status().code() == Code::invalid_argument);
  for (const std::string& name : {path, files.write("packed.gz", gzip(text))})
    for (const auto& known : {vocabulary, data::Vocabulary()})
      for (std::int64_t stride : {1, 2, 3, 5}) {
        const auto all =
            all_of(data::text(name, {.window = 3, .stride = stride, .vocabulary = known}));
        std::size_t begin = 0;
        for (const Values& values : all) {
          CHECK(vocabulary.decode(numbers(values[0])) == text.substr(begin, 3));
          CHECK(vocabulary.decode(numbers(values[1])) == text.substr(begin + 1, 3));
          begin += std::size_t(stride);
        }
        CHECK(begin + 4 > text.size());
        CHECK(all.size() == (text.size() - 4) / std::size_t(stride) + 1);
      }
}

TEST_CASE("parts of a text share no character") {
  const DataDirectory files;
  std::string text;
  for (int i = 0; i < 100; ++i) text += char('!' + i % 90);
  const std::string path = files.write("text", text);
  const auto vocabulary = data::Vocabulary::of_file(path);
  const auto train = all_of(data::text(path, {.window = 4, .to = 0.75, .vocabulary = vocabulary}));
  const auto test = all_of(data::text(path, {.window = 4, .from = 0.75, .vocabulary = vocabulary}));
  CHECK(train.size() == 18);
  CHECK(test.size() == 6);
  CHECK(vocabulary.decode(numbers(train.back()[1])) == text.substr(69, 4));
  CHECK(vocabulary.decode(numbers(test[0][0])) == text.substr(75, 4));
}

TEST_CASE("tales are drawn the same again, and what is held out of them is theirs, too") {
  const std::string tales = draw_tales(1, 3000);
  CHECK(tales.size() == 3000);
  CHECK(draw_tales(1, 5000).substr(0, 3000) == tales);
  CHECK(draw_tales(2, 3000) != tales);
  CHECK(std::count(tales.begin(), tales.end(), '\n') > 5);
  const data::Vocabulary vocabulary(tales);
  const auto train = all_of(data::tales(3000, {.window = 50, .stride = 20, .to = 0.9}));
  const auto test = all_of(data::tales(3000, {.window = 50, .from = 0.9}));
  CHECK(train.size() == (2700 - 51) / 20 + 1);
  CHECK(vocabulary.decode(numbers(train[1][0])) == tales.substr(20, 50));
  CHECK(vocabulary.decode(numbers(train[1][1])) == tales.substr(21, 50));
  CHECK(vocabulary.decode(numbers(test[0][0])) == tales.substr(2700, 50));
  CHECK(says(open_examples(data::tales(40)).status(), "no window of 64"));
  CHECK_THROWS_AS(void(open_examples(data::tales(0))), Error);
  CHECK_THROWS_AS(void(open_examples(data::tales(std::int64_t{1} << 40))), Error);
}

TEST_CASE("lines of a text have the length they have, however they end") {
  const DataDirectory files;
  const data::Vocabulary vocabulary("abc");
  for (const char* text : {"ab\n\r\nc\ncba", "ab\r\n\nc\r\ncba\n"}) {
    for (const std::string& content : {std::string(text), gzip(text)}) {
      const auto all = all_of(data::lines(files.write("lines", content), vocabulary));
      REQUIRE(all.size() == 4);
      CHECK(numbers(all[0][0]) == std::vector<std::int64_t>{0, 1});
      CHECK(all[1][0].shape() == Shape{0});
      CHECK(numbers(all[3][0]) == std::vector<std::int64_t>{2, 1, 0});
    }
  }
}

TEST_CASE("a CSV file gives a component for each column") {
  const DataDirectory files;
  const std::string text =
      "\xef\xbb\xbf"
      "number,\"a \"\"price\"\"\",name\r\n"
      "1,2.5,\"one, \"\"first\"\"\"\r\n"
      "\n"
      " +2 ,,\"two\nlines\"\n"
      "3,1e3,";
  for (const std::string& content : {text, gzip(text)}) {
    const auto all = all_of(data::csv(files.write("csv", content), kColumns));
    REQUIRE(all.size() == 3);
    const Values wanted[] = {
        {Tensor::scalar(std::int64_t{1}), Tensor::scalar(2.5f), Tensor::scalar("one, \"first\"")},
        {Tensor::scalar(std::int64_t{2}), Tensor::scalar(-1.5f), Tensor::scalar("two\nlines")},
        {Tensor::scalar(std::int64_t{3}), Tensor::scalar(1000.0f), Tensor::scalar("")}};
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t c = 0; c < 3; ++c) CHECK(Tensor::same(all[i][c], wanted[i][c]));
  }
}

TEST_CASE("columns of a CSV file are skipped, or one component together") {
  const DataDirectory files;
  const std::string path = files.write("csv", "1;2;x;y;true;4\n5;6;x;y;0;8\n");
  const auto all = all_of(data::csv(path,
                                    {{.dtype = DType::f64, .cells = 2},
                                     {.cells = 2, .skip = true},
                                     {.dtype = DType::bool_},
                                     {.dtype = DType::u8}},
                                    {.delimiter = ';', .header = false})
                              .batch(2));
  REQUIRE(all.size() == 1);
  CHECK(Tensor::same(all[0][0], Tensor::of<double>({2, 2}, {1, 2, 5, 6})));
  CHECK(Tensor::same(all[0][1], Tensor::of<bool>({2}, {true, false})));
  CHECK(Tensor::same(all[0][2], Tensor::of<std::uint8_t>({2}, {4, 8})));
}

TEST_CASE("a CSV file that is not as declared is refused by line and column") {
  const DataDirectory files;
  const std::pair<std::string, const char*> wrong[] = {
      {"h,h,h\n1,2,a\n1,2\n", "line 3: 2 cells, not 3"},
      {"h,h,h\n1,2,a,b\n", "line 2: 4 cells, not 3"},
      {"h,h,h\nx1,2,a\n", "line 2: column 1: 'x1' is no i64"},
      {"h,h,h\n1.5,2,a\n", "line 2: column 1: '1.5' is no i64"},
      {"h,h,h\n99999999999999999999,2,a\n", "is no i64"},
      {"h,h,h\n,2,a\n", "column 1: '' is no i64, and the column has no default"},
      {"h,h,h\n1,2.5.1,a\n", "column 2: '2.5.1' is no f32"},
      {"h,h,h\n1,+-2,a\n", "column 2: '+-2' is no f32"},
      {"h,h,\"h\nh\"\n1,2,\"a\n", "line 3: a quote that is not closed"},
      {"h,h,h\n1,2,a\"b\n", "line 2: a quote inside of a cell"},
      {"h,h,h\n1,2,\"a\"b\n", "line 2: text after a quote that closes a cell"},
      {"h,h,h\n1,2,\"a\"\rb\n", "line 2: a return in the middle of a line"},
      {"h,h,h\n\n\n1,2\n", "line 4: 2 cells, not 3"},
      {"h,h,h\n1,2,\"" + std::string(17 << 20, 'x'),
       "line 2: a record of more than 16777216 bytes"},
      {"h,h,h\n" + std::string(2'000'000, ','), "line 2: more than 1000000 cells"},
  };
  for (const auto& [content, text] : wrong) {
    const Status status = first_error(data::csv(files.write("c.csv", content), kColumns));
    CHECK(status.code() == Code::data_loss);
    CHECK_MESSAGE(says(status, text), status.text());
    CHECK(says(status, "c.csv"));
  }
  CHECK(first_error(data::csv(files.write("c.csv", ""), kColumns)).ok());  // no record
}

TEST_CASE("numbers of a CSV file that are too small for their type are 0, too large ones none") {
  const DataDirectory files;
  files.write("a.csv", "x,y\n1e-50,1e-400\n-1e-50,2.5\n");
  files.write("b.csv", "x,y\n1e39,1\n");
  const std::vector<data::CsvColumn> columns = {{.dtype = DType::f32}, {.dtype = DType::f64}};
  auto rows = all_of(data::csv(files.path("a.csv"), columns));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0][0].item<float>() == 0);
  CHECK(rows[0][1].item<double>() == 0);
  CHECK(rows[1][1].item<double>() == 2.5);
  CHECK(first_error(data::csv(files.path("b.csv"), columns)).code() == Code::data_loss);
}

TEST_CASE("passes that differ may be empty, and others follow them") {
  const DataDirectory files;
  files.write("lines.txt",
              std::string("a\nb\n") + std::string(30, 'c') + "\n" + std::string(30, 'd') + "\n");
  // Two of four lines, of which a bucket is full only where both are short or both are long.
  auto pipeline = open_examples(data::lines(files.path("lines.txt"))
                                    .shuffle(4, 5)
                                    .take(2)
                                    .bucket_by_length({20}, {2, 2}, {}, data::Remainder::drop)
                                    .repeat())
                      .value();
  for (std::uint64_t e = 0; e < 50; ++e) {
    auto values = pipeline.element(e);
    REQUIRE_MESSAGE(values.ok(), values.status().text());
    CHECK((*values)[0].dim(0) == 2);
  }
  // And where none is ever full, it ends.
  CHECK(all_of(data::lines(files.path("lines.txt"))
                   .shuffle(4, 5)
                   .bucket_by_length({20}, {3, 3}, {}, data::Remainder::drop)
                   .repeat())
            .empty());
}

TEST_CASE("a batch that no machine holds is refused when it is declared") {
  for (std::int64_t size : {(std::int64_t{1} << 28) + 1, std::int64_t{1} << 62}) {
    CHECK_THROWS_AS(void(open_examples(data::shapes(10).batch(size))), Error);
    CHECK_THROWS_AS(void(open_examples(data::shapes(10).padded_batch(size))), Error);
    CHECK_THROWS_AS(void(open_examples(data::shapes(10).bucket_by_length({20}, {1, size}))), Error);
  }
}

TEST_CASE("columns that are none are refused when they are declared") {
  const std::pair<data::CsvColumn, const char*> wrong[] = {
      {{.dtype = DType::c64}, "'c64' is no column"},
      {{.dtype = DType::i64, .missing = "x"}, "the default of column 'i64=x' is no i64"},
      {{.cells = 0}, "is no column"},
      {{.missing = "1", .skip = true}, "is no column"},
      {{.skip = true}, "all columns of a CSV file are skipped"}};
  for (const auto& [column, text] : wrong) {
    const Status status = data::csv("file", {column}).signature().status();
    CHECK_MESSAGE(says(status, text), status.text());
  }
  CHECK(says(data::csv("file", {{}}, {.delimiter = '"'}).signature().status(), "a delimiter is"));
}

TEST_CASE("pictures are read from IDX files of any size, packed or not") {
  const DataDirectory files;
  std::string images("\0\0\x08\x03\0\0\0\x09\0\0\0\x02\0\0\0\x03", 16),
      labels("\0\0\x08\x01\0\0\0\x09", 8);
  for (int i = 0; i < 54; ++i) images += char(4 * i);
  for (int i = 0; i < 9; ++i) labels += char(i);
  files.write("train-images-idx3-ubyte", images);
  files.write("train-labels-idx1-ubyte.gz", gzip(labels));
  // A row of the first picture of all, and its label.
  const auto pictures = [&](std::int64_t height, std::int64_t width) {
    return data::idx(files.path(""), data::Split::train, {.height = height, .width = width});
  };
  const Values first = all_of(pictures(2, 3))[0];
  CHECK(first[0].shape() == Shape{2, 3, 1});
  CHECK(first[0].data<float>()[5] == 20 * (1.0f / 255));
  CHECK(first[1].item<std::int64_t>() == 0);
  CHECK(says(open_examples(pictures(3, 2)).status(), "examples of [2,3], not of [3,2]"));
}

TEST_CASE("a packed IDX file of another shape is refused before it is unpacked") {
  const DataDirectory files;
  std::string packed = gzip(std::string("\0\0\x08\x02\0\2\0\0\0\0\0\2", 12) +
                            std::string(std::size_t{2} << 17, '\5'));
  packed.back() ^= 1;  // whoever unpacks all of it finds it damaged
  files.write("pairs", packed);
  const auto error = [&](const char* source) {
    return open_examples(data::Examples::of(source, {files.path("pairs")})).status();
  };
  CHECK(says(error("idx [3]"), "examples of [2], not of [3]"));
  CHECK(says(error("idx [2]"), "gzip"));
}

TEST_CASE("digits are those of their set, in whatever order they are read, and read again") {
  constexpr std::int64_t kDigits = 24, kBatch = 8, kPixels = 28 * 28;
  const Values drawn = digit_set(1, 0, kDigits).value();
  auto pipeline = open_examples(data::digits(kDigits).batch(kBatch)).value();
  for (const std::int64_t batch : {1, 0, 2, 1, 0}) {
    const Values read = pipeline.element(std::uint64_t(batch)).value();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const std::int64_t at = batch * kBatch + i;
      wrong += read[1].data<std::int64_t>()[i] != drawn[1].data<std::uint8_t>()[at];
      for (std::int64_t pixel = 0; pixel < kPixels; ++pixel)
        wrong += read[0].data<float>()[i * kPixels + pixel] !=
                 float(drawn[0].data<std::uint8_t>()[at * kPixels + pixel]) * (1.0f / 255);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("digits of a set that is too large to keep are drawn as they are read") {
  auto pipeline = open_examples(data::digits(1'000'000).skip(999'998).batch(4)).value();
  const Values drawn = digit_set(1, 999'998, 2).value(), read = pipeline.element(0).value();
  CHECK(read[0].shape() == Shape{2, 28, 28, 1});
  for (int i : {0, 300, 784, 1567})
    CHECK(read[0].data<float>()[i] == float(drawn[0].data<std::uint8_t>()[i]) * (1.0f / 255));
  for (int i : {0, 1}) CHECK(read[1].data<std::int64_t>()[i] == drawn[1].data<std::uint8_t>()[i]);
}

TEST_CASE("drawn shapes are of the form of CIFAR-10, the same again, and others in a test set") {
  auto train = open_examples(data::shapes(1000).batch(1000)).value();
  auto test = open_examples(data::shapes(1000, data::Split::test).batch(1000)).value();
  const Values drawn = train.element(0).value(), others = test.element(0).value();
  CHECK(drawn[0].shape() == Shape{1000, 32, 32, 3});
  std::vector<std::uint8_t> picture(32 * 32 * 3);
  std::array<int, 10> of_label{};
  for (std::int64_t i = 0; i < 1000; ++i) {
    const int label = draw_shape(1, std::uint64_t(i), picture.data());
    CHECK(drawn[1].data<std::int64_t>()[i] == label);
    ++of_label[std::size_t(label)];
    const float* is = drawn[0].data<float>() + i * 3072;
    CHECK(is[1500] == float(picture[1500]) * (1.0f / 255));
    // Something stands out in every picture.
    CHECK(*std::max_element(is, is + 3072) - *std::min_element(is, is + 3072) > 0.15f);
  }
  for (int count : of_label) CHECK(count > 60);
  CHECK_FALSE(
      std::equal(drawn[0].data<float>(), drawn[0].data<float>() + 3072, others[0].data<float>()));
  CHECK_THROWS_AS(void(open_examples(data::shapes(-1))), Error);
}

TEST_CASE("pictures of CIFAR-10 have their colours side by side, and their labels") {
  const DataDirectory files;
  for (int i = 1; i <= 5; ++i)
    files.write("data_batch_" + std::to_string(i) + ".bin", cifar_file({i, 9 - i}));
  files.write("test_batch.bin", cifar_file({9}));
  auto pipeline = open_examples(data::cifar10(files.path("")).batch(10)).value();
  const Values values = pipeline.element(0).value();
  CHECK(values[0].shape() == Shape{10, 32, 32, 3});
  CHECK(numbers(values[1]) == std::vector<std::int64_t>{1, 8, 2, 7, 3, 6, 4, 5, 5, 4});
  const float* second = values[0].data<float>() + 32 * 32 * 3;
  for (int p : {0, 1, 33, 1023})
    for (int c = 0; c < 3; ++c)
      CHECK(second[3 * p + c] == float((c + 1) * 50 + 8 + (1024 * c + p) % 7) * (1.0f / 255));
  CHECK(all_of(data::cifar10(files.path(""), data::Split::test)).size() == 1);
  // Packed, where there is no plain one.
  const DataDirectory packed;
  packed.write("test_batch.bin.gz", gzip(cifar_file({4, 7})));
  auto test = open_examples(data::cifar10(packed.path(""), data::Split::test).batch(2)).value();
  const Values both = test.element(0).value();
  CHECK(numbers(both[1]) == std::vector<std::int64_t>{4, 7});
  CHECK(both[0].data<float>()[1] == float(100 + 4 + 1024 % 7) * (1.0f / 255));
}

TEST_CASE("files of other sources that are not as they should be are refused by name") {
  const DataDirectory files;
  const std::string cifar = cifar_file({1, 2});
  auto of_cifar = [&](const std::string& content) {
    files.write("test_batch.bin", content);
    return first_error(data::cifar10(files.path(""), data::Split::test));
  };
  CHECK(says(of_cifar(cifar.substr(0, 5000)), "5000 bytes are no multiple of a record's 3073"));
  CHECK(says(of_cifar(""), "no multiple"));
  CHECK(says(of_cifar(gzip(cifar.substr(0, 5000))), "5000 bytes are no multiple"));
  const std::string packed_cifar = gzip(cifar);
  CHECK(says(of_cifar(packed_cifar.substr(0, packed_cifar.size() / 2)), "test_batch.bin"));
  std::string other = cifar;
  other[3073] = 10;
  CHECK(says(of_cifar(other), "record 1 has label 10; there are 0 to 9"));
  CHECK(says(of_cifar(other), "test_batch.bin"));

  const data::Vocabulary abc("abc");
  const std::string text = files.write("text", "abcabcabcX");
  CHECK(says(first_error(data::text(text, {.window = 3, .vocabulary = abc})),
             "character 88 at byte 9 is not in the vocabulary"));
  CHECK(says(first_error(data::text(text, {.window = 10})), "no window of 10 and one more"));
  CHECK(says(first_error(data::text(files.write("t.gz", gzip("abcabc")), {.window = 3, .to = 0.5})),
             "a part of a text that gzip has packed"));
  CHECK(says(first_error(data::text(files.path("absent"))), "cannot open"));
  CHECK(first_error(data::text(files.path("absent"))).code() == Code::not_found);
  CHECK(says(first_error(data::lines(files.path(""))), "is no regular file"));
  CHECK(says(first_error(data::lines(files.write("l", "ab\ncab\nd\n"), abc)),
             "line 3: character 100 is not in the vocabulary"));
  const std::string packed = gzip(std::string(200'000, 'a') + "\n");
  for (const std::string& broken : {packed.substr(0, packed.size() - 9), packed + "x"})
    CHECK(first_error(data::lines(files.write("l.gz", broken), abc)).code() == Code::data_loss);
  CHECK(says(first_error(data::lines(files.write("l", std::string(17 << 20, 'a')), abc)),
             "line 1: longer than 16777216 characters"));
  for (const data::TextOptions& options :
       {data::TextOptions{.window = 0}, data::TextOptions{.stride = -1},
        data::TextOptions{.from = 0.5, .to = 0.4}, data::TextOptions{.to = 1.5},
        data::TextOptions{.from = std::nan("")}})
    CHECK(data::text(text, options).signature().status().code() == Code::invalid_argument);
}

TEST_CASE("files damaged at random give elements or errors, the same when asked again") {
  const DataDirectory files;
  const data::Vocabulary letters("abcdefghijklmnopqrstuvwxyz,\"\n0123456789.");
  std::string csv = "h,h,h\n", idx("\0\0\x08\x02\0\0\0\x20\0\0\0\x05", 12);
  for (int i = 0; i < 40; ++i)
    csv +=
        std::to_string(i) + "," + std::to_string(i) + ".25,\"text, " + std::to_string(i) + "\"\n";
  for (int i = 0; i < 160; ++i) idx += char(i);
  struct Kind {
    const char* file;
    std::string content;
    data::Examples examples;
  };
  const Kind kinds[] = {
      {"a.csv", csv, data::csv(files.path("a.csv"), kColumns).batch(4)},
      {"b.csv.gz", gzip(csv), data::csv(files.path("b.csv"), kColumns).shuffle(8, 1).batch(4)},
      {"idx", idx, data::Examples::of("idx [5]", {files.path("idx")}).batch(4)},
      {"packed-idx.gz", gzip(idx), data::Examples::of("idx [5]", {files.path("packed-idx")})},
      {"test_batch.bin", cifar_file({1, 2, 3}), data::cifar10(files.path(""), data::Split::test)},
      {"text", csv, data::text(files.path("text"), {.window = 16, .vocabulary = letters})},
      {"text2.gz", gzip(csv), data::text(files.path("text2.gz"), {.window = 16}).batch(3)},
      {"lines", csv, data::lines(files.path("lines")).padded_batch(4)}};
  int good = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    for (const Kind& kind : kinds) {
      INFO("seed " << seed << ", " << std::string(kind.file));
      Random random(hash_text(kind.file, seed));
      std::string content = kind.content;
      for (std::uint64_t n = random.below(3); n > 0; --n)
        content[random.below(content.size())] = char(random.below(256));
      if (random.below(4) == 0) content.resize(random.below(content.size()));
      if (random.below(8) == 0) content += char(random.below(256));
      files.write(kind.file, content);
      auto first = open_examples(kind.examples), again = open_examples(kind.examples);
      CHECK(first.status() == again.status());
      ++(first.ok() ? good : refused);
      if (!first.ok()) continue;
      std::vector<Expected<Values>> seen;
      for (std::uint64_t e = 0; e < 60; ++e) seen.push_back(first->element(e));
      for (int i = 0; i < 60; ++i) {
        const std::uint64_t e = random.below(60);
        const auto values = again->element(e);
        CHECK_MESSAGE(values.status() == seen[e].status(),
                      values.status().text() << ", and before " << seen[e].status().text());
        for (std::size_t c = 0; values.ok() && c < values->size(); ++c)
          CHECK(Tensor::same((*values)[c], (*seen[e])[c]));
        if (!values.ok()) CHECK_FALSE(values.status().text().empty());
      }
    }
  CHECK(good > 100);
  CHECK(refused > 50);
}
