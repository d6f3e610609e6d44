// The forms in which a program says things, one after the other, with what each of them gives. What
// takes options by name takes the usual ones by position, too.
#include <doctest/doctest.h>

#include <sstream>

#include "apps/troupe.hpp"

using namespace troupe;

namespace {

// A graph, and a session in which a form's value is looked at.
struct Forms {
  Graph g;
  Session session{g, Cluster{.threads = 1}};

  template <class T>
  std::vector<T> list(const Output& x) {
    session.init();
    const Tensor t = session.run({x})[0];
    REQUIRE(t.dtype() == dtype_of<T>);
    return std::vector<T>(t.data<T>(), t.data<T>() + t.elements());
  }
};
using Floats = std::vector<float>;
using Longs = std::vector<std::int64_t>;

std::string thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status().message();
  }
  return "";
}

}  // namespace

TEST_CASE_FIXTURE(Forms, "constants are numbers, lists, matrices, or all alike") {
  CHECK(list<float>(constant(g, 0.5f)) == Floats{0.5f});
  CHECK(list<float>(constant(g, {1.f, 2.f})) == Floats{1, 2});
  CHECK(list<std::int64_t>(constant(g, Longs{3, 4})) == Longs{3, 4});
  CHECK(list<bool>(constant(g, {true, false})) == std::vector<bool>{true, false});
  CHECK(list<bool>(constant(g, std::vector<bool>{false, true})) == std::vector<bool>{false, true});
  CHECK(constant(g, {1, 2, 3}).dtype() == DType::i32);
  CHECK(constant(g, {1.0, 2.0}).dtype() == DType::f64);
  CHECK(constant(g, {{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}).shape() == PartialShape{2, 3});
  CHECK(list<float>(constant(g, {{1.f, 2.f}, {3.f, 4.f}})) == Floats{1, 2, 3, 4});
  CHECK(thrown([&] {
          constant(g, {{1.f, 2.f}, {3.f}});
        }) == "constant: a row of 1 values after one of 2");
  CHECK(list<float>(constant<float>(g, {2, 1}, {1, 2})) == Floats{1, 2});
  CHECK(list<float>(zeros(g, {3})) == Floats{0, 0, 0});
  CHECK(list<double>(zeros<double>(g, {2})) == std::vector<double>{0, 0});
  CHECK(list<std::int64_t>(ones(g, {1, 2}, DType::i64)) == Longs{1, 1});
  CHECK(list<float>(ones<float>(g, {})) == Floats{1});
  CHECK(list<float>(fill(g, {2}, 7.f)) == Floats{7, 7});
  CHECK(thrown([&] { zeros(g, {-1, 2}); }) == "dimension -1 of a shape is negative");
}

TEST_CASE_FIXTURE(Forms, "variables begin with a number, a list, a tensor or a value") {
  CHECK(list<float>(variable(g, "b", 0.f)) == Floats{0});
  CHECK(list<float>(variable(g, "w", {1.f, 2.f})) == Floats{1, 2});
  CHECK(list<float>(variable(g, "t", Tensor::of<float>({1}, {3}))) == Floats{3});
  CHECK(list<float>(variable(g, "v", zeros(g, {2}))) == Floats{0, 0});
  CHECK(list<double>(variable(g, "f", 1.5, {.trainable = false})) == std::vector<double>{1.5});
}

TEST_CASE_FIXTURE(Forms, "reductions take an axis, several, and whether to keep them") {
  const Output x = constant(g, {{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  CHECK(list<float>(sum(x)) == Floats{21});
  CHECK(list<float>(sum(x, 1)) == Floats{6, 15});
  CHECK(list<float>(sum(x, -2)) == Floats{5, 7, 9});
  CHECK(list<float>(sum(x, {0, 1})) == Floats{21});
  CHECK(list<float>(sum(x, Longs{0})) == Floats{5, 7, 9});
  CHECK(sum(x, 1, true).shape() == PartialShape{2, 1});
  CHECK(list<float>(mean(x, 0)) == Floats{2.5f, 3.5f, 4.5f});
  CHECK(list<float>(max(x, {1})) == Floats{3, 6});
  CHECK(list<float>(min(x, 1)) == Floats{1, 4});
  CHECK(list<float>(prod(x, 1)) == Floats{6, 120});
  CHECK(list<bool>(all(x > 1, 1)) == std::vector<bool>{false, true});
  CHECK(list<bool>(any(x > 3, 1)) == std::vector<bool>{false, true});
  // By name, as before; nothing at all means every axis.
  CHECK(list<float>(sum(x, {.axes = {1}})) == Floats{6, 15});
  CHECK(sum(x, {.axes = {1}, .keep_dims = true}).shape() == PartialShape{2, 1});
  CHECK(list<float>(sum(x, {})) == Floats{21});
  CHECK(thrown([&] { sum(x, 2); }).find("axis 2 is outside [-2, 2)") != std::string::npos);
}

TEST_CASE_FIXTURE(Forms, "joins and cuts take the axis behind the values") {
  const Output a = constant(g, {{1.f, 2.f}, {3.f, 4.f}}), b = constant(g, {{5.f, 6.f}, {7.f, 8.f}});
  CHECK(list<float>(concat({a, b}, 1)) == Floats{1, 2, 5, 6, 3, 4, 7, 8});
  CHECK(list<float>(concat({a, b}, {.axis = 1})) == Floats{1, 2, 5, 6, 3, 4, 7, 8});
  CHECK(list<float>(concat({a, b})) == Floats{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(list<float>(stack({a, b}, 2)) == Floats{1, 5, 2, 6, 3, 7, 4, 8});
  CHECK(list<float>(pack({a, b}, 2)) == Floats{1, 5, 2, 6, 3, 7, 4, 8});
  CHECK(list<float>(stack({sum(a), sum(b)})) == Floats{10, 26});
  CHECK(list<float>(unstack(a, 1)[1]) == Floats{2, 4});
  CHECK(list<float>(unpack(a, 2, 1)[1]) == Floats{2, 4});
  CHECK(list<float>(split(a, 2, 1)[0]) == Floats{1, 3});
  CHECK(list<float>(split(concat({a, b}, 1), {1, 3}, 1)[1]) == Floats{2, 5, 6, 4, 7, 8});
  CHECK(split(a, {2}).size() == 1);
}

TEST_CASE_FIXTURE(Forms, "what moves elements takes permutations, shapes and paddings") {
  const Output x = constant(g, {{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  CHECK(list<float>(transpose(x)) == Floats{1, 4, 2, 5, 3, 6});
  CHECK(list<float>(transpose(x, {1, 0})) == Floats{1, 4, 2, 5, 3, 6});
  CHECK(list<float>(transpose(x, {.perm = {1, 0}})) == Floats{1, 4, 2, 5, 3, 6});
  CHECK(list<float>(reshape(x, {3, -1})) == Floats{1, 2, 3, 4, 5, 6});
  CHECK(list<float>(reverse(x, 1)) == Floats{3, 2, 1, 6, 5, 4});
  CHECK(squeeze(expand_dims(x, 0), 0).shape() == PartialShape{2, 3});
  CHECK(squeeze(reshape(x, {1, 6, 1}), {0, 2}).shape() == PartialShape{6});
  CHECK(list<float>(slice(x, {0, 1}, {2, -1})) == Floats{2, 3, 5, 6});
  CHECK(list<float>(x[{1, range(0, 2)}]) == Floats{4, 5});
  CHECK(list<float>(broadcast_to(constant(g, {1.f, 2.f}), {2, 2})) == Floats{1, 2, 1, 2});
  CHECK(list<float>(tile(constant(g, {1.f, 2.f}), {2})) == Floats{1, 2, 1, 2});
  CHECK(list<float>(pad(constant(g, {1.f, 2.f}), {1, 2})) == Floats{0, 1, 2, 0, 0});
  CHECK(pad(x, {1, 1, 0, 2}).shape() == PartialShape{4, 5});
  CHECK(pad(x, {{1, 1}, {0, 2}}).shape() == PartialShape{4, 5});
  CHECK(list<float>(pad(constant(g, {1.f}), {{0, 2}}, {.value = 9})) == Floats{1, 9, 9});
  CHECK(list<float>(gather(x, constant(g, {2, 0}), {.axis = 1})) == Floats{3, 1, 6, 4});
  CHECK(list<float>(gather(x, constant(g, {2, 0}), 1)) == Floats{3, 1, 6, 4});
  CHECK(list<float>(gather(x, constant(g, {1}))) == Floats{4, 5, 6});
  CHECK(list<float>(one_hot(constant(g, {1}), 3)) == Floats{0, 1, 0});
  CHECK(list<std::int64_t>(argmax(x, 0)) == Longs{1, 1, 1});
  CHECK(list<std::int64_t>(arg_min(x, 1)) == Longs{0, 0});
}

TEST_CASE_FIXTURE(Forms, "numbers stand where values do, and truth values are combined") {
  const Output x = constant(g, {-1.f, 0.f, 2.f});
  CHECK(list<float>(maximum(x, 0)) == Floats{0, 0, 2});
  CHECK(list<float>(minimum(1, x)) == Floats{-1, 0, 1});
  CHECK(list<float>(pow(x, 2)) == Floats{1, 0, 4});
  CHECK(list<float>(add(x, 0.5)) == Floats{-0.5f, 0.5f, 2.5f});
  CHECK(list<float>(select(x > 0, x, 0)) == Floats{0, 0, 2});
  CHECK(list<float>(select(x > 0, 1, x)) == Floats{-1, 0, 1});
  CHECK(list<bool>(greater_equal(x, 0)) == std::vector<bool>{false, true, true});
  CHECK(list<bool>(x > -1 && x < 2) == std::vector<bool>{false, true, false});
  CHECK(list<bool>(x < 0 || x == 2) == std::vector<bool>{true, false, true});
  CHECK(list<bool>(!(x > 0)) == std::vector<bool>{true, true, false});
  const Variable v = variable(g, "v", {4.f, 5.f, 6.f});
  CHECK(list<float>(maximum(v, 5)) == Floats{5, 5, 6});
  CHECK(thrown([&] { maximum(1, 2); }) ==
        "all operands are numbers: make one of them a constant(g, ...)");
  CHECK(thrown([&] { Output() + x; }).find("empty") != std::string::npos);
  CHECK(thrown([&] { maximum(constant(g, {1, 2}), 1.5); }) == "1.5 is no i32");
}

TEST_CASE_FIXTURE(Forms, "products, softmax and pictures take their usual arguments") {
  const Output a = constant(g, {{1.f, 2.f}, {3.f, 4.f}});
  CHECK(list<float>(matmul(a, a)) == Floats{7, 10, 15, 22});
  CHECK(list<float>(matmul(a, a, {.transpose_b = true})) == Floats{5, 11, 11, 25});
  CHECK(matmul(zeros(g, {5, 2, 3}), zeros(g, {3, 4})).shape() == PartialShape{5, 2, 4});
  CHECK(list<float>(softmax(a, -1)) == list<float>(softmax(a)));
  CHECK(list<float>(softmax(a, 0)) == list<float>(transpose(softmax(transpose(a)))));
  CHECK(list<float>(log_softmax(a, 0)) == list<float>(transpose(log_softmax(transpose(a)))));
  CHECK(thrown([&] { softmax(a, 2); }).find("has shape [2,2] and no dimension 2") !=
        std::string::npos);
  const Output pictures = reshape(constant(g, {1.f, 2.f, 3.f, 4.f}), {1, 2, 2, 1});
  CHECK(list<float>(max_pool(pictures, 2)) == Floats{4});
  CHECK(list<float>(max_pool(pictures, 2, 1)) == Floats{4});
  CHECK(max_pool(pictures, 2, 1, {.padding = "SAME"}).shape() == PartialShape{1, 2, 2, 1});
  CHECK(list<float>(avg_pool(pictures, 2, 2)) == Floats{2.5f});
  CHECK(list<float>(max_pool(pictures, {2, 1}, {1, 1})) == Floats{3, 4});
  CHECK(list<float>(max_pool(pictures, {2, 1}, {1, 1}, "SAME")) == Floats{3, 4, 3, 4});
  const Output one = ones(g, {1, 1, 1, 1});
  CHECK(list<float>(conv2d(pictures, one, {2, 2})) == Floats{1});
  CHECK(list<float>(conv2d(pictures, one, {1, 1}, "VALID")) == Floats{1, 2, 3, 4});
  nn::Sequential net{g.scope("net")};
  net.add(softmax).add([](Output x) { return sum(x, -1); });
  CHECK(list<float>(net(zeros(g, {1, 4}))) == Floats{1});
}

TEST_CASE_FIXTURE(Forms, "gradients of a value, or of a sum of several, are thrown or given") {
  const Variable w = variable(g, "w", {1.f, 2.f});
  const Output x = constant(g, {3.f, 4.f}), y = sum(square(w) * x);
  CHECK(list<float>(gradients(y, {w})[0]) == Floats{6, 16});
  CHECK(list<float>(gradients(y, {w, x})[1]) == Floats{1, 4});
  CHECK(list<float>(gradients({y, sum(x)}, {x})[0]) == Floats{2, 5});
  CHECK(gradients(y, {constant(g, 1.f)})[0].empty());
  CHECK(list<float>(gradients(y, x)[0]) == Floats{1, 4});
  CHECK(list<float>(gradients(y, w)[0]) == Floats{6, 16});
  CHECK(list<float>(gradients(y, std::vector{w})[0]) == Floats{6, 16});
  CHECK(thrown([&] { gradients(argmax(x), {x}); }) != "");
}

TEST_CASE_FIXTURE(Forms, "a function takes its arguments by name, three or more") {
  const Function sum = g.function(
      "sum", {f32_scalar, f32_scalar, f32_scalar, f32_scalar}, {f32_scalar},
      [](Function&, Output a, Output b, Output c, Output d) { return a + 2 * b + 3 * c + 4 * d; });
  const Output one = constant(g, 1.f), two = constant(g, 2.f);
  CHECK(list<float>(sum(one, two, one, two)) == Floats{16});
  CHECK(thrown([&] {
          g.function("four", {f32_scalar, f32_scalar, f32_scalar}, {f32_scalar},
                     [](Function&, Output, Output, Output, Output d) { return d; });
        }) != "");
}

TEST_CASE_FIXTURE(Forms, "a step is fed and gives numbers") {
  const Output x = placeholder<float>(g, {2});
  const auto step = session.compile({sum(x), cast<std::int64_t>(max(x))}, {}, {x});
  const auto [total, most] = step.run<float, std::int64_t>({Tensor::of<float>({2}, {1, 2})});
  CHECK(total == 3);
  CHECK(most == 2);
  CHECK(thrown([&] {
          step.run<float>({Tensor::of<float>({2}, {1, 2})});
        }) == "the step fetches 2 values, not 1");
}

TEST_CASE_FIXTURE(Forms, "values print, with print and in streams") {
  const Tensor t = Tensor::of<float>({2}, {1, 2});
  const Output x = placeholder<float>(g, {-1, 3}, "x");
  print("{}", "");
  CHECK(fmt::format("{}", t) == "f32[2] {1, 2}");
  CHECK(fmt::format("{:>14}", t) == " f32[2] {1, 2}");
  CHECK(fmt::format("{} {} {}", t.shape(), x.shape(), x) == "[2] [?,3] x: f32[?,3]");
  CHECK(fmt::format("{}", not_found("it")) == "not_found: it");
  CHECK(fmt::format("{}", DType::bf16) == "bf16");
  std::ostringstream out;
  out << t << " " << x.shape() << " " << t.shape() << " " << x << " " << t.dtype() << " "
      << Output() << " " << ok_status();
  CHECK(out.str() == "f32[2] {1, 2} [?,3] [2] x: f32[?,3] f32 an empty Output ok");
}
