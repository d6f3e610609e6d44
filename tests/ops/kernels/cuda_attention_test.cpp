// Attention by cuDNN, as the tests' library stands in for it (tests/fake_cuda/cudnn.cpp), which
// does what the graph says that it is given, and by Troupe's kernels. Not NVIDIA's library, and not
// hardware.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "devices/cuda/attentions.hpp"
#include "ops/evaluate.hpp"
#include "tests/contains.hpp"
#include "tests/ops/kernels/cuda_kernels.hpp"
#include "tests/ops/kernels/sums_in_any_order.hpp"
#include "tests/ops/nn/nn_kernels.hpp"
#include "tests/serialization/temporary.hpp"

namespace troupe::test {
namespace {

cuda::Search search_with_cudnn() {
  cuda::Search search = emulated_search();
  search.folders.push_back(build_dir() + "/fake-cudnn");
  return search;
}

std::unique_ptr<CudaDevice> attending_gpu(const std::string& fake = "check=1",
                                          std::size_t megabytes = 16) {
  const FakeCuda on(fake);
  CudaOptions options;
  options.search = search_with_cudnn();
  options.memory = megabytes << 20;
  return make_cuda_device(DeviceName::parse("/job:worker/task:0/cuda:0").value(), options).value();
}

struct AttentionBy {
  explicit AttentionBy(const std::string& attention, const std::string& library = "")
      : library("TROUPE_FAKE_CUDNN", library), attention("TROUPE_CUDA_ATTENTION", attention) {}
  const EnvironmentVariable library, attention;
};

// What the library has computed so far.
std::size_t computed_by_cudnn() {
  const auto library = cuda::Library::open({"libcudnn.so.9"}, search_with_cudnn());
  return reinterpret_cast<std::size_t (*)()>(library->find("troupe_fake_cudnn_computed"))();
}

constexpr double kScale = 1.3;

// Attention and its gradient, with what the CPU makes of them.
struct AttentionCase {
  NodeDef forward, backward;
  std::vector<Tensor> in, back, want, want_back;

  AttentionCase(Random& random, DType dtype, const Shape& leading, std::int64_t queries,
                std::int64_t keys, std::int64_t size, std::int64_t out, bool causal,
                const Tensor& mask = {}) {
    const auto matrices = [&](std::int64_t rows, std::int64_t columns) {
      std::vector<std::int64_t> dims(leading.dims().begin(), leading.dims().end());
      dims.insert(dims.end(), {rows, columns});
      return Shape::make(dims).value();
    };
    in = {numbers(random, dtype, matrices(queries, size)),
          numbers(random, dtype, matrices(keys, size)),
          numbers(random, dtype, matrices(keys, out))};
    const Tensor dy = numbers(random, dtype, matrices(queries, out));
    if (mask.defined()) in.push_back(mask);
    const AttrMap attrs{{"scale", kScale},
                        {"causal", causal},
                        {"Tstats", dtype == DType::f64 ? DType::f64 : DType::f32}};
    const std::string name = mask.defined() ? "MaskedDotProductAttention" : "DotProductAttention";
    forward = make_node(name, in, attrs);
    want = evaluated(forward, in);
    back = {dy, in[0], in[1], in[2], want[0], want[1]};
    if (mask.defined()) back.push_back(mask);
    backward = make_node(name + "Grad", back, attrs);
    want_back = evaluated(backward, back);
  }

  static std::vector<Tensor> evaluated(const NodeDef& node, const std::vector<Tensor>& inputs) {
    auto made = evaluate(ops::builtin(), node, inputs, inline_device());
    REQUIRE_MESSAGE(made.ok(), made.status().text());
    return *made;
  }

  double largest_score() const {
    const Tensor &q = in[0], &k = in[1];
    const std::int64_t size = q.dim(q.rank() - 1), queries = q.dim(q.rank() - 2),
                       keys = k.dim(k.rank() - 2);
    double most = 0;
    for (std::int64_t i = 0; size > 0 && i < q.elements() / size; ++i)
      for (std::int64_t j = 0; j < keys; ++j) {
        double sum = 0;
        for (std::int64_t d = 0; d < size; ++d)
          sum += element(q, i * size + d) * element(k, (i / queries * keys + j) * size + d);
        most = std::max(most, std::abs(kScale * sum));
      }
    return most;
  }
  Expected<std::vector<Tensor>> y(CudaDevice& device, std::size_t offset = 0) const {
    return run_on_gpu(ops::builtin(), device, forward, in, false, {}, offset);
  }
  Expected<std::vector<Tensor>> dx(CudaDevice& device, std::size_t offset = 0) const {
    return run_on_gpu(ops::builtin(), device, backward, back, false, {}, offset);
  }
};

// docs/cuda.md: in units of the largest element of an output. Kernels round the scores, too, of
// which the largest is `score`.
double bound_of(DType dtype, double score) {
  if (dtype == DType::f64) return 1e-12;
  if (dtype == DType::f32) return 1e-5;
  return 4 * (1 + score) * (dtype == DType::f16 ? std::ldexp(1, -11) : std::ldexp(1, -8));
}

void check_near(const Expected<std::vector<Tensor>>& got, const std::vector<Tensor>& want,
                double bound) {
  REQUIRE_MESSAGE(got.ok(), got.status().text());
  REQUIRE(got->size() == want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    REQUIRE((*got)[k].dtype() == want[k].dtype());
    REQUIRE((*got)[k].shape() == want[k].shape());
    double largest = 0, apart = 0;
    for (std::int64_t i = 0; i < want[k].elements(); ++i) {
      largest = std::max(largest, std::abs(element(want[k], i)));
      const double difference = std::abs(element((*got)[k], i) - element(want[k], i));
      apart = difference > apart || std::isnan(difference) ? difference : apart;
    }
    CHECK_MESSAGE(apart <= bound * std::max(largest, 1e-3),
                  "output " << k << ": " << apart << " apart, of " << largest);
  }
}

void check(CudaDevice& device, const AttentionCase& one, std::size_t offset = 0) {
  const auto got = [&](bool gradient) {
    const std::size_t before = computed_by_cudnn();
    const auto made = gradient ? one.dx(device, offset) : one.y(device, offset);
    const bool by_cudnn = computed_by_cudnn() > before;
    check_near(made, gradient ? one.want_back : one.want,
               bound_of(one.in[0].dtype(), by_cudnn ? 1 : std::max(1.0, one.largest_score())));
  };
  got(false);
  got(true);
}

// Some are open. Of the first query none is.
Tensor mask_of(Random& random, const Shape& shape) {
  Tensor mask = Tensor::make(DType::bool_, shape).value();
  const std::int64_t columns = shape.dim(shape.rank() - 1);
  for (std::int64_t i = 0; i < mask.elements(); ++i)
    mask.mutable_data<bool>()[i] = i >= columns && random.uniform() < 0.6;
  return mask;
}

AttentionCase plain_case(Random& random, DType dtype = DType::f16) {
  return {random, dtype, {2, 2}, 5, 128, 16, 8, true};
}

}  // namespace

TEST_CASE("CUDA: attention and its gradient by cuDNN and by Troupe's kernels are near the CPU's") {
  Random random(71);
  INFO("seed 71");
  struct Sizes {
    Shape leading;
    std::int64_t queries, keys, size, out;
    Shape mask;
  };
  const Sizes all[] = {
      {{2, 3}, 5, 128, 8, 16, {}},
      {{1, 2}, 20, 128, 16, 8, {}},
      {{4}, 7, 9, 24, 8, {}},
      {{}, 3, 33, 8, 8, {}},
      {{2, 1, 2}, 4, 6, 8, 8, {}},
      {{2, 3}, 6, 20, 8, 16, {6, 20}},
      {{2, 3}, 6, 20, 8, 16, {2, 1, 1, 20}},
      {{2, 3}, 6, 20, 8, 16, {2, 3, 6, 20}},
      {{2, 3}, 6, 20, 8, 16, {1, 3, 6, 1}},
      {{3}, 6, 20, 8, 8, {3, 6, 20}},
      {{2, 2, 3}, 4, 5, 8, 8, {2, 1, 3, 4, 5}},
      {{2, 2, 3}, 4, 5, 8, 8, {1, 5}},
  };
  for (const char* by : {"cudnn", "kernels"}) {
    const AttentionBy settings(by);
    auto device = attending_gpu();
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const Sizes& s : all)
        for (const bool causal : {false, true}) {
          // Of bf16 every other one: its kernels are those of f16.
          if (dtype == DType::bf16 && causal == ((&s - all) % 2 == 0)) continue;
          INFO(by << " " << dtype_name(dtype) << " " << s.leading.text() << " " << s.queries << " "
                  << s.keys << ", mask " << s.mask.text() << ", causal " << causal);
          const Tensor mask = s.mask.rank() == 0 ? Tensor() : mask_of(random, s.mask);
          const AttentionCase one(random, dtype, s.leading, s.queries, s.keys, s.size, s.out,
                                  causal, mask);
          const std::size_t before = computed_by_cudnn();
          check(*device, one);
          CHECK(computed_by_cudnn() - before == (by == std::string("cudnn") ? 2 : 0));
        }
    CHECK((device->attentions() != nullptr) == (by == std::string("cudnn")));
    CHECK(fake_reports().empty());
  }
}

// By what the GPU has for it, the gradients of q in one order.
TEST_CASE("CUDA: attention on any GPU is near the CPU's, twice with the same bits" *
          doctest::test_suite("gpu")) {
  if (skips_without_gpu()) return;
  Random random(80);
  INFO("seed 80");
  auto device = test_gpu("order=3");
  const std::int64_t queries = is_on_hardware() ? 256 : 6, keys = is_on_hardware() ? 384 : 40,
                     size = is_on_hardware() ? 64 : 16;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const bool causal : {false, true})
      for (const bool masked : {false, true}) {
        INFO(dtype_name(dtype) << ", causal " << causal << ", masked " << masked);
        const AttentionCase one(random, dtype, {2, 2}, queries, keys, size, size, causal,
                                masked ? mask_of(random, Shape{2, 1, queries, keys}) : Tensor());
        const double bound = bound_of(dtype, std::max(1.0, one.largest_score()));
        for (const bool gradient : {false, true}) {
          const auto run = [&] { return gradient ? one.dx(*device) : one.y(*device); };
          const auto got = run(), again = run();
          check_near(got, gradient ? one.want_back : one.want, bound);
          REQUIRE(again.ok());
          for (std::size_t i = 0; i < got->size(); ++i) CHECK(Tensor::same((*got)[i], (*again)[i]));
        }
      }
}

TEST_CASE("CUDA: attention of f32 and f64, and of nothing, does not ask cuDNN") {
  Random random(72);
  INFO("seed 72");
  const AttentionBy settings("cudnn");
  auto device = attending_gpu();
  const std::size_t before = computed_by_cudnn();
  for (const DType dtype : {DType::f32, DType::f64})
    for (const bool causal : {false, true}) {
      if (causal == (dtype == DType::f64))
        check(*device, {random, dtype, {1, 2}, 9, 300, 8, 4, causal});
      check(*device,
            {random, dtype, {2, 3}, 4, 5, 8, 4, causal, mask_of(random, Shape{2, 3, 4, 5})});
    }
  for (const DType dtype : {DType::f16, DType::f32})
    for (const auto& [queries, keys, size, out] :
         {std::array{0, 3, 8, 8}, {3, 0, 8, 8}, {3, 4, 0, 8}, {3, 4, 8, 0}})
      check(*device, {random, dtype, {2, 3}, queries, keys, size, out, false});
  check(*device, {random, DType::bf16, {0, 3}, 2, 3, 8, 8, false});
  CHECK(computed_by_cudnn() == before);
  CHECK(fake_reports().empty());
}

TEST_CASE("CUDA: a query that may not look anywhere has zeros by cuDNN, and no gradient") {
  Random random(73);
  INFO("seed 73");
  const AttentionBy settings("cudnn");
  auto device = attending_gpu();
  for (const DType dtype : {DType::f16, DType::bf16}) {
    // By the mask alone, and by the mask and since it is causal.
    Tensor mask = Tensor::make(DType::bool_, Shape{3, 8}).value();
    for (std::int64_t i = 0; i < 24; ++i) mask.mutable_data<bool>()[i] = i % 8 >= 2 && i < 16;
    const AttentionCase one(random, dtype, {1, 2}, 3, 8, 8, 8, true, mask);
    const auto y = one.y(*device), dx = one.dx(*device);
    REQUIRE_MESSAGE(y.ok(), y.status().text());
    REQUIRE_MESSAGE(dx.ok(), dx.status().text());
    for (const std::int64_t row : {0, 1, 2, 3, 4, 5}) {
      CHECK(element((*y)[1], row) == 0);
      for (std::int64_t j = 0; j < 8; ++j) {
        CHECK(element((*y)[0], 8 * row + j) == 0);
        CHECK(element((*dx)[0], 8 * row + j) == 0);
      }
    }
    for (const Tensor& d : *dx)
      for (std::int64_t i = 0; i < d.elements(); ++i) CHECK(element(d, i) == 0);
  }
}

TEST_CASE("CUDA: attention that cuDNN does not know is Troupe's, unless it was asked for") {
  Random random(74);
  INFO("seed 74");
  const AttentionCase odd(random, DType::f16, {2}, 5, 128, 12, 8, true),
      large(random, DType::bf16, {2}, 5, 128, 136, 8, false), plain = plain_case(random);
  const auto computes = [&](const std::string& library, const AttentionCase& one) {
    const AttentionBy settings("", library);
    auto device = attending_gpu();
    const std::size_t before = computed_by_cudnn();
    check(*device, one);
    CHECK(device->attentions() != nullptr);
    return computed_by_cudnn() - before;
  };
  CHECK(computes("", plain) == 2);
  CHECK(computes("", odd) == 0);
  CHECK(computes("", large) == 0);
  for (const char* library : {"plan=3000", "heuristics=3000", "none=1", "alone=1"})
    CHECK(computes(library, plain) == 0);
  CHECK(computes("execute=3000", plain) == 0);
  // Parts of tensors that are not aligned are not even asked for.
  const AttentionBy settings("cudnn");
  auto device = attending_gpu();
  const std::size_t before = computed_by_cudnn();
  check(*device, plain, 4);  // stats are of four bytes
  CHECK(computed_by_cudnn() == before);
  const Status refused = odd.y(*device).status();
  CHECK(refused.code() == Code::unimplemented);
  CHECK(contains(refused.message(), "no exact and deterministic way"));
}

TEST_CASE("CUDA: old versions of cuDNN are not asked for what they are known to get wrong") {
  Random random(75);
  INFO("seed 75");
  const AttentionCase whole = plain_case(random),
                      uneven(random, DType::f16, {2, 2}, 5, 120, 16, 8, false),
                      single(random, DType::f16, {2, 2}, 1, 1, 16, 8, false);
  const auto says = [&](int version, const AttentionCase& one, bool gradient) {
    const AttentionBy settings("cudnn", "version=" + std::to_string(version));
    auto device = attending_gpu();
    const auto made = gradient ? one.dx(*device) : one.y(*device);
    if (made.ok()) return std::string("ok");
    CHECK(made.status().code() == Code::unimplemented);
    return made.status().message();
  };
  for (const bool gradient : {false, true}) {
    CHECK(says(91100, whole, gradient) == "ok");
    CHECK(contains(says(91002, whole, gradient),
                   "cuDNN 9.10.2 is not asked for attention: that takes cuDNN 9.11.0"));
  }
  CHECK(says(91500, uneven, false) == "ok");
  CHECK(contains(says(91500, uneven, true), "no multiple of 128"));
  CHECK(says(91501, uneven, true) == "ok");
  CHECK(says(91900, single, false) == "ok");
  CHECK(contains(says(91900, single, true), "one query to one key"));
  // Otherwise Troupe's kernels compute it.
  const AttentionBy settings("", "version=90100");
  auto device = attending_gpu();
  check(*device, whole);
  CHECK(fake_reports().empty());
}

TEST_CASE("CUDA: what goes wrong with attention by cuDNN is an error, and the device goes on") {
  Random random(76);
  INFO("seed 76");
  const AttentionCase one = plain_case(random);
  for (const auto& [setting, text] :
       {std::pair{"execute=3000", "cudnnBackendExecute: CUDNN_STATUS_NOT_SUPPORTED"},
        {"execute=5000", "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED"},
        {"heuristics=2000", "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM"},
        {"plan=4004", "cudnnBackendFinalize: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"},
        {"none=1", "no exact and deterministic way to compute it"},
        {"create=1001", "TROUPE_CUDA_ATTENTION=kernels does without it"}}) {
    const char* const library = setting;
    CAPTURE(library);
    auto device = attending_gpu();
    {
      const AttentionBy settings("cudnn", library);
      for (const bool gradient : {false, true}) {
        const auto refused = gradient ? one.dx(*device) : one.y(*device);
        REQUIRE_FALSE(refused.ok());
        CHECK_MESSAGE(contains(refused.status().text(), text), refused.status().text());
      }
    }
    const AttentionBy settings("cudnn");
    if (library != std::string("none=1")) check(*device, one);  // that is remembered
  }
  // Other failures are not left to kernels either.
  for (const char* library : {"execute=5000", "heuristics=2000", "plan=4004"}) {
    const AttentionBy settings("", library);
    auto device = attending_gpu();
    CHECK_FALSE(one.y(*device).ok());
  }
}

TEST_CASE("CUDA: a workspace for attention that cannot be had is not taken, or an error") {
  Random random(77);
  INFO("seed 77");
  // The first engine's workspace takes 4 bytes of each score: 4 MiB, beside 2 MiB of operands.
  const AttentionCase one(random, DType::f16, {1, 1}, 1024, 1024, 8, 8, false);
  const AttentionBy settings("cudnn");
  for (const std::size_t megabytes : {8, 64}) {
    auto device = attending_gpu("memory_mb=128", megabytes);
    check_near(one.y(*device), one.want, bound_of(DType::f16, 1));
    CHECK((device->peak_bytes() > (std::size_t{4} << 20)) == (megabytes == 64));
  }
  // The memory ends while it runs: q, k and v, y and stats, then the workspace.
  auto device = attending_gpu("memory_mb=2", 64);
  const auto starved = one.y(*device);
  REQUIRE_FALSE(starved.ok());
  CHECK(starved.status().code() == Code::resource_exhausted);
}

TEST_CASE("CUDA: attention by cuDNN is in the order of the stream, twice with the same bits") {
  Random random(78);
  INFO("seed 78");
  const AttentionBy settings("cudnn");
  const AttentionCase one = plain_case(random, DType::bf16);
  const AttentionCase masked(random, DType::bf16, {2, 2}, 5, 24, 16, 8, true,
                             mask_of(random, Shape{5, 24}));
  std::vector<Tensor> first;
  for (const char* fake :
       {"check=1", "check=1,delay_us=300,seed=5", "check=1,delay_us=300,seed=6"}) {
    auto device = attending_gpu(fake);
    std::vector<Tensor> all;
    for (int round = 0; round < 2; ++round)
      for (const AttentionCase* some : {&one, &masked})
        for (const auto& got : {some->y(*device), some->dx(*device)}) {
          REQUIRE_MESSAGE(got.ok(), got.status().text());
          for (const Tensor& t : *got) all.push_back(t.clone().value());
        }
    for (std::size_t i = 0; i < all.size() / 2; ++i)
      CHECK(Tensor::same(all[i], all[i + all.size() / 2]));
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(Tensor::same(all[i], first[i]));
    CHECK(fake_reports().empty());
  }
}

TEST_CASE("CUDA: measured choices for attention are kept, and later devices take the same") {
  const testing::TemporaryDir folder;
  const EnvironmentVariable cache("TROUPE_CUDA_CACHE", folder.path()),
      tune("TROUPE_CUDA_TUNE", "1");
  const AttentionBy settings("cudnn");
  Random random(79);
  INFO("seed 79");
  const AttentionCase one = plain_case(random);
  const auto kept = [&] {
    return std::count_if(
        std::filesystem::directory_iterator(folder.path()), {},
        [](const auto& file) { return contains(file.path().filename().string(), "cudnn-"); });
  };
  std::vector<Tensor> first;
  for (const char* fake : {"check=1", "check=1,delay_us=100,seed=4"}) {
    auto device = attending_gpu(fake);
    check(*device, one);
    std::vector<Tensor> all = *one.y(*device);
    for (const Tensor& t : *one.dx(*device)) all.push_back(t);
    if (first.empty())
      for (const Tensor& t : all) first.push_back(t.clone().value());
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(Tensor::same(all[i], first[i]));
    CHECK(kept() == 2);
    CHECK(fake_reports().empty());
  }
}

TEST_CASE("CUDA: what computes attention can be chosen, and nothing else is taken silently") {
  cuda::Driver driver;
  driver.fake = true, driver.version = 13000;
  {
    const AttentionBy settings("");
    CHECK(cuda::choose_attentions(search_with_cudnn(), driver)->library.has_value());
    const auto missing = cuda::choose_attentions(emulated_search(), driver);
    REQUIRE(missing.ok());
    CHECK_FALSE(missing->library.has_value());
    CHECK(contains(missing->text, "Troupe's kernels: cudnn is missing: "));
  }
  {
    const AttentionBy settings("kernels");
    CHECK_FALSE(cuda::choose_attentions(search_with_cudnn(), driver)->library.has_value());
  }
  {
    const AttentionBy settings("cudnn");
    CHECK(cuda::choose_attentions(emulated_search(), driver).status().code() ==
          Code::failed_precondition);
  }
  const AttentionBy settings("flash");
  const Status status = cuda::choose_attentions(search_with_cudnn(), driver).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(contains(status.message(), "TROUPE_CUDA_ATTENTION is 'flash'"));
}

}  // namespace troupe::test
