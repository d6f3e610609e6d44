// planted sound            device kernels of this library, against plain loops
// planted BUG              a kernel with that mistake, which gives right results all the same, or
//                          hangs a GPU: bounds, block_bounds, race, missing_barrier, divergent
// For the sanitizers: what is sound they find nothing in, and each mistake is reported.
// tests/accept/cuda_2.sh compiles and runs it.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/fake_cuda/simt.hpp"

// Device code finds CUDA's words above.
#include "ops/device/elementwise.cuh"
#include "ops/device/matmul.cuh"
#include "ops/device/norm.cuh"
#include "ops/device/random.cuh"
#include "ops/device/reduce.cuh"
#include "ops/device/rows.cuh"
#include "ops/device/softmax.cuh"
#include "ops/formulas/arithmetic.hpp"

using namespace troupe;

namespace {

template <class K>
void launch(unsigned blocks, unsigned threads, std::uint64_t seed, const typename K::Args& args) {
  simt::run(
      {{blocks}, {threads}, seed},
      [](const void* a) { K::run(*static_cast<const typename K::Args*>(a)); }, &args);
}

std::vector<float> numbers(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = float((i * 37 + 11) % 101) / 50 - 1;
  return x;
}

int failures = 0;
void expect(bool near, const char* what) {
  if (near) return;
  ++failures;
  std::printf("wrong: %s\n", what);
}

void run_sound(std::uint64_t seed) {
  constexpr std::int64_t kRows = 5, kColumns = 70;
  const std::vector<float> x = numbers(kRows * kColumns);
  std::vector<float> rows(kRows), columns(kColumns), soft(x.size()), product(kRows * kRows);
  launch<device::ReduceRows<formula::SumOf, float>>(2, 64, seed,
                                                    {x.data(), rows.data(), kRows, kColumns, 1});
  launch<device::ReduceColumns<formula::SumOf, float>>(
      2, 256, seed, {x.data(), columns.data(), 1, kRows, kColumns});
  launch<device::Rows<device::Softmax, float>>(
      2, 64, seed, {x.data(), nullptr, soft.data(), nullptr, kRows, kColumns});
  launch<device::MatMul<float>>(2, 256, seed,
                                {x.data(),
                                 x.data(),
                                 product.data(),
                                 kRows,
                                 kRows,
                                 kColumns,
                                 kColumns,
                                 1,
                                 1,
                                 kColumns,
                                 1,
                                 {}});
  std::vector<float> sum(x.size());
  device::ElementwiseArgs<2> add{{x.data(), x.data()}, sum.data(), kRows * kColumns, {}};
  add.walk = {2, {kRows, kColumns}, {{kColumns, 1}, {0, 1}}};
  launch<device::Elementwise<formula::Add, float, float, float>>(2, 64, seed, add);
  for (std::int64_t i = 0; i < kRows; ++i) {
    float total = 0, mass = 0;
    for (std::int64_t j = 0; j < kColumns; ++j) {
      const std::size_t at = std::size_t(i * kColumns + j);
      total += x[at];
      mass += soft[at];
      expect(sum[at] == x[at] + x[std::size_t(j)], "a sum with broadcasting");
    }
    expect(std::abs(total - rows[std::size_t(i)]) < 1e-4, "a sum of a row");
    expect(std::abs(mass - 1) < 1e-5, "softmax");
    for (std::int64_t k = 0; k < kRows; ++k) {
      float dot = 0;
      for (std::int64_t j = 0; j < kColumns; ++j)
        dot += x[std::size_t(i * kColumns + j)] * x[std::size_t(k * kColumns + j)];
      expect(std::abs(dot - product[std::size_t(i * kRows + k)]) < 1e-3, "a product of matrices");
    }
  }
  for (std::int64_t j = 0; j < kColumns; ++j) {
    float total = 0;
    for (std::int64_t i = 0; i < kRows; ++i) total += x[std::size_t(i * kColumns + j)];
    expect(std::abs(total - columns[std::size_t(j)]) < 1e-4, "a sum of a column");
  }
  // The same in parts of two rows or fewer, joined by another launch.
  std::vector<float> parts(3 * kColumns), joined(kColumns);
  device::ReduceArgs part{x.data(), parts.data(), 1, kRows, kColumns, {3, 2}, kRows, true};
  launch<device::ReduceColumns<formula::SumOf, float>>(3, 256, seed, part);
  launch<device::ReduceColumns<formula::SumOf, float>>(
      2, 256, seed, {parts.data(), joined.data(), 1, 3, kColumns});
  for (std::size_t j = 0; j < std::size_t(kColumns); ++j)
    expect(std::abs(columns[j] - joined[j]) < 1e-4, "a sum of a column in parts");
}

// Groups of 14 channels of three images with three positions.
void run_sound_groups(std::uint64_t seed) {
  constexpr std::int64_t kRows = 9, kColumns = 70, kGroups = 5;
  const std::vector<float> x = numbers(kRows * kColumns), scale(kColumns, 0.5f);
  std::vector<float> moments(3 * kGroups * device::kMoments), y(x.size()), dscale(kColumns),
      doffset(kColumns);
  device::GroupNormArgs norm{};
  norm.x = norm.dy = x.data(), norm.scale = norm.offset = scale.data();
  norm.moments = moments.data(), norm.y = y.data();
  norm.dscale = dscale.data(), norm.doffset = doffset.data();
  norm.images = norm.positions = 3, norm.groups = kGroups, norm.in_group = kColumns / kGroups;
  norm.rows = kRows, norm.n = kColumns, norm.epsilon = 1e-5;
  launch<device::GroupNormMoments<float>>(2, 64, seed, norm);
  launch<device::GroupNormSums<float>>(2, 128, seed, norm);
  launch<device::GroupNormGrad<float>>(2, 64, seed, norm);
  launch<device::GroupNorm<float>>(2, 64, seed, norm);
  float total = 0;
  for (const float value : y) total += value;
  expect(std::abs(total - 0.5f * kRows * kColumns) < 1e-2, "a group norm");
}

// Kernels whose blocks meet often, and those that write by place.
void run_sound_layers(std::uint64_t seed) {
  constexpr std::int64_t kRows = 9, kColumns = 70;
  const std::vector<float> x = numbers(kRows * kColumns), scale(kColumns, 0.5f);
  std::vector<float> moments(kRows * device::kMoments), y(x.size()), dscale(kColumns),
      doffset(kColumns);
  device::LayerNormArgs norm{};
  norm.x = norm.dy = x.data(), norm.scale = norm.offset = scale.data();
  norm.moments = moments.data(), norm.y = y.data();
  norm.dscale = dscale.data(), norm.doffset = doffset.data();
  norm.rows = kRows, norm.n = kColumns, norm.epsilon = 1e-5;
  launch<device::LayerNormMoments<float>>(2, 64, seed, norm);
  launch<device::LayerNormSums<float>>(2, 128, seed, norm);
  launch<device::LayerNormGrad<float>>(2, 64, seed, norm);
  launch<device::LayerNorm<float>>(2, 64, seed, norm);
  for (std::int64_t i = 0; i < kRows; ++i) {
    float total = 0;
    for (std::int64_t j = 0; j < kColumns; ++j) total += y[std::size_t(i * kColumns + j)];
    expect(std::abs(total - 0.5f * kColumns) < 1e-3, "a layer norm");
  }
  std::vector<float> mean(kColumns), variance(kColumns), inv_std(kColumns), by(kColumns);
  device::BatchNormArgs batch{};
  batch.x = x.data(), batch.mean = mean.data(), batch.variance = variance.data();
  batch.inv_std = inv_std.data(), batch.by = by.data();
  batch.rows = kRows, batch.n = kColumns, batch.epsilon = 1e-3;
  launch<device::BatchNormMoments<float>>(2, 128, seed, batch);
  expect(by[0] == 1 && variance[0] > 0, "a batch norm");
  const std::vector<float> whole = variance;
  std::vector<float> of_parts(3 * device::kMoments * kColumns);
  batch.parts = {3, 4}, batch.sums = of_parts.data();
  launch<device::BatchNormMoments<float>>(3, 128, seed, batch);
  launch<device::BatchNormJoin<float>>(2, 128, seed, batch);
  for (std::size_t j = 0; j < std::size_t(kColumns); ++j)
    expect(std::abs(variance[j] - whole[j]) < 1e-5, "a batch norm in parts");
  // Rows 0, 3 and 8 belong to place 1, row 4 to place 0.
  const std::vector<std::int64_t> groups = {1, 0, 0, 3, 4, 0, 3, 8, 4};
  std::vector<float> sums(2 * kColumns, 0.0f);
  device::FoldRowsArgs fold{x.data(), groups.data(), sums.data(), 2, 1, 2, kRows, kColumns, 0, 0};
  launch<device::FoldRows<device::AddRows, float>>(2, 64, seed, fold);
  expect(sums[kColumns] == x[0] + x[3 * kColumns] + x[8 * kColumns], "rows of one place");
  std::vector<float> drawn(101);
  device::DrawArgs draw{};
  draw.y = drawn.data(), draw.n = std::int64_t(drawn.size());
  draw.key = 7, draw.run = 9, draw.scale = draw.times = draw.most = 1;
  launch<device::Draw<device::Uniform, float>>(2, 32, seed, draw);
  for (const float z : drawn) expect(z >= 0 && z < 1, "a uniform number");
}

struct Args {
  float* y;
  std::int64_t n;
};

struct Bounds {  // writes one element too many
  using Args = ::Args;
  static void run(const Args& a) {
    for (std::int64_t i = device::first_element(); i <= a.n; i += device::element_step())
      a.y[i] = float(i);
  }
};
struct BlockBounds {
  using Args = ::Args;
  static void run(const Args& a) {
    auto& shared = device::block_shared<float[32]>();
    shared[threadIdx.x + 1] = 1;
    __syncthreads();
    if (threadIdx.x < 31) a.y[threadIdx.x] = shared[threadIdx.x + 1];
  }
};
struct Race {  // all threads write the same
  using Args = ::Args;
  static void run(const Args& a) { a.y[0] = 1; }
};
struct MissingBarrier {
  using Args = ::Args;
  static void run(const Args& a) {
    auto& shared = device::block_shared<float[64]>();
    shared[threadIdx.x] = float(threadIdx.x);
    a.y[threadIdx.x] = shared[threadIdx.x / 2];  // written before, in order
  }
};
struct Divergent {
  using Args = ::Args;
  static void run(const Args& a) {
    if (threadIdx.x < 40) {
      __syncthreads();
      a.y[threadIdx.x] = 1;
    } else {
      __syncwarp();
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::string bug = argc > 1 ? argv[1] : "";
  std::vector<float> y(64);
  const Args args{y.data(), std::int64_t(y.size())};
  if (bug == "sound")
    for (std::uint64_t seed : {0, 1, 2})
      run_sound(seed), run_sound_layers(seed), run_sound_groups(seed);
  else if (bug == "bounds")
    launch<Bounds>(1, 32, 0, args);
  else if (bug == "block_bounds")
    launch<BlockBounds>(1, 32, 0, args);
  else if (bug == "race")
    launch<Race>(1, 32, 0, args);
  else if (bug == "missing_barrier")
    launch<MissingBarrier>(1, 64, 0, args);
  else if (bug == "divergent")
    launch<Divergent>(1, 64, 0, args);
  else
    return 2;
  return failures != 0;
}
