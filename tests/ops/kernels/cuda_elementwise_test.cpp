// Every elementwise op with a CUDA kernel, for all types that it takes, on the emulated GPU against
// the CPU: the same bits, but for functions that CPUs have versions of their own of. Not run on
// hardware yet (TROUPE_TEST_GPU=1).
//
// One op alone: troupe_test_ops --test-case="CUDA: every elementwise*" --subcase=Add
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "core/hash.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "ops/evaluate.hpp"
#include "tests/ops/kernels/cuda_kernels.hpp"
#include "tests/ops/nn/nn_kernels.hpp"
#include "tests/ops/with_type.hpp"

namespace troupe::test {
namespace {

const OpTable& table() { return ops::builtin(); }

// How far apart the results of both may be, in units of the last place. A GPU has functions of
// NVIDIA's, which are documented to be within 4 of the true values.
std::int64_t allowed_ulps(const std::string& op) {
  static const std::map<std::string, std::int64_t> others = {
      {"Cos", 2},      {"Elu", 2},   {"Erf", 2},          {"ErfGrad", 2},  {"Exp", 2},
      {"Expm1", 2},    {"Gelu", 5},  {"GeluGrad", 5},     {"GeluTanh", 5}, {"GeluTanhGrad", 5},
      {"Log", 2},      {"Log1p", 2}, {"Pow", 2},          {"Sigmoid", 4},  {"Tan", 2},
      {"Asin", 2},     {"Acos", 2},  {"Atan", 2},         {"Atan2", 2},    {"Sinh", 2},
      {"Cosh", 2},     {"Asinh", 2}, {"Acosh", 2},        {"Atanh", 2},    {"Sin", 2},
      {"Softplus", 3}, {"Tanh", 3},  {"SoftplusGrad", 2}, {"Selu", 2},     {"SeluGrad", 3}};
  // Of the emulator's library, which is the CPU's.
  static const std::set<std::string> same_here = {"PowGradBase", "PowGradExponent"};
  if (same_here.count(op) != 0) return is_on_hardware() ? 8 : 0;
  const auto found = others.find(op);
  if (found == others.end()) return 0;
  return is_on_hardware() ? found->second + 4 : found->second;
}

// Sums that are 0 somewhere, or whose exponents are rounded. Units are those of the last place of
// the first input there.
bool loses_digits(const std::string& op) {
  return op == "GeluGrad" || op == "GeluTanh" || op == "GeluTanhGrad";
}

// Floats in the order of their values, as integers.
template <class Bits, class T>
std::int64_t place(T x) {
  const auto bits = std::bit_cast<Bits>(x);
  constexpr Bits kSign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  return bits & kSign ? -std::int64_t(bits & Bits(~kSign)) : std::int64_t(bits);
}
template <class T>
bool near(T a, T b, std::int64_t ulps) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    if (std::isnan(float(a)) || std::isnan(float(b)))
      return std::isnan(float(a)) && std::isnan(float(b));
    if (ulps == 0) return a.bits == b.bits;
    return std::abs(place<std::uint16_t>(a.bits) - place<std::uint16_t>(b.bits)) <= ulps;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    if (ulps == 0) return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
    return std::abs(place<Bits>(a) - place<Bits>(b)) <= ulps;
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return near(a.real(), b.real(), ulps) && near(a.imag(), b.imag(), ulps);
  } else {
    return a == b;
  }
}

// Complex numbers, too.
template <class F>
void with_any_type(DType dtype, F&& f) {
  if (dtype == DType::c64)
    f(std::complex<float>());
  else if (dtype == DType::c128)
    f(std::complex<double>());
  else
    with_type(dtype, f);
}

template <class T>
bool near_beside(T a, T b, T size, std::int64_t ulps) {
  if (near(a, b, ulps)) return true;
  if constexpr (std::is_integral_v<T>) return false;
  using std::abs;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return abs(a - b) <= T(ulps) * std::numeric_limits<T>::epsilon() * abs(size);
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)  // computed as floats
    return near_beside(float(a), float(b), float(size), ulps);
  return false;
}

// Where the results differ first, or nothing. `sizes`: what differences are compared with, if any.
std::string difference(const Tensor& got, const Tensor& want, std::int64_t ulps,
                       const Tensor& sizes) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return got.shape().text() + " instead of " + want.shape().text();
  std::string text;
  with_any_type(want.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t i = 0; i < want.elements() && text.empty(); ++i)
      if (sizes.defined()
              ? !near_beside(got.data<T>()[i], want.data<T>()[i], sizes.data<T>()[i], ulps)
              : !near(got.data<T>()[i], want.data<T>()[i], ulps))
        text = "element " + std::to_string(i);
  });
  return text.empty() ? text : text + ": " + got.text() + " instead of " + want.text();
}

// Ordinary numbers, and all that are special.
Tensor numbers(DType dtype, const Shape& shape, Random& random) {
  Tensor t = Tensor::make(dtype, shape).value();
  with_any_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t i = 0; i < t.elements(); ++i) {
      T& x = t.mutable_data<T>()[i];
      const std::uint64_t kind = random.below(12), bits = random();
      if constexpr (std::is_same_v<T, bool>) {
        x = bits & 1;
      } else if constexpr (std::is_integral_v<T>) {
        x = kind < 4    ? T(random.below(20)) - T(std::is_signed_v<T> ? 10 : 0)
            : kind == 4 ? std::numeric_limits<T>::max()
            : kind == 5 ? std::numeric_limits<T>::min()
                        : T(bits);
      } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                           std::is_same_v<T, std::complex<double>>) {
        x = {typename T::value_type(random.uniform(-1, 1)), typename T::value_type(kind)};
      } else if (kind < 2) {  // any bits: infinities, NaN, subnormal numbers
        std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
      } else {
        const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 0.5};
        const double value = kind < 10 ? random.uniform(-5, 5) : special[bits % 8];
        if constexpr (std::is_same_v<T, double>)
          x = value;
        else
          x = T(float(value));
      }
    }
  });
  return t;
}

struct Typing {
  std::vector<DType> in;
  AttrMap attrs;
};

// Of inputs, for each of the types that the CUDA kernel takes.
std::vector<Typing> typings(const OpInfo& op) {
  std::vector<Typing> all;
  if (op.def.name == "Cast") {
    for (DType from : op.attr("from")->types)
      for (DType to : op.attr("to")->types) all.push_back({{from}, {{"to", Attr(to)}}});
    return all;
  }
  for (DType type : table().kernels.find(op.def.name, "CUDA")->types) {
    Typing typing;
    for (const ArgSpec& arg : op.in)
      typing.in.push_back(arg.kind == ArgSpec::Kind::fixed ? arg.dtype : type);
    all.push_back(std::move(typing));
  }
  return all;
}

// Shapes of inputs. Large enough for more than one block, and no multiple of what a thread takes.
std::vector<std::vector<Shape>> shapes_for(const OpInfo& op) {
  const Shape all{3, 7, 61}, row{61}, column{7, 1}, one{}, none{3, 0, 61};
  switch (op.in.size()) {
    case 1:
      return {{all}, {one}, {none}, {Shape{3001}}};
    case 2:
      if (op.def.name.ends_with("Grad"))  // of one shape
        return {{all, all}, {one, one}, {none, none}};
      return {{all, all}, {all, row}, {column, row}, {one, all},
              {all, one}, {one, one}, {none, row},   {Shape{1, 7, 1}, Shape{3, 1, 61}}};
    default:
      if (op.def.name == "Select")
        return {{all, all, all}, {column, row, one}, {one, all, row}, {none, none, one}};
      return {{all, all, all}, {all, row, column}};
  }
}

void check(const OpInfo& op, CudaDevice& gpu, Random& random) {
  for (const Typing& typing : typings(op))
    for (const std::vector<Shape>& shapes : shapes_for(op)) {
      std::vector<Tensor> inputs;
      for (std::size_t i = 0; i < typing.in.size(); ++i)
        inputs.push_back(numbers(typing.in[i], shapes[i], random));
      const NodeDef node = make_node(op.def.name, inputs, typing.attrs);
      INFO(op.def.name << " of " << dtype_name(typing.in.back()) << " to "
                       << dtype_name(node.out_types[0]) << " " << shapes[0].text());
      auto want = evaluate(table(), node, inputs, inline_device());
      REQUIRE_MESSAGE(want.ok(), want.status().text());
      for (const bool in_place : {false, true}) {
        auto got = run_on_gpu(table(), gpu, node, inputs, in_place);
        REQUIRE_MESSAGE(got.ok(), got.status().text());
        const std::string found = difference((*got)[0], (*want)[0], allowed_ulps(op.def.name),
                                             loses_digits(op.def.name) ? inputs[0] : Tensor());
        CHECK_MESSAGE(found.empty(), found);
      }
    }
}

}  // namespace

// What a GPU of this machine can run, too.
TEST_SUITE_BEGIN("gpu");

TEST_CASE("CUDA: every elementwise op has the CPU's results") {
  if (skips_without_gpu()) return;
  const std::uint64_t seed = 20;
  INFO("seed " << seed);
  Random random(seed);
  auto gpu = test_gpu("order=3");
  std::size_t ops = 0;
  for (const OpInfo* op : table().ops.all()) {
    if (!op->def.elementwise || !table().kernels.find(op->def.name, "CUDA")) continue;
    ++ops;
    CAPTURE(op->def.name);
    check(*op, *gpu, random);
  }
  CHECK(ops > 60);
}

TEST_CASE("CUDA: which elementwise ops have no CUDA kernel yet") {
  std::set<std::string> lacking;
  for (const OpInfo* op : table().ops.all())
    if (op->def.elementwise && op->def.role == Role::kernel &&
        !table().kernels.find(op->def.name, "CUDA"))
      lacking.insert(op->def.name);
  CHECK(lacking == std::set<std::string>{"Angle", "Complex", "ComplexAbs", "Conj", "Digamma",
                                         "Imag", "Lgamma", "Polygamma", "Real"});
}

TEST_CASE("CUDA: inputs that do not meet are refused") {
  if (skips_without_gpu()) return;
  auto gpu = test_gpu();
  Random random(1);
  const auto refused = [&](const char* op, const Shape& a, const Shape& b) {
    const std::vector<Tensor> inputs = {numbers(DType::f32, a, random),
                                        numbers(DType::f32, b, random)};
    return run_on_gpu(table(), *gpu, make_node(op, inputs, {}), inputs).status();
  };
  CHECK(refused("Add", Shape{2, 3}, Shape{4}).code() == Code::invalid_argument);
  CHECK(refused("ReluGrad", Shape{2, 3}, Shape{3}).message() ==
        "inputs of shapes [2,3] and [3] do not fit");
}

TEST_SUITE_END();

}  // namespace troupe::test
