#include "tests/ops/golden/golden_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <fstream>
#include <limits>
#include <sstream>

#include "core/number.hpp"
#include "tests/ops/with_type.hpp"

namespace troupe::test {
namespace {

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(by);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class T>
T number_of(std::string_view text) {
  const auto value = parse_number<T>(text);
  if (!value) throw Error(invalid_argument("no number: " + std::string(text)));
  return *value;
}
// A double that a narrower type has, too.
template <class T>
T value_of(std::string_view text) {
  if constexpr (std::is_same_v<T, bool>)
    return text != "0";
  else if constexpr (std::is_integral_v<T>)
    return number_of<T>(text);
  else if constexpr (std::is_same_v<T, double>)
    return number_of<double>(text);
  else
    return T(float(number_of<double>(text)));
}

template <class T>
std::complex<T> complex_of(std::string_view text) {
  const auto parts = golden_parts(text);
  if (parts.size() != 2) throw Error(invalid_argument("no complex number: " + std::string(text)));
  return {value_of<T>(parts[0]), value_of<T>(parts[1])};
}

// f of a value of the type, which may be complex.
template <class F>
auto with_any(DType dtype, F&& f) {
  if (dtype == DType::c64) return f(std::complex<float>());
  if (dtype == DType::c128) return f(std::complex<double>());
  return with_type(dtype, std::forward<F>(f));
}

std::vector<std::int64_t> integers_of(std::string_view text) {
  std::vector<std::int64_t> all;
  if (!text.empty())
    for (std::string_view part : split(text, 'x')) all.push_back(number_of<std::int64_t>(part));
  return all;
}

GoldenTensor tensor_of(std::string_view text) {
  GoldenTensor t;
  if (!text.empty() && std::string_view("ilb").find(text[0]) != std::string_view::npos) {
    t.letter = text[0];
    text.remove_prefix(1);
  }
  const std::size_t colon = text.find(':');
  if (colon == text.npos) throw Error(invalid_argument("no tensor: " + std::string(text)));
  t.dims = integers_of(text.substr(0, colon));
  text.remove_prefix(colon + 1);
  if (!text.empty()) t.values = split(text, ' ');
  if (std::int64_t(t.values.size()) != Shape(t.dims).elements())
    throw Error(invalid_argument("values that do not fill their shape"));
  return t;
}
std::vector<GoldenTensor> tensors_of(std::string_view text) {
  std::vector<GoldenTensor> all;
  if (!text.empty())
    for (std::string_view part : split(text, ';')) all.push_back(tensor_of(part));
  return all;
}

GoldenCase case_of(std::string_view text, int line) {
  const auto parts = split(text, '|');
  if (parts.size() != 4) throw Error(invalid_argument("a case has four parts"));
  GoldenCase c;
  c.line = line;
  c.attrs = parts[0];
  c.inputs = tensors_of(parts[1]);
  c.refused = parts[2] == "!";
  if (!c.refused) c.outputs = tensors_of(parts[2]);
  c.gradients = tensors_of(parts[3]);
  return c;
}

GoldenBlock block_of(std::string_view text) {
  const auto words = split(text, ' ');  // = NAME DTYPE RULE
  GoldenBlock block;
  if (words.size() != 4) throw Error(invalid_argument("a block has a name, a dtype and a rule"));
  block.name = words[1];
  const auto dtype = parse_dtype(words[2]);
  if (!dtype) throw Error(invalid_argument("no dtype: " + std::string(words[2])));
  block.dtype = *dtype;
  using Rule = GoldenBlock::Rule;
  block.rule = words[3] == "each"   ? Rule::each
               : words[3] == "sum"  ? Rule::sum
               : words[3] == "near" ? Rule::near
                                    : Rule::exact;
  return block;
}

bool near(double got, double want, double tolerance, double scale) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  return got == want || std::abs(got - want) <= tolerance * std::max(std::abs(want), scale);
}
// One of "a/b/c", or what lies between two that are finite.
bool is_one_of(double got, std::string_view wanted, double tolerance, double scale) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::string_view text : split(wanted, '/')) {
    const auto want = number_of<double>(text);
    if (near(got, want, tolerance, scale)) return true;
    if (std::isfinite(want)) low = std::min(low, want), high = std::max(high, want);
  }
  return got >= low && got <= high;
}

bool same_bits_or_nan(double got, double want) {
  return std::isnan(got) ? std::isnan(want)
                         : got == want && std::signbit(got) == std::signbit(want);
}

// The scale of a rule, beside the size of the largest input.
double scale_of(const GoldenTensor& want, GoldenBlock::Rule rule, double scale) {
  if (rule != GoldenBlock::Rule::sum) return rule == GoldenBlock::Rule::near ? 1 : 0;
  for (std::string_view text : want.values)
    for (std::string_view part : golden_parts(text.substr(0, text.find('/'))))
      if (const double value = std::abs(number_of<double>(part)); std::isfinite(value))
        scale = std::max(scale, value);
  return scale;
}

template <class T>
std::string float_difference(const Tensor& got, const GoldenTensor& want, GoldenBlock::Rule rule,
                             double tolerance, double scale) {
  scale = scale_of(want, rule, scale);
  // Below its normal numbers a type has a fixed number of them.
  constexpr double step = std::is_same_v<T, double>  ? 0x1p-1074
                          : std::is_same_v<T, float> ? 0x1p-149
                          : std::is_same_v<T, half>  ? 0x1p-24
                                                     : 0x1p-133;
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    const T typed = got.data<T>()[i];
    const double value = double(typed);
    bool same = false;
    if (rule == GoldenBlock::Rule::exact) {
      const T wanted = value_of<T>(want.values[i]);
      same = same_bits_or_nan(value, double(wanted));
    } else {
      same = is_one_of(value, want.values[i], tolerance, std::max(scale, 2 * step / tolerance));
    }
    if (!same) return fmt::format("element {} is {} for {}", i, value, want.values[i]);
  }
  return {};
}

bool near(std::complex<double> got, std::complex<double> want, double tolerance, double scale) {
  const auto infinite = [](std::complex<double> z) {
    return std::isinf(z.real()) || std::isinf(z.imag());
  };
  const auto nan = [](std::complex<double> z) {
    return std::isnan(z.real()) || std::isnan(z.imag());
  };
  if (infinite(got) || infinite(want)) return infinite(got) && infinite(want);
  if (nan(got) || nan(want)) return nan(got) && nan(want);
  // The distance of two numbers of the largest size would overflow.
  const double size = std::max(std::hypot(want.real(), want.imag()), scale);
  const auto part = [&](double a, double b) {
    return std::abs(a / 2 - b / 2) <= tolerance * size / 2;
  };
  return got == want || (part(got.real(), want.real()) && part(got.imag(), want.imag()));
}

template <class R>
std::string complex_difference(const Tensor& got, const GoldenTensor& want, GoldenBlock::Rule rule,
                               double tolerance, double scale) {
  scale = std::max(scale_of(want, rule, scale),
                   2 * double(std::numeric_limits<R>::denorm_min()) / tolerance);
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    const std::complex<R> typed = got.data<std::complex<R>>()[i];
    const std::complex<double> value(typed.real(), typed.imag());
    bool same = false;
    if (rule == GoldenBlock::Rule::exact) {
      const auto wanted = complex_of<R>(want.values[i]);
      same = same_bits_or_nan(value.real(), wanted.real()) &&
             same_bits_or_nan(value.imag(), wanted.imag());
    } else {
      for (std::string_view text : split(want.values[i], '/'))
        same = same || near(value, complex_of<double>(text), tolerance, scale);
    }
    if (!same)
      return fmt::format("element {} is {},{} for {}", i, value.real(), value.imag(),
                         want.values[i]);
  }
  return {};
}

}  // namespace

std::vector<std::string_view> golden_parts(std::string_view value) { return split(value, ','); }

GoldenAttrs::GoldenAttrs(std::string_view text) {
  if (text.empty()) return;
  for (std::string_view part : split(text, ',')) {
    const std::size_t equal = part.find('=');
    all_.emplace(part.substr(0, equal), part.substr(equal + 1));
  }
}
std::int64_t GoldenAttrs::integer(std::string_view name) const {
  return has(name) ? number_of<std::int64_t>(text(name)) : 0;
}
double GoldenAttrs::number(std::string_view name) const {
  return has(name) ? number_of<double>(text(name)) : 0;
}
std::vector<std::int64_t> GoldenAttrs::integers(std::string_view name) const {
  return has(name) ? integers_of(text(name)) : std::vector<std::int64_t>{};
}

Tensor GoldenTensor::make(DType dtype) const {
  if (letter) dtype = letter == 'i' ? DType::i32 : letter == 'l' ? DType::i64 : DType::bool_;
  Tensor t = value_or_throw(Tensor::make(dtype, Shape(dims)));
  with_any(dtype, [&](auto kind) {
    using T = decltype(kind);
    for (std::size_t i = 0; i < values.size(); ++i)
      if constexpr (requires { typename T::value_type; })
        t.mutable_data<T>()[i] = complex_of<typename T::value_type>(values[i]);
      else
        t.mutable_data<T>()[i] = value_of<T>(values[i]);
  });
  return t;
}

GoldenFile read_goldens(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(not_found(path));
  GoldenFile file;
  std::ostringstream bytes;
  bytes << in.rdbuf();
  file.text = bytes.str();
  int line = 0;
  for (std::string_view text : split(file.text, '\n')) {
    ++line;
    if (text.empty()) continue;
    try {
      if (text.starts_with("= "))
        file.blocks.push_back(block_of(text));
      else if (file.blocks.empty())
        throw Error(invalid_argument("a case without a block"));
      else
        file.blocks.back().cases.push_back(case_of(text, line));
    } catch (const Error& e) {
      throw Error(invalid_argument(fmt::format("{}:{}: {}", path, line, e.what())));
    }
  }
  return file;
}

double largest(const GoldenTensor& t) {
  double size = 0;
  for (std::string_view text : t.values)
    for (std::string_view part : golden_parts(text))
      if (const auto value = parse_number<double>(part); value && std::isfinite(*value))
        size = std::max(size, std::abs(*value));
  return size;
}

std::string difference(const Tensor& got, const GoldenTensor& want, GoldenBlock::Rule rule,
                       double tolerance, double scale) {
  if (!std::ranges::equal(got.shape().dims(), want.dims))
    return fmt::format("the shape is {} for {}", got.shape().text(), Shape(want.dims).text());
  return with_any(got.dtype(), [&](auto kind) -> std::string {
    using T = decltype(kind);
    if constexpr (requires { typename T::value_type; }) {
      return complex_difference<typename T::value_type>(got, want, rule, tolerance, scale);
    } else if constexpr (std::is_integral_v<T>) {
      for (std::size_t i = 0; i < want.values.size(); ++i)
        if (got.data<T>()[i] != value_of<T>(want.values[i]))
          return fmt::format("element {} is {} for {}", i, got.data<T>()[i], want.values[i]);
      return {};
    } else {
      return float_difference<T>(got, want, rule, tolerance, scale);
    }
  });
}

}  // namespace troupe::test
