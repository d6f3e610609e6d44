// Gradients through functions that call themselves, against differences and against the same net
// without calls.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tests/actors/support/gradient_check.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const ValueType i32_scalar{DType::i32, PartialShape::scalar()};
const ValueType vector{DType::f64, PartialShape{3}};

// A binary tree: node i has the children left[i] and right[i], which come before it, or none and a
// word of its own. The last node is the root.
struct Tree {
  std::vector<std::int32_t> left, right;
  std::vector<std::int64_t> word;
};

Tree random_tree(std::mt19937& random, int leaves, int words) {
  Tree tree;
  std::vector<std::int32_t> open;
  for (int i = 0; i < leaves; ++i) {
    open.push_back(std::int32_t(tree.left.size()));
    tree.left.push_back(-1), tree.right.push_back(-1);
    tree.word.push_back(std::int64_t(random() % std::uint32_t(words)));
  }
  while (open.size() > 1) {
    std::int32_t child[2];
    for (std::int32_t& c : child) {
      const std::size_t at = random() % open.size();
      c = open[at];
      open.erase(open.begin() + std::ptrdiff_t(at));
    }
    open.push_back(std::int32_t(tree.left.size()));
    tree.left.push_back(child[0]), tree.right.push_back(child[1]), tree.word.push_back(0);
  }
  return tree;
}

constexpr std::int64_t kWords = 5, kTreeUnits = 4;

struct Weights {
  Output embedding, leaf, inner, bias;
  std::vector<Output> all() const { return {embedding, leaf, inner, bias}; }
};

// The cell of a tree-LSTM: gates i, o, u and one f for each child.
std::pair<Output, Output> of_leaf(const Weights& w, Output word) {
  Output gates =
      mat_mul(reshape(gather(w.embedding, word),
                      constant(word.graph(), Tensor::of<std::int64_t>({2}, {1, kTreeUnits}))),
              w.leaf);
  auto gate = [&](int k) { return gates[{whole, range(k * kTreeUnits, (k + 1) * kTreeUnits)}]; };
  Output c = sigmoid(gate(0)) * tanh(gate(2));
  return {sigmoid(gate(1)) * tanh(c), c};
}
std::pair<Output, Output> of_children(const Weights& w, Output hl, Output cl, Output hr,
                                      Output cr) {
  Output gates = mat_mul(concat({hl, hr}, {.axis = 1}), w.inner) + w.bias;
  auto gate = [&](int k) { return gates[{whole, range(k * kTreeUnits, (k + 1) * kTreeUnits)}]; };
  Output c = sigmoid(gate(0)) * tanh(gate(2)) + sigmoid(gate(3)) * cl + sigmoid(gate(4)) * cr;
  return {sigmoid(gate(1)) * tanh(c), c};
}

}  // namespace

TEST_CASE("the gradient of a power that calls itself, twice") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    check_gradients(
        [&](Graph& g, Output n, Output x) {
          Function power = g.function(
              "power", {i32_scalar, vector}, {vector}, [](Function& self, Output k, Output x) {
                return cond(
                    k < 1, [&] { return ones_like(x); }, [&] { return x * self(k - 1, x); });
              });
          auto there = g.with_device(place.second);
          return power(n, x);
        },
        {0, 1, 2, 5}, place);
  }
}

TEST_CASE(
    "gradients of values that calls compute on their way back, and on their way down, twice") {
  check_gradients([](Graph& g, Output n, Output x) {
    Function f = g.function("f", {i32_scalar, vector, vector}, {vector},
                            [](Function& self, Output k, Output x, Output s) {
                              return cond(
                                  k < 1, [&] { return sin(s) * x; },
                                  [&] { return tanh(self(k - 1, x, sin(s * x))) + s; });
                            });
    return f(n, x, x * x);
  });
}

TEST_CASE("gradients of a tree of calls, twice") {
  check_gradients([](Graph& g, Output n, Output x) {
    Function f =
        g.function("f", {i32_scalar, vector}, {vector}, [](Function& self, Output k, Output x) {
          return cond(
              k < 2, [&] { return sin(x); },
              [&] { return self(k - 1, x) * tanh(self(k - 2, x * x)); });
        });
    return f(n, x);
  });
}

TEST_CASE("gradients of functions that call each other, twice") {
  check_gradients([](Graph& g, Output n, Output x) {
    Function f =
        g.function("f", {i32_scalar, vector}, {vector}, [&](Function& f, Output k, Output x) {
          Function h =
              g.function("h", {i32_scalar, vector}, {vector}, [&](Function&, Output k, Output x) {
                return cond(
                    k < 1, [&] { return x * x; }, [&] { return x * f(k - 1, sin(x)); });
              });
          return cond(
              k < 1, [&] { return tanh(x); }, [&] { return h(k - 1, x) + x; });
        });
    return f(n, x);
  });
}

TEST_CASE("gradients of calls in a loop, and of a loop in a function that calls itself, twice") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        Function f =
            g.function("f", {i32_scalar, vector}, {vector}, [](Function& self, Output k, Output x) {
              return std::get<1>(while_loop(
                  std::tuple{zeros_like(k), sin(x)}, [&](Output i, Output) { return i < k; },
                  [&](Output i, Output y) {
                    return std::tuple{i + 1, tanh(y * self(i, x))};
                  }));
            });
        return std::get<1>(while_loop(
            std::tuple{zeros_like(n), x}, [&](Output i, Output) { return i < n; },
            [&](Output i, Output y) {
              return std::tuple{i + 1, f(i, y) + y};
            }));
      },
      {0, 1, 2, 3});
}

TEST_CASE("the gradient of a call is asked for inside a function that calls itself, twice") {
  check_gradients(
      [](Graph& g, Output n, Output x) {
        Function cube = g.function(
            "cube", {i32_scalar, vector}, {vector}, [](Function& self, Output k, Output x) {
              return cond(
                  k < 1, [&] { return sin(x); }, [&] { return x * self(k - 1, x); });
            });
        Function f = g.function(
            "f", {i32_scalar, vector}, {vector}, [&](Function& self, Output k, Output x) {
              Output d = gradient_of(sum(cube(k, x)), x);
              return cond(
                  k < 1, [&] { return identity(d); }, [&] { return d + self(k - 1, tanh(x)); });
            });
        return f(n, x);
      },
      {0, 1, 3});
}

TEST_CASE("a gradient does not call again what its function called") {
  Graph g(3);
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<double>(g, {3}, "x");
  Function f =
      g.function("f", {i32_scalar, vector}, {vector}, [&](Function& self, Output k, Output x) {
        Output noise = cast<double>(random_uniform(g, {3}));
        return cond(
            k < 1, [&] { return x * noise; }, [&] { return x * noise + self(k - 1, x); });
      });
  Output y = f(n, x), dx = gradient_of(sum(y), x);
  Session s(g, one_thread());
  auto out = s.run({y, dx}, {}, {{n, Tensor::scalar(6)}, {x, point()}});
  for (int i = 0; i < 3; ++i)  // y is x times a sum of numbers that were drawn once
    CHECK(out[1].data<double>()[i] * point().data<double>()[i] ==
          doctest::Approx(out[0].data<double>()[i]).epsilon(1e-12));
}

TEST_CASE("a gradient goes back over a thousand calls") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output x = placeholder<double>(g, {3}, "x");
  Function f =
      g.function("f", {i32_scalar, vector}, {vector}, [](Function& self, Output k, Output x) {
        return cond(
            k < 1, [&] { return zeros_like(x); }, [&] { return x * x + self(k - 1, x); });
      });
  Output dx = gradient_of(sum(f(n, x)), x);
  Session s(g, one_thread());
  auto step = s.compile({dx}, {}, {n, x});
  for (int times : {1000, 3, 10'000}) {
    const Tensor out = step.run({Tensor::scalar(times), point()})[0];
    for (int i = 0; i < 3; ++i)
      CHECK(out.data<double>()[i] ==
            doctest::Approx(2 * times * point().data<double>()[i]).epsilon(1e-9));
  }
}

TEST_CASE("a tree-LSTM over random trees equals the net without calls, and so do its gradients") {
  const std::uint32_t seed = 11;
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 0.5);
  auto weights = [&](Shape shape) {
    std::vector<double> values(std::size_t(shape.elements()));
    for (double& v : values) v = normal(random);
    return Tensor::of<double>(shape, values);
  };
  const std::vector<Tensor> values = {
      weights({kWords, kTreeUnits}), weights({kTreeUnits, 3 * kTreeUnits}),
      weights({2 * kTreeUnits, 5 * kTreeUnits}), weights({1, 5 * kTreeUnits})};
  const Tree trees[] = {random_tree(random, 1, kWords), random_tree(random, 2, kWords),
                        random_tree(random, 7, kWords), random_tree(random, 12, kWords)};

  Graph g;
  Weights w{placeholder<double>(g, {kWords, kTreeUnits}),
            placeholder<double>(g, {kTreeUnits, 3 * kTreeUnits}),
            placeholder<double>(g, {2 * kTreeUnits, 5 * kTreeUnits}),
            placeholder<double>(g, {1, 5 * kTreeUnits})};
  const PartialShape nodes{-1}, state{1, kTreeUnits};
  Output left = placeholder<std::int32_t>(g, nodes), right = placeholder<std::int32_t>(g, nodes);
  Output word = placeholder<std::int64_t>(g, nodes),
         root = placeholder<std::int32_t>(g, PartialShape::scalar());
  std::vector<ValueType> arguments{
      i32_scalar, {DType::i32, nodes}, {DType::i32, nodes}, {DType::i64, nodes}};
  for (const Output& o : w.all()) arguments.push_back({o.dtype(), o.shape()});
  Function net = g.function("tree", arguments, {{DType::f64, state}, {DType::f64, state}},
                            [&](Function& self, const std::vector<Output>& a) {
                              const Weights w{a[4], a[5], a[6], a[7]};
                              auto child = [&](const Output& children) {
                                std::vector<Output> passed = a;
                                passed[0] = gather(children, a[0]);
                                return self.call(passed);
                              };
                              auto [h, c] = cond(
                                  gather(a[1], a[0]) < 0,
                                  [&] {
                                    auto [h, c] = of_leaf(w, gather(a[3], a[0]));
                                    return std::tuple{h, c};
                                  },
                                  [&] {
                                    const auto l = child(a[1]), r = child(a[2]);
                                    auto [h, c] = of_children(w, l[0], l[1], r[0], r[1]);
                                    return std::tuple{h, c};
                                  });
                              return std::tuple{h, c};
                            });
  auto loss_of = [](Output h, Output c) { return sum(h * h) + sum(sin(c)); };
  std::vector<Output> passed{root, left, right, word};
  for (const Output& o : w.all()) passed.push_back(o);
  const auto made = net.call(passed);
  std::vector<Output> by_calls{loss_of(made[0], made[1])};
  for (const Output& d : value_or_throw(gradients(std::vector{by_calls[0]}, w.all())))
    by_calls.push_back(d);

  std::vector<std::vector<Output>> unrolled;
  for (const Tree& tree : trees) {
    std::vector<std::pair<Output, Output>> states;
    for (std::size_t i = 0; i < tree.left.size(); ++i) {
      if (tree.left[i] < 0) {
        states.push_back(of_leaf(w, constant(g, tree.word[i])));
        continue;
      }
      const auto &l = states[std::size_t(tree.left[i])], &r = states[std::size_t(tree.right[i])];
      states.push_back(of_children(w, l.first, l.second, r.first, r.second));
    }
    std::vector<Output> plain{loss_of(states.back().first, states.back().second)};
    for (const Output& d : value_or_throw(gradients(std::vector{plain[0]}, w.all())))
      plain.push_back(d);
    unrolled.push_back(plain);
  }

  Session s(g, one_thread());
  for (std::size_t t = 0; t < std::size(trees); ++t) {
    CAPTURE(t);
    const Tree& tree = trees[t];
    const auto size = std::int64_t(tree.left.size());
    std::vector<Feed> feeds{{left, Tensor::of<std::int32_t>({size}, tree.left)},
                            {right, Tensor::of<std::int32_t>({size}, tree.right)},
                            {word, Tensor::of<std::int64_t>({size}, tree.word)},
                            {root, Tensor::scalar(std::int32_t(size - 1))}};
    for (std::size_t k = 0; k < values.size(); ++k) feeds.push_back({w.all()[k], values[k]});
    const auto got = s.run(by_calls, {}, feeds);
    std::vector<Feed> given(feeds.begin() + 4, feeds.end());
    for (std::size_t k = 0; k < unrolled[t].size(); ++k) {
      CAPTURE(k);
      if (unrolled[t][k].empty()) {  // no path: a tree of one leaf has no inner node
        for (std::int64_t i = 0; i < got[k].elements(); ++i) CHECK(got[k].data<double>()[i] == 0);
        continue;
      }
      const Tensor want = s.run({unrolled[t][k]}, {}, given)[0];
      REQUIRE(got[k].elements() == want.elements());
      for (std::int64_t i = 0; i < want.elements(); ++i)
        CHECK(std::abs(got[k].data<double>()[i] - want.data<double>()[i]) < 1e-12);
    }
  }
}
