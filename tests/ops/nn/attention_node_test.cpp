// Attention as one node: against attention made of single steps, with its gradients, in more rows
// than a chunk has; and what layers make of it for 16-bit floats.
#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct NodeRoot : nn::Module {
  using Module::Module;
};

Tensor open_or_not(std::uint64_t seed, const Shape& shape) {
  Tensor mask = Tensor::make(DType::bool_, shape).value();
  Random random(seed);
  for (std::int64_t i = 0; i < mask.elements(); ++i)
    mask.mutable_data<bool>()[i] = random.uniform() < 0.7;
  return mask;
}

// y and the gradients for q, k and v of sum(y w).
std::vector<Output> with_gradients(Output y, const std::vector<Output>& inputs) {
  const Output w = constant(
      y.graph(), tensor(Shape(y.shape().dims()), draw(9, Shape(y.shape().dims()).elements())));
  const Output loss = sum(cast(y, DType::f64) * w);
  std::vector<Output> all = value_or_throw(gradients(std::span(&loss, 1), inputs));
  all.insert(all.begin(), y);
  return all;
}

Tensor as_f64(const Tensor& x) {
  Graph g;
  return Interpreter(g).run({cast(constant(g, x), DType::f64)})[0];
}

// Of the largest element of `want`.
double apart(const Tensor& got, const Tensor& want) {
  const Numbers a = numbers(as_f64(got)), b = numbers(as_f64(want));
  REQUIRE(a.size() == b.size());
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return most / largest;
}

}  // namespace

TEST_CASE("attention in one node equals that of single steps, with its gradients") {
  for (const bool causal : {false, true})
    for (const auto& sizes :
         {std::tuple{130, 130, false}, {70, 40, false}, {5, 90, true}, {130, 65, true}}) {
      const int queries = std::get<0>(sizes), keys = std::get<1>(sizes);
      const bool masked = std::get<2>(sizes);
      INFO(queries << " queries, " << keys << " keys, causal " << causal << ", masked " << masked);
      Graph g;
      const auto input = [&](std::uint64_t seed, std::int64_t rows, std::int64_t columns) {
        return constant(g, tensor({2, 3, rows, columns}, draw(seed, 6 * rows * columns)));
      };
      const std::vector<Output> in{input(1, queries, 8), input(2, keys, 8), input(3, keys, 4)};
      nn::AttentionOptions options{.causal = causal, .scale = 0.6};
      if (masked) options.mask = constant(g, open_or_not(4, Shape{2, 1, queries, keys}));
      const auto want =
          with_gradients(nn::scaled_dot_product_attention(in[0], in[1], in[2], options), in);
      const auto one = [&] {
        if (!masked)
          return dot_product_attention(in[0], in[1], in[2],
                                       {.scale = 0.6, .causal = causal, .tstats = DType::f64})
              .y;
        return masked_dot_product_attention(in[0], in[1], in[2], options.mask,
                                            {.scale = 0.6, .causal = causal, .tstats = DType::f64})
            .y;
      }();
      auto fetches = with_gradients(one, in);
      fetches.insert(fetches.end(), want.begin(), want.end());
      const auto made = Interpreter(g).run(fetches);
      for (std::size_t i = 0; i < 4; ++i) check_near(made[i], numbers(made[i + 4]));
    }
}

TEST_CASE("layers attend in one node for 16-bit floats, near what f64 gives") {
  for (const DType type : {DType::f16, DType::bf16}) {
    CAPTURE(dtype_name(type));
    const auto run = [](DType of) {
      Graph g;
      const auto input = [&](std::uint64_t seed, std::int64_t rows) {
        // Numbers that all three types have.
        Numbers values = draw(seed, 6 * rows * 8);
        for (double& value : values) value = std::round(value * 64) / 64;
        return cast(constant(g, tensor({2, 3, rows, 8}, values)), of);
      };
      const std::vector<Output> in{input(1, 20), input(2, 33), input(3, 33)};
      const Output mask = constant(g, open_or_not(5, Shape{20, 33}));
      std::vector<Output> fetches;
      for (const Output& open : {Output(), mask})
        for (const bool causal : {false, true}) {
          const auto some =
              with_gradients(nn::scaled_dot_product_attention(in[0], in[1], in[2],
                                                              {.mask = open, .causal = causal}),
                             in);
          fetches.insert(fetches.end(), some.begin(), some.end());
        }
      int nodes = 0;
      for (const NodeDef& node : g.def().nodes)
        nodes += node.op.ends_with("DotProductAttention") + node.op.ends_with("AttentionGrad");
      CHECK(nodes == (of == DType::f64 ? 0 : 8));
      return Interpreter(g).run(fetches);
    };
    const auto got = run(type), want = run(DType::f64);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(got[i].dtype() == type);
      CHECK(apart(got[i], want[i]) < (type == DType::f16 ? 1.5e-3 : 1.2e-2));
    }
  }
}

TEST_CASE("a layer attends to 16-bit floats with a cache as it does to the whole") {
  for (DType parameters : {DType::f32, DType::bf16}) {
    CAPTURE(dtype_name(parameters));
    Graph g;
    NodeRoot root{g.scope("net")};
    nn::MultiHeadAttention layer{root, "layer", 8, 2, {.dtype = parameters}};
    const Output x = cast(constant(g, tensor({2, 6, 8}, draw(1, 96))), DType::bf16);
    const Output all = layer(x, x, x, {.causal = true});
    nn::KeyValueCache cache = layer.empty_cache(x, 8);
    std::vector<Output> parts;
    std::int64_t at = 0;
    for (std::int64_t count : {2, 1, 3}) {
      auto [y, next] = layer(x[{whole, range(at, at + count)}], cache);
      parts.push_back(y);
      cache = next;
      at += count;
    }
    Interpreter run(g);
    run.init();
    const auto made = run.run({concat(parts, 1), all});
    CHECK(made[0].dtype() == DType::bf16);
    CHECK(apart(made[0], made[1]) < 0.02);
  }
}
