// Sequences of different lengths, both directions and stacks of recurrent layers, against each
// sequence by itself.
#include <limits>

#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t kTime = 4, kBatch = 3, kIn = 2, kHidden = 3;
const std::vector<std::int64_t> kLengths{2, 4, 0};

struct RecurrentRoot : nn::Module {
  using Module::Module;
};

std::vector<Output> values_of(const nn::LstmCell::State& state) { return {state.h, state.c}; }
std::vector<Output> values_of(const nn::GruCell::State& state) { return {state.h}; }

// Sequence `b` of x [time, batch, ...], up to its length.
Output alone(Output x, std::size_t b) {
  return x[{range(0, kLengths[b]), range(std::int64_t(b), std::int64_t(b) + 1)}];
}
// h [length, 1, ...] of a sequence by itself, with zeros behind it.
Output filled(Output h, std::size_t b) { return pad(h, {0, kTime - kLengths[b], 0, 0, 0, 0}); }

Output squares(const std::vector<Output>& values) {
  Output total;
  for (const Output& value : values)
    total = total.empty() ? sum(square(value)) : total + sum(square(value));
  return total;
}

// Both lists of values, and the gradients of the sums of their squares for x and the parameters.
void check_same(Graph& g, const nn::Module& layer, Output x, const std::vector<Output>& got,
                const std::vector<Output>& want) {
  std::vector<Output> inputs{x};
  for (const Variable& v : layer.parameters()) inputs.push_back(v.handle());
  std::vector<Output> made = got, wanted = want;
  for (const Output& slope : gradients(squares(got), inputs)) made.push_back(slope);
  for (const Output& slope : gradients(squares(want), inputs)) wanted.push_back(slope);
  Interpreter run(g);
  run.init();
  std::vector<Output> all = made;
  all.insert(all.end(), wanted.begin(), wanted.end());
  const auto values =
      run.run(all, {}, {{x.node(), tensor({kTime, kBatch, kIn}, draw(1, kTime * kBatch * kIn))}});
  for (std::size_t i = 0; i < made.size(); ++i) {
    INFO("value " << i);
    REQUIRE(values[i].shape() == values[made.size() + i].shape());
    check_near(values[i], numbers(values[made.size() + i]));
  }
}

template <class Layer>
void check_lengths(nn::OverTime over_time) {
  Graph g;
  RecurrentRoot root{g.scope("net")};
  Layer layer{root, "layer", kIn, kHidden, {.over_time = over_time, .dtype = DType::f64}};
  Output x = placeholder<double>(g, {kTime, kBatch, kIn});
  const auto all = layer.with_lengths(x, constant(g, kLengths));
  CHECK(all.h.shape() == PartialShape{kTime, kBatch, kHidden});
  std::vector<Output> got{all.h}, want, hs;
  std::vector<std::vector<Output>> states;
  for (std::size_t b = 0; b < kLengths.size(); ++b) {
    if (kLengths[b] == 0) {
      const Output one = x[{range(0, 1), range(std::int64_t(b), std::int64_t(b) + 1)}];
      hs.push_back(zeros<double>(g, {kTime, 1, kHidden}));
      states.push_back(values_of(layer.cell().zero_state(one)));
      continue;
    }
    const auto own = layer(alone(x, b));
    hs.push_back(filled(own.h, b));
    states.push_back(values_of(own.last));
  }
  want.push_back(concat(hs, 1));
  for (std::size_t i = 0; i < states[0].size(); ++i) {
    got.push_back(values_of(all.last)[i]);
    want.push_back(concat({states[0][i], states[1][i], states[2][i]}, 0));
  }
  check_same(g, layer, x, got, want);
}

}  // namespace

TEST_CASE("a sequence of some length is the same by itself and beside longer ones") {
  check_lengths<nn::Lstm>(nn::OverTime::fused);
  check_lengths<nn::Lstm>(nn::OverTime::unrolled);
  check_lengths<nn::Gru>(nn::OverTime::unrolled);
}

TEST_CASE("what stands behind the end of a sequence reaches no value and no gradient") {
  Graph g;
  RecurrentRoot root{g.scope("net")};
  nn::Stacked<nn::Bidirectional<nn::Gru>> stack{root,    "stack", kIn,
                                                kHidden, 1,       {.dtype = DType::f64}};
  nn::Lstm layer{root, "layer", kIn, kHidden, {.dtype = DType::f64}};
  Output x = placeholder<double>(g, {kTime, kBatch, kIn});
  const Output lengths = constant(g, kLengths);
  const auto one = layer.with_lengths(x, lengths);
  std::vector<Output> inputs{x},
      all{one.h, one.last.h, one.last.c, stack.with_lengths(x, lengths).h};
  for (const nn::Module* m : std::initializer_list<const nn::Module*>{&layer, &stack})
    for (const Variable& v : m->parameters()) inputs.push_back(v.handle());
  for (const Output& slope : gradients(squares(all), inputs)) all.push_back(slope);
  std::vector<double> zeros = draw(1, kTime * kBatch * kIn), odd = zeros;
  for (std::int64_t t = 0; t < kTime; ++t)
    for (std::int64_t b = 0; b < kBatch; ++b)
      for (std::int64_t i = 0; i < kIn && t >= kLengths[std::size_t(b)]; ++i) {
        const auto at = std::size_t((t * kBatch + b) * kIn + i);
        zeros[at] = 0;
        odd[at] = i == 0 ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
      }
  Interpreter run(g);
  run.init();
  const auto want = run.run(all, {}, {{x.node(), tensor({kTime, kBatch, kIn}, zeros)}});
  const auto got = run.run(all, {}, {{x.node(), tensor({kTime, kBatch, kIn}, odd)}});
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO("value " << i);
    check_near(got[i], numbers(want[i]));
  }
}

TEST_CASE("sequences are turned around as far as they go") {
  Graph g;
  Output x = constant(g, tensor({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  Interpreter run(g);
  const Tensor y = run.run({nn::reverse_sequences(x, constant(g, kLengths))})[0];
  check_near(y, {4, 11, 3, 1, 8, 6, 7, 5, 9, 10, 2, 12});
  CHECK_THROWS_AS(nn::reverse_sequences(x, constant(g, {1.0, 2.0, 3.0})), Error);
  CHECK_THROWS_AS(nn::reverse_sequences(x, constant<std::int64_t>(g, {1, 2})), Error);
}

TEST_CASE("one length that a run is given is not that of all sequences") {
  Graph g;
  RecurrentRoot root{g.scope("net")};
  nn::Lstm layer{root, "layer", kIn, kHidden, {.dtype = DType::f64}};
  Output x = placeholder<double>(g, {kTime, PartialShape::kUnknown, kIn});
  Output lengths = placeholder<std::int64_t>(g, {PartialShape::kUnknown});
  const Output h = layer.with_lengths(x, lengths).h;
  Interpreter run(g);
  run.init();
  const auto failure = [&](const std::vector<std::int64_t>& of) {
    return run.failure_of(
        {h}, {{x.node(), tensor({kTime, kBatch, kIn}, draw(1, 24))},
              {lengths.node(), Tensor::of<std::int64_t>({std::int64_t(of.size())}, of)}});
  };
  CHECK(failure(kLengths) == "");
  CHECK(failure({2}) != "");
}

TEST_CASE("both directions are two layers, one of which reads from the end") {
  Graph g;
  RecurrentRoot root{g.scope("net")};
  nn::Bidirectional<nn::Lstm> layer{root, "layer", kIn, kHidden, {.dtype = DType::f64}};
  REQUIRE(layer.parameters().size() == 6);
  CHECK(layer.parameters()[3].name() == "net/layer/backward/cell/W");
  Output x = placeholder<double>(g, {kTime, kBatch, kIn});
  const auto both = layer(x);
  const auto there = layer.forward()(x), back = layer.backward()(reverse(x, 0));
  check_same(g, layer, x, {both.h, both.forward.c, both.backward.h},
             {concat({there.h, reverse(back.h, 0)}, 2), there.last.c, back.last.h});

  const auto cut = layer.with_lengths(x, constant(g, kLengths));
  std::vector<Output> hs;
  for (std::size_t b : {0, 1}) hs.push_back(filled(layer(alone(x, b)).h, b));
  hs.push_back(zeros<double>(g, {kTime, 1, 2 * kHidden}));
  const auto first = layer(alone(x, 0));
  check_same(g, layer, x, {cut.h, cut.backward.c[{range(0, 1)}], cut.forward.h[{range(0, 1)}]},
             {concat(hs, 1), first.backward.c, first.forward.h});
}

TEST_CASE("a stack is its layers, one after the other") {
  Graph g;
  RecurrentRoot root{g.scope("net")};
  nn::Stacked<nn::Bidirectional<nn::Gru>> stack{root,    "stack", kIn,
                                                kHidden, 2,       {.dtype = DType::f64}};
  Output x = placeholder<double>(g, {kTime, kBatch, kIn});
  CHECK(stack.parameters().size() == 16);
  CHECK(stack.parameters()[8].name() == "net/stack/1/forward/cell/W");
  CHECK(stack.parameters()[8].shape() == PartialShape{2 * kHidden, 3 * kHidden});
  const auto all = stack(x);
  const auto below = stack.layer(0)(x), above = stack.layer(1)(below.h);
  check_same(g, stack, x, {all.h, all.layers[0].forward.h, all.layers[1].backward.h},
             {above.h, below.forward.h, above.backward.h});
  CHECK(stack.with_lengths(x, constant(g, kLengths)).h.shape() ==
        PartialShape{kTime, kBatch, 2 * kHidden});
  CHECK_THROWS_AS((nn::Stacked<nn::Lstm>{root, "none", kIn, kHidden, 0}), Error);
  CHECK_THROWS_AS(stack.with_lengths(x, constant<std::int64_t>(g, {1, 2})), Error);
}

TEST_CASE("a sequence goes on from the states that the one before it left") {
  Graph g;
  RecurrentRoot root{g.scope("net")};
  nn::Stacked<nn::Lstm> stack{root, "stack", kIn, kHidden, 2, {.dtype = DType::f64}};
  Output x = placeholder<double>(g, {kTime, kBatch, kIn});
  const auto whole = stack(x), begun = stack(x[{range(0, 1)}]);
  const nn::Stacked<nn::Lstm>::States left{begun.layers[0].last, begun.layers[1].last};
  const auto rest = stack(x[{range(1, kTime)}], left);
  check_same(g, stack, x, {concat({begun.h, rest.h}, 0), rest.layers[0].last.c, rest.h[-1]},
             {whole.h, whole.layers[0].last.c, whole.layers[1].last.h});
  const Output lengths = constant<std::int64_t>(g, {3}, {3, 3, 3});
  const auto cut = stack.with_lengths(x[{range(1, kTime)}], lengths, left);
  check_same(g, stack, x, {cut.h, cut.layers[1].last.c}, {rest.h, rest.layers[1].last.c});
  CHECK_THROWS_AS(stack(x, {begun.layers[0].last}), Error);
}

TEST_CASE("both directions of a stack begin with states of their own") {
  Graph g;
  RecurrentRoot root{g.scope("net")};
  nn::Stacked<nn::Bidirectional<nn::Gru>> stack{root,    "stack", kIn,
                                                kHidden, 1,       {.dtype = DType::f64}};
  Output x = placeholder<double>(g, {kTime, kBatch, kIn});
  const nn::GruCell::State one{constant(g, tensor({kBatch, kHidden}, draw(7, kBatch * kHidden)))},
      other{constant(g, tensor({kBatch, kHidden}, draw(8, kBatch * kHidden)))};
  const auto both = stack(x, {{one, other}});
  const auto &forward = stack.layer(0).forward(), &backward = stack.layer(0).backward();
  const auto there = forward(x, one), back = backward(reverse(x, 0), other);
  check_same(g, stack, x, {both.h}, {concat({there.h, reverse(back.h, 0)}, 2)});
  const Output lengths = constant(g, kLengths);
  const auto cut = stack.with_lengths(x, lengths, {{one, other}});
  check_same(g, stack, x, {cut.layers[0].forward.h, cut.layers[0].backward.h},
             {forward.with_lengths(x, lengths, one).last.h,
              backward.with_lengths(nn::reverse_sequences(x, lengths), lengths, other).last.h});
}
