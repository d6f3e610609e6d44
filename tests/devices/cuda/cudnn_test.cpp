// NVIDIA's cuDNN, where it is installed: plans need no GPU, only what cuDNN tells of one.
#include "devices/cuda/cudnn.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>

#include "devices/cuda/convolution_plan.hpp"
#include "tests/contains.hpp"
#include "tests/paths.hpp"

namespace troupe::test {
namespace {

using namespace cuda;

constexpr ConvolutionOf kAll[] = {ConvolutionOf::y, ConvolutionOf::dx, ConvolutionOf::dfilter};
constexpr ConvolutionThen kThen[] = {ConvolutionThen::bias, ConvolutionThen::bias_relu};
constexpr std::size_t kWorkspace = std::size_t{256} << 20;

std::optional<Cudnn> installed() {
  auto found = open_cudnn(Search::standard());
  if (found.ok() && found->version >= 90800) return std::move(*found);
  if (found.ok()) {
    MESSAGE("skipped: ", found->path, " is older than cuDNN 9.8, which needs a GPU");
    return {};
  }
  CHECK(found.status().code() == Code::not_found);
  MESSAGE("skipped: ", found.status().message(), " (wheel nvidia-cudnn-cu13)");
  return {};
}

DnnTarget described(const Cudnn& library, const std::string& gpu) {
  std::ifstream file(source_dir() + "/tests/devices/cuda/gpus/" + gpu + ".json");
  const std::string json((std::istreambuf_iterator<char>(file)), {});
  REQUIRE_FALSE(json.empty());
  auto target = DnnTarget::described(library, json);
  REQUIRE_MESSAGE(target.ok(), target.status().text());
  return std::move(*target);
}

enum class Pads { same, centred };

// Square, of 32 images.
DnnConvolution square(std::int64_t size, std::int64_t in, std::int64_t out, std::int64_t filter,
                      std::int64_t stride, Pads pads = Pads::same) {
  DnnConvolution c;
  c.images = 32, c.in_channels = in, c.out_channels = out;
  c.in = {size, size}, c.filter = {filter, filter}, c.stride = {stride, stride};
  const std::int64_t result = (size + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>(0, (result - 1) * stride + filter - size);
  c.pad_before = {total / 2, total / 2};
  c.pad_after = {total - total / 2, total - total / 2};
  if (pads == Pads::centred) c.pad_before = c.pad_after = {filter / 2, filter / 2};
  c.out = {result, result};
  return c;
}

// Every convolution of ResNet-50 on images of 224 x 224, once. The stride of a stage is that of its
// first 3 x 3 filter.
std::set<DnnConvolution> resnet50(Pads pads) {
  std::set<DnnConvolution> all = {square(224, 3, 64, 7, 2, pads)};
  std::int64_t size = 56, channels = 64;
  for (const auto& [inner, stride] : {std::pair{64, 1}, {128, 2}, {256, 2}, {512, 2}}) {
    const std::int64_t outer = 4 * inner;
    all.insert(square(size, channels, inner, 1, 1, pads));
    all.insert(square(size, inner, inner, 3, stride, pads));
    all.insert(square(size, channels, outer, 1, stride, pads));  // beside the three
    size /= stride;
    all.insert(square(size, inner, outer, 1, 1, pads));
    all.insert(square(size, outer, inner, 1, 1, pads));
    all.insert(square(size, inner, inner, 3, 1, pads));
    channels = outer;
  }
  return all;
}

std::string text(const DnnConvolution& c) {
  const char* of = c.of == ConvolutionOf::y ? "y" : c.of == ConvolutionOf::dx ? "dx" : "dfilter";
  return std::string(of) + " of " + std::string(dtype_name(c.dtype)) + " " +
         std::to_string(c.in[0]) + "x" + std::to_string(c.in[1]) + "x" +
         std::to_string(c.in_channels) + " by " + std::to_string(c.filter[0]) + "x" +
         std::to_string(c.filter[1]) + "x" + std::to_string(c.out_channels) + " stride " +
         std::to_string(c.stride[0]) + " pads " + std::to_string(c.pad_before[0]) + "," +
         std::to_string(c.pad_after[0]);
}

// A plan for each of the three; how many.
int plan_all(const Cudnn& library, const DnnTarget& gpu, DnnConvolution c) {
  int planned = 0;
  for (const ConvolutionOf of : kAll) {
    c.of = of;
    INFO(text(c));
    const auto plan = ConvolutionPlan::make(library, c, gpu, {kWorkspace});
    CHECK_MESSAGE(plan.ok(), plan.status().text());
    if (!plan.ok()) continue;
    CHECK(plan->workspace() <= kWorkspace);
    ++planned;
  }
  return planned;
}

void plan_resnet50(const std::string& name) {
  const auto library = installed();
  if (!library) return;
  const DnnTarget gpu = described(*library, name);
  int planned = 0;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const Pads pads : {Pads::same, Pads::centred}) {
      const std::set<DnnConvolution> all = resnet50(pads);
      CHECK(all.size() == 23);
      for (DnnConvolution c : all) {
        c.dtype = dtype;
        planned += plan_all(*library, gpu, c);
      }
    }
  MESSAGE("cuDNN ", library->version, ", ", name, ": ", planned, " plans");
  CHECK(planned == 6 * 3 * 23);
}

// A plan for each of what may follow; how many.
int plan_what_follows(const Cudnn& library, const DnnTarget& gpu, DnnConvolution c,
                      const ConvolutionPlan::Limits& limits) {
  int planned = 0;
  for (const ConvolutionThen then : kThen) {
    c.then = then;
    INFO(text(c) << (then == ConvolutionThen::bias ? ", bias" : ", bias, Relu"));
    const auto plan = ConvolutionPlan::make(library, c, gpu, limits);
    CHECK_MESSAGE(plan.ok(), plan.status().text());
    if (!plan.ok()) continue;
    CHECK(plan->workspace() <= limits.workspace);
    ++planned;
  }
  return planned;
}

void plan_resnet50_with_bias(const std::string& name) {
  const auto library = installed();
  if (!library) return;
  const DnnTarget gpu = described(*library, name);
  int planned = 0;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const Pads pads : {Pads::same, Pads::centred})
      for (DnnConvolution c : resnet50(pads)) {
        c.dtype = dtype;
        planned += plan_what_follows(*library, gpu, c, {kWorkspace});
      }
  MESSAGE("cuDNN ", library->version, ", ", name, ": ", planned, " plans with a bias");
  CHECK(planned == 6 * 2 * 23);
}

}  // namespace

TEST_CASE("CUDA: NVIDIA's cuDNN plans convolutions for a GPU that is only described") {
  const auto library = installed();
  if (!library) return;
  CHECK_FALSE(library->fake);
  const DnnTarget h100 = described(*library, "h100");
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    DnnConvolution c = square(28, 64, 32, 3, 1);
    c.dtype = dtype;
    CHECK(plan_all(*library, h100, c) == 3);
  }
  // With TF32 another way is the best.
  DnnConvolution c = square(56, 64, 64, 3, 1);
  const auto exact = ConvolutionPlan::make(*library, c, h100, {kWorkspace});
  const auto rounding = ConvolutionPlan::make(*library, c, h100, {kWorkspace, true});
  REQUIRE(exact.ok());
  REQUIRE(rounding.ok());
  CHECK(exact->engine() != rounding->engine());
  const auto several = ConvolutionPlan::make_several(*library, c, h100, {kWorkspace}, 4);
  REQUIRE(several.ok());
  CHECK(several->size() == 4);
  CHECK((*several)[0].engine() == exact->engine());
  // Some engine needs no workspace.
  const auto little = ConvolutionPlan::make(*library, square(28, 64, 32, 3, 1), h100, {});
  REQUIRE_MESSAGE(little.ok(), little.status().text());
  CHECK(little->workspace() == 0);
  // The pointers are taken; a handle is needed to go on.
  int x = 0, filter = 0, y = 0;
  const Status refused = little->run(nullptr, {&x, &filter, &y}, nullptr);
  CHECK(contains(refused.text(), "cudnnBackendExecute: CUDNN_STATUS_BAD_PARAM"));
}

TEST_CASE("CUDA: NVIDIA's cuDNN plans a convolution with a bias and Relu as one run") {
  const auto library = installed();
  if (!library) return;
  const DnnTarget h100 = described(*library, "h100");
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    DnnConvolution c = square(28, 64, 32, 3, 1);
    c.dtype = dtype;
    CHECK(plan_what_follows(*library, h100, c, {kWorkspace}) == 2);
    CHECK(plan_what_follows(*library, h100, c, {.workspace = kWorkspace, .tf32 = true}) == 2);
  }
  DnnConvolution c = square(28, 64, 32, 3, 1);
  c.then = ConvolutionThen::bias_relu;
  const auto plan = ConvolutionPlan::make(*library, c, h100, {});
  REQUIRE_MESSAGE(plan.ok(), plan.status().text());
  // The pointers are taken; a handle is needed to go on.
  int x = 0, filter = 0, y = 0, bias = 0;
  const Status refused = plan->run(nullptr, {&x, &filter, &y, &bias}, nullptr);
  CHECK(contains(refused.text(), "cudnnBackendExecute: CUDNN_STATUS_BAD_PARAM"));
}

// Whatever Conv2D allows is planned, or left to other kernels; it is no error.
TEST_CASE("CUDA: NVIDIA's cuDNN plans odd windows, or leaves them") {
  const auto library = installed();
  if (!library) return;
  const DnnTarget h100 = described(*library, "h100");
  int planned = 0;
  const auto check = [&](DnnConvolution c) {
    for (std::size_t axis = 0; axis < 2; ++axis)
      c.out[axis] = (c.in[axis] + c.pad_before[axis] + c.pad_after[axis] -
                     (c.filter[axis] - 1) * c.dilation[axis] - 1) /
                        c.stride[axis] +
                    1;
    const auto all = {std::pair{ConvolutionOf::y, ConvolutionThen::nothing},
                      {ConvolutionOf::dx, ConvolutionThen::nothing},
                      {ConvolutionOf::dfilter, ConvolutionThen::nothing},
                      {ConvolutionOf::y, ConvolutionThen::bias_relu}};
    for (const auto& [of, then] : all)
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
        c.of = of, c.then = then, c.dtype = dtype;
        const auto plan = ConvolutionPlan::make(*library, c, h100, {kWorkspace});
        CHECK_MESSAGE((plan.ok() || plan.status().code() == Code::unimplemented), text(c), ": ",
                      plan.status().text());
        planned += plan.ok();
      }
  };
  DnnConvolution plain;
  plain.images = 2, plain.in_channels = 6, plain.out_channels = 9;
  plain.in = {7, 5}, plain.filter = {3, 2};
  DnnConvolution c = plain;
  check(c);
  c.pad_before = {9, 8}, c.pad_after = {7, 11};  // more than the filter
  check(c);
  c = plain, c.stride = {11, 13};  // more than the image
  check(c);
  c = plain, c.dilation = {2, 4};
  check(c);
  c = plain, c.groups = 3;
  check(c);
  c = plain, c.groups = 6, c.out_channels = 12;
  check(c);
  c = plain, c.filter = {1, 1};
  check(c);
  c = plain, c.align_x = 8, c.align_filter = 8, c.align_y = 8;
  check(c);
  c = plain, c.in = {1, 1}, c.filter = {1, 1}, c.in_channels = 1, c.out_channels = 1, c.images = 1;
  check(c);
  c = plain, c.in = {70'000, 70'000}, c.filter = {3, 3};  // more than 2^31 elements
  check(c);
  c = plain, c.pad_before = {1 << 30, 0}, c.stride = {1 << 20, 1};
  check(c);
  CHECK(planned >= 60);
}

TEST_CASE("CUDA: NVIDIA's cuDNN refuses what cannot be described") {
  const auto library = installed();
  if (!library) return;
  const auto nothing = DnnTarget::described(*library, "{}");
  CHECK_FALSE(nothing.ok());
  CHECK(contains(nothing.status().text(), "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM ("));
  const DnnTarget h100 = described(*library, "h100");
  DnnConvolution c = square(28, 64, 32, 3, 1);
  c.out[0] = 27;  // does not follow
  const auto wrong = ConvolutionPlan::make(*library, c, h100, {kWorkspace});
  REQUIRE_FALSE(wrong.ok());
  CHECK(contains(wrong.status().text(), "cudnnBackendFinalize: CUDNN_STATUS_"));
}

TEST_CASE("CUDA: NVIDIA's cuDNN has a plan for every convolution of ResNet-50 on an H100") {
  plan_resnet50("h100");
}

TEST_CASE("CUDA: NVIDIA's cuDNN has a plan for every convolution of ResNet-50 on an A100 [slow]") {
  plan_resnet50("a100");
}

TEST_CASE(
    "CUDA: NVIDIA's cuDNN has a plan for every convolution of ResNet-50 with its bias [slow]") {
  for (const char* gpu : {"h100", "a100"}) plan_resnet50_with_bias(gpu);
}

}  // namespace troupe::test
