#include "ops/summary/summary.hpp"

#include <doctest/doctest.h>
#include <png.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <protozero/pbf_reader.hpp>
#include <random>

#include "devices/cpu/cpu_device.hpp"
#include "ops/api.hpp"
#include "ops/evaluate.hpp"
#include "tests/contains.hpp"
#include "tests/ops/kernels/conformance.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// One value of a summary, read by the field numbers of TensorFlow's summary.proto.
struct SummaryValue {
  std::string tag;
  std::optional<float> number;
  std::string histogram, image, audio, tensor, metadata;
};

std::vector<SummaryValue> parse_summary(const std::string& bytes) {
  std::vector<SummaryValue> out;
  protozero::pbf_reader summary(bytes);
  while (summary.next(1)) {
    SummaryValue& value = out.emplace_back();
    protozero::pbf_reader in = summary.get_message();
    while (in.next()) switch (in.tag()) {
        case 1:
          value.tag = in.get_string();
          break;
        case 2:
          value.number = in.get_float();
          break;
        case 4:
          value.image = in.get_bytes();
          break;
        case 5:
          value.histogram = in.get_bytes();
          break;
        case 6:
          value.audio = in.get_bytes();
          break;
        case 8:
          value.tensor = in.get_bytes();
          break;
        case 9:
          value.metadata = in.get_bytes();
          break;
        default:
          FAIL("field " << in.tag());
      }
  }
  return out;
}

struct ParsedHistogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits, counts;
};

ParsedHistogram parse_histogram(const std::string& bytes) {
  ParsedHistogram h;
  protozero::pbf_reader in(bytes);
  while (in.next()) {
    const auto field = in.tag();
    if (field >= 6) {
      auto range = in.get_packed_double();
      (field == 6 ? h.limits : h.counts).assign(range.begin(), range.end());
      continue;
    }
    double* fields[] = {&h.min, &h.max, &h.count, &h.sum, &h.sum_squares};
    *fields[field - 1] = in.get_double();
  }
  return h;
}

struct ParsedImage {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;
};

ParsedImage parse_image(const std::string& bytes) {
  ParsedImage out;
  std::string png;
  protozero::pbf_reader in(bytes);
  while (in.next()) {
    const auto field = in.tag();
    if (field == 4) {
      png = in.get_bytes();
      continue;
    }
    std::int64_t* fields[] = {&out.height, &out.width, &out.channels};
    *fields[field - 1] = in.get_int32();
  }
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, png.data(), png.size()) != 0);
  CHECK(std::int64_t(image.height) == out.height);
  CHECK(std::int64_t(image.width) == out.width);
  CHECK(PNG_IMAGE_SAMPLE_CHANNELS(image.format) == out.channels);
  out.pixels.resize(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, out.pixels.data(), 0, nullptr) != 0);
  return out;
}

// The summary of one node, whose inputs are constants.
std::vector<SummaryValue> summary_of(const Output& made) {
  std::vector<std::vector<Tensor>> values;
  for (const NodeDef& def : made.graph().def().nodes) {
    std::vector<Tensor> in;
    for (const Port p : def.inputs) in.push_back(values[p.node][p.index]);
    auto out = evaluate(ops::builtin(), def, std::move(in), inline_device());
    REQUIRE_MESSAGE(out.ok(), out.status().text());
    values.push_back(*std::move(out));
    if (values.size() == made.node() + 1) break;
  }
  const Tensor& bytes = values.back()[0];
  CHECK(bytes.shape() == Shape{});
  return parse_summary(*bytes.data<std::string>());
}

// What TensorFlow's Histogram::Add and EncodeToProto do, in the plainest way.
ParsedHistogram plain_histogram(const std::vector<double>& values) {
  constexpr double kMost = std::numeric_limits<double>::max();
  std::vector<double> limits;
  for (double v = 1e-12; v < 1e20; v *= 1.1) limits.push_back(v);
  limits.push_back(kMost);
  std::vector<double> all;
  for (auto v = limits.rbegin(); v != limits.rend(); ++v) all.push_back(-*v);
  all.push_back(0);
  all.insert(all.end(), limits.begin(), limits.end());
  std::vector<double> counts(all.size());
  ParsedHistogram out;
  out.min = kMost, out.max = -kMost;
  for (const double v : values) {
    std::size_t b = 0;
    while (b + 1 < all.size() && v >= all[b]) ++b;
    counts[b] += 1;
    out.min = std::min(out.min, v), out.max = std::max(out.max, v);
    out.count += 1, out.sum += v, out.sum_squares += v * v;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool joins = !out.counts.empty() && out.counts.back() == 0 && counts[i] == 0;
    if (joins) {
      out.limits.back() = all[i];
      continue;
    }
    out.limits.push_back(all[i]);
    out.counts.push_back(counts[i]);
  }
  return out;
}

}  // namespace

TEST_CASE("a scalar summary has a number for each tag") {
  Graph g;
  auto values = summary_of(summary::scalar("loss", constant(g, 0.25)));
  REQUIRE(values.size() == 1);
  CHECK(values[0].tag == "loss");
  CHECK(values[0].number == 0.25f);
  values = summary_of(scalar_summary(constant(g, {{1, 2}, {3, 1 << 30}}), {"a", "b", "c", "d"}));
  REQUIRE(values.size() == 4);
  CHECK(values[3].tag == "d");
  CHECK(values[3].number == float(1 << 30));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(*summary_of(summary::scalar("n", constant(g, nan)))[0].number));
}

TEST_CASE("a histogram has TensorFlow's buckets") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Random random(seed);
  constexpr double kMost = std::numeric_limits<double>::max();
  std::vector<std::vector<double>> all = {
      {}, {0}, {-0.5, -0.5, 0, 0.25}, {1e-12, -1e-12, 1e-13, 1e20, 1e21, -1e21}, {kMost, -kMost}};
  auto& some = all.emplace_back();
  for (int i = 0; i < 300; ++i)
    some.push_back(std::exp2(random.uniform() * 40 - 20) * (random.below(2) == 0 ? -1 : 1));
  auto& ends = all.emplace_back();  // of buckets, and what is next to them
  for (double v = 1e-12; v < 1e20; v *= 1.1)
    for (const double end : {v, std::nextafter(v, 0.0), std::nextafter(v, kMost)})
      ends.insert(ends.end(), {end, -end});
  ends.insert(ends.end(), {0.0, -0.0, 5e-324, -5e-324, 1e20, std::nextafter(1e20, kMost), -1e300});
  for (const auto& values : all) {
    Graph g;
    const auto parsed = summary_of(summary::histogram("h", constant(g, values)));
    REQUIRE(parsed.size() == 1);
    CHECK(parsed[0].tag == "h");
    const ParsedHistogram got = parse_histogram(parsed[0].histogram);
    const ParsedHistogram want = plain_histogram(values);
    CHECK(got.min == want.min);
    CHECK(got.max == want.max);
    CHECK(got.count == want.count);
    CHECK(got.sum == want.sum);
    CHECK(got.sum_squares == want.sum_squares);
    CHECK(got.limits == want.limits);
    CHECK(got.counts == want.counts);
  }
}

TEST_CASE("a large histogram counts every element, on any number of lanes") {
  Graph g;
  std::vector<float> values(200'001);
  std::iota(values.begin(), values.end(), -100'000.f);
  const auto parsed = summary_of(summary::histogram("h", constant(g, values)));
  const ParsedHistogram h = parse_histogram(parsed[0].histogram);
  CHECK(h.count == 200'001);
  CHECK(h.min == -100'000);
  CHECK(h.max == 100'000);
  CHECK(h.sum == 0);
  CHECK(std::accumulate(h.counts.begin(), h.counts.end(), 0.0) == 200'001);
}

TEST_CASE("images are PNG that have the pixels of u8, and floats scaled as TensorFlow scales") {
  Graph g;
  const auto image_of = [&](const Tensor& x, const ImageSummaryOptions& options = {}) {
    const auto parsed = summary_of(summary::image("i", constant(g, x), options));
    REQUIRE(!parsed.empty());
    return parse_image(parsed[0].image);
  };
  using Pixels = std::vector<std::uint8_t>;
  const Pixels bytes = {1, 2, 3, 250, 251, 252, 0, 128, 255, 9, 8, 7};
  const auto raw = [&](const Shape& shape) {
    Tensor t = Tensor::make(DType::u8, shape).value();
    std::copy(bytes.begin(), bytes.end(), t.mutable_data<std::uint8_t>());
    return t;
  };
  CHECK(image_of(raw({1, 2, 2, 3})).pixels == bytes);
  CHECK(image_of(raw({1, 3, 4, 1})).pixels == bytes);
  CHECK(image_of(raw({1, 3, 1, 4})).pixels == bytes);
  CHECK(image_of(f32({1, 1, 3, 1}, {0, 1, 2})).pixels == Pixels{0, 127, 255});
  CHECK(image_of(f32({1, 1, 3, 1}, {-2, 0, 1})).pixels == Pixels{1, 128, 191});
  CHECK(image_of(f64({1, 1, 2, 1}, {0, 1e-7})).pixels == Pixels{0, 0});
  CHECK(image_of(f64({1, 1, 2, 1}, {-1e300, 1e300})).pixels == Pixels{1, 255});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(image_of(f64({1, 1, 2, 3}, {0, 1, 2, nan, 1, 1})).pixels == Pixels{0, 127, 255, 255, 0, 0});
  CHECK(image_of(f64({1, 1, 2, 1}, {nan, nan}), {.bad_color = {7, 0, 0, 0}}).pixels ==
        Pixels{7, 7});
}

TEST_CASE("of a batch the first images and sounds are kept, under numbered tags") {
  Graph g;
  const auto tags_of = [](const std::vector<SummaryValue>& values) {
    std::vector<std::string> tags;
    for (const SummaryValue& v : values) tags.push_back(v.tag);
    return tags;
  };
  using Tags = std::vector<std::string>;
  const Output images = constant(g, any({2, 3, 4, 1})), sounds = constant(g, any({5, 7}));
  CHECK(tags_of(summary_of(summary::image("x", images))) == Tags{"x/image/0", "x/image/1"});
  CHECK(tags_of(summary_of(summary::image("x", images, {.max_outputs = 1}))) == Tags{"x/image"});
  CHECK(tags_of(summary_of(summary::audio("x", sounds, 8000, {.max_outputs = 2}))) ==
        Tags{"x/audio/0", "x/audio/1"});
  CHECK(tags_of(summary_of(summary::audio("x", sounds, 8000, {.max_outputs = 1}))) ==
        Tags{"x/audio"});
}

TEST_CASE("sound is a WAV of 16 bits a sample, clipped") {
  Graph g;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto parsed =
      summary_of(summary::audio("a", constant(g, f64({1, 3, 2}, {0, 0.5, -1, 1, 7, nan})), 16'000));
  REQUIRE(parsed.size() == 1);
  protozero::pbf_reader in(parsed[0].audio);
  std::string wav;
  while (in.next()) switch (in.tag()) {
      case 1:
        CHECK(in.get_float() == 16'000.f);
        break;
      case 2:
        CHECK(in.get_int64() == 2);
        break;
      case 3:
        CHECK(in.get_int64() == 3);
        break;
      case 4:
        wav = in.get_bytes();
        break;
      default:
        CHECK(in.get_string() == "audio/wav");
    }
  REQUIRE(wav.size() == 44 + 12);
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint32_t n = 0;
    for (std::size_t i = size; i > 0; --i) n = n << 8 | (unsigned char)wav[at + i - 1];
    return n;
  };
  CHECK(wav.substr(0, 4) == "RIFF");
  CHECK(number(4, 4) == wav.size() - 8);
  CHECK(wav.substr(8, 8) == "WAVEfmt ");
  CHECK(number(20, 2) == 1);
  CHECK(number(22, 2) == 2);
  CHECK(number(24, 4) == 16'000);
  CHECK(number(28, 4) == 64'000);
  CHECK(number(32, 2) == 4);
  CHECK(number(34, 2) == 16);
  CHECK(number(40, 4) == 12);
  std::vector<int> samples;
  for (std::size_t i = 0; i < 6; ++i) samples.push_back(std::int16_t(number(44 + 2 * i, 2)));
  CHECK(samples == std::vector<int>{0, 16384, -32768, 32767, 32767, 0});
}

TEST_CASE("text is a tensor of strings for the text plugin, in UTF-8") {
  Graph g;
  const auto parsed = summary_of(
      summary::text("t", constant(g, strings({1, 2}, {"# gr\xC3\xBC\xC3\x9F", "\xff."}))));
  REQUIRE(parsed.size() == 1);
  CHECK(contains(parsed[0].metadata, "text"));
  protozero::pbf_reader in(parsed[0].tensor);
  std::vector<std::string> read;
  std::vector<std::int64_t> dims;
  while (in.next()) switch (in.tag()) {
      case 1:
        CHECK(in.get_enum() == 7);
        break;
      case 2: {
        protozero::pbf_reader shape = in.get_message();
        while (shape.next(2)) {
          protozero::pbf_reader dim = shape.get_message();
          REQUIRE(dim.next(1));
          dims.push_back(dim.get_int64());
        }
        break;
      }
      default:
        read.push_back(in.get_bytes());
    }
  CHECK(dims == std::vector<std::int64_t>{1, 2});
  CHECK(read == std::vector<std::string>{"# gr\xC3\xBC\xC3\x9F", "\xEF\xBF\xBD."});
  CHECK(summary_of(summary::text(g, "note", "hello"))[0].tag == "note");
}

TEST_CASE("a tag is a name behind the scope that is open") {
  Graph g;
  const Output x = constant(g, 1.f);
  auto inside = g.with_scope("mlp");
  CHECK(summary_of(summary::scalar("loss", x))[0].tag == "mlp/loss");
}

TEST_CASE("all summaries of a graph are merged, each once") {
  Graph g;
  const Output a = summary::scalar("a", constant(g, 1.f));
  const Output b = summary::histogram("b", constant(g, 2.f));
  (void)summary::merge({a, b});
  const auto values = summary_of(summary::merge_all(g));
  REQUIRE(values.size() == 2);
  CHECK(values[0].tag == "a");
  CHECK(values[1].tag == "b");
}

TEST_CASE("parameters and gradients have distributions and norms") {
  Graph g;
  const Variable w = variable(g, "w", {3.f, 4.f});
  const Output of_parameters = summary::parameters(g);
  const auto gradients = optim::gradients(sum(square(w)));
  const Output of_gradients = summary::gradients(gradients);
  const auto& def = g.def();
  const auto tag = [&](NodeId id) {
    const auto& attrs = def.nodes[id].attrs;
    return attrs.contains("tag")
               ? *attrs.find("tag")->second.get<std::string>()
               : attrs.find("tags")->second.get<std::vector<std::string>>()->at(0);
  };
  std::vector<std::string> tags;
  for (const Output& merged : {of_parameters, of_gradients})
    for (const Port p : def.nodes[merged.node()].inputs) tags.push_back(tag(p.node));
  CHECK(tags ==
        std::vector<std::string>{"parameters/w", "norms/w", "gradients/w", "norms/gradients"});
}

TEST_CASE("what is no summary is refused with the line that asks for it") {
  Graph g;
  const Output x = constant(g, 1.f);
  const auto refused = [](auto&& make, Code code, const char* part) {
    try {
      make();
      FAIL("accepted");
    } catch (const Error& e) {
      CHECK(e.status().code() == code);
      CHECK_MESSAGE(contains(e.status().text(), part), e.status().text());
      CHECK(contains(e.status().text(), "summary_test.cpp:"));
    }
  };
  refused([&] { (void)summary::merge_all(g); }, Code::failed_precondition, "has no summaries");
  refused([&] { (void)summary::scalar("", x); }, Code::invalid_argument, "the name is empty");
  refused([&] { (void)summary::scalar("\xff", x); }, Code::invalid_argument, "is not UTF-8");
  refused([&] { (void)summary::histogram("h", Output()); }, Code::invalid_argument, "x is empty");
  refused(
      [&] {
        (void)summary::scalar("v", constant(g, {1.f, 2.f}));
      },
      Code::invalid_argument, "one tag per element");
  refused([&] { (void)summary::image("i", x); }, Code::invalid_argument, "rank 4");
  refused([&] { (void)summary::merge({}); }, Code::invalid_argument, "there are no summaries");
  refused([&] { (void)summary::parameters(g); }, Code::invalid_argument, "there are no variables");
  refused(
      [&] {
        (void)summary::merge({summary::scalar("a", x), summary::histogram("a", x)});
      },
      Code::already_exists, "both have the tag 'a'");
}
