// Products of matrices by cuBLASLt, as the tests' library stands in for it (tests/fake_cuda): what
// it is told of layouts, transpositions, steps between matrices, workspace and streams. Not
// NVIDIA's library, and not hardware.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "devices/cuda/products.hpp"
#include "ops/evaluate.hpp"
#include "tests/contains.hpp"
#include "tests/ops/kernels/conformance.hpp"
#include "tests/ops/kernels/cuda_followed.hpp"
#include "tests/ops/kernels/cuda_kernels.hpp"
#include "tests/ops/kernels/sums_in_any_order.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

cuda::Search with_library() {
  cuda::Search search = emulated_search();
  search.folders.push_back(build_dir() + "/fake-cublaslt");
  return search;
}

struct Settings {
  explicit Settings(const std::string& library = "", const std::string& matmul = "cublaslt")
      : library("TROUPE_FAKE_CUBLASLT", library), matmul("TROUPE_CUDA_MATMUL", matmul) {}
  const EnvironmentVariable library, matmul;
};

std::unique_ptr<CudaDevice> gpu_with(const cuda::Search& search, const std::string& fake = "") {
  const FakeCuda on(fake);
  CudaOptions options;
  options.search = search;
  options.memory = std::size_t{16} << 20;
  return make_cuda_device(DeviceName::parse("/job:worker/task:0/cuda:0").value(), options).value();
}

NodeDef product(const std::string& op, const Tensor& a, const Tensor& b, bool ta, bool tb) {
  return make_node(op, {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
}

void check(CudaDevice& device, const char* op, const Tensor& a, const Tensor& b, bool ta, bool tb,
           std::int64_t k, bool tf32 = false) {
  const NodeDef node = product(op, a, b, ta, tb);
  const std::vector<Tensor> sizes = {sizes_of(a), sizes_of(b)};
  const auto got = run_on_gpu(ops::builtin(), device, node, {a, b});
  const auto want = evaluate(ops::builtin(), node, {a, b}, inline_device());
  const auto of_sizes =
      evaluate(ops::builtin(), product(op, sizes[0], sizes[1], ta, tb), sizes, inline_device());
  REQUIRE_MESSAGE(got.ok(), got.status().text());
  REQUIRE(want.ok());
  REQUIRE(of_sizes.ok());
  if (tf32) return check_rounded_to_tf32((*got)[0], (*want)[0], (*of_sizes)[0]);
  check_within((*got)[0], (*want)[0], (*of_sizes)[0], k);
}

Followed biased(Random& random, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                bool ta, bool tb, bool relu) {
  return {
      {numbers(random, dtype, ta ? Shape{k, m} : Shape{m, k}),
       numbers(random, dtype, tb ? Shape{n, k} : Shape{k, n}), numbers(random, dtype, Shape{n})},
      {{"transpose_a", ta}, {"transpose_b", tb}},
      relu,
      k + 1,
      "MatMul"};
}

}  // namespace

TEST_CASE("CUDA: cuBLASLt multiplies matrices of each type, transposed or not") {
  const Settings settings;
  auto device = gpu_with(with_library());
  Random random(31);
  INFO("seed 31");
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const std::int64_t m : {0, 1, 17})
      for (const std::int64_t n : {1, 33})
        for (const std::int64_t k : {0, 1, 2, 40})
          for (const bool ta : {false, true})
            for (const bool tb : {false, true}) {
              const Tensor a = numbers(random, dtype, ta ? Shape{k, m} : Shape{m, k});
              const Tensor b = numbers(random, dtype, tb ? Shape{n, k} : Shape{k, n});
              INFO(m << " x " << n << " x " << k << (ta ? " a^T" : "") << (tb ? " b^T" : ""));
              check(*device, "MatMul", a, b, ta, tb, k);
            }
  CHECK(device->products() != nullptr);
}

TEST_CASE("CUDA: cuBLASLt multiplies batches, whose leading dimensions broadcast") {
  const Settings settings;
  auto device = gpu_with(with_library(), "check=1");
  Random random(32);
  INFO("seed 32");
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto& [a, b] : {std::pair{Shape{3, 2}, Shape{3, 2}},
                                 {Shape{3, 1}, Shape{2}},
                                 {Shape{2, 1, 3}, Shape{4, 1}},
                                 {Shape{}, Shape{5}},
                                 {Shape{0}, Shape{1}},
                                 {Shape{1}, Shape{1}}}) {
        const auto with = [&](Shape shape, std::int64_t rows, std::int64_t columns) {
          shape.append(rows), shape.append(columns);
          return numbers(random, DType::f32, shape);
        };
        const Tensor x = ta ? with(a, 5, 7) : with(a, 7, 5), y = tb ? with(b, 3, 5) : with(b, 5, 3);
        INFO(x.shape().text() << " " << y.shape().text());
        check(*device, "BatchMatMul", x, y, ta, tb, 5);
      }
  CHECK(fake_reports().empty());
}

TEST_CASE("CUDA: cuBLASLt rounds f32 to TF32 where that is allowed, and no other type") {
  const Settings settings;
  const EnvironmentVariable allowed("TROUPE_CUDA_TF32", "1");
  auto device = gpu_with(with_library());
  Random random(34);
  INFO("seed 34");
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const Tensor a = numbers(random, dtype, {5, 7}), b = numbers(random, dtype, {7, 6});
    check(*device, "MatMul", a, b, false, false, 7, dtype == DType::f32);
  }
}

TEST_CASE("CUDA: integers are multiplied by kernels of their own, whatever the library") {
  const Settings settings("matmul=15");
  auto device = gpu_with(with_library());
  const Tensor a = Tensor::of(Shape{2, 2}, {1, 2, 3, 4});
  const auto got =
      run_on_gpu(ops::builtin(), *device, product("MatMul", a, a, false, false), {a, a});
  REQUIRE_MESSAGE(got.ok(), got.status().text());
  CHECK(Tensor::same((*got)[0], Tensor::of(Shape{2, 2}, {7, 10, 15, 22})));
}

TEST_CASE("CUDA: work of cuBLASLt is in the order of the stream, twice with the same bits") {
  const Settings settings;
  Random random(33);
  INFO("seed 33");
  const Tensor a = numbers(random, DType::f32, Shape{40, 40});
  const NodeDef node = product("MatMul", a, a, false, true);
  std::vector<Tensor> all;
  for (const char* fake :
       {"check=1", "check=1,delay_us=300,seed=5", "check=1,delay_us=300,seed=6"}) {
    auto device = gpu_with(with_library(), fake);
    auto last = run_on_gpu(ops::builtin(), *device, node, {a, a});
    for (int i = 0; i < 4 && last.ok(); ++i)  // memory of one is used by the next
      last = run_on_gpu(ops::builtin(), *device, node, {(*last)[0], a});
    REQUIRE_MESSAGE(last.ok(), last.status().text());
    all.push_back((*last)[0].clone().value());
    CHECK(fake_reports().empty());
  }
  CHECK(Tensor::same(all[0], all[1]));
  CHECK(Tensor::same(all[0], all[2]));
}

TEST_CASE(
    "CUDA: what cuBLASLt refuses is an error that names its function, and the device goes on") {
  const Tensor a = Tensor::of(Shape{2, 2}, {1.0f, 2.0f, 3.0f, 4.0f});
  const NodeDef node = product("MatMul", a, a, false, false);
  const auto run = [&](CudaDevice& device) {
    return run_on_gpu(ops::builtin(), device, node, {a, a});
  };
  for (const auto& [library, text] :
       {std::pair{"matmul=15", "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED"},
        {"matmul=13", "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"},
        {"heuristic=7", "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_INVALID_VALUE"},
        {"state=15", "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED"},
        {"none=1", "cublasLtMatmulAlgoGetHeuristic knows no way"},
        {"create=1", "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED"}}) {
    auto device = gpu_with(with_library());
    {
      const Settings settings(library);
      const auto refused = run(*device);
      REQUIRE_FALSE(refused.ok());
      CHECK_MESSAGE(contains(refused.status().text(), text), refused.status().text());
    }
    const Settings settings;
    CHECK(run(*device).ok());
  }
}

TEST_CASE(
    "CUDA: products that cuBLASLt does not know are Troupe's, unless it was asked for by name") {
  const Tensor a = Tensor::of(Shape{2, 2}, {1.0f, 2.0f, 3.0f, 4.0f});
  const NodeDef node = product("MatMul", a, a, false, false);
  for (const char* library : {"matmul=15", "state=15", "none=1"}) {
    auto device = gpu_with(with_library());
    const Settings settings(library, "");
    const auto by_kernel = run_on_gpu(ops::builtin(), *device, node, {a, a});
    REQUIRE_MESSAGE(by_kernel.ok(), by_kernel.status().text());
    CHECK(device->products() != nullptr);
    CHECK(Tensor::same((*by_kernel)[0], Tensor::of(Shape{2, 2}, {7.0f, 10.0f, 15.0f, 22.0f})));
  }
  auto device = gpu_with(with_library());
  const Settings settings("matmul=13", "");  // it failed, which is something else
  CHECK_FALSE(run_on_gpu(ops::builtin(), *device, node, {a, a}).ok());
}

TEST_CASE("CUDA: a product and its bias are one run of cuBLASLt, with the bits of the parts") {
  const Settings settings;
  auto device = gpu_with(with_library(), "check=1");
  Random random(57);
  INFO("seed 57");
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const bool relu : {false, true})
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{17, 33, 40},
                                    {1, 5, 3},
                                    {6, 1, 9},
                                    {4, 7, 1},
                                    {0, 3, 2},
                                    {3, 0, 2},
                                    {3, 4, 0}})
        for (const bool ta : {false, true})
          for (const bool tb : {false, true}) {
            const Followed one = biased(random, dtype, m, n, k, ta, tb, relu);
            const std::string sizes = fmt::format("{} x {} x {}", m, n, k);
            INFO(dtype_name(dtype) << " " << sizes << (ta ? " a^T" : "") << (tb ? " b^T" : "")
                                   << (relu ? " Relu" : ""));
            check(*device, one);
            if (dtype == DType::f16 || dtype == DType::bf16) continue;  // parts are rounded each
            const auto fused = run_on_gpu(ops::builtin(), *device, one.fused(), one.inputs);
            const auto parts = one.one_by_one([&](const NodeDef& node, std::vector<Tensor> inputs) {
              return run_on_gpu(ops::builtin(), *device, node, inputs);
            });
            REQUIRE(fused.ok());
            REQUIRE_MESSAGE(parts.ok(), parts.status().text());
            CHECK(Tensor::same((*fused)[0], (*parts)[0]));
            const auto here = one.one_by_one([](const NodeDef& node, std::vector<Tensor> inputs) {
              return run_on_cpu(node, std::move(inputs));
            });
            CHECK(Tensor::same((*run_on_cpu(one.fused(), one.inputs))[0], (*here)[0]));
          }
  CHECK(fake_reports().empty());
}

TEST_CASE("CUDA: a product is computed in its parts where cuBLASLt has no run for all of it") {
  Random random(58);
  INFO("seed 58");
  struct Way {
    const char *library, *matmul;
  };
  // By cuBLASLt and kernels, whether it says so before or when it runs; by Troupe's kernels.
  for (const auto& [library, matmul] : {Way{"alone=1", "cublaslt"},
                                        {"with_bias=15", "cublaslt"},
                                        {"none=1", ""},
                                        {"", "kernels"}}) {
    const Settings settings(library, matmul);
    auto device = gpu_with(with_library(), "check=1");
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const bool relu : {false, true}) {
        const Followed one = biased(random, dtype, 9, 6, 20, false, true, relu);
        const std::string settings_text = std::string(library) + " " + matmul;
        INFO(settings_text << " " << dtype_name(dtype));
        const auto parts = one.one_by_one([&](const NodeDef& node, std::vector<Tensor> inputs) {
          return run_on_gpu(ops::builtin(), *device, node, inputs);
        });
        const auto fused = run_on_gpu(ops::builtin(), *device, one.fused(), one.inputs);
        REQUIRE_MESSAGE(fused.ok(), fused.status().text());
        REQUIRE_MESSAGE(parts.ok(), parts.status().text());
        CHECK(Tensor::same((*fused)[0], (*parts)[0]));
      }
    CHECK(fake_reports().empty());
  }
}

TEST_CASE("CUDA: cuBLASLt is told how a bias is aligned, and each run where it is") {
  const Settings settings;
  auto device = gpu_with(with_library(), "check=1");
  Random random(59);
  INFO("seed 59");
  for (int again = 0; again < 2; ++again)  // the way is known, the bias is another one
    for (const std::size_t offset : {0, 4, 8, 20, 64})
      check(*device, biased(random, DType::f32, 5, 6, 7, false, false, true), offset);
  check(*device, biased(random, DType::bf16, 5, 6, 7, false, false, true), 2);
  CHECK(fake_reports().empty());
}

TEST_CASE("CUDA: rows of products with a bias by cuBLASLt have the CPU's results") {
  const Settings settings;
  auto device = gpu_with(with_library());
  int rows = 0;
  for (auto* all : AddCases::all())
    for (const OpCase& row : all()) {
      if (row.op != "_MatMulBias" || !row.error.empty()) continue;
      const NodeDef node = make_node(row.op, row.inputs, row.attrs);
      const auto got = run_on_gpu(ops::builtin(), *device, node, row.inputs);
      REQUIRE_MESSAGE(got.ok(), got.status().text());
      REQUIRE((*got)[0].shape() == row.want[0].shape());
      for (std::int64_t i = 0; i < row.want[0].elements(); ++i) {  // few terms: no error
        const double a = element((*got)[0], i), b = element(row.want[0], i);
        CHECK((std::isnan(b) ? std::isnan(a) : a == b));
      }
      ++rows;
    }
  CHECK(rows >= 7);
}

TEST_CASE("CUDA: what goes wrong with a product and its bias is an error") {
  Random random(60);
  INFO("seed 60");
  const Followed one = biased(random, DType::f32, 4, 3, 5, false, false, true);
  {
    const Settings settings("with_bias=13", "");  // it failed: its parts would, too
    auto device = gpu_with(with_library());
    check_failure(*device, one, "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED");
  }
  const Settings settings;
  auto device = gpu_with(with_library());
  check_misfit(*device, one, numbers(random, DType::f32, Shape{2}),
               "bias [2] does not fit the channels of [4,3]");
}

TEST_CASE("CUDA: what computes products can be chosen, and nothing else is taken silently") {
  cuda::Driver driver;
  driver.fake = true, driver.version = 13000;
  const auto choose = [&](const cuda::Search& search) {
    return cuda::choose_products(search, driver);
  };
  const cuda::Search without = emulated_search();
  {
    const Settings settings("", "");
    CHECK(choose(with_library())->library.has_value());
    const auto missing = choose(without);
    REQUIRE(missing.ok());
    CHECK_FALSE(missing->library.has_value());
    CHECK(contains(missing->text, "Troupe's kernels: cublasLt is missing: "));
    driver.fake = false;
    const auto other = choose(with_library());
    CHECK(contains(other->text, "is not for a GPU"));
    driver.fake = true, driver.version = 12040;
    CHECK(contains(choose(with_library())->text, "too new for the driver of CUDA 12.4"));
    driver.version = 13000;
  }
  {
    const Settings settings("", "kernels");
    CHECK_FALSE(choose(with_library())->library.has_value());
    auto device = gpu_with(with_library());
    const Tensor a = Tensor::of(Shape{1, 1}, {2.0f});
    CHECK(run_on_gpu(ops::builtin(), *device, product("MatMul", a, a, false, false), {a, a}).ok());
    CHECK(device->products() == nullptr);
  }
  {
    const Settings settings;
    const Status missing = choose(without).status();
    CHECK(missing.code() == Code::failed_precondition);
    CHECK(contains(missing.message(), "the wheel nvidia-cublas has it"));
  }
  const Settings settings("", "mkl");
  CHECK(choose(with_library()).status().code() == Code::invalid_argument);
}

}  // namespace troupe::test
