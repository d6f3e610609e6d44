// Numbers, dimensions and constants beside graph values.
#include <doctest/doctest.h>

#include <limits>

#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using test::check_refused;
using test::Interpreter;

TEST_CASE("an unsigned number beside a graph value is that number or refused") {
  Graph g;
  const Output u64 = constant<std::uint64_t>(g, {2}, {0, 1});
  const Output i64 = constant<std::int64_t>(g, {2}, {0, 1});
  const Output i8 = constant<std::int8_t>(g, {1}, {1}), f64 = constant(g, 0.5);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  check_refused({
      {"18446744073709551615 is no i64", [&] { i64 + kMost; }},
      {"9223372036854775808 is no i64", [&] { i64 + (std::uint64_t{1} << 63); }},
      {"128 is no i8", [&] { i8 + 128u; }},
      {"-1 is no u64", [&] { u64 + -1; }},
  });
  Interpreter run(g);
  const auto max = run.run({u64 + (kMost - 1), f64 + kMost, i64 + 7u, u64 == kMost});
  CHECK(Tensor::same(max[0], Tensor::of<std::uint64_t>(Shape{2}, {kMost - 1, kMost})));
  CHECK(max[1].item<double>() == 18446744073709551616.0);
  CHECK(Tensor::same(max[2], Tensor::of<std::int64_t>(Shape{2}, {7, 8})));
  CHECK(Tensor::same(max[3], Tensor::of<bool>(Shape{2}, {false, false})));
  CHECK(scalar_of(DType::u64, kMost)->item<std::uint64_t>() == kMost);
  CHECK(scalar_of(DType::i64, kMost).status().message() == "18446744073709551615 is no i64");
}

TEST_CASE("a constant of a shape in braces is one of that shape") {
  Graph g;
  const Output pair = constant<int>(g, {2}, {0, 1});
  CHECK(pair.dtype() == DType::i32);
  CHECK(pair.shape() == PartialShape{2});
  CHECK(constant<int>(g, {2}, {0, 0}).shape() == PartialShape{2});
  CHECK(constant<std::int64_t>(g, {1, 2}, {3, 4}).shape() == PartialShape{1, 2});
  CHECK(constant<double>(g, 1).dtype() == DType::f64);
  CHECK(constant<std::string>(g, "text").dtype() == DType::string);
  CHECK(constant(g, 0.5f).shape() == PartialShape::scalar());
  CHECK(constant(g, Tensor::scalar(1.0)).dtype() == DType::f64);
  check_refused({
      {"dimension -1 of a shape is negative", [&] { constant<float>(g, {-1}, {1}); }},
      {"3 values do not fill shape [2]",
       [&] {
         constant<float>(g, {2}, {1, 2, 3});
       }},
      {"exceeds 2^62 bytes",
       [&] {
         const Shape large{std::int64_t{1} << 40, std::int64_t{1} << 40};
         constant(g, large, std::initializer_list<float>{});
       }},
  });
}

TEST_CASE("& | ^ ~ are logical for bool and bit by bit for integers") {
  Graph g;
  const Output x = constant<std::int64_t>(g, {4}, {0, 1, 6, 7}), y = x % 2 == 0, z = x > 1;
  Interpreter run(g);
  const auto values =
      run.run({y & z, y | z, y ^ z, ~y, x & 3, 8 | x, x ^ x, ~x, (x > 0) & (x < 7)});
  const auto flags = [](std::initializer_list<bool> all) { return Tensor::of<bool>({4}, all); };
  const auto numbers = [](std::initializer_list<std::int64_t> all) {
    return Tensor::of<std::int64_t>({4}, all);
  };
  CHECK(Tensor::same(values[0], flags({false, false, true, false})));
  CHECK(Tensor::same(values[1], flags({true, false, true, true})));
  CHECK(Tensor::same(values[2], flags({true, false, false, true})));
  CHECK(Tensor::same(values[3], flags({false, true, false, true})));
  CHECK(Tensor::same(values[4], numbers({0, 1, 2, 3})));
  CHECK(Tensor::same(values[5], numbers({8, 9, 14, 15})));
  CHECK(Tensor::same(values[6], numbers({0, 0, 0, 0})));
  CHECK(Tensor::same(values[7], numbers({-1, -2, -7, -8})));
  CHECK(Tensor::same(values[8], flags({false, true, true, false})));
  check_refused({
      {"BitwiseAnd", [&] { zeros(g, {4}) & 1; }},
      {"BitwiseAnd", [&] { (x & y); }},
      {"BitwiseOr: the right operand", [&] { 1 | Output(); }},
      {"both operands are numbers", [&] { Operand(1) ^ 2; }},
  });
}

TEST_CASE("a dimension beside a graph value is its length, and refused when it is not known") {
  Graph g;
  const Output x = placeholder<float>(g, {-1, 3}), y = constant<float>(g, {3}, {1, 2, 4});
  const std::string unknown = "the dimension is not known before a run";
  check_refused({
      {unknown, [&] { x.shape()[0] * y; }},
      {unknown, [&] { y / x.shape()[0]; }},
      {unknown, [&] { sum(x) / x.shape().dim(0); }},
      {unknown, [&] { x.shape()[0] < y; }},
      {unknown, [&] { constant(g, x.shape()[0]); }},
  });
  Interpreter run(g);
  CHECK(Tensor::same(run.run({x.shape()[1] * y})[0], Tensor::of<float>(Shape{3}, {3, 6, 12})));
  CHECK(Tensor::same(run.run({y / x.shape()[1] * 3})[0], Tensor::of<float>(Shape{3}, {1, 2, 4})));
  CHECK(reshape(x, {x.shape()[0], 1, 3}).shape() == PartialShape{-1, 1, 3});
}

TEST_CASE("an error about shapes tells constants by their value") {
  Graph g;
  const Output x = constant<float>(g, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Output y = placeholder<float>(g, {4}, "y");
  const auto message = [](auto f) {
    try {
      f();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  for (const std::string& told : {message([&] {
                                    reshape(x, {4, 2});
                                  }),
                                  message([&] {
                                    transpose(y, {.perm = {0, 1}});
                                  }),
                                  message([&] { x + y; }), message([&] { gather(x, 1.5f + x); })}) {
    CAPTURE(told);
    CHECK_FALSE(told.empty());
    CHECK(told.find("Const") == std::string::npos);
  }
  CHECK(message([&] {
          reshape(x, {4, 2});
        }).find("note: constant i64[2] {4, 2}") != std::string::npos);
  CHECK(message([&] { x + y; }).find("note: constant f32[2,3] {1, 2, 3, 4, 5, 6}") !=
        std::string::npos);
  CHECK(message([&] { x + y; }).find("note: 'y' created here: f32[4]") != std::string::npos);
  CHECK(message([&] { mat_mul(x, constant(g, 2)); }).find("from constant i32[] {2}") !=
        std::string::npos);
}

TEST_CASE("an unknown part of a device name is answered with the parts that there are") {
  Graph g;
  check_refused({
      {"the keys are job, task, cpu, gpu, cuda, fake and device",
       [&] { auto guard = g.with_device("/worker:0"); }},
      {"is not KEY:VALUE", [&] { auto guard = g.with_device("/cpu"); }},
      {"is no scope name", [&] { auto guard = g.with_scope("a b"); }},
      {"is no scope name", [&] { g.scope("a b"); }},
  });
}

TEST_CASE("a value can be added to, as in x += y, and names the line where that cannot be") {
  Graph g;
  const Output before = constant(g, {1.f, 2.f});
  Output x = before;
  x += 3;
  x *= before;
  x -= constant(g, 1.f);
  x /= 2;
  const auto values = Interpreter(g).run({x, before});
  CHECK(Tensor::same(values[0], Tensor::of<float>({2}, {1.5f, 4.5f})));
  CHECK(Tensor::same(values[1], Tensor::of<float>({2}, {1, 2})));
  Output counts = constant(g, {std::int64_t{1}});
  Output none;
  check_refused({
      {"0.5 is no i64", [&] { counts += 0.5; }},
      {"Sub: the left operand is empty", [&] { none -= 1; }},
      {"Mul: the right operand is empty", [&] { counts *= Output(); }},
  });
}
