// Convolutions by cuDNN, as the tests' library stands in for it (tests/fake_cuda/cudnn.cpp): what
// it is told of layouts, windows, groups, workspace and streams. Not NVIDIA's library, and not
// hardware.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "devices/cuda/convolutions.hpp"
#include "ops/evaluate.hpp"
#include "ops/kernels/nn/conv.hpp"
#include "tests/contains.hpp"
#include "tests/ops/kernels/conformance.hpp"
#include "tests/ops/kernels/cuda_followed.hpp"
#include "tests/ops/kernels/cuda_kernels.hpp"
#include "tests/ops/kernels/sums_in_any_order.hpp"
#include "tests/ops/nn/nn_kernels.hpp"
#include "tests/serialization/temporary.hpp"

namespace troupe::test {
namespace {

cuda::Search with_library() {
  cuda::Search search = emulated_search();
  search.folders.push_back(build_dir() + "/fake-cudnn");
  return search;
}

struct Settings {
  explicit Settings(const std::string& library = "", const std::string& conv = "cudnn")
      : library("TROUPE_FAKE_CUDNN", library), conv("TROUPE_CUDA_CONV", conv) {}
  const EnvironmentVariable library, conv;
};

// Settings under which choices are measured, and kept in a folder of its own.
struct MeasuredChoices {
  // How many it holds.
  std::ptrdiff_t kept() const {
    return std::count_if(
        std::filesystem::directory_iterator(folder.path()), {},
        [](const auto& file) { return contains(file.path().filename().string(), "cudnn-"); });
  }

  const testing::TemporaryDir folder;
  const EnvironmentVariable cache{"TROUPE_CUDA_CACHE", folder.path()},
      tune{"TROUPE_CUDA_TUNE", "1"};
  const Settings settings;
};

std::unique_ptr<CudaDevice> gpu_with(const cuda::Search& search, const std::string& fake = "",
                                     std::size_t megabytes = 16) {
  const FakeCuda on(fake);
  CudaOptions options;
  options.search = search;
  options.memory = megabytes << 20;
  return make_cuda_device(DeviceName::parse("/job:worker/task:0/cuda:0").value(), options).value();
}

// One of the three ops, and how many terms its sums have at most.
struct Case {
  NodeDef node;
  std::vector<Tensor> inputs, sizes;
  std::int64_t terms = 0;
};

Tensor list(const Shape& shape) {
  Tensor t = Tensor::make(DType::i64, Shape{shape.rank()}).value();
  std::copy(shape.dims().begin(), shape.dims().end(), t.mutable_data<std::int64_t>());
  return t;
}

// The convolution of x and filter, and both gradients.
std::vector<Case> cases_of(Random& random, DType dtype, const Shape& x, const Shape& filter,
                           const AttrMap& attrs) {
  const Tensor a = numbers(random, dtype, x), b = numbers(random, dtype, filter);
  std::vector<Case> cases = {
      {make_node("Conv2D", {a, b}, attrs), {a, b}, {sizes_of(a), sizes_of(b)}, 0}};
  const auto y = evaluate(ops::builtin(), cases[0].node, {a, b}, inline_device());
  REQUIRE_MESSAGE(y.ok(), y.status().text());
  const Tensor dy = numbers(random, dtype, (*y)[0].shape());
  const Tensor of_x = list(x), of_filter = list(filter);
  cases.push_back({make_node("Conv2DBackpropInput", {of_x, b, dy}, attrs),
                   {of_x, b, dy},
                   {of_x, sizes_of(b), sizes_of(dy)},
                   0});
  cases.push_back({make_node("Conv2DBackpropFilter", {a, of_filter, dy}, attrs),
                   {a, of_filter, dy},
                   {sizes_of(a), of_filter, sizes_of(dy)},
                   0});
  const std::int64_t window = filter.dim(0) * filter.dim(1);
  cases[0].terms = window * filter.dim(2);
  cases[1].terms = window * filter.dim(3);
  cases[2].terms = dy.shape().elements() / std::max<std::int64_t>(1, dy.shape().dim(3));
  return cases;
}

void check(CudaDevice& device, const Case& one, std::size_t offset = 0, bool tf32 = false) {
  INFO(one.node.op);
  const auto got = run_on_gpu(ops::builtin(), device, one.node, one.inputs, false, {}, offset);
  const auto want = evaluate(ops::builtin(), one.node, one.inputs, inline_device());
  NodeDef of_sizes = one.node;
  of_sizes.attrs["T"] = DType::f64;
  of_sizes.out_types = {DType::f64};
  const auto sizes = evaluate(ops::builtin(), of_sizes, one.sizes, inline_device());
  REQUIRE_MESSAGE(got.ok(), got.status().text());
  REQUIRE_MESSAGE(want.ok(), want.status().text());
  REQUIRE_MESSAGE(sizes.ok(), sizes.status().text());
  if (tf32) return check_rounded_to_tf32((*got)[0], (*want)[0], (*sizes)[0]);
  check_within((*got)[0], (*want)[0], (*sizes)[0], one.terms);
}

Followed followed(Random& random, DType dtype, const Shape& x, const Shape& filter,
                  const AttrMap& attrs, bool relu) {
  return {{numbers(random, dtype, x), numbers(random, dtype, filter),
           numbers(random, dtype, Shape{filter.dim(3)})},
          attrs,
          relu,
          filter.dim(0) * filter.dim(1) * filter.dim(2) + 1,
          "Conv2D"};
}

using Ints = std::vector<std::int64_t>;
AttrMap attributes(Ints strides, Ints dilations, std::int64_t groups, Ints pads) {
  return {{"strides", std::move(strides)},
          {"dilations", std::move(dilations)},
          {"groups", groups},
          {"padding", pads.empty() ? "SAME" : "EXPLICIT"},
          {"explicit_paddings", std::move(pads)}};
}

}  // namespace

TEST_CASE("CUDA: convolutions and both gradients of any window, by cuDNN and by Troupe's kernels") {
  Random random(41);
  INFO("seed 41");
  struct Window {
    const char* what;
    Shape x, filter;
    Ints strides, dilations;
    std::int64_t groups;
    Ints pads;
  };
  const Window windows[] = {
      {"SAME", {2, 6, 5, 3}, {3, 2, 3, 4}, {1, 1}, {1, 1}, 1, {}},
      {"strides, padded at the end", {2, 6, 5, 3}, {3, 3, 3, 4}, {2, 3}, {1, 1}, 1, {}},
      {"dilations", {1, 9, 8, 2}, {3, 2, 2, 3}, {1, 2}, {2, 3}, 1, {}},
      {"four paddings", {2, 5, 4, 3}, {3, 2, 3, 2}, {1, 1}, {1, 1}, 1, {1, 2, 0, 3}},
      {"groups", {2, 4, 4, 6}, {2, 3, 2, 9}, {1, 1}, {1, 1}, 3, {}},
      {"each channel by itself", {2, 4, 4, 3}, {3, 3, 1, 6}, {1, 1}, {1, 1}, 3, {}},
      {"1 x 1", {3, 4, 5, 7}, {1, 1, 7, 5}, {1, 1}, {1, 1}, 1, {0, 0, 0, 0}},
      {"1 x 1 with a stride", {3, 5, 5, 2}, {1, 1, 2, 5}, {2, 2}, {1, 1}, 1, {}},
      {"one channel in and out", {2, 4, 4, 1}, {2, 2, 1, 1}, {1, 1}, {1, 1}, 1, {}},
      {"filters of one number", {2, 4, 4, 1}, {1, 1, 1, 5}, {1, 1}, {1, 1}, 1, {}},
      {"padding larger than the filter",
       {1, 3, 3, 2},
       {2, 2, 2, 3},
       {1, 1},
       {1, 1},
       1,
       {5, 4, 3, 6}},
      {"a stride larger than the image",
       {2, 3, 4, 2},
       {2, 2, 2, 3},
       {7, 9},
       {1, 1},
       1,
       {0, 0, 0, 0}},
      {"sums over many pixels", {3, 29, 31, 2}, {3, 3, 1, 4}, {1, 1}, {1, 1}, 2, {}},
      {"no image", {0, 4, 4, 2}, {2, 2, 2, 3}, {1, 1}, {1, 1}, 1, {}},
      {"no channel in", {2, 4, 4, 0}, {2, 2, 0, 3}, {1, 1}, {1, 1}, 1, {}},
      {"no channel out", {2, 4, 4, 2}, {2, 2, 2, 0}, {1, 1}, {1, 1}, 1, {}},
      {"an image without pixels", {2, 0, 4, 2}, {2, 2, 2, 3}, {1, 1}, {1, 1}, 1, {1, 1, 1, 1}},
  };
  for (const char* by : {"cudnn", "kernels"}) {
    const Settings settings("", by);
    auto device = gpu_with(with_library(), "check=1");
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (const Window& w : windows)
        for (const Case& one : cases_of(random, dtype, w.x, w.filter,
                                        attributes(w.strides, w.dilations, w.groups, w.pads))) {
          INFO(w.what << " of " << dtype_name(dtype) << " by " << by);
          check(*device, one);
        }
    CHECK((device->convolutions() != nullptr) == (by == std::string("cudnn")));
    CHECK(fake_reports().empty());
  }
}

TEST_CASE(
    "CUDA: a convolution with a bias and Relu is one run of cuDNN, with the bits of its parts") {
  const Settings settings;
  auto device = gpu_with(with_library(), "check=1");
  Random random(53);
  INFO("seed 53");
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const bool relu : {false, true})
      for (const auto& [x, filter, groups] : {std::tuple{Shape{2, 6, 5, 3}, Shape{3, 2, 3, 4}, 1},
                                              {Shape{2, 4, 4, 6}, Shape{2, 3, 2, 9}, 3},
                                              {Shape{3, 4, 5, 7}, Shape{1, 1, 7, 5}, 1},
                                              {Shape{2, 4, 4, 1}, Shape{2, 2, 1, 1}, 1}}) {
        const Followed one =
            followed(random, dtype, x, filter, attributes({1, 2}, {1, 1}, groups, {}), relu);
        const std::string shape = x.text();
        INFO(dtype_name(dtype) << " " << shape << (relu ? " Relu" : ""));
        check(*device, one);
        if (dtype == DType::f16 || dtype == DType::bf16) continue;  // parts are rounded each
        const auto fused = run_on_gpu(ops::builtin(), *device, one.fused(), one.inputs);
        const auto parts = one.one_by_one([&](const NodeDef& node, std::vector<Tensor> inputs) {
          return run_on_gpu(ops::builtin(), *device, node, inputs);
        });
        REQUIRE(fused.ok());
        REQUIRE_MESSAGE(parts.ok(), parts.status().text());
        CHECK(Tensor::same((*fused)[0], (*parts)[0]));
      }
  CHECK(fake_reports().empty());
}

TEST_CASE("CUDA: a convolution is computed in its parts where cuDNN has no run for all of it") {
  Random random(54);
  INFO("seed 54");
  struct Case {
    const char *library, *conv;
  };
  // By cuDNN and two kernels; by Troupe's kernels.
  for (const auto& [library, conv] : {Case{"alone=1", "cudnn"}, {"none=1", ""}, {"", "kernels"}}) {
    const Settings settings(library, conv);
    auto device = gpu_with(with_library(), "check=1");
    for (const DType dtype : {DType::f32, DType::f64})
      for (const bool relu : {false, true}) {
        const Followed one = followed(random, dtype, {2, 6, 5, 3}, {3, 2, 3, 4},
                                      attributes({1, 1}, {1, 1}, 1, {}), relu);
        const std::string settings_text = std::string(library) + " " + conv;
        INFO(settings_text << " " << dtype_name(dtype));
        check(*device, one);
      }
    CHECK(fake_reports().empty());
  }
  // What has no terms, and a way that is refused when it runs.
  const Settings settings("", "");
  auto device = gpu_with(with_library());
  for (const auto& [x, filter] : {std::pair{Shape{0, 4, 4, 2}, Shape{2, 2, 2, 3}},
                                  {Shape{2, 4, 4, 0}, Shape{2, 2, 0, 3}},
                                  {Shape{2, 4, 4, 2}, Shape{2, 2, 2, 0}}})
    check(*device,
          followed(random, DType::f32, x, filter, attributes({1, 1}, {1, 1}, 1, {}), true));
  const Settings refuses("execute=3000", "");
  check(*device, followed(random, DType::f32, {1, 4, 4, 2}, {2, 2, 2, 3},
                          attributes({1, 1}, {1, 1}, 1, {}), true));
}

TEST_CASE("CUDA: Relu behind a convolution keeps NaN, and makes -inf 0") {
  Random random(55);
  INFO("seed 55");
  for (const char* conv : {"cudnn", "kernels"}) {
    const Settings settings("", conv);
    auto device = gpu_with(with_library());
    Followed one = followed(random, DType::f32, {1, 1, 4, 1}, {1, 1, 1, 1},
                            attributes({1, 1}, {1, 1}, 1, {}), true);
    one.inputs[0] = Tensor::of<float>(Shape{1, 1, 4, 1}, {float(kNan), float(-kInf), -1, 2});
    one.inputs[1] = Tensor::of<float>(Shape{1, 1, 1, 1}, {1});
    one.inputs[2] = Tensor::of<float>(Shape{1}, {0.5f});
    const auto got = run_on_gpu(ops::builtin(), *device, one.fused(), one.inputs);
    REQUIRE_MESSAGE(got.ok(), got.status().text());
    const float* y = (*got)[0].data<float>();
    CHECK(std::isnan(y[0]));
    CHECK(y[1] == 0);
    CHECK(y[2] == 0);
    CHECK(y[3] == 2.5f);
  }
}

TEST_CASE("CUDA: what goes wrong with a convolution and its bias is an error") {
  Random random(56);
  INFO("seed 56");
  const Followed one = followed(random, DType::f32, {1, 4, 4, 2}, {2, 2, 2, 3},
                                attributes({1, 1}, {1, 1}, 1, {}), true);
  {
    const Settings settings("execute=5000", "");  // it failed: its parts would, too
    auto device = gpu_with(with_library());
    check_failure(*device, one, "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED");
  }
  const Settings settings;
  auto device = gpu_with(with_library());
  check_misfit(*device, one, numbers(random, DType::f32, Shape{2}),
               "bias [2] does not fit the channels of [1,4,4,3]");
}

TEST_CASE("CUDA: cuDNN is told how parts of tensors are aligned") {
  const Settings settings;
  auto device = gpu_with(with_library(), "check=1");
  Random random(48);
  INFO("seed 48");
  for (const std::size_t offset : {2, 4, 8, 12, 16, 20})
    for (const Shape& filter : {Shape{2, 2, 2, 3}, Shape{1, 2, 2, 1}})  // moved, and as it is
      for (const Case& one : cases_of(random, offset == 2 ? DType::bf16 : DType::f32, {1, 3, 4, 2},
                                      filter, attributes({1, 1}, {1, 1}, 1, {})))
        check(*device, one, offset);
  for (const std::size_t offset : {4, 8, 20})
    check(*device,
          followed(random, DType::f32, {1, 3, 4, 2}, {2, 2, 2, 3},
                   attributes({1, 1}, {1, 1}, 1, {}), true),
          offset);
  CHECK(fake_reports().empty());
}

TEST_CASE("CUDA: rows of convolutions by cuDNN have the CPU's results") {
  const Settings settings;
  auto device = gpu_with(with_library());
  int rows = 0;
  for (auto* all : AddCases::all())
    for (const OpCase& row : all()) {
      if (!contains(row.op, "Conv2D") || !row.error.empty()) continue;
      const NodeDef node = make_node(row.op, row.inputs, row.attrs);
      const auto got = run_on_gpu(ops::builtin(), *device, node, row.inputs);
      const auto want = evaluate(ops::builtin(), node, row.inputs, inline_device());
      if (!want.ok()) continue;
      INFO(row.op << " of " << row.inputs[0].text());
      REQUIRE_MESSAGE(got.ok(), got.status().text());
      const DType type = node.out_types[0];
      const double near = type == DType::f64   ? 1e-13
                          : type == DType::f32 ? 2e-6
                          : type == DType::f16 ? 1e-3
                                               : 8e-3;
      for (std::int64_t i = 0; i < (*want)[0].elements(); ++i) {
        const double a = element((*got)[0], i), b = element((*want)[0], i);
        CHECK((std::isnan(b) ? std::isnan(a) : a == doctest::Approx(b).epsilon(near)));
      }
      ++rows;
    }
  CHECK(rows >= 12);
}

TEST_CASE("CUDA: cuDNN rounds f32 to TF32 where that is allowed") {
  const Settings settings;
  Random random(49);
  INFO("seed 49");
  const auto cases =
      cases_of(random, DType::f32, {2, 6, 6, 3}, {3, 3, 3, 4}, attributes({1, 1}, {1, 1}, 1, {}));
  for (const bool tf32 : {true, false}) {
    const EnvironmentVariable allowed("TROUPE_CUDA_TF32", tf32 ? "1" : "0");
    auto device = gpu_with(with_library());
    for (const Case& one : cases) check(*device, one, 0, tf32);
  }
  const EnvironmentVariable allowed("TROUPE_CUDA_TF32", "yes");
  auto device = gpu_with(with_library());
  const Status status =
      run_on_gpu(ops::builtin(), *device, cases[0].node, cases[0].inputs).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(contains(status.message(), "TROUPE_CUDA_TF32 is 'yes'"));
}

TEST_CASE("CUDA: measured choices of cuDNN have right results, and later devices take the same") {
  const MeasuredChoices choices;
  Random random(50);
  INFO("seed 50");
  const auto cases =
      cases_of(random, DType::f32, {2, 6, 6, 3}, {3, 3, 3, 4}, attributes({1, 1}, {1, 1}, 1, {}));
  const Tensor bias = numbers(random, DType::f32, Shape{4});
  std::vector<Tensor> first;
  for (const char* fake : {"check=1", "check=1,delay_us=100,seed=4"}) {
    auto device = gpu_with(with_library(), fake);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      check(*device, cases[i]);
      const auto got = run_on_gpu(ops::builtin(), *device, cases[i].node, cases[i].inputs);
      REQUIRE(got.ok());
      if (first.size() == i) first.push_back((*got)[0].clone().value());
      CHECK(Tensor::same((*got)[0], first[i]));
    }
    // What follows on a convolution makes it another one.
    for (const bool relu : {false, true}) {
      const Followed one{{cases[0].inputs[0], cases[0].inputs[1], bias},
                         attributes({1, 1}, {1, 1}, 1, {}),
                         relu,
                         28,
                         "Conv2D"};
      check(*device, one);
      const auto got = run_on_gpu(ops::builtin(), *device, one.fused(), one.inputs);
      REQUIRE(got.ok());
      if (first.size() == std::size_t(3 + relu)) first.push_back((*got)[0].clone().value());
      CHECK(Tensor::same((*got)[0], first[std::size_t(3 + relu)]));
    }
    CHECK(choices.kept() == 5);
    CHECK(fake_reports().empty());
  }
}

TEST_CASE("CUDA: a GPU that fails while choices of cuDNN are measured leaves none on disk") {
  const MeasuredChoices choices;
  Random random(52);
  INFO("seed 52");
  const auto cases =
      cases_of(random, DType::f32, {2, 6, 6, 3}, {3, 3, 3, 4}, attributes({1, 1}, {1, 1}, 1, {}));
  for (const int at : {1, 2, 3}) {  // the filter is moved, then the first way runs
    auto device = gpu_with(with_library(), "launch_error_at=" + std::to_string(at));
    CHECK_FALSE(run_on_gpu(ops::builtin(), *device, cases[0].node, cases[0].inputs).ok());
    CHECK_FALSE(device->failure().ok());
    CHECK(choices.kept() == 0);
  }
}

TEST_CASE("CUDA: work of cuDNN is in the order of the stream, twice with the same bits") {
  const Settings settings;
  Random random(42);
  INFO("seed 42");
  const auto cases =
      cases_of(random, DType::f32, {2, 9, 9, 8}, {3, 3, 8, 8}, attributes({1, 1}, {1, 1}, 1, {}));
  std::vector<std::vector<Tensor>> all;
  for (const char* fake :
       {"check=1", "check=1,delay_us=300,seed=5", "check=1,delay_us=300,seed=6"}) {
    auto device = gpu_with(with_library(), fake);
    auto last = run_on_gpu(ops::builtin(), *device, cases[0].node, cases[0].inputs);
    for (int i = 0; i < 3 && last.ok(); ++i)  // memory of one is used by the next
      last = run_on_gpu(ops::builtin(), *device, cases[0].node, {(*last)[0], cases[0].inputs[1]});
    REQUIRE_MESSAGE(last.ok(), last.status().text());
    std::vector<Tensor> results = {(*last)[0].clone().value()};
    for (const Case& one : cases) {
      const auto got = run_on_gpu(ops::builtin(), *device, one.node, one.inputs);
      REQUIRE_MESSAGE(got.ok(), got.status().text());
      results.push_back((*got)[0].clone().value());
    }
    all.push_back(std::move(results));
    CHECK(fake_reports().empty());
  }
  for (std::size_t i = 0; i < all[0].size(); ++i) {
    CHECK(Tensor::same(all[0][i], all[1][i]));
    CHECK(Tensor::same(all[0][i], all[2][i]));
  }
}

TEST_CASE("CUDA: what cuDNN refuses is an error that names its function, and the device goes on") {
  Random random(43);
  const auto cases =
      cases_of(random, DType::f32, {1, 4, 4, 2}, {2, 2, 2, 3}, attributes({1, 1}, {1, 1}, 1, {}));
  for (const auto& [library, text] :
       {std::pair{"execute=3000", "cudnnBackendExecute: CUDNN_STATUS_NOT_SUPPORTED"},
        {"execute=5000", "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED"},
        {"heuristics=2000", "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM"},
        {"plan=3000",
         "no exact and deterministic way to compute it: cudnnBackendFinalize: "
         "CUDNN_STATUS_NOT_SUPPORTED (descriptor 5)"},
        {"none=1", "no exact and deterministic way to compute it"},
        {"create=1001", "cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED"}}) {
    auto device = gpu_with(with_library());
    {
      const Settings settings(library);
      const auto refused = run_on_gpu(ops::builtin(), *device, cases[0].node, cases[0].inputs);
      REQUIRE_FALSE(refused.ok());
      CHECK_MESSAGE(contains(refused.status().text(), text), refused.status().text());
    }
    const Settings settings;
    check(*device, cases[1]);
  }
}

TEST_CASE("CUDA: convolutions that cuDNN does not know are Troupe's, unless it was asked for") {
  Random random(44);
  INFO("seed 44");
  const auto cases =
      cases_of(random, DType::f32, {1, 5, 4, 2}, {2, 2, 2, 3}, attributes({1, 2}, {1, 1}, 1, {}));
  for (const char* library : {"execute=3000", "plan=3000", "heuristics=3000", "none=1"}) {
    auto device = gpu_with(with_library());
    const Settings settings(library, "");
    for (const Case& one : cases) check(*device, one);
    CHECK(device->convolutions() != nullptr);
  }
  auto device = gpu_with(with_library());
  const Settings settings("execute=5000", "");  // it failed, which is something else
  CHECK_FALSE(run_on_gpu(ops::builtin(), *device, cases[0].node, cases[0].inputs).ok());
}

TEST_CASE("CUDA: a workspace that is more than an eighth of the memory is not taken") {
  const Settings settings;
  Random random(45);
  INFO("seed 45");
  // y takes 2 MiB of 8, and so would the workspace of the engine that is named first.
  const auto cases = cases_of(random, DType::f32, {1, 128, 128, 1}, {1, 2, 1, 32},
                              attributes({1, 1}, {1, 1}, 1, {}));
  auto device = gpu_with(with_library(), "memory_mb=64", 8);
  check(*device, cases[0]);
  auto large = gpu_with(with_library(), "memory_mb=64", 32);
  check(*large, cases[0]);
  const auto little = run_on_gpu(ops::builtin(), *device, cases[0].node, cases[0].inputs);
  const auto much = run_on_gpu(ops::builtin(), *large, cases[0].node, cases[0].inputs);
  CHECK(device->peak_bytes() + (2 << 20) <= large->peak_bytes());
  CHECK(little.ok());
  CHECK(much.ok());
}

TEST_CASE("CUDA: threads that ask for the same convolution at once get the same bits") {
  const Settings settings;
  Random random(46);
  INFO("seed 46");
  const auto cases =
      cases_of(random, DType::f32, {2, 6, 6, 3}, {3, 3, 3, 4}, attributes({1, 1}, {1, 1}, 1, {}));
  auto device = gpu_with(with_library(), "check=1");
  std::vector<Tensor> results(4);
  std::vector<std::thread> threads;
  for (Tensor& result : results)
    threads.emplace_back([&] {
      const auto got = run_on_gpu(ops::builtin(), *device, cases[2].node, cases[2].inputs);
      if (got.ok()) result = (*got)[0].clone().value();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& result : results) {
    REQUIRE(result.defined());
    CHECK(Tensor::same(result, results[0]));
  }
  CHECK(fake_reports().empty());
}

TEST_CASE("CUDA: a thread that has cuDNN to itself keeps nobody else from the device") {
  const Settings settings;
  Random random(53);
  INFO("seed 53");
  const auto cases =
      cases_of(random, DType::f32, {2, 6, 6, 3}, {3, 3, 3, 4}, attributes({1, 1}, {1, 1}, 1, {}));
  auto device = gpu_with(with_library());
  check(*device, cases[0]);
  const std::uint64_t issued = device->stream().mark().sequence;
  std::optional<cuda::Convolutions::Turn> turn(std::in_place, *device->convolutions());
  Expected<std::vector<Tensor>> got = unavailable("");
  std::thread other(
      [&] { got = run_on_gpu(ops::builtin(), *device, cases[0].node, cases[0].inputs); });
  // Until it has moved the filter: what comes next is cuDNN's.
  while (device->stream().last().sequence <= issued) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i, std::this_thread::yield()) (void)device->stream().mark();
  turn.reset();
  other.join();
  CHECK(got.ok());
}

TEST_CASE("CUDA: a cuDNN that knows no such GPU leaves convolutions to Troupe, unless asked for") {
  Random random(54);
  INFO("seed 54");
  const auto cases =
      cases_of(random, DType::f32, {1, 4, 4, 2}, {2, 2, 2, 3}, attributes({1, 1}, {1, 1}, 1, {}));
  {
    auto device = gpu_with(with_library());
    const Settings settings("create=3007", "");
    for (const Case& one : cases) check(*device, one);
    CHECK(device->convolutions() == nullptr);
  }
  for (const auto& [create, conv] : {std::pair{"create=3007", "cudnn"}, {"create=1001", ""}}) {
    auto device = gpu_with(with_library());
    const Settings settings(create, conv);
    const Status status =
        run_on_gpu(ops::builtin(), *device, cases[0].node, cases[0].inputs).status();
    CHECK(contains(status.message(), "cudnnCreate: "));
    CHECK(contains(status.message(), "; TROUPE_CUDA_CONV=kernels does without it"));
  }
}

TEST_CASE("CUDA: a handle of cuDNN ends before its stream") {
  const Settings settings;
  const auto library = cuda::Library::open({"libcudnn.so.9"}, with_library());
  const auto late =
      reinterpret_cast<std::size_t (*)()>(library->find("troupe_fake_cudnn_late_ends"));
  const std::size_t before = late();
  Random random(55);
  INFO("seed 55");
  const auto cases =
      cases_of(random, DType::f32, {1, 4, 4, 2}, {2, 2, 2, 3}, attributes({1, 1}, {1, 1}, 1, {}));
  check(*gpu_with(with_library()), cases[0]);
  CHECK(late() == before);
}

TEST_CASE("CUDA: what computes convolutions can be chosen, and nothing else is taken silently") {
  cuda::Driver driver;
  driver.fake = true, driver.version = 13000;
  const auto choose = [&](const cuda::Search& search) {
    return cuda::choose_convolutions(search, driver);
  };
  const cuda::Search without = emulated_search();
  {
    const Settings settings("", "");
    CHECK(choose(with_library())->library.has_value());
    const auto missing = choose(without);
    REQUIRE(missing.ok());
    CHECK_FALSE(missing->library.has_value());
    CHECK(contains(missing->text, "Troupe's kernels: cudnn is missing: "));
    driver.fake = false;
    CHECK(contains(choose(with_library())->text, "is not for a GPU"));
    driver.fake = true, driver.version = 12040;
    CHECK(contains(choose(with_library())->text, "too new for the driver of CUDA 12.4"));
    driver.version = 13000;
  }
  {
    const Settings settings("", "kernels");
    CHECK_FALSE(choose(with_library())->library.has_value());
    auto device = gpu_with(with_library());
    Random random(47);
    const auto cases =
        cases_of(random, DType::f32, {1, 3, 3, 1}, {2, 2, 1, 1}, attributes({1, 1}, {1, 1}, 1, {}));
    check(*device, cases[0]);
    CHECK(device->convolutions() == nullptr);
  }
  {
    const Settings settings;
    const Status missing = choose(without).status();
    CHECK(missing.code() == Code::failed_precondition);
    CHECK(contains(missing.message(), "the wheel nvidia-cudnn-cu13 has it"));
  }
  const Settings settings("", "winograd");
  CHECK(choose(with_library()).status().code() == Code::invalid_argument);
}

}  // namespace troupe::test
