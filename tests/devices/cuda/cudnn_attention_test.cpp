// Attention planned by NVIDIA's cuDNN, where it is installed, for GPUs that are only described. It
// compiles kernels for them and has a driver load these: here one that only looks at them
// (tests/fake_cuda/loader.cpp).
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "devices/cuda/attention_plan.hpp"
#include "tests/contains.hpp"
#include "tests/paths.hpp"

namespace troupe::test {
namespace {

using namespace cuda;

struct PlanningCudnn {
  Library loader;
  Cudnn library;

  std::size_t images() const {
    return reinterpret_cast<std::size_t (*)()>(loader.find("troupe_loader_images"))();
  }
  DnnTarget described(const std::string& gpu) const {
    std::ifstream file(source_dir() + "/tests/devices/cuda/gpus/" + gpu + ".json");
    const std::string json((std::istreambuf_iterator<char>(file)), {});
    auto target = DnnTarget::described(library, json);
    REQUIRE_MESSAGE(target.ok(), target.status().text());
    return std::move(*target);
  }
};

std::optional<PlanningCudnn> planning_cudnn() {
  auto found = open_cudnn(Search::standard());
  if (!found.ok()) {
    CHECK(found.status().code() == Code::not_found);
    MESSAGE("skipped: ", found.status().message(), " (wheel nvidia-cudnn-cu13)");
    return {};
  }
  if (found->version < AttentionPlan::kOldest) {
    MESSAGE("skipped: ", found->path, " is older than cuDNN 9.11");
    return {};
  }
  auto loader = Library::open({"libcuda.so.1"},
                              Search{.folders = {build_dir() + "/fake-loader"}, .loader = false});
  REQUIRE_MESSAGE(loader.ok(), loader.status().text());
  return PlanningCudnn{std::move(*loader), std::move(*found)};
}

DnnLimits limits_of(const std::string& gpu) {
  return {.workspace = AttentionPlan::kMostWorkspace,
          .architecture = gpu == "a100" ? "sm_80" : "sm_90"};
}

DnnAttention of_sizes(std::int64_t batch, std::int64_t heads, std::int64_t queries,
                      std::int64_t keys, std::int64_t size) {
  DnnAttention a;
  a.batch = batch, a.heads = heads, a.queries = queries, a.keys = keys;
  a.size = a.out = size;
  return a;
}

}  // namespace

namespace {

void plan_attention(const std::string& gpu) {
  const auto cudnn = planning_cudnn();
  if (!cudnn) return;
  const DnnTarget target = cudnn->described(gpu);
  int planned = 0;
  for (const DnnAttention& sizes : {of_sizes(8, 12, 1024, 1024, 64),   // GPT-2
                                    of_sizes(2, 32, 2048, 2048, 128),  // of larger models
                                    of_sizes(3, 4, 100, 77, 32)})      // no powers of two
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const bool causal : {false, true})
        for (const bool gradient : {false, true}) {
          DnnAttention a = sizes;
          a.dtype = dtype, a.causal = causal, a.gradient = gradient;
          const bool small = a.keys == 77;
          if (small) a.bias_batch = a.batch, a.bias_heads = 1;
          INFO(gpu << ": " << AttentionPlan::text_of(a));
          const std::size_t before = cudnn->images();
          const auto plan = AttentionPlan::make(cudnn->library, a, target, limits_of(gpu));
          CHECK_MESSAGE(plan.ok(), plan.status().text());
          if (!plan.ok()) continue;
          CHECK(plan->workspace() <= AttentionPlan::kMostWorkspace);
          CHECK(cudnn->images() > before);  // it was compiled
          ++planned;
        }
  MESSAGE("cuDNN ", cudnn->library.version, ", ", gpu, ": ", planned, " plans of attention");
  CHECK(planned == 24);
}

}  // namespace

TEST_CASE("CUDA: NVIDIA's cuDNN plans attention and its gradient for an H100 [slow]") {
  plan_attention("h100");
}

TEST_CASE("CUDA: NVIDIA's cuDNN plans attention and its gradient for an A100 [slow]") {
  plan_attention("a100");
}

// No library is needed: it is not asked.
TEST_CASE("CUDA: cuDNN is not asked for what it is known not to do as it should") {
  Cudnn library;
  const DnnTarget nowhere(nullptr);
  const auto refused = [&](const DnnAttention& a, int version, const std::string& architecture) {
    library.version = version;
    bool for_good = false;
    const auto made = AttentionPlan::make_several(
        library, a, nowhere, {.workspace = 1, .architecture = architecture}, 1, &for_good);
    REQUIRE_FALSE(made.ok());
    CHECK(made.status().code() == Code::unimplemented);
    CHECK(for_good);
    return made.status().message();
  };
  DnnAttention a = of_sizes(2, 2, 64, 64, 64);
  CHECK(contains(refused(a, 91099, "sm_90"), "cuDNN 9.10.99 is not asked for attention"));
  a.dtype = DType::f32;
  CHECK(contains(refused(a, 91900, "sm_90"), "not of f32"));
  a.dtype = DType::f16, a.gradient = true;
  for (const char* other : {"sm_75", "sm_100", "sm_120"})
    CHECK(contains(refused(a, 91900, other), std::string("for ") + other));
  CHECK(contains(refused(a, 91500, "sm_80"), "no multiple of 128"));
  a.queries = a.keys = 1;
  CHECK(contains(refused(a, 91900, "sm_90"), "one query to one key"));
}

TEST_CASE("CUDA: NVIDIA's cuDNN plans odd attention, or leaves it [slow]") {
  const auto cudnn = planning_cudnn();
  if (!cudnn) return;
  for (const std::string gpu : {"h100", "a100"}) {
    const DnnTarget target = cudnn->described(gpu);
    const auto plan = [&](DnnAttention a) {
      const auto made = AttentionPlan::make(cudnn->library, a, target, limits_of(gpu));
      CHECK_MESSAGE((made.ok() || made.status().code() == Code::unimplemented), gpu, ": ",
                    AttentionPlan::text_of(a), ": ", made.status().text());
      return made.ok();
    };
    for (const bool gradient : {false, true}) {
      CAPTURE(gradient);
      const auto with = [&](DnnAttention a) {
        a.gradient = gradient;
        return a;
      };
      // Sizes that its products do not have.
      CHECK_FALSE(plan(with(of_sizes(1, 1, 16, 16, 4))));
      CHECK_FALSE(plan(with(of_sizes(1, 1, 16, 16, 12))));
      plan(with(of_sizes(2, 2, 1, 128, 64)));  // a query alone
      plan(with(of_sizes(2, 2, 64, 1, 64)));
      plan(with(of_sizes(1, 1, 1, 1, 8)));
      plan(with(of_sizes(1, 2, 64, 64, 256)));
      DnnAttention wide = of_sizes(1, 2, 64, 64, 64);
      wide.out = 32;
      plan(with(wide));
      DnnAttention biased = of_sizes(2, 2, 64, 192, 64);
      biased.bias_batch = 1, biased.bias_heads = 2, biased.causal = true;
      CHECK(plan(with(biased)));
      DnnAttention exact = of_sizes(2, 2, 64, 64, 64);
      exact.dtype = DType::f32;
      CHECK_FALSE(plan(with(exact)));
    }
    // No memory for it at all, where it takes some.
    DnnAttention a = of_sizes(2, 2, 64, 64, 64);
    a.gradient = true;
    CHECK(
        AttentionPlan::make(cudnn->library, a, target, {.architecture = "sm_90"}).status().code() ==
        Code::unimplemented);
  }
}

TEST_CASE("CUDA: NVIDIA's cuDNN takes the pointers of attention") {
  const auto cudnn = planning_cudnn();
  if (!cudnn) return;
  const DnnTarget target = cudnn->described("h100");
  for (const bool gradient : {false, true}) {
    DnnAttention a = of_sizes(2, 2, 64, 64, 64);
    a.gradient = gradient, a.causal = true, a.bias_batch = 1, a.bias_heads = 1;
    const auto plan = AttentionPlan::make(cudnn->library, a, target, limits_of("h100"));
    REQUIRE_MESSAGE(plan.ok(), plan.status().text());
    alignas(256) char all[11][256] = {};
    const DnnAttentionOperands operands{all[0], all[1], all[2], all[3], all[4],  all[5],
                                        all[6], all[7], all[8], all[9], all[10], 0.5f};
    // A handle is needed to go on.
    const Status refused = plan->run(nullptr, operands, all[0]);
    CHECK(contains(refused.text(), "cudnnBackendExecute: CUDNN_STATUS_BAD_PARAM"));
  }
}

}  // namespace troupe::test
