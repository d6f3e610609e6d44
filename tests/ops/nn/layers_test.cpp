// ops/nn against plain loops in f64: values to 1e-12, gradients against the slopes of the loops.
#include <numeric>

#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr DType kF64 = DType::f64;

struct Root : nn::Module {
  using Module::Module;
};

// A graph, one layer in it, and drawn values for its parameters.
template <class Layer>
struct Subject {
  Graph g;
  Root root{g.scope("net")};
  Layer layer;
  Interpreter run{g};
  std::vector<Numbers> values;

  template <class... Args>
  explicit Subject(Args&&... args) : layer(root, "layer", std::forward<Args>(args)...) {
    run.init();
    for (const Variable& v : layer.parameters())
      values.push_back(draw(values.size() + 5, v.shape().shape().elements()));
    set(run, layer.parameters(), values);
  }

  // The layer's y of x against `model`, which takes x and then the parameters.
  void compare(Output x, const Numbers& at, Output y,
               std::function<Numbers(const std::vector<Numbers>&)> model) {
    Compared compared{g, y, {x}, {at}, std::move(model)};
    for (const Variable& v : layer.parameters()) compared.inputs.push_back(v.handle());
    compared.values.insert(compared.values.end(), values.begin(), values.end());
    compared.check(run, {{x.node(), tensor(x.shape().shape(), at)}});
  }
};

Numbers layer_norm(const std::vector<Numbers>& in, std::size_t n, double epsilon) {
  const Numbers &x = in[0], &scale = in[1], &offset = in[2];
  Numbers y(x.size());
  for (std::size_t i = 0; i < x.size(); i += n) {
    double mean = 0, variance = 0;
    for (std::size_t j = 0; j < n; ++j) mean += x[i + j] / double(n);
    for (std::size_t j = 0; j < n; ++j)
      variance += (x[i + j] - mean) * (x[i + j] - mean) / double(n);
    for (std::size_t j = 0; j < n; ++j)
      y[i + j] = (x[i + j] - mean) / std::sqrt(variance + epsilon) * scale[j] + offset[j];
  }
  return y;
}

// The state after each step; gates i, f, g, o.
Numbers lstm(const std::vector<Numbers>& in, std::size_t time, std::size_t batch, std::size_t n,
             std::size_t h) {
  Numbers state(batch * h), cell(batch * h), out;
  for (std::size_t t = 0; t < time; ++t) {
    const Numbers x(in[0].begin() + std::ptrdiff_t(t * batch * n),
                    in[0].begin() + std::ptrdiff_t((t + 1) * batch * n));
    const Numbers a = product(x, in[1], batch, n, 4 * h, in[3]),
                  r = product(state, in[2], batch, h, 4 * h);
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t j = 0; j < h; ++j) {
        const auto gate = [&](std::size_t k) {
          const std::size_t at = b * 4 * h + k * h + j;
          return a[at] + r[at];
        };
        double& c = cell[b * h + j];
        c = sigmoid_of(gate(1)) * c + sigmoid_of(gate(0)) * std::tanh(gate(2));
        state[b * h + j] = sigmoid_of(gate(3)) * std::tanh(c);
      }
    out.insert(out.end(), state.begin(), state.end());
  }
  return out;
}

// Gates r, z, n.
Numbers gru(const std::vector<Numbers>& in, std::size_t time, std::size_t batch, std::size_t n,
            std::size_t h) {
  Numbers state(batch * h), out;
  for (std::size_t t = 0; t < time; ++t) {
    const Numbers x(in[0].begin() + std::ptrdiff_t(t * batch * n),
                    in[0].begin() + std::ptrdiff_t((t + 1) * batch * n));
    const Numbers a = product(x, in[1], batch, n, 3 * h, in[3]),
                  r = product(state, in[2], batch, h, 3 * h, in[4]);
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t j = 0; j < h; ++j) {
        const auto at = [&](std::size_t k) { return b * 3 * h + k * h + j; };
        const double reset = sigmoid_of(a[at(0)] + r[at(0)]);
        const double keep = sigmoid_of(a[at(1)] + r[at(1)]);
        const double fresh = std::tanh(a[at(2)] + reset * r[at(2)]);
        double& s = state[b * h + j];
        s = (1 - keep) * fresh + keep * s;
      }
    out.insert(out.end(), state.begin(), state.end());
  }
  return out;
}

// softmax(q k^T / sqrt(d)) v where may(query, key).
Numbers attention(const Numbers& q, const Numbers& k, const Numbers& v, std::size_t rows,
                  std::size_t keys, std::size_t d, std::size_t out,
                  const std::function<bool(std::size_t, std::size_t)>& may) {
  Numbers y(rows * out);
  for (std::size_t i = 0; i < rows; ++i) {
    Numbers weight(keys);
    double total = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      double score = 0;
      for (std::size_t p = 0; p < d; ++p) score += q[i * d + p] * k[j * d + p];
      weight[j] = may(i, j) ? std::exp(score / std::sqrt(double(d))) : 0;
      total += weight[j];
    }
    for (std::size_t j = 0; j < keys; ++j)
      for (std::size_t p = 0; p < out; ++p) y[i * out + p] += weight[j] / total * v[j * out + p];
  }
  return y;
}

// Of one batch entry, causal; `in` is x, then matrix and bias of query, key, value and out.
Numbers multi_head(const std::vector<Numbers>& in, std::size_t time, std::size_t size,
                   std::size_t heads) {
  const std::size_t d = size / heads;
  const auto project = [&](const Numbers& x, std::size_t i) {
    return product(x, in[i], time, size, size, in[i + 1]);
  };
  const Numbers q = project(in[0], 1), k = project(in[0], 3), v = project(in[0], 5);
  Numbers seen(time * size);
  for (std::size_t head = 0; head < heads; ++head) {
    const auto part = [&](const Numbers& x) {
      Numbers out;
      for (std::size_t t = 0; t < time; ++t)
        for (std::size_t p = 0; p < d; ++p) out.push_back(x[t * size + head * d + p]);
      return out;
    };
    const Numbers y = attention(part(q), part(k), part(v), time, time, d, d,
                                [](std::size_t i, std::size_t j) { return j <= i; });
    for (std::size_t t = 0; t < time; ++t)
      for (std::size_t p = 0; p < d; ++p) seen[t * size + head * d + p] = y[t * d + p];
  }
  return project(seen, 7);
}

struct Net : nn::Module {
  using Module::Module;
  nn::Linear a{*this, "a", 3, 4, {.dtype = kF64}};
  nn::BatchNorm norm{*this, "norm", 4, {.momentum = 0.75, .dtype = kF64}};
  nn::Dropout drop{*this, "drop", 0.5};
  Output operator()(Output x) const { return drop(norm(a(x))); }
};

}  // namespace

TEST_CASE("a module keeps the variables of children that are gone, in the order of creation") {
  Graph g;
  Root net{g.scope("net")};
  Output x = placeholder<float>(g, {2, 3});
  Output y = nn::Linear(net, "a", 3, 4)(x);
  { Net part(net, "part"); }
  CHECK_THROWS_AS(nn::Linear(net, "refused", -1, 4), Error);
  nn::Linear last(net, "last", 4, 1, {.bias = false});
  y = last(y);
  std::string names;
  for (const Variable& v : net.parameters()) names += v.name() + " ";
  CHECK(names ==
        "net/a/W net/a/b net/part/a/W net/part/a/b net/part/norm/scale net/part/norm/offset "
        "net/part/norm/moving_mean net/part/norm/moving_variance net/last/W ");
}

TEST_CASE("a layer that outlives its parent is still one") {
  Graph g;
  const Output x = placeholder<float>(g, {2, 3});
  std::unique_ptr<nn::Linear> layer;
  {
    Root net{g.scope("net")};
    layer = std::make_unique<nn::Linear>(net, "a", 3, 4);
  }
  CHECK(layer->parameters().size() == 2);
  CHECK(!layer->training());
  CHECK((*layer)(x).shape() == PartialShape{2, 4});
}

TEST_CASE("an embedding gives rows, and their gradients add up") {
  Subject<nn::Embedding> s(std::int64_t{5}, std::int64_t{2}, nn::Embedding::Options{.dtype = kF64});
  const std::vector<std::int64_t> ids = {3, 0, 3, 3};
  Output y = s.layer(constant(s.g, Tensor::of<std::int64_t>(Shape{2, 2}, ids)));
  CHECK(y.shape() == PartialShape{2, 2, 2});
  Compared{s.g,
           y,
           {s.layer.table().parts().front().handle()},
           s.values,
           [&](const std::vector<Numbers>& in) {
             Numbers out;
             for (std::int64_t id : ids)
               for (std::size_t j : {0, 1}) out.push_back(in[0][std::size_t(id) * 2 + j]);
             return out;
           }}
      .check(s.run);
}

TEST_CASE("a layer norm makes rows of mean 0 and variance 1, then learns scale and offset") {
  Subject<nn::LayerNorm> s(std::int64_t{5}, nn::LayerNorm::Options{.epsilon = 0.01, .dtype = kF64});
  Output x = placeholder<double>(s.g, {2, 3, 5});
  s.compare(x, draw(1, 30), s.layer(x), [](const auto& in) { return layer_norm(in, 5, 0.01); });
}

TEST_CASE("an LSTM over time equals plain loops, with gates i, f, g, o side by side") {
  const std::size_t time = 4, batch = 2, in = 3, hidden = 2;
  for (const nn::OverTime over_time : {nn::OverTime::fused, nn::OverTime::unrolled}) {
    Subject<nn::Lstm> s(std::int64_t(in), std::int64_t(hidden),
                        nn::RecurrentOptions{.over_time = over_time, .dtype = kF64});
    Output x = placeholder<double>(s.g, {4, 2, 3});
    const nn::Lstm::Sequence y = s.layer(x);
    CHECK(y.h.shape() == PartialShape{4, 2, 2});
    s.compare(x, draw(1, 24), y.h,
              [&](const auto& all) { return lstm(all, time, batch, in, hidden); });
  }
}

TEST_CASE("a GRU over time equals plain loops, with gates r, z, n side by side") {
  Subject<nn::Gru> s(std::int64_t{3}, std::int64_t{2}, nn::RecurrentOptions{.dtype = kF64});
  Output x = placeholder<double>(s.g, {4, 2, 3});
  s.compare(x, draw(1, 24), s.layer(x).h, [&](const auto& all) { return gru(all, 4, 2, 3, 2); });
}

TEST_CASE("a sequence of unknown batch, a list of steps and single steps give the same bits") {
  Subject<nn::Lstm> s(std::int64_t{3}, std::int64_t{2}, nn::RecurrentOptions{.dtype = kF64});
  const Tensor value = tensor({4, 2, 3}, draw(1, 24));
  Output x = constant(s.g, value), open = placeholder<double>(s.g, {4, -1, 3});
  Output any = placeholder<double>(s.g, {-1, -1, 3});
  const auto whole = s.layer(x), unknown = s.layer(open), of_any = s.layer(any);
  const auto listed = s.layer(unpack(x, 4));
  nn::LstmCell::State state = s.layer.cell().zero_state(x);
  for (Output step : unpack(x, 4)) state = s.layer.cell()(step, state);
  auto got = s.run.run({whole.h, unknown.h, pack(listed.h), whole.last.h, listed.last.h, state.h,
                        whole.last.c, state.c, of_any.h, of_any.last.h, of_any.last.c},
                       {}, {{open.node(), value}, {any.node(), value}});
  CHECK(unknown.h.shape() == PartialShape{4, -1, 2});
  for (std::size_t i : {1, 2}) CHECK(Tensor::same(got[0], got[i]));
  for (std::size_t i : {4, 5}) CHECK(Tensor::same(got[3], got[i]));
  CHECK(Tensor::same(got[6], got[7]));
  CHECK(of_any.h.shape() == PartialShape{-1, -1, 2});
  for (std::size_t i : {0, 3, 6}) CHECK(Tensor::same(got[8 + i / 3], got[i]));
}

TEST_CASE("a sequence goes on from the state in which another ended") {
  Subject<nn::Gru> s(std::int64_t{3}, std::int64_t{2}, nn::RecurrentOptions{.dtype = kF64});
  Output x = constant(s.g, tensor({4, 2, 3}, draw(1, 24)));
  const auto parts = split(x, 2);
  const auto first = s.layer(parts[0]);
  const auto second = s.layer(parts[1], first.last);
  auto got = s.run.run({s.layer(x).last.h, second.last.h});
  CHECK(Tensor::same(got[0], got[1]));
}

TEST_CASE("a forget gate can begin open") {
  Graph g;
  Root root{g.scope("net")};
  nn::LstmCell cell{root, "cell", 1, 2, {.forget_bias = 1}};
  Interpreter run(g);
  run.init();
  auto bias = run.variable(cell.parameters()[2]).span<float>();
  CHECK(std::vector<float>(bias.begin(), bias.end()) == std::vector<float>{0, 0, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("a last dimension of another size is refused, not stretched") {
  Graph g;
  Root root{g.scope("net")};
  nn::LayerNorm norm{root, "norm", 5};
  nn::LstmCell cell{root, "cell", 3, 2};
  nn::MultiHeadAttention heads{root, "heads", 4, 2};
  CHECK_THROWS_AS(norm(placeholder<float>(g, {2, 1})), Error);
  CHECK_THROWS_AS(heads(placeholder<float>(g, {1, 2, 8})), Error);
  CHECK_THROWS_AS(cell(placeholder<float>(g, {2, 6}), {}), Error);
  Output open = placeholder<float>(g, {2, -1});
  CHECK(norm(open).shape() == PartialShape{2, 5});
}

TEST_CASE("a sequence of unknown rank, or unrolled of unknown length, is refused") {
  Graph g;
  Root root{g.scope("net")};
  nn::Lstm lstm{root, "lstm", 3, 2};
  nn::Gru unrolled{root, "unrolled", 3, 2, {.over_time = nn::OverTime::unrolled}};
  CHECK_THROWS_AS(unrolled(placeholder<float>(g, {-1, 2, 3})), Error);
  CHECK_THROWS_AS(unrolled(placeholder<float>(g, {0, 2, 3})), Error);
  CHECK_THROWS_AS(lstm(placeholder<float>(g, PartialShape::unknown())), Error);
  CHECK_THROWS_AS(lstm(placeholder<float>(g, {2, 3})), Error);
  CHECK_THROWS_AS(lstm(std::vector<Output>{}), Error);
  CHECK_THROWS_AS((nn::Lstm{root, "none", 0, 2}), Error);
}

TEST_CASE("attention weighs values by where a query may look") {
  Graph g;
  Interpreter run(g);
  const Numbers q = draw(1, 6), k = draw(2, 8), v = draw(3, 12);
  Output qs = constant(g, tensor({1, 3, 2}, q)), ks = constant(g, tensor({1, 4, 2}, k)),
         vs = constant(g, tensor({1, 4, 3}, v));
  const Tensor open = Tensor::of<bool>(
      Shape{3, 4}, {true, false, true, true, false, true, false, false, true, true, true, false});
  const auto may = [&](std::size_t i, std::size_t j) { return open.span<bool>()[i * 4 + j]; };
  const auto all = [](std::size_t, std::size_t) { return true; };
  const auto causal = [](std::size_t i, std::size_t j) { return j <= i; };
  const auto both = [&](std::size_t i, std::size_t j) { return may(i, j) && causal(i, j); };
  const auto check = [&](const nn::AttentionOptions& options,
                         const std::function<bool(std::size_t, std::size_t)>& rule) {
    Compared{g,
             nn::scaled_dot_product_attention(qs, ks, vs, options),
             {qs, ks, vs},
             {q, k, v},
             [&](const std::vector<Numbers>& in) {
               return attention(in[0], in[1], in[2], 3, 4, 2, 3, rule);
             }}
        .check(run);
  };
  check({}, all);
  check({.mask = constant(g, open)}, may);
  check({.causal = true}, causal);
  check({.mask = constant(g, open), .causal = true}, both);
}

TEST_CASE("a query that may look nowhere gets zeros") {
  Graph g;
  Interpreter run(g);
  Output x = constant(g, tensor({1, 2}, {1, 2}));
  Output none = constant(g, Tensor::of<bool>(Shape{1, 1}, {false}));
  const Tensor y = run.run({nn::scaled_dot_product_attention(x, x, x, {.mask = none})})[0];
  for (double at : y.span<double>()) CHECK(at == 0);
}

TEST_CASE("multi-head attention equals plain loops") {
  Subject<nn::MultiHeadAttention> s(std::int64_t{4}, std::int64_t{2},
                                    nn::MultiHeadAttention::Options{.dtype = kF64});
  Output x = placeholder<double>(s.g, {1, 3, 4});
  s.compare(x, draw(1, 12), s.layer(x, x, x, {.causal = true}),
            [](const auto& in) { return multi_head(in, 3, 4, 2); });
}

TEST_CASE("multi-head attention takes batches and times that are not known yet") {
  Subject<nn::MultiHeadAttention> s(std::int64_t{4}, std::int64_t{2},
                                    nn::MultiHeadAttention::Options{.dtype = kF64});
  Output open = placeholder<double>(s.g, {-1, -1, 4});
  Output y = s.layer(open, open, open, {.causal = true});
  CHECK(y.shape() == PartialShape{-1, -1, 4});
  const Numbers x = draw(1, 24);
  const Tensor got = s.run.run({y}, {}, {{open.node(), tensor({2, 3, 4}, x)}})[0];
  Numbers want;
  for (std::size_t b : {0, 1}) {
    std::vector<Numbers> in = {
        Numbers(x.begin() + std::ptrdiff_t(b * 12), x.begin() + std::ptrdiff_t(b * 12 + 12))};
    in.insert(in.end(), s.values.begin(), s.values.end());
    for (double at : multi_head(in, 3, 4, 2)) want.push_back(at);
  }
  check_near(got, want);
  Root root{s.g.scope("other")};
  CHECK_THROWS_AS((nn::MultiHeadAttention{root, "odd", 4, 3}), Error);
}

TEST_CASE("attention drops keys for training alone") {
  Subject<nn::MultiHeadAttention> s(std::int64_t{4}, std::int64_t{2},
                                    nn::MultiHeadAttention::Options{.dtype = kF64});
  Output x = constant(s.g, tensor({1, 3, 4}, draw(1, 12)));
  Output plain = s.layer(x), used = s.layer(x, x, x, {.dropout = 0.5}), trained;
  {
    auto training = s.root.train();
    trained = s.layer(x, x, x, {.dropout = 0.5});
  }
  auto got = s.run.run({plain, used, trained});
  CHECK(Tensor::same(got[0], got[1]));
  CHECK_FALSE(Tensor::same(got[0], got[2]));
}

TEST_CASE("a network is for use unless it is being trained") {
  Graph g;
  Net net{g.scope("net")};
  Output x = constant(g, tensor({4, 3}, draw(1, 12)));
  Output used = net(x), trained, mixed, inner;
  {
    auto training = net.train();
    trained = net(x);
    {
      auto still = net.norm.eval();
      mixed = net(x);
    }
    inner = net(x);
  }
  CHECK_FALSE(net.training());
  Interpreter run(g);
  run.init();
  const auto zeros_of = [&](Output y) {
    const Tensor t = run.run({y})[0];
    return std::count(t.span<double>().begin(), t.span<double>().end(), 0.0);
  };
  CHECK(zeros_of(used) == 0);
  CHECK(zeros_of(trained) > 0);
  CHECK(zeros_of(mixed) > 0);
  CHECK(zeros_of(inner) > 0);
  CHECK(moving_averages(used).empty());
  CHECK(moving_averages(trained).size() == 2);
  CHECK(moving_averages(mixed).empty());
  CHECK(moving_averages(inner).size() == 2);
}

TEST_CASE("a training step moves the averages of what its loss depends on, unasked") {
  Graph g;
  Net net{g.scope("net")};
  // Of the linear layer's output the step sees what a plain network gives.
  Output x = constant(g, tensor({4, 3}, draw(1, 12)));
  Output seen = net.a(x), loss;
  {
    auto training = net.train();
    loss = sum(net(x));
  }
  Op train = optim::Sgd{.lr = 0.0}.minimize(loss);
  Interpreter run(g);
  run.init();
  const Tensor batch = run.run({mean(seen, {.axes = {0}})})[0];
  for (double kept : {0.75, 0.75 * 0.75}) {
    run.run({}, {train});
    Numbers want;
    for (double at : batch.span<double>()) want.push_back((1 - kept) * at);
    check_near(run.variable(net.norm.mean()), want);
  }
  const Tensor answer = run.run({net.norm(seen)})[0];
  CHECK(answer.shape() == Shape{4, 4});
  run.run({}, {optim::Sgd{.lr = 0.0}.minimize(sum(net(x)))});  // in use: nothing moves
  Numbers still;
  for (double at : batch.span<double>()) still.push_back((1 - 0.75 * 0.75) * at);
  check_near(run.variable(net.norm.mean()), still);
}

TEST_CASE("an average of the program's own is kept by training steps, too") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(2.0));
  Variable average = variable(g, "average", Tensor::scalar(0.0), {.trainable = false});
  Output square = v * v;
  move_average(average, 0.5, square);
  Op train = optim::Sgd{.lr = 0.25}.minimize(square * 1.0);  // v halves
  Interpreter run(g);
  run.init();
  for (int i = 0; i < 2; ++i) run.run({}, {train});
  CHECK(run.variable(average).item<double>() == 0.5 * (0.5 * 4) + 0.5 * 1);
}

TEST_CASE("a sequential network is its layers, one after the other") {
  Graph g;
  nn::Sequential net{g.scope("net")};
  net.add<nn::Linear>("hidden", 3, 4).add(relu).add<nn::Dropout>("drop", 0.5);
  net.add<nn::Linear>("out", 4, 2).add([](Output x) { return x * 2; });
  auto all = net.parameters();
  REQUIRE(all.size() == 4);
  CHECK(all[0].name() == "net/hidden/W");
  CHECK(all[3].name() == "net/out/b");
  Output x = constant(g, Tensor::of<float>(Shape{1, 3}, {1, -2, 3}));
  Output want = bias_add(mat_mul(relu(bias_add(mat_mul(x, all[0]), all[1])), all[2]), all[3]) * 2;
  Output used = net(x), trained;
  {
    auto training = net.train();
    trained = net(x);
  }
  Interpreter run(g);
  run.init();
  auto got = run.run({used, want});
  CHECK(Tensor::same(got[0], got[1]));
  bool differs = false;
  for (int i = 0; i < 20; ++i) differs = differs || !Tensor::same(run.run({trained})[0], got[0]);
  CHECK(differs);
}

namespace {

struct OfF32 : nn::Module {
  using Module::Module;
  nn::Conv2d conv{*this, "conv", 1, 4, 3};
  nn::BatchNorm norm{*this, "norm", 4};
  nn::ConvTranspose2d larger{*this, "larger", 4, 2, 2, {.stride = 2}};
  nn::Linear inner{*this, "inner", 8, 6};
  nn::LayerNorm rows{*this, "rows", 6};
  nn::MultiHeadAttention attention{*this, "attention", 6, 2};
  nn::Linear out{*this, "out", 16 * 6, 3};
  // From [n,4,4,1].
  Output operator()(Output x) const {
    const Output pictures = larger(relu(norm(conv(x))));
    return out(attention(rows(inner(reshape(pictures, {-1, 16, 8})))));
  }
};

}  // namespace

TEST_CASE("layers with parameters of f32 compute in the 16 bits of what they are given") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    CAPTURE(dtype_name(dtype));
    Graph g;
    OfF32 net{g.scope("net")};
    const Output x = cast<float>(constant(g, tensor({3, 4, 4, 1}, draw(1, 48)))), exact = net(x);
    const Output y = net(cast(x, dtype));
    CHECK(y.dtype() == dtype);
    const auto gradients = optim::LossScale{.first = 64}.gradients(mean(square(cast<float>(y))));
    CHECK(gradients.size() == net.parameters().size() - 2);  // but for the averages
    std::vector<Output> fetches{cast<float>(y), exact, gradients.when};
    for (const optim::Gradient& gradient : gradients.each) {
      CHECK(gradient.value.dtype() == DType::f32);
      fetches.push_back(gradient.value);
    }
    Interpreter run(g);
    run.init();
    const auto values = run.run(fetches);
    for (std::int64_t i = 0; i < values[1].elements(); ++i)
      CHECK(values[0].data<float>()[i] ==
            doctest::Approx(values[1].data<float>()[i]).epsilon(dtype == DType::f16 ? 0.01 : 0.1));
    CHECK(values[2].item<bool>());  // all are finite
  }
}
