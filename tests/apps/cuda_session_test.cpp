// Programs on a CUDA device, on the emulated GPU: what has a CUDA kernel runs there, the rest on
// the CPU beside it. Not run on hardware.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "apps/troupe.hpp"
#include "tests/apps/emulated_gpu.hpp"
#include "tests/contains.hpp"
#include "tests/same_bits.hpp"

using namespace troupe;
using troupe::test::contains;
using troupe::test::Emulated;
using troupe::test::most_apart;
using troupe::test::same_bits;
using troupe::test::with_gpu;

namespace {

// Bytes that the device of that kind has held at most.
std::size_t peak_of(Session& session, std::string_view kind) {
  std::size_t peak = 0;
  for (const DeviceMemory& device : session.memory())
    if (contains(device.device, kind)) peak += device.peak;
  return peak;
}

// Elementwise ops of which the CPU has the same bits, some of them behind one that has no CUDA
// kernel.
std::vector<Tensor> arithmetic(bool gpu, std::size_t* peak = nullptr) {
  Graph g(3);
  Output x = placeholder<float>(g, {-1, 8}, "x"), y = placeholder<float>(g, {8}, "y");
  Output a = (x + y) * x - y / 3.0f;
  Output order = reverse(relu(a), std::vector<std::int64_t>{0});
  Output b = select(order > 0.5f, sqrt(abs(order)), -order);
  Output c = cast<float>(cast<std::int32_t>(b * 100.0f)) + maximum(a, b);
  Session session(g, with_gpu(gpu));
  auto step = session.compile({a, b, c}, {}, {x, y});
  std::vector<Tensor> all;
  for (int run = 0; run < 3; ++run) {
    Tensor fed = value_or_throw(Tensor::make(DType::f32, {5 + run, 8}));
    for (int i = 0; i < fed.elements(); ++i)
      fed.mutable_data<float>()[i] = float((i * 7 + run) % 11) / 8 - 0.6f;
    Tensor row = value_or_throw(Tensor::make(DType::f32, {8}));
    for (int i = 0; i < 8; ++i) row.mutable_data<float>()[i] = float(i) - 3.5f;
    for (Tensor& t : step.run({fed, row})) all.push_back(std::move(t));
  }
  if (peak) *peak = peak_of(session, "cuda");
  return all;
}

}  // namespace

TEST_CASE("a program has the same bits with a GPU beside the CPU") {
  const std::vector<Tensor> want = arithmetic(false);
  for (const char* fake : {"", "delay_us=200,seed=3,order=5", "delay_us=200,seed=4,order=9"}) {
    INFO(fake);
    const Emulated emulated(fake);
    std::size_t peak = 0;
    const std::vector<Tensor> got = arithmetic(true, &peak);
    CHECK(peak > 0);
    CHECK(same_bits(got, want));
  }
}

TEST_CASE("shapes are checked on a GPU, and in its loops, without a copy to the host") {
  for (const char* fake : {"", "delay_us=200,seed=3,order=5"}) {
    const Emulated emulated(fake);
    Graph g;
    const Output x = placeholder<float>(g, {6}, "x"), s = placeholder<std::int64_t>(g, {-1}, "s");
    const Output list = constant(g, Shape{2}, {std::int64_t{2}, std::int64_t{3}});
    Output inferred, ensured, looped;
    {
      auto there = g.with_device("/job:worker/task:0/cuda:0");
      inferred = relu(reshape(x * 2.0f, list));
      ensured = ensure_same_shape(reshape(x, s), x) + 1.0f;
      looped = std::get<1>(while_loop(
          std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < 3; },
          [&](Output i, Output v) {
            return std::tuple{i + 1, reshape(v * 0.5f, s)};
          }));
    }
    Cluster cluster = with_gpu(true);
    cluster.soft_placement = false;
    Session session(g, cluster);
    Tensor six = value_or_throw(Tensor::make(DType::f32, {6}));
    for (int i = 0; i < 6; ++i) six.mutable_data<float>()[i] = float(i);
    const auto dims = [](std::vector<std::int64_t> all) {
      return Tensor::of<std::int64_t>({std::int64_t(all.size())}, all);
    };
    const auto made = session.run({inferred}, {}, {{x, six}, {list, dims({2, 3})}});
    CHECK(made[0].span<float>()[5] == 10);
    CHECK(
        contains(session.try_run({inferred}, {}, {{x, six}, {list, dims({3, 2})}}).status().text(),
                 "should be [2,3]"));
    const auto all = session.run({ensured, looped}, {}, {{x, six}, {s, dims({6})}});
    CHECK(all[0].span<float>()[5] == 6);
    CHECK(all[1].span<float>()[4] == 0.5f);
    for (const Output& y : {ensured, looped})
      CHECK(session.try_run({y}, {}, {{x, six}, {s, dims({2, 3})}}).status().code() ==
            Code::invalid_argument);
  }
}

TEST_CASE("replicas count in integers on a GPU, and sum and scan what nearly leaves the range") {
  for (const bool gpu : {false, true}) {
    CAPTURE(gpu);
    const Emulated emulated("");
    Graph g;
    const Variable count = variable(g, "count", std::int64_t{10});
    const Op add = assign_add(count, data::range(8).outputs<1>(g)[0]);
    std::vector<float> line(2048, 2.f);
    line[0] = 0;
    const Output factors = placeholder<float>(g, {2048}), x = placeholder<float>(g, {3});
    const Output products = cumprod(factors), small = sigmoid(x);
    Session session(g, with_gpu(gpu));
    session.init();
    session.compile({}, {add}, {}, {.replicas = 2}).run();
    const auto y = session.run(
        {count.value(), products, small}, {},
        {{factors, Tensor::of<float>({2048}, line)}, {x, Tensor::of<float>({3}, {-90, 90, 0})}});
    CHECK(y[0].item<std::int64_t>() == 11);
    for (const float each : y[1].span<float>()) CHECK(each == 0);
    CHECK(y[2].data<float>()[0] == doctest::Approx(8.2e-40).epsilon(1e-3));
    CHECK(y[2].data<float>()[1] == 1);
    CHECK(y[2].data<float>()[2] == 0.5f);
  }
}

TEST_CASE("a program for a GPU says which wheel compiles its kernels") {
  const Emulated emulated("", false);
  Graph g;
  Output x = placeholder<float>(g, {4}, "x");
  Session session(g, with_gpu());
  const auto step = session.try_compile({x + x}, {}, {x});
  REQUIRE_FALSE(step.ok());
  CHECK(step.status().code() == Code::failed_precondition);
  CHECK(contains(step.status().text(), "the wheel nvidia-cuda-nvrtc has it"));
  CHECK(contains(step.status().text(), "cuda:0"));
}

namespace {

struct SmallNet : nn::Module {
  using Module::Module;
  nn::Linear hidden{*this, "hidden", 784, 12}, out{*this, "out", 12, 10};
};

// Losses of six steps of a small network, then its variables. Its variables are on the GPU, where
// the rule of `optimizer` has a kernel, or its CPU kernel runs beside it.
template <class Optimizer>
std::vector<Tensor> values_after(const Optimizer& optimizer, bool gpu) {
  Graph g(5);
  auto [images, labels] =
      data::digits(64, data::Split::train).shuffle(64, 1).batch(16).repeat().outputs(g);
  SmallNet net(g.scope("net"));
  Output loss = mean(softmax_cross_entropy(net.out(relu(net.hidden(images))), labels));
  Op update = optimizer.minimize(loss);
  Session session(g, with_gpu(gpu));
  session.init();
  auto step = session.compile({loss}, {update});
  std::vector<Tensor> all;
  for (int i = 0; i < 6; ++i) all.push_back(step.run(std::vector<Tensor>{})[0]);
  for (auto& [name, value] : value_or_throw(session.try_variables())) all.push_back(value);
  CHECK((peak_of(session, "cuda") > 0) == gpu);
  return test::on_heap(all);
}

template <class Optimizer>
void trains(const Optimizer& optimizer, bool cublaslt = false) {
  const std::vector<Tensor> cpu = values_after(optimizer, false);
  std::vector<Tensor> once;
  for (const char* fake : {"", "delay_us=100,seed=3,order=5"}) {
    const Emulated emulated(fake, true, cublaslt);
    const std::vector<Tensor> got = values_after(optimizer, true);
    CHECK(most_apart(got, cpu) < 1e-4);
    if (once.empty()) once = got;
    CHECK(same_bits(got, once));
  }
}

}  // namespace

TEST_CASE("a network trains on a GPU as on the CPU, twice with the same bits") {
  trains(optim::Sgd{.lr = 0.1});
  trains(optim::Momentum{.lr = 0.05, .momentum = 0.9});
  trains(optim::Adam{.lr = 0.01});
  trains(optim::Lamb{.lr = 0.01});
}

TEST_CASE("a network trains on a GPU by cuBLASLt as on the CPU, twice with the same bits") {
  const test::EnvironmentVariable asked("TROUPE_CUDA_MATMUL", "cublaslt");
  trains(optim::Momentum{.lr = 0.05, .momentum = 0.9}, true);
}

namespace {

// Updates in some runs, by the CPU's kernel.
struct Sometimes {
  Op minimize(Output loss) const {
    optim::Gradients gradients = optim::gradients(loss);
    gradients.when = loss > 2.0f;
    return optim::Sgd{.lr = 0.1}.apply(gradients);
  }
};

}  // namespace

TEST_CASE("a rule that has no kernel for GPUs runs on the CPU beside one") { trains(Sometimes{}); }

TEST_CASE("what cuBLASLt refuses on a GPU names the node, and the next run is fine") {
  const Emulated emulated("", true, true);
  Graph g;
  Output x = placeholder<float>(g, {2, 2}, "x");
  Output y = matmul(x, x);
  Session session(g, with_gpu());
  auto step = session.compile({y}, {}, {x});
  const std::vector<Tensor> fed = {Tensor::of(Shape{2, 2}, {1.0f, 2.0f, 3.0f, 4.0f})};
  {
    const test::EnvironmentVariable broken("TROUPE_FAKE_CUBLASLT", "matmul=13");
    const auto refused = step.try_run(fed);
    REQUIRE_FALSE(refused.ok());
    CHECK(contains(refused.status().text(), "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"));
    CHECK(contains(refused.status().text(), "MatMul"));
    CHECK(contains(refused.status().text(), "cuda:0"));
  }
  CHECK(Tensor::same(step.run(fed)[0], Tensor::of(Shape{2, 2}, {7.0f, 10.0f, 15.0f, 22.0f})));
}

TEST_CASE("what cuDNN refuses on a GPU names the node, and the next run is fine") {
  const Emulated emulated("", true, true);
  Graph g;
  Output x = placeholder<float>(g, {1, 2, 2, 1}, "x");
  Output y = conv2d(x, constant(g, Tensor::of(Shape{1, 1, 1, 1}, {3.0f})));
  Session session(g, with_gpu());
  auto step = session.compile({y}, {}, {x});
  const std::vector<Tensor> fed = {Tensor::of(Shape{1, 2, 2, 1}, {1.0f, 2.0f, 3.0f, 4.0f})};
  {
    const test::EnvironmentVariable broken("TROUPE_FAKE_CUDNN", "execute=5000");
    const auto refused = step.try_run(fed);
    REQUIRE_FALSE(refused.ok());
    CHECK(contains(refused.status().text(), "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED"));
    CHECK(contains(refused.status().text(), "Conv2D"));
    CHECK(contains(refused.status().text(), "cuda:0"));
  }
  CHECK(Tensor::same(step.run(fed)[0], Tensor::of(Shape{1, 2, 2, 1}, {3.0f, 6.0f, 9.0f, 12.0f})));
}

namespace {

// A convolution, or a product of matrices, with bias and Relu and the gradients of the sum of its
// squares, on fed values; fetched with it, if so, what is between the two.
struct WithBias {
  WithBias(bool convolves, bool fused, bool between = false)
      : convolves(convolves), session(g, cluster(fused)) {
    Output x =
        placeholder<float>(g, convolves ? PartialShape{2, 5, 4, 3} : PartialShape{5, 3}, "x");
    Output w =
        placeholder<float>(g, convolves ? PartialShape{3, 2, 3, 4} : PartialShape{3, 4}, "w");
    Output b = placeholder<float>(g, {4}, "b");
    const Output sums = bias_add(convolves ? conv2d(x, w) : mat_mul(x, w), b), y = relu(sums);
    const Output losses[] = {sum(y * y)}, xs[] = {x, w, b};
    std::vector<Output> fetched = value_or_throw(gradients(losses, xs));
    fetched.push_back(y);
    if (between) fetched.push_back(sums);
    step.emplace(session.compile(fetched, {}, {x, w, b}));
    for (const Output& fed : {x, w, b}) {
      Tensor t = value_or_throw(Tensor::make(DType::f32, fed.shape().shape()));
      for (std::int64_t i = 0; i < t.elements(); ++i)
        t.mutable_data<float>()[i] = float((i * 7 + feeds.size()) % 11) / 8 - 0.6f;
      feeds.push_back(std::move(t));
    }
  }
  static Cluster cluster(bool fused) {
    Cluster cluster = with_gpu();
    if (!fused) cluster.disabled_passes = {"fuse"};
    return cluster;
  }
  // By the op that the library refuses to run.
  bool runs_as_one() {
    const test::EnvironmentVariable conv("TROUPE_FAKE_CUDNN", "execute=5000"),
        product("TROUPE_FAKE_CUBLASLT", "matmul=13");
    const auto refused = step->try_run(feeds);
    REQUIRE_FALSE(refused.ok());
    return contains(refused.status().text(), convolves ? "_Conv2DBias" : "_MatMulBias");
  }

  const bool convolves;
  Graph g;
  Session session;
  std::optional<CompiledStep> step;
  std::vector<Tensor> feeds;
};

}  // namespace

TEST_CASE(
    "a convolution or product on a GPU takes bias and Relu into its node, with the same "
    "gradients") {
  for (const bool convolves : {true, false}) {
    const Emulated emulated("check=1", true, true);
    WithBias parts(convolves, false), fused(convolves, true), fetched(convolves, true, true);
    const auto want = parts.step->run(parts.feeds);
    CHECK(same_bits(fused.step->run(fused.feeds), want));
    auto more = fetched.step->run(fetched.feeds);
    more.pop_back();
    CHECK(same_bits(more, want));
    CHECK_FALSE(parts.runs_as_one());
    CHECK(fused.runs_as_one());
    CHECK(fetched.runs_as_one());  // with the bias alone
  }
}

TEST_CASE("a label outside is refused on a GPU, too") {
  const Emulated emulated;
  Graph g;
  Output logits = placeholder<float>(g, {2, 3}, "logits");
  Output labels = placeholder<std::int64_t>(g, {2}, "labels");
  Session session(g, with_gpu());
  auto step = session.compile({sum(softmax_cross_entropy(logits, labels))}, {}, {logits, labels});
  Tensor rows = value_or_throw(Tensor::make(DType::f32, {2, 3}));
  std::fill_n(rows.mutable_data<float>(), 6, 0.0f);
  const auto wrong = step.try_run({rows, Tensor::of(Shape{2}, {std::int64_t{1}, std::int64_t{3}})});
  REQUIRE_FALSE(wrong.ok());
  CHECK(contains(wrong.status().text(), "label 3 at index 1 is outside [0, 3)"));
  CHECK(contains(wrong.status().text(), "cuda:0"));
  CHECK(step.try_run({rows, Tensor::of(Shape{2}, {std::int64_t{1}, std::int64_t{2}})}).ok());
}
