// Ops on lists: what they make, gradients of first and second order against differences, and what
// they refuse.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/list.hpp"
#include "tests/ops/api_interpreter.hpp"
#include "tests/ops/kernels/conformance.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

using Make = std::function<Output(Graph&, Output x)>;  // of x, f64[3,2]

const ListPopOptions kRow{.shape = {2}};

Output get(Output list, std::int64_t i) {
  return list_get(list, constant(list.graph(), i), DType::f64, {.shape = {2}});
}
Output set(Output list, std::int64_t i, Output value) {
  return list_set(list, constant(list.graph(), i), value);
}
Output stack(Output list) { return list_stack(list, DType::f64, {.shape = {2}}); }
Output row(Output x, int i) { return x[i]; }

const std::vector<std::pair<const char*, Make>>& cases() {
  static const std::vector<std::pair<const char*, Make>> all{
      {"rows as a list, and back", [](Graph&, Output x) { return stack(list_unstack(x * x)); }},
      {"pushed one by one",
       [](Graph& g, Output x) {
         Output list = list_empty(g, DType::f64, {.shape = {2}});
         for (int i : {2, 0, 0}) list = list_push(list, row(x, i) * row(x, 1));
         return stack(list);
       }},
      {"pushed onto what another one is, too",
       [](Graph&, Output x) {
         Output list = list_unstack(x), one = list_push(list, row(x, 0) * 2.0);
         return stack(list_push(list, exp(row(x, 2)))) * stack(one);
       }},
      {"taken off the end",
       [](Graph&, Output x) {
         auto [rest, last] = list_pop(list_unstack(x), DType::f64, kRow);
         auto [none, before] = list_pop(rest, DType::f64, kRow);
         return last * before * sum(stack(none));
       }},
      {"taken off, and the rest left alone",
       [](Graph&, Output x) { return list_pop(list_unstack(x * x * x), DType::f64, kRow).value; }},
      {"the rest, and what is taken off left alone",
       [](Graph&, Output x) {
         return stack(list_pop(list_unstack(x * x * x), DType::f64, kRow).rest);
       }},
      {"read at places, some twice",
       [](Graph&, Output x) {
         Output list = list_unstack(x * x);
         return get(list, 2) * get(list, 0) + exp(get(list, 2));
       }},
      {"read and stacked",
       [](Graph&, Output x) {
         Output list = list_unstack(sin(x));
         return stack(list) * get(list, 1) + stack(list) * stack(list);
       }},
      {"replaced, and one more",
       [](Graph&, Output x) {
         Output list = set(list_unstack(x * x), 1, row(x, 0) * row(x, 2));
         list = set(list, 2, get(list, 1) * row(x, 1)),
         list = set(list, 3, get(list, 2) * row(x, 0));
         return stack(list) * stack(set(list, 0, row(x, 1)));
       }},
      {"lists in a list",
       [](Graph& g, Output x) {
         Output all = list_empty(g, DType::list, {.shape = {2}});
         all = list_push(list_push(all, list_unstack(x * x)), list_unstack(exp(x)));
         Output second = list_get(all, constant(g, 1), DType::list, {.shape = {2}});
         auto [rest, last] = list_pop(all, DType::list, kRow);
         Output first = list_pop(rest, DType::list, kRow).value;
         return stack(second) * stack(last) + stack(first) * get(last, 0);
       }},
      {"a length", [](Graph&, Output x) {
         return x * x * cast<double>(list_length(list_push(list_unstack(x), row(x, 0))));
       }}};
  return all;
}

Tensor point(double move, std::int64_t at) {
  Tensor x = any({3, 2}).clone().value();
  x.mutable_data<double>()[at] += move;
  return x;
}

// The sum of elements times fixed weights.
Output weighted(Output y) {
  Output flat = reshape(y, constant(y.graph(), Tensor::of<std::int64_t>({1}, {-1})));
  Output n = cast<double>(range(constant(y.graph(), std::int64_t{0}), size(flat),
                                constant(y.graph(), std::int64_t{1})));
  return sum(flat * sin(n + 1.0));
}

void check_gradients(const Make& make, bool known) {
  Graph g;
  Output x = placeholder<double>(g, known ? PartialShape{3, 2} : PartialShape::unknown(), "x");
  Output y = weighted(make(g, x));
  Output dx = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
  REQUIRE(!dx.empty());
  Output z = weighted(dx);
  const auto second = value_or_throw(gradients(std::vector{z}, std::vector{x}));
  Interpreter run(g);
  auto at = [&](Output what, double move, std::int64_t i) {
    return run.run({what}, {}, {{x.node(), point(move, i)}})[0];
  };
  constexpr double kStep = 1e-6;
  auto slope = [&](Output of, std::int64_t i) {
    return (at(of, kStep, i).item<double>() - at(of, -kStep, i).item<double>()) / (2 * kStep);
  };
  const Tensor got = at(dx, 0, 0);
  REQUIRE(got.shape() == Shape{3, 2});
  for (std::int64_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(got.data<double>()[i] == doctest::Approx(slope(y, i)).epsilon(2e-6).scale(1));
    const double got2 = second[0].empty() ? 0 : at(second[0], 0, 0).data<double>()[i];
    CHECK(got2 == doctest::Approx(slope(z, i)).epsilon(2e-6).scale(1));
  }
}

bool has_kernel_of_lists(const OpInfo& op) {
  auto is_list = [](const ArgSpec& arg) { return arg.dtype == DType::list; };
  return op.def.role == Role::kernel && (std::any_of(op.in.begin(), op.in.end(), is_list) ||
                                         std::any_of(op.out.begin(), op.out.end(), is_list));
}

std::string refusal(const std::function<Output(Graph&)>& make) {
  Graph g;
  try {
    make(g);
    auto device = make_cpu_device(DeviceName::parse("/job:local/task:0/cpu:0").value());
    std::vector<std::vector<Tensor>> values;
    for (const NodeDef& node : g.def().nodes) {
      std::vector<Tensor> in;
      for (Port p : node.inputs) in.push_back(values[p.node][p.index]);
      values.push_back(value_or_throw(evaluate(ops::builtin(), node, in, *device)));
    }
    return "";
  } catch (const Error& error) {
    return error.status().text();
  }
}

Output rows(Graph& g) { return list_unstack(constant(g, any({3, 2}))); }

}  // namespace

TEST_CASE("gradients of ops on lists are differences, twice") {
  for (const auto& [title, make] : cases())
    for (bool known : {true, false}) {
      const char* name = title;  // clang 14: no lambda captures a structured binding
      CAPTURE(name);
      CAPTURE(known);
      check_gradients(make, known);
    }
}

TEST_CASE("every op on lists is among those that are differentiated") {
  std::set<std::string> seen;
  for (const auto& [name, make] : cases()) {
    Graph g;
    Output x = placeholder<double>(g, {3, 2}, "x");
    Output y = weighted(make(g, x));
    Output dx = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
    value_or_throw(gradients(std::vector{weighted(dx)}, std::vector{x}));
    for (const NodeDef& node : g.def().nodes) seen.insert(node.op);
  }
  for (const OpInfo* op : ops::builtin().ops.all())
    if (has_kernel_of_lists(*op)) CHECK_MESSAGE(seen.contains(op->def.name), op->def.name);
}

TEST_CASE("ops on lists change only what is theirs alone") {
  auto device = make_cpu_device(DeviceName::parse("/job:local/task:0/cpu:0").value());
  Graph g;
  Output list = rows(g);
  const NodeDef push = g.node(list_push(list, constant(g, any({2}))).node());
  Tensor mine = list_tensor({}), other = mine;
  auto pushed = [&](Tensor list) {
    std::vector<Tensor> in(2);
    in[0] = std::move(list);
    in[1] = any({2});
    return evaluate(ops::builtin(), push, std::move(in), *device, {.in_place = true}).value()[0];
  };
  const void* const where = mine.raw();
  CHECK(pushed(mine).raw() != where);
  CHECK(list_in(std::as_const(other)).empty());
  other = Tensor();
  Tensor changed = pushed(std::move(mine));
  CHECK(changed.raw() == where);
  CHECK(list_in(std::as_const(changed)).size() == 1);
}

TEST_CASE("zeros of a list's gradient take no memory until somebody takes one off") {
  auto device = make_cpu_device(DeviceName::parse("/job:local/task:0/cpu:0").value());
  Graph g;
  const NodeDef zeros = g.node(list_zeros_like(rows(g)).node());
  List list;
  list.push(any({2}));
  const Tensor made = evaluate(ops::builtin(), zeros, {list_tensor(list)}, *device).value()[0];
  const Tensor& element = list_in(made).get(0);
  CHECK(element.shape() == Shape{2});
  CHECK_FALSE(bool(element.buffer()));
}

// 256 + 1 is 256 in bf16, and 2048 + 1 is 2048 in f16.
TEST_CASE("sums of lists of 16-bit floats are rounded once") {
  for (auto [dtype, large] : {std::pair{DType::bf16, 256.f}, {DType::f16, 2048.f}}) {
    std::vector<Tensor> lists;
    for (float value : {large, 1.f, 1.f}) {
      List inner, list;
      inner.push(run("Cast", {Tensor::scalar(value)}, {{"to", dtype}})[0]);
      list.push(list_tensor(inner));
      lists.push_back(list_tensor(list));
    }
    const Tensor sum = run("ListAddN", lists)[0];
    const Tensor element = list_in(list_in(sum).get(0)).get(0);
    CHECK(element.dtype() == dtype);
    CHECK(run("Cast", {element}, {{"to", DType::f32}})[0].item<float>() == large + 2);
  }
}

TEST_CASE("what a list cannot do is refused, and says why") {
  struct Refused {
    std::function<Output(Graph&)> make;
    const char* why;
  };
  const std::vector<Refused> all{
      {[](Graph& g) { return list_push(rows(g), constant(g, any({3}))); }, "value is [3]"},
      {[](Graph& g) {
         return list_push(rows(g), constant(g, f32({2}, {1, 2})));
       },
       "value is f32"},
      {[](Graph& g) { return list_pop(list_empty(g, DType::f64), DType::f64).value; },
       "the list is empty"},
      {[](Graph& g) { return list_pop(rows(g), DType::f32).value; }, "are f64, not f32"},
      {[](Graph& g) { return list_pop(rows(g), DType::list).value; }, "are f64, not list"},
      {[](Graph& g) { return list_pop(rows(g), DType::f64, {.shape = {5}}).value; }, "[5]"},
      {[](Graph& g) { return list_get(rows(g), constant(g, 3), DType::f64); },
       "index 3 is outside [0, 3)"},
      {[](Graph& g) { return list_get(rows(g), constant(g, -1), DType::f64); }, "index -1"},
      {[](Graph& g) {
         return list_get(rows(g), constant(g, any({2}).retyped(DType::i64)), DType::f64);
       },
       "index"},
      {[](Graph& g) { return set(rows(g), 7, constant(g, any({2}))); },
       "index 7 is outside [0, 4)"},
      {[](Graph& g) { return set(rows(g), 0, constant(g, any({3}))); }, "value is [3]"},
      {[](Graph& g) {
         return set(rows(g), 0, constant(g, f32({2}, {1, 2})));
       },
       "value is f32"},
      {[](Graph& g) { return list_stack(list_empty(g, DType::f64), DType::f64); },
       "an empty list is stacked"},
      {[](Graph& g) {
         Output list = list_push(list_empty(g, DType::f64), constant(g, any({2})));
         return list_stack(list_push(list, constant(g, any({3}))), DType::f64);
       },
       "element 1 is f64[3], where f64[2] is stacked"},
      {[](Graph& g) { return list_stack(rows(g), DType::i32); }, "where i32[2] is stacked"},
      {[](Graph& g) { return list_unstack(constant(g, 1.0)); }, "rank"},
      {[](Graph& g) {
         Output shape = constant(g, Tensor::of<std::int64_t>({2}, {4, 2}));
         return list_unstack_grad(rows(g), shape, DType::f64);
       },
       "a list of 3 elements"},
      {[](Graph& g) {
         return list_add_n({rows(g), list_push(rows(g), constant(g, any({2})))});
       },
       "lists of 3 and 4 elements"},
      {[](Graph& g) {
         Output other = list_unstack(constant(g, f32({3, 2}, {1, 2, 3, 4, 5, 6})));
         return list_add_n({rows(g), other});
       },
       "elements f64[2] and f32[2]"},
      {[](Graph& g) {
         return list_get_add(rows(g), constant(g, any({3})), constant(g, 0), rows(g));
       },
       "elements f64[2] and f64[3]"}};
  for (const Refused& refused : all) {
    const std::string text = refusal(refused.make);
    CHECK_MESSAGE(text.find(refused.why) != std::string::npos,
                  "'" << text << "' where '" << refused.why << "' is expected");
  }
}

TEST_CASE("lists are in no constant and no placeholder, and no file or message has one") {
  Graph g;
  for (const char* op : {"Placeholder", "Variable"})
    CHECK_FALSE(
        g.try_add({.op = op, .attrs = {{"T", DType::list}, {"shape", PartialShape{}}}}).ok());
  CHECK_FALSE(
      g.try_add({.op = "Const", .attrs = {{"T", DType::list}, {"value", list_tensor({})}}}).ok());
}

TEST_CASE("lists packed into lists without end are refused where somebody goes through them") {
  auto device = make_cpu_device(DeviceName::parse("/job:local/task:0/cpu:0").value());
  Graph g;
  const NodeDef zeros = g.node(list_zeros_like(rows(g)).node());
  Tensor deep = list_tensor({});
  for (int i = 0; i < 1000; ++i) {
    List around;
    around.push(deep);
    deep = list_tensor(std::move(around));
  }
  const Status refused = evaluate(ops::builtin(), zeros, {deep}, *device).status();
  CHECK_MESSAGE(refused.text().find("deep") != std::string::npos, refused.text());
}

}  // namespace troupe::test
