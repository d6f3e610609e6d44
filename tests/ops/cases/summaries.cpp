// Rows of the ops that make summaries. What is in the bytes: tests/ops/summary/.
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kSummaryInfinite = std::numeric_limits<double>::infinity();
constexpr double kSummaryNan = std::numeric_limits<double>::quiet_NaN();

AttrMap tagged(std::string tag) { return {{"tag", std::move(tag)}}; }
AttrMap all_tagged(std::vector<std::string> tags) { return {{"tags", std::move(tags)}}; }
AttrMap with_attr(AttrMap attrs, const char* name, Attr value) {
  attrs.insert_or_assign(name, std::move(value));
  return attrs;
}
Tensor u8_zeros(const Shape& shape) { return Tensor::zeros(DType::u8, shape).value(); }

const AddCases scalar_summaries([] {
  // value { tag: "loss" simple_value: 1.5 }
  const std::string loss("\x0a\x0b\x0a\x04loss\x15\x00\x00\xc0\x3f", 13);
  Cases rows = {
      {.op = "ScalarSummary",
       .inputs = {f32({}, {1.5f})},
       .attrs = all_tagged({"loss"}),
       .want = {strings({}, {loss})}},
      {.op = "ScalarSummary", .inputs = {f64({1}, {kSummaryNan})}, .attrs = all_tagged({"loss"})},
      {.op = "ScalarSummary", .inputs = {i64({2, 1}, {1, 2})}, .attrs = all_tagged({"a", "b"})},
      {.op = "ScalarSummary",
       .inputs = {f64({0}, {})},
       .attrs = all_tagged({}),
       .want = {strings({}, {""})}},
  };
  const auto refused = [&](Tensor x, std::vector<std::string> tags, std::string error) {
    rows.push_back({.op = "ScalarSummary",
                    .inputs = {std::move(x)},
                    .attrs = all_tagged(std::move(tags)),
                    .error = std::move(error)});
  };
  refused(f32({2}, {1, 2}), {"loss"}, "one tag per element");
  refused(f32({}, {1}), {"a", "b"}, "tags has 2 and x is []");
  refused(f32({}, {1}), {""}, "a tag is empty");
  refused(f32({}, {1}), {"\xff"}, "is not UTF-8");
  refused(f32({2}, {1, 2}), {"a", "a"}, "two tags are 'a'");
  refused(strings({}, {"1"}), {"a"}, "string");
  refused(bools({}, {true}), {"a"}, "bool");
  return rows;
});

const AddCases histogram_summaries([] {
  Cases rows;
  for (const Tensor& x :
       {f64({4}, {-0.5, 0, 0.25, 0.25}), f64({0, 3}, {}), any({40, 5000}),
        Tensor::scalar<float>(std::numeric_limits<float>::max()),
        f64({2}, {std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()}),
        i32({3}, {-1, 0, 1})})
    rows.push_back({.op = "HistogramSummary", .inputs = {x}, .attrs = tagged("weights")});
  for (const auto& [value, error] :
       {std::pair{kSummaryNan, "the histogram 'w' cannot have NaN, element 1 of [3]"},
        std::pair{kSummaryInfinite, "the histogram 'w' cannot have an infinity, element 1 of [3]"},
        std::pair{-kSummaryInfinite, "cannot have an infinity"}})
    rows.push_back({.op = "HistogramSummary",
                    .inputs = {f64({3}, {1, value, kSummaryNan})},
                    .attrs = tagged("w"),
                    .error = error});
  rows.push_back({.op = "HistogramSummary",
                  .inputs = {f64({1}, {1})},
                  .attrs = tagged(""),
                  .error = "a tag is empty"});
  rows.push_back({.op = "HistogramSummary",
                  .inputs = {strings({1}, {"a"})},
                  .attrs = tagged("w"),
                  .error = "string"});
  return rows;
});

const AddCases image_summaries([] {
  Cases rows = {
      {.op = "ImageSummary", .inputs = {u8_zeros({1, 2, 3, 1})}, .attrs = tagged("i")},
      {.op = "ImageSummary", .inputs = {any({5, 2, 3, 3})}, .attrs = tagged("i")},
      {.op = "ImageSummary",
       .inputs = {any({5, 2, 3, 4})},
       .attrs = with_attr(tagged("i"), "max_outputs", std::int64_t{1})},
      {.op = "ImageSummary",
       .inputs = {f64({1, 2, 1, 1}, {kSummaryNan, kSummaryInfinite})},
       .attrs = tagged("i")},
      {.op = "ImageSummary",
       .inputs = {u8_zeros({0, 2, 3, 1})},
       .attrs = tagged("i"),
       .want = {strings({}, {""})}},
  };
  const auto refused = [&](Tensor x, AttrMap attrs, std::string error) {
    rows.push_back({.op = "ImageSummary",
                    .inputs = {std::move(x)},
                    .attrs = std::move(attrs),
                    .error = std::move(error)});
  };
  refused(any({2, 3, 1}), tagged("i"), "rank 4");
  refused(any({1, 2, 3, 2}), tagged("i"), "1, 3 or 4 channels, not [1,2,3,2]");
  refused(any({1, 2, 3, 0}), tagged("i"), "1, 3 or 4 channels");
  refused(any({1, 0, 3, 1}), tagged("i"), "from 1 to 1000000 pixels on a side, not 0 x 3");
  refused(any({1, 3, 0, 3}), tagged("i"), "not 3 x 0");
  refused(u8_zeros({1, 1, 1'000'001, 1}), tagged("i"), "not 1 x 1000001");
  refused(any({1, 2, 2, 1}), with_attr(tagged("i"), "max_outputs", std::int64_t{0}),
          "max_outputs is at least 1, not 0");
  refused(any({1, 2, 2, 1}), with_attr(tagged("i"), "bad_color", ints({1, 2, 3})), "bad_color");
  refused(any({1, 2, 2, 1}), with_attr(tagged("i"), "bad_color", ints({1, 2, 3, 256})),
          "bad_color");
  refused(any({1, 2, 2, 1}), tagged("\xC3"), "is not UTF-8");
  refused(i32({1, 1, 1, 1}, {1}), tagged("i"), "i32");
  return rows;
});

const AddCases audio_summaries([] {
  const AttrMap attrs{{"tag", "a"}, {"sample_rate", 8000.0}};
  Cases rows = {
      {.op = "AudioSummary", .inputs = {any({2, 10})}, .attrs = attrs},
      {.op = "AudioSummary", .inputs = {any({1, 10, 2})}, .attrs = attrs},
      {.op = "AudioSummary",
       .inputs = {f64({1, 3}, {kSummaryNan, kSummaryInfinite, -9})},
       .attrs = attrs},
      {.op = "AudioSummary", .inputs = {any({1, 0})}, .attrs = attrs},
      {.op = "AudioSummary", .inputs = {any({0, 3})}, .attrs = attrs, .want = {strings({}, {""})}},
  };
  const auto refused = [&](Tensor x, AttrMap wrong, std::string error) {
    rows.push_back({.op = "AudioSummary",
                    .inputs = {std::move(x)},
                    .attrs = std::move(wrong),
                    .error = std::move(error)});
  };
  refused(any({3}), attrs, "[batch,frames] or [batch,frames,channels], not [3]");
  refused(any({1, 1, 1, 1}), attrs, "not [1,1,1,1]");
  for (const double rate : {0.0, -8000.0, kSummaryNan, kSummaryInfinite, 1e10})
    refused(any({1, 3}), with_attr(attrs, "sample_rate", rate), "sample_rate is a number from 1");
  refused(any({1, 3}), with_attr(attrs, "sample_rate", 4e9), "more than a WAV has");
  refused(any({1, 3, 0}), attrs, "from 1 to 65535 channels, not 0");
  refused(any({1, 1, 65536}), attrs, "not 65536");
  refused(any({1, 3}), with_attr(attrs, "max_outputs", std::int64_t{-1}), "max_outputs");
  refused(any({1, 3}), with_attr(attrs, "tag", std::string()), "a tag is empty");
  refused(i32({1, 1}, {1}), attrs, "i32");
  return rows;
});

const AddCases text_summaries([] {
  return Cases{
      {.op = "TextSummary", .inputs = {strings({}, {"# A title"})}, .attrs = tagged("t")},
      {.op = "TextSummary",
       .inputs = {strings({2, 1}, {"a", std::string("\0\xff", 2)})},
       .attrs = tagged("t")},
      {.op = "TextSummary", .inputs = {strings({0}, {})}, .attrs = tagged("t")},
      {.op = "TextSummary",
       .inputs = {strings({}, {"a"})},
       .attrs = tagged(""),
       .error = "a tag is empty"},
      {.op = "TextSummary",
       .inputs = {f32({}, {1})},
       .attrs = tagged("t"),
       .error = "expected string"},
  };
});

const AddCases merged_summaries([] {
  const auto value = [](std::string tag) {
    std::string fields = "\x0a" + std::string(1, char(tag.size())) + tag;
    return "\x0a" + std::string(1, char(fields.size())) + fields;
  };
  const std::string a = value("a"), b = value("b");
  Cases rows = {
      {.op = "MergeSummary",
       .inputs = {strings({}, {a}), strings({}, {b})},
       .want = {strings({}, {a + b})}},
      {.op = "MergeSummary",
       .inputs = {strings({2}, {b + a, ""}), strings({0, 3}, {})},
       .want = {strings({}, {b + a})}},
  };
  const auto refused = [&](std::vector<Tensor> inputs, std::string error) {
    rows.push_back({.op = "MergeSummary", .inputs = std::move(inputs), .error = std::move(error)});
  };
  refused({strings({}, {a}), strings({}, {b + a})}, "two values have the tag 'a'");
  refused({strings({}, {a + a})}, "two values have the tag 'a'");
  refused({strings({}, {b}), strings({}, {a.substr(0, a.size() - 1)})},
          "it is no serialized Summary");
  refused({strings({}, {"garbage"})}, "it is no serialized Summary");
  refused({strings({}, {std::string("\x0a\xff\xff\xff\xff\x0f", 6)})}, "it is no serialized");
  refused({strings({}, {std::string("\x0a\x00", 2)})}, "a tag is empty");
  refused({strings({}, {value("\xff")})}, "is not UTF-8");
  refused({f32({}, {1})}, "f32");
  return rows;
});

}  // namespace
}  // namespace troupe::test
