// nn::Linear over the last axis of any rank, losses over the last axis, and products that
// broadcast.
#include <doctest/doctest.h>

#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct OneLayer : nn::Module {
  using Module::Module;
  nn::Linear layer{*this, "layer", 4, 3, {.dtype = DType::f64}};
};

struct Linear {
  Graph g{3};
  OneLayer net{g.scope("net")};
  Interpreter run{g};
  std::vector<Numbers> parameters;

  Linear() {
    run.init();
    for (const Variable& v : net.parameters())
      parameters.push_back(draw(parameters.size() + 5, v.shape().shape().elements()));
    set(run, net.parameters(), parameters);
  }

  std::string refusal(const Output& x) {
    try {
      net.layer(x);
    } catch (const Error& e) {
      return e.status().message();
    }
    return "";
  }
};

}  // namespace

TEST_CASE_FIXTURE(Linear, "a linear layer works on the last axis, whatever is before it") {
  for (const PartialShape& shape :
       {PartialShape{4}, PartialShape{5, 4}, PartialShape{2, 3, 4}, PartialShape{2, 1, 4},
        PartialShape{2, 1, 3, 4}, PartialShape{0, 3, 4}}) {
    CAPTURE(shape.text());
    const Output x = placeholder(g, DType::f64, shape);
    const Output y = net.layer(x);
    PartialShape wanted = shape;
    wanted.set_dim(shape.rank() - 1, 3);
    CHECK(y.shape() == wanted);
    const auto rows = std::size_t(shape.shape().elements() / 4);
    Compared compared{g, y, {x}, {draw(1, std::int64_t(4 * rows))}, [&](const auto& in) {
                        return product(in[0], in[1], rows, 4, 3, in[2]);
                      }};
    for (const Variable& v : net.parameters()) compared.inputs.push_back(v.handle());
    compared.values.insert(compared.values.end(), parameters.begin(), parameters.end());
    compared.check(run, {{x.node(), tensor(shape.shape(), compared.values[0])}});
  }
}

TEST_CASE_FIXTURE(Linear, "a linear layer takes batches and sequences of unknown length") {
  const Output x = placeholder(g, DType::f64, {-1, -1, 4});
  const Output y = net.layer(x);
  CHECK(y.shape() == PartialShape{-1, -1, 3});
  for (const Shape& shape : {Shape{2, 5, 4}, Shape{1, 1, 4}, Shape{0, 2, 4}}) {
    const Numbers at = draw(2, shape.elements());
    const Tensor got = run.run({y}, {}, {{x.node(), tensor(shape, at)}})[0];
    CHECK(got.shape() == Shape{shape[0], shape[1], 3});
    check_near(got,
               product(at, parameters[0], std::size_t(shape[0] * shape[1]), 4, 3, parameters[1]));
  }
}

TEST_CASE_FIXTURE(Linear, "pictures whose product is the layer's size are flattened") {
  const Output x = placeholder(g, DType::f64, {-1, 2, 2, 1});
  const Output y = net.layer(x);
  CHECK(y.shape() == PartialShape{-1, 3});
  const Numbers at = draw(3, 8);
  check_near(run.run({y}, {}, {{x.node(), tensor({2, 2, 2, 1}, at)}})[0],
             product(at, parameters[0], 2, 4, 3, parameters[1]));
}

TEST_CASE_FIXTURE(Linear,
                  "an input that fits a linear layer in no way is refused with both numbers") {
  CHECK(refusal(placeholder(g, DType::f64, {2, 3, 5}, "x")) ==
        "Linear: it takes 4 inputs, and 'x' is [2,3,5]: neither its last dimension nor the product "
        "of all but the first is 4");
  CHECK(refusal(placeholder(g, DType::f64, {-1, 28, 28, 1})).find("neither") != std::string::npos);
  CHECK(refusal(placeholder(g, DType::f64, {-1, -1, 5})).find("neither") != std::string::npos);
  CHECK(refusal(placeholder(g, DType::f64, {5})).find("neither") != std::string::npos);
  CHECK(refusal(placeholder(g, DType::f64, PartialShape::scalar())).find("neither") !=
        std::string::npos);
  CHECK(refusal(placeholder(g, DType::f64, {2, 5})).find("inner dimensions differ") !=
        std::string::npos);
  CHECK(refusal(Output()) != "");
}

TEST_CASE("cross entropy of sequences is that of their rows") {
  Graph g;
  Interpreter run(g);
  const Output logits = placeholder(g, DType::f64, {-1, -1, 3}),
               labels = placeholder(g, DType::i64, {-1, -1});
  const Output loss = softmax_cross_entropy(logits, labels);
  CHECK(loss.shape() == PartialShape{-1, -1});
  const Output rows = softmax_cross_entropy(reshape(logits, {-1, 3}), reshape(labels, {-1}));
  const Output dense = softmax_cross_entropy(logits, one_hot(labels, 3, {.dtype = DType::f64}));
  const std::map<NodeId, Tensor> feeds = {
      {logits.node(), tensor({2, 2, 3}, draw(4, 12))},
      {labels.node(), Tensor::of<std::int64_t>({2, 2}, {0, 2, 1, 1})}};
  const auto got = run.run(
      {loss, rows, dense, gradients(sum(loss), {logits})[0], gradients(sum(rows), {logits})[0]}, {},
      feeds);
  CHECK(got[0].shape() == Shape{2, 2});
  check_near(got[0].reshaped({4}), numbers(got[1]));
  check_near(got[2].reshaped({4}), numbers(got[1]));
  check_near(got[3], numbers(got[4]));
}

TEST_CASE("gradients of rows of unknown rank are those of known rank") {
  Graph g;
  Interpreter run(g);
  const Output x = placeholder(g, DType::f64, PartialShape::unknown()),
               labels = placeholder(g, DType::i64, PartialShape::unknown());
  const Output known = placeholder(g, DType::f64, {2, 2, 3}),
               known_labels = placeholder(g, DType::i64, {2, 2});
  const auto second = [&](const Output& logits, const Output& classes) {
    const Output loss = sum(square(softmax_cross_entropy(logits, classes)));
    return gradients(sum(square(gradients(loss, {logits})[0])), {logits})[0];
  };
  const Tensor at = tensor({2, 2, 3}, draw(6, 12));
  const Tensor classes = Tensor::of<std::int64_t>({2, 2}, {0, 2, 1, 1});
  const auto got = run.run({second(x, labels), second(known, known_labels)}, {},
                           {{x.node(), at},
                            {labels.node(), classes},
                            {known.node(), at},
                            {known_labels.node(), classes}});
  check_near(got[0], numbers(got[1]));
}

TEST_CASE("batched products broadcast with shapes that only a run knows") {
  Graph g;
  Interpreter run(g);
  const Output a = placeholder(g, DType::f64, {-1, 2, 3}),
               b = placeholder(g, DType::f64, {-1, 3, 2});
  const Output y = batch_mat_mul(a, b),
               anything = placeholder(g, DType::f64, PartialShape::unknown());
  CHECK(y.shape() == PartialShape{-1, 2, 2});
  const auto slopes = gradients(sum(square(y)), {a, b});
  const auto open = gradients(sum(square(batch_mat_mul(a, anything))), {a, anything});
  const Numbers one = draw(1, 6), many = draw(2, 18);
  const auto got = run.run({y, slopes[0], slopes[1], open[0], open[1]}, {},
                           {{a.node(), tensor({1, 2, 3}, one)},
                            {b.node(), tensor({3, 3, 2}, many)},
                            {anything.node(), tensor({3, 3, 2}, many)}});
  CHECK(got[0].shape() == Shape{3, 2, 2});
  for (std::int64_t i = 0; i < 3; ++i) {
    const Numbers each(many.begin() + 6 * i, many.begin() + 6 * (i + 1));
    check_near(got[0].rows(i, i + 1), product(one, each, 2, 3, 2));
  }
  CHECK(got[1].shape() == Shape{1, 2, 3});
  CHECK(got[2].shape() == Shape{3, 3, 2});
  for (std::size_t i : {1, 2}) check_near(got[i + 2], numbers(got[i]));
}
