// tf.Example messages: parsed by name, with dtypes, shapes and defaults, and refused by name.
#include "ops/data/records/example_message.hpp"
#include "ops/data/records/record_frame.hpp"
#include "tests/ops/data/values.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// What a message of these fields looks like on the wire.
std::string length_delimited(int field, const std::string& content) {
  REQUIRE(content.size() < 128);
  return std::string{char(field << 3 | 2), char(content.size())} + content;
}
// Of one feature, whose value is a Feature message.
std::string message_of(const std::string& name, const std::string& value) {
  const std::string entry = length_delimited(1, name) + length_delimited(2, value);
  return length_delimited(1, length_delimited(1, entry));
}
constexpr int kBytes = 1, kFloats = 2, kInts = 3;

std::string file_of_messages(const DataDirectory& files, const std::vector<std::string>& messages) {
  std::string content;
  for (const std::string& message : messages)
    content += record_head(message.size()) + message + record_tail(message);
  return files.write("examples", content);
}

data::Examples parsed_records(const std::string& path, const std::vector<data::Feature>& features) {
  return data::tf_records({path}).parse_example(features);
}

Values only_element(const data::Examples& examples) {
  const auto all = elements_in_order(examples);
  REQUIRE_MESSAGE(all.ok(), all.status().text());
  REQUIRE(all->size() == 1);
  return (*all)[0];
}

std::string numbered_example(std::int64_t id) {
  return data::tf_example({{"id", Tensor::scalar(id)},
                           {"pixels", Tensor::of<float>({4}, {0.5f, float(id), -1, 2})},
                           {"name", Tensor::scalar("no. " + std::to_string(id))}})
      .value();
}

const std::vector<data::Feature> kThreeFeatures = {{.name = "pixels", .shape = {2, 2}},
                                                   {.name = "id", .dtype = DType::i64},
                                                   {.name = "name", .dtype = DType::string}};

}  // namespace

TEST_CASE("features are parsed by name, with their dtypes and shapes") {
  const DataDirectory files;
  const auto values =
      only_element(parsed_records(file_of_messages(files, {numbered_example(7)}), kThreeFeatures));
  REQUIRE(values.size() == 3);
  CHECK(Tensor::same(values[0], Tensor::of<float>({2, 2}, {0.5f, 7, -1, 2})));
  CHECK(Tensor::same(values[1], Tensor::scalar(std::int64_t{7})));
  CHECK(Tensor::same(values[2], Tensor::scalar("no. 7")));
}

TEST_CASE("lists are read packed and one by one, and merged where they come in parts") {
  const DataDirectory files;
  const std::string packed = length_delimited(kInts, length_delimited(1, "\1\2")),
                    single = length_delimited(kInts, std::string("\x08\1\x08\2", 4)),
                    parts = length_delimited(kInts, length_delimited(1, "\1")) +
                            length_delimited(kInts, length_delimited(1, "\2")),
                    replaced = length_delimited(kBytes, length_delimited(1, "x")) + packed;
  CHECK(message_of("a", packed) ==
        data::tf_example({{"a", Tensor::of<std::int64_t>({2}, {1, 2})}}).value());
  for (const std::string& feature : {packed, single, parts, replaced}) {
    const std::string path = file_of_messages(files, {message_of("a", feature)});
    for (const DType dtype : {DType::i64, DType::i32, DType::u8}) {
      const auto values =
          only_element(parsed_records(path, {{.name = "a", .dtype = dtype, .shape = {-1}}}));
      CHECK(values[0].dtype() == dtype);
      CHECK(values[0].text().find("{1, 2}") != std::string::npos);
    }
  }
  // Of two entries of a name the last counts; fields that nobody knows do not.
  const std::string twice = message_of("a", packed) +
                            message_of("a", length_delimited(kInts, length_delimited(1, "\5"))) +
                            length_delimited(9, "new");
  CHECK(only_element(parsed_records(file_of_messages(files, {twice}),
                                    {{.name = "a", .dtype = DType::i64}}))[0]
            .item<std::int64_t>() == 5);
  const std::string floats = std::string("\x0d\0\0\x80\x3f\x0d\0\0\0\x40", 10);
  CHECK(Tensor::same(
      only_element(parsed_records(
          file_of_messages(files, {message_of("a", length_delimited(kFloats, floats))}),
          {{.name = "a", .shape = {2}}}))[0],
      Tensor::of<float>({2}, {1, 2})));
}

TEST_CASE("a feature that is missing has its default") {
  const DataDirectory files;
  const std::string path = file_of_messages(files, {message_of("empty", "")});
  const auto values = only_element(parsed_records(
      path, {{.name = "a", .shape = {2}, .missing = Tensor::scalar(1.5f)},
             {.name = "empty", .dtype = DType::i64, .missing = Tensor::scalar<std::int64_t>(3)},
             {.name = "b", .dtype = DType::string, .shape = {-1}, .missing = Tensor::scalar("")},
             {.name = "c",
              .dtype = DType::i32,
              .shape = {-1},
              .missing = Tensor::of<std::int32_t>({2}, {8, 9})}}));
  CHECK(Tensor::same(values[0], Tensor::of<float>({2}, {1.5f, 1.5f})));
  CHECK(values[1].item<std::int64_t>() == 3);
  CHECK(values[2].shape() == Shape{0});
  CHECK(Tensor::same(values[3], Tensor::of<std::int32_t>({2}, {8, 9})));
}

TEST_CASE("raw features are the bytes of a string") {
  const DataDirectory files;
  const Tensor numbers = Tensor::of<std::uint16_t>({2, 3}, {1, 2, 3, 4, 5, 600});
  const std::string bytes(static_cast<const char*>(numbers.raw()), numbers.bytes());
  const auto raw = [](DType dtype, PartialShape shape) {
    return data::Feature{.name = "a", .dtype = dtype, .shape = std::move(shape), .raw = true};
  };
  const std::string path =
      file_of_messages(files, {data::tf_example({{"a", Tensor::scalar(bytes)}}).value()});
  CHECK(Tensor::same(only_element(parsed_records(path, {raw(DType::u16, {2, 3})}))[0], numbers));
  CHECK(only_element(parsed_records(path, {raw(DType::u16, {-1, 2})}))[0].shape() == Shape{3, 2});
  CHECK(tells(error_in_order(parsed_records(path, {raw(DType::u16, {2, 4})})),
              "feature 'a' has 6 values, which are no [2,4]"));
  CHECK(tells(error_in_order(parsed_records(path, {raw(DType::c128, {-1})})),
              "has 12 bytes, which are no whole elements of c128"));
  CHECK(tells(error_in_order(parsed_records(path, {raw(DType::bool_, {-1})})),
              "bytes that are no bool"));
}

TEST_CASE("features that are not as declared are refused by name, record, byte and file") {
  const QuietLog quiet;
  const DataDirectory files;
  const std::string path = file_of_messages(files, {numbered_example(1), numbered_example(300)});
  const std::pair<data::Feature, const char*> wrong[] = {
      {{.name = "absent"}, "feature 'absent' is missing, and has no default"},
      {{.name = "id"}, "feature 'id' holds int64s, not floats"},
      {{.name = "pixels", .dtype = DType::i64}, "feature 'pixels' holds floats, not int64s"},
      {{.name = "name", .dtype = DType::i32}, "feature 'name' holds bytes, not int64s"},
      {{.name = "id", .dtype = DType::string}, "feature 'id' holds int64s, not bytes"},
      {{.name = "pixels"}, "feature 'pixels' has 4 values, which are no []"},
      {{.name = "pixels", .shape = {3}}, "feature 'pixels' has 4 values, which are no [3]"},
      {{.name = "pixels", .shape = {-1, 3}}, "feature 'pixels' has 4 values, which are no [?,3]"},
      {{.name = "pixels", .shape = {-1, 0}}, "feature 'pixels' has 4 values, which are no [?,0]"}};
  for (const auto& [feature, text] : wrong) {
    const Status status = error_in_order(parsed_records(path, {feature}));
    const char* says = text;
    CHECK_MESSAGE(tells(status, says), status.text());
    CHECK(status.code() == Code::data_loss);
    CHECK(tells(status, "in record 0 at byte 0 of file '" + path + "'"));
  }
  const Status second = error_in_order(parsed_records(path, {{.name = "id", .dtype = DType::u8}}));
  CHECK_MESSAGE(tells(second, "feature 'id' has 300, which is no u8"), second.text());
  CHECK(tells(second, "in record 1 at byte " + std::to_string(numbered_example(1).size() + 16)));
  // Which is an example that may be left out.
  CHECK(only_element(parsed_records(path, {{.name = "id", .dtype = DType::u8}}).skip_errors(1))[0]
            .item<std::uint8_t>() == 1);
  CHECK(elements_in_order(parsed_records(path, kThreeFeatures).skip_errors(1))->size() == 2);
}

TEST_CASE("features that no message could have are refused when they are declared") {
  const auto error = [](const data::Feature& feature) {
    return data::tf_records({"file"}).parse_example({feature}).signature().status();
  };
  CHECK(tells(error({.name = "a", .dtype = DType::f64}), "feature 'a': f64 is not among"));
  CHECK(tells(error({.name = "a", .dtype = DType::invalid}), "is no dtype"));
  CHECK(tells(error({.name = "a", .dtype = DType::string, .raw = true}), "not made of bytes"));
  CHECK(tells(error({.name = "a", .shape = PartialShape::unknown()}), "the rank is unknown"));
  CHECK(tells(error({.name = "a", .shape = {2, -1}}), "only dimension 0 may be unknown"));
  CHECK(tells(error({.name = "a", .shape = {1 << 30, 1 << 30, 1 << 30}}), "[1073741824,"));
  CHECK(tells(error({.name = "a", .missing = Tensor::scalar(1.0)}), "its default is f64[]"));
  CHECK(tells(error({.name = "a", .shape = {3}, .missing = Tensor::of<float>({2}, {1, 2})}),
              "its default is f32[2], and it is f32[3]"));
  CHECK(tells(data::tf_records({"file"}).parse_example({}).signature().status(),
              "the list of features is empty"));
  CHECK(tells(data::range(3).parse_example({{.name = "a"}}).signature().status(),
              "component 0 of i64[] is no string[]"));
  CHECK(tells(data::tf_records({"f"}).parse_example({{.name = "a"}}, 1).signature().status(),
              "component 1 of string[] is no string[]"));
}

TEST_CASE("a saved position in parsed records goes on with the same elements") {
  const DataDirectory files;
  std::vector<std::string> messages;
  for (int i = 0; i < 23; ++i) messages.push_back(numbered_example(i));
  const std::string path = file_of_messages(files, messages);
  check_places(parsed_records(path, kThreeFeatures), 1);
  check_places(parsed_records(path, kThreeFeatures).shuffle(7, 3).repeat(2).batch(5), 2);
}

TEST_CASE("messages damaged in any place are parsed or refused, whatever their checksums say") {
  const std::string good = numbered_example(5);
  const ExampleMessages messages = ExampleMessages::make(kThreeFeatures).value();
  int errors = 0;
  const auto check = [&](const std::string& message) {
    const auto values = messages.parse(message);
    if (values.ok()) return;
    ++errors;
    CHECK_MESSAGE(values.status().code() == Code::data_loss, values.status().text());
  };
  for (std::size_t n = 0; n < good.size(); ++n) check(good.substr(0, n));
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int byte = 0; byte < 256; byte += 5) {
      std::string damaged = good;
      damaged[i] = char(byte);
      check(damaged);
    }
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::string noise = good.substr(0, random.below(good.size()));
    for (std::uint64_t n = random.below(40); n > 0; --n) noise += char(random.below(256));
    check(noise);
  }
  CHECK(errors > 1000);
  // Lengths of 2^63 and numbers that do not end.
  check(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10));
  check(message_of("id", length_delimited(kInts, length_delimited(1, std::string(20, '\xff')))));
  check(message_of("pixels", length_delimited(kFloats, length_delimited(1, "abc"))));
}

TEST_CASE("tensors that a tf.Example cannot hold are refused") {
  CHECK(tells(data::tf_example({{"a", Tensor::scalar(std::complex<float>(1, 2))}}).status(),
              "feature 'a': a tf.Example holds no c64"));
  CHECK(tells(data::tf_example({{"a", Tensor::scalar(~std::uint64_t{0})}}).status(),
              "18446744073709551615 is no int64"));
  CHECK(tells(data::tf_example({{"a", Tensor()}}).status(), "there is no tensor"));
  const DataDirectory files;
  const std::string message = data::tf_example({{"a", Tensor::of<bool>({2}, {true, false})},
                                                {"b", Tensor::of<double>({1}, {0.25})},
                                                {"c", Tensor::of<std::uint64_t>({1}, {7})}})
                                  .value();
  const auto values = only_element(parsed_records(
      file_of_messages(files, {message}), {{.name = "a", .dtype = DType::bool_, .shape = {2}},
                                           {.name = "b", .shape = {1}},
                                           {.name = "c", .dtype = DType::i64, .shape = {1}}}));
  CHECK(Tensor::same(values[0], Tensor::of<bool>({2}, {true, false})));
  CHECK(values[1].data<float>()[0] == 0.25f);
  CHECK(values[2].data<std::int64_t>()[0] == 7);
}
