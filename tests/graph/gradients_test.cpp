#include "graph/gradients.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/hash.hpp"
#include "tests/graph/sample_ops.hpp"

namespace troupe {
namespace {

using sample::placeholder;
using Values = std::map<NodeId, double>;

// The value of a port where every tensor is one number: slow, obvious, and no part of the runtime.
double evaluate(const GraphBuilder& g, Port port, Values& feeds) {
  const NodeDef& node = g.node(port.node);
  auto in = [&](std::size_t i) { return evaluate(g, node.inputs[i], feeds); };
  if (node.op == "Placeholder" || node.op == "ReadVariable") return feeds.at(port.node);
  if (node.op == "Const") return node.attrs.at("value").get<Tensor>()->item<double>();
  if (node.op == "Add") return in(0) + in(1);
  if (node.op == "Sub") return in(0) - in(1);
  if (node.op == "Mul") return in(0) * in(1);
  if (node.op == "Neg") return -in(0);
  if (node.op == "Square") return in(0) * in(0);
  if (node.op == "Both") return port.index == 0 ? in(0) + in(1) : in(0) - in(1);
  if (node.op == "Identity" || node.op == "StopGradient") return in(0);
  if (node.op == "ZerosLike") return 0;
  if (node.op == "OnesLike") return 1;
  REQUIRE(node.op == "AddN");
  double sum = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) sum += in(i);
  return sum;
}

struct Scene {
  GraphBuilder g{sample::ops()};
  Values feeds;

  Output x(std::string name, double value) {
    Output x = placeholder(g, std::move(name), PartialShape::scalar(), DType::f64);
    feeds[x.node()] = value;
    return x;
  }
  double value(Output o) {
    REQUIRE(!o.empty());
    return evaluate(g, o.port(), feeds);
  }
  std::vector<Output> grads(std::vector<Output> ys, std::vector<Output> xs,
                            std::vector<Output> grad_ys = {}, std::vector<Output> stop = {}) {
    return value_or_throw(gradients(ys, xs, grad_ys, stop));
  }
  std::size_t count(std::string_view op) const {
    std::size_t n = 0;
    for (const NodeDef& node : g.def().nodes) n += node.op == op;
    return n;
  }
};

TEST_CASE("the gradient of a product") {
  Scene s;
  Output a = s.x("a", 3), b = s.x("b", 5);
  Output y = s.g.add("Mul", {a, b});
  auto d = s.grads({y}, {a, b});
  CHECK(s.value(d[0]) == 5);
  CHECK(s.value(d[1]) == 3);
  CHECK(d[0].name().starts_with("gradients/"));
}

TEST_CASE("the sum of gradients from several devices is made where the value is") {
  Scene s;
  Output a = s.x("a", 3);
  auto on = [&](const char* device, const char* op, std::vector<Output> inputs) {
    auto here = s.g.with_device(device);
    return s.g.add(NodeSpec{.op = op, .inputs = std::move(inputs)}).output();
  };
  Output w = on("/cpu:1", "Neg", {a});
  Output y = on("/cpu:2", "Add", {on("/cpu:2", "Square", {w}), on("/cpu:3", "Square", {w})});
  const Output d = s.grads({y}, {w})[0];
  CHECK(s.g.node(d.node()).op == "AddN");
  CHECK(s.g.node(d.node()).device == s.g.node(w.node()).device);
  CHECK(s.value(d) == -12);
}

TEST_CASE("no path gives none, not zeros") {
  Scene s;
  Output a = s.x("a", 3), b = s.x("b", 5);
  auto d = s.grads({s.g.add("Square", {a})}, {a, b});
  CHECK(s.value(d[0]) == 6);
  CHECK(d[1].empty());
  CHECK(s.count("ZerosLike") == 0);
}

TEST_CASE("only ops between are differentiated") {
  Scene s;
  Output a = s.x("a", 3), b = s.x("b", 5);
  s.g.add("Floor", {a});                     // leads to no y
  Output unreached = s.g.add("Floor", {b});  // no x before it
  Output y = s.g.add("Mul", {a, unreached});
  CHECK(gradients(std::vector{y}, std::vector{a}).ok());
}

TEST_CASE("what an x is made of is not differentiated") {
  Scene s;
  Output a = s.x("a", 3);
  Output x = s.g.add("Floor", {a});  // has no gradient, and needs none
  Output y = s.g.add("Neg", {x});
  CHECK(s.value(s.grads({y}, {x})[0]) == -1);
}

TEST_CASE("an op on the path without gradient is named with its line") {
  Scene s;
  Output a = s.x("a", 3);
  Output f = s.g.add("Floor", {a}, {}, {"net.cpp", 7});
  Output y = s.g.add("Square", {f});
  std::size_t before = s.g.def().nodes.size();
  Status status = gradients(std::vector{y}, std::vector{a}).status();
  CHECK(status.code() == Code::not_found);
  CHECK(status.site() == Site{"net.cpp", 7});
  CHECK(status.message() == "no gradient is defined for op Floor (node 'Floor', type f64)");
  CHECK(s.g.def().nodes.size() == before);
  CHECK(s.g.add("Neg", {a}).name() == "Neg");  // names of the attempt are free again
}

TEST_CASE("differentiation stops at ops that say so and at integers") {
  Scene s;
  Output a = s.x("a", 3);
  CHECK(s.grads({s.g.add("Square", {s.g.add("StopGradient", {a})})}, {a})[0].empty());
  Output index = s.g.add("ArgMax", {a});  // i64, no gradient function needed
  CHECK(s.grads({s.g.add("Fill", {s.g.add("Shape", {index}), a})}, {index})[0].empty());
  auto refused = gradients(std::vector{index}, std::vector{a});
  CHECK(refused.status().code() == Code::invalid_argument);
}

TEST_CASE("an output that contributes nothing gets zeros") {
  Scene s;
  Output a = s.x("a", 3), b = s.x("b", 5);
  Op both = s.g.add({.op = "Both", .inputs = {a, b}});
  auto d = s.grads({s.g.add("Square", {both.output(1)})}, {a, b});
  CHECK(s.value(d[0]) == -4);
  CHECK(s.value(d[1]) == 4);
  CHECK(s.count("ZerosLike") == 1);
}

TEST_CASE("gradients of one value are summed in the order of its consumers") {
  Scene s;
  Output a = s.x("a", 3);
  Output p = s.g.add("Square", {a}), q = s.g.add("Neg", {a}), r = s.g.add("Mul", {a, a});
  Output y = s.g.add("AddN", {r, q, p});
  auto d = s.grads({y}, {a});
  CHECK(s.value(d[0]) == 6 - 1 + 6);
  const NodeDef& sum = s.g.node(d[0].node());
  CHECK(sum.op == "AddN");
  REQUIRE(sum.inputs.size() == 4);
  auto from = [&](std::size_t i) { return s.g.node(sum.inputs[i].node).name; };
  CHECK(from(0).starts_with("gradients/Square/"));
  CHECK(from(1).starts_with("gradients/Neg/"));
  CHECK(from(2) == "gradients/Mul/Mul");
  CHECK(from(3) == "gradients/Mul/Mul_1");
}

TEST_CASE("a value that more nodes take than a node has inputs has a gradient") {
  Scene s;
  const Output x = s.x("x", 2);
  Output y = x;
  for (int i = 0; i < 70'000; ++i) y = s.g.add("Add", {y, x});
  CHECK(!s.grads({y}, {x})[0].empty());
  CHECK(s.count("AddN") == 3);
}

TEST_CASE("a y that another y depends on counts both ways") {
  Scene s;
  Output a = s.x("a", 3);
  Output y1 = s.g.add("Square", {a}), y2 = s.g.add("Square", {y1});
  CHECK(s.value(s.grads({y1, y2}, {a})[0]) == 6 + 2 * 9 * 6);
  CHECK(s.value(s.grads({y1, y1}, {a})[0]) == 12);
  CHECK(s.value(s.grads({y2}, {y2})[0]) == 1);
}

TEST_CASE("an x before another x is still reached through it") {
  Scene s;
  Output a = s.x("a", 3);
  Output b = s.g.add("Square", {a});
  Output y = s.g.add("Mul", {b, a});
  auto d = s.grads({y}, {a, b});
  CHECK(s.value(d[0]) == 27);
  CHECK(s.value(d[1]) == 3);
  auto partial = s.grads({y}, {a, b}, {}, {b});  // b held constant for a
  CHECK(s.value(partial[0]) == 9);
  CHECK(s.value(partial[1]) == 3);
}

TEST_CASE("given gradients of ys are used, checked, and may be left out one by one") {
  Scene s;
  Output a = s.x("a", 3), w = s.x("w", 10);
  Output y1 = s.g.add("Square", {a}), y2 = s.g.add("Neg", {a});
  CHECK(s.value(s.grads({y1, y2}, {a}, {w, Output()})[0]) == 60 - 1);
  Output wrong = placeholder(s.g, "wrong", {2}, DType::f64);
  Output narrow = placeholder(s.g, "narrow", PartialShape::scalar(), DType::f32);
  CHECK_FALSE(gradients(std::vector{y1}, std::vector{a}, std::vector{wrong}).ok());
  CHECK_FALSE(gradients(std::vector{y1}, std::vector{a}, std::vector{narrow}).ok());
  CHECK_FALSE(gradients(std::vector{y1, y2}, std::vector{a}, std::vector{w}).ok());
  GraphBuilder other(sample::ops());
  Output foreign = placeholder(other, "f", {}, DType::f64);
  CHECK_FALSE(gradients(std::vector{y1}, std::vector{foreign}).ok());
  CHECK_FALSE(gradients(std::vector{y1}, std::vector{Output()}).ok());
}

TEST_CASE("the gradient of a tensor starts with ones of its shape") {
  Scene s;
  Output v = placeholder(s.g, "v", {2, -1}, DType::f32);
  auto d = s.grads({s.g.add("Neg", {v})}, {v});
  CHECK(s.count("OnesLike") == 1);
  CHECK(d[0].shape() == PartialShape{2, -1});
  Output c = placeholder(s.g, "c", {2}, DType::c64);
  const Status refused = gradients(std::vector{c}, std::vector{c}).status();
  CHECK(refused.code() == Code::invalid_argument);
  CHECK(refused.message().find("y 'c' is c64, but a loss must be real") != std::string::npos);
  CHECK(s.grads({c}, {c}, {c})[0].is(c));
}

// Variables of f64 scalars, their reads fed with a value each.
struct Reads : Scene {
  Output handle(std::string name, std::string shared = {}) {
    NodeSpec spec{.op = "Variable",
                  .attrs = {{"dtype", DType::f64}, {"shape", Shape{}}, {"shared_name", shared}}};
    spec.name = std::move(name);
    return g.add(std::move(spec)).output();
  }
  Output read(Output handle, double value, std::vector<Op> after = {}) {
    NodeSpec spec{.op = "ReadVariable", .inputs = {handle}, .control = std::move(after)};
    spec.attrs = {{"dtype", DType::f64}, {"shape", Shape{}}};
    Output w = g.add(std::move(spec)).output();
    feeds[w.node()] = value;
    return w;
  }
  Op assign(Output handle, Output value) {
    return g.add({.op = "Assign", .inputs = {handle, value}});
  }
};

TEST_CASE("the gradient of a variable is summed over all its reads") {
  Reads s;
  Output v = s.handle("v"), other = s.handle("other");
  Output r = s.read(v, 7), again = s.read(v, 7);
  Output y = s.g.add("Add", {s.g.add("Square", {r}), s.g.add("Neg", {again})});
  auto d = s.grads({y}, {v, r, again, other});
  CHECK(s.value(d[0]) == 14 - 1);
  CHECK(s.value(d[1]) == 14 - 1);  // a read of the snapshot stands for the variable
  CHECK(s.value(d[2]) == 14 - 1);
  CHECK(d[3].empty());
  CHECK(s.value(s.grads({r}, {v})[0]) == 1);
}

TEST_CASE("one read of a variable costs no node") {
  Reads s;
  Output v = s.handle("v"), r = s.read(v, 7);
  Output y = s.g.add("Neg", {r});
  const std::size_t before = s.g.def().nodes.size();
  Output d = s.grads({y}, {v})[0];
  CHECK(s.value(d) == -1);
  CHECK(s.g.def().nodes.size() == before + 2);  // the seed, and the Neg of it
}

TEST_CASE("handles of one name are one variable") {
  Reads s;
  Output a = s.handle("a", "w"), b = s.handle("b", "w");
  Output y = s.g.add("Mul", {s.read(a, 7), s.read(b, 7)});
  auto d = s.grads({y}, {a, b});
  CHECK(s.value(d[0]) == 14);
  CHECK(d[1].is(d[0]));
}

TEST_CASE("a read that is held constant does not count") {
  Reads s;
  Output v = s.handle("v"), r = s.read(v, 7), fixed = s.read(v, 7);
  Output y = s.g.add("Mul", {r, fixed});
  CHECK(s.value(s.grads({y}, {v}, {}, {fixed})[0]) == 7);
  CHECK(s.value(s.grads({y}, {r}, {}, {fixed})[0]) == 7);
  CHECK(s.value(s.grads({y}, {fixed}, {}, {fixed})[0]) == 7);  // that read alone, as any other x
  CHECK(s.grads({s.g.add("StopGradient", {r})}, {v})[0].empty());
}

TEST_CASE("a read behind a write has another value: differentiated on its own, or refused") {
  Reads s;
  Output v = s.handle("v"), u = s.handle("u"), r = s.read(v, 7);
  Op write = s.assign(v, s.g.add("Neg", {r}));
  Output behind = s.read(v, -7, {s.g.add({.op = "NoOp", .control = {write}})});
  Output beside = s.read(u, 5, {write});  // behind a write of another variable
  Output y = s.g.add("Mul", {r, s.g.add("Mul", {behind, beside})});
  CHECK(s.value(s.grads({y}, {behind})[0]) == 35);
  CHECK(s.value(s.grads({y}, {u})[0]) == -49);
  CHECK(s.value(s.grads({y}, {v}, {}, {behind})[0]) == -35);
  const std::size_t before = s.g.def().nodes.size();
  for (Output x : {v, r}) {
    Status status = gradients(std::vector{y}, std::vector{x}).status();
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.message().find("'ReadVariable_1' reads 'v' behind the write 'Assign'") !=
          std::string::npos);
  }
  CHECK(s.g.def().nodes.size() == before);
}

TEST_CASE("gradient nodes carry the line and the device of the forward node") {
  Scene s;
  Output a = s.x("a", 3);
  NodeSpec spec{.op = "Square", .inputs = {a}, .device = "/cpu:1"};
  spec.site = {"net.cpp", 12};
  auto d = s.grads({s.g.add(spec).output()}, {a});
  CHECK(s.g.node(d[0].node()).site == Site{"net.cpp", 12});
  CHECK(s.g.node(d[0].node()).device == "/cpu:1");
}

TEST_CASE("a gradient can be differentiated again") {
  Scene s;
  Output a = s.x("a", 3);
  Output y = s.g.add("Mul", {s.g.add("Square", {a}), a});
  Output d1 = s.grads({y}, {a})[0];
  Output d2 = s.grads({d1}, {a})[0];
  CHECK(s.value(d1) == 27);
  CHECK(s.value(d2) == 18);
  CHECK(d2.name().starts_with("gradients_1/"));
}

std::vector<Output> wrong_count(GradContext&) { return {}; }
std::vector<Output> wrong_type(GradContext& c) { return {c.g.add("ArgMax", {c.x[0]})}; }
std::vector<Output> cannot_build(GradContext& c) { return {c.g.add("MatMul", {c.x[0], c.x[0]})}; }

TEST_CASE("a gradient function that misbehaves is an error that names its op") {
  OpRegistry r = sample::registry();
  const std::pair<const char*, GradFn> wrong[] = {
      {"Count", wrong_count}, {"Type", wrong_type}, {"Build", cannot_build}};
  for (auto [name, grad] : wrong)
    throw_if_error(
        r.add({.name = name, .in = {"x"}, .out = {"y"}, .shape = same_shape, .grad = grad}));
  GraphBuilder g(r);
  Output x = placeholder(g, "x", PartialShape::scalar());
  for (auto [name, grad] : wrong) {
    Output y = g.add(name, {x});
    std::size_t before = g.def().nodes.size();
    Status s = gradients(std::vector{y}, std::vector{x}).status();
    CHECK(s.text().find(name) != std::string::npos);
    CHECK(g.def().nodes.size() == before);
  }
}

TEST_CASE("gradients of random graphs agree with finite differences") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Scene s;
    std::vector<Output> values, xs;
    for (const char* name : {"a", "b", "c"}) xs.push_back(s.x(name, random.uniform() * 2 - 1));
    values = xs;
    auto pick = [&] { return values[random.below(values.size())]; };
    for (int i = 0; i < 14; ++i) {
      switch (random.below(7)) {
        case 0:
          values.push_back(s.g.add("Add", {pick(), pick()}));
          break;
        case 1:
          values.push_back(s.g.add("Sub", {pick(), pick()}));
          break;
        case 2:
          values.push_back(s.g.add("Mul", {pick(), pick()}));
          break;
        case 3:
          values.push_back(s.g.add("AddN", {pick(), pick(), pick()}));
          break;
        case 4:
          values.push_back(s.g.add("Neg", {pick()}));
          break;
        case 5:
          values.push_back(s.g.add("Identity", {pick()}));
          break;
        default: {
          Op both = s.g.add({.op = "Both", .inputs = {pick(), pick()}});
          for (Output o : both.outputs()) values.push_back(o);
        }
      }
    }
    std::vector<Output> ys = {values.back(), pick()};
    auto total = [&] { return s.value(ys[0]) + s.value(ys[1]); };
    auto d = s.grads(ys, xs);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      double& x = s.feeds[xs[i].node()];
      const double x0 = x, h = 1e-5;
      x = x0 + h;
      double up = total();
      x = x0 - h;
      double down = total();
      x = x0;
      double slope = (up - down) / (2 * h), got = d[i].empty() ? 0 : s.value(d[i]);
      double size = 1 + std::abs(slope) + std::abs(total());
      if (size < 1e4) CHECK(std::abs(got - slope) < 1e-4 * size);
    }
  }
}

}  // namespace
}  // namespace troupe
