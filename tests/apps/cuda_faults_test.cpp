// Programs on a GPU that is slow, short of memory or broken: the right result, or an error that
// names a node. On the fake driver, not on hardware.
#include <doctest/doctest.h>

#include <cstdlib>

#include "core/hash.hpp"
#include "tests/apps/emulated_gpu.hpp"
#include "tests/contains.hpp"
#include "tests/same_bits.hpp"

using namespace troupe;

namespace {

// Some kernels, some nodes of the CPU between them, and writes of variables.
Expected<std::vector<Tensor>> small_program() {
  Graph g(11);
  Output x = placeholder<float>(g, {-1, 40}, "x"), ids = placeholder<std::int64_t>(g, {-1}, "ids");
  Variable w = variable(g, "w", value_or_throw(Tensor::zeros(DType::f32, {40})));
  Output y = relu(matmul(x, transpose(x, {.perm = {1, 0}})));
  Output picked = gather(y, ids) + cumsum(gather(y, ids), {.axis = 0});
  Output loss = mean(square(picked)) + sum(random_uniform(g, PartialShape{64}));
  Op update = assign_add(w.handle(), mean(x, {.axes = {0}}));
  Session session(g, test::with_gpu());
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(auto step, session.try_compile({loss, picked}, {update}, {x, ids}));
  std::vector<Tensor> all;
  for (int run = 0; run < 3; ++run) {
    TROUPE_TRY(Tensor fed, Tensor::make(DType::f32, Shape{24 + run, 40}));
    for (std::int64_t i = 0; i < fed.elements(); ++i)
      fed.mutable_data<float>()[i] = float((i * 7 + run) % 11) / 8 - 0.6f;
    TROUPE_TRY(auto fetched, step.try_run({fed, Tensor::of<std::int64_t>({4}, {3, 0, 3, 20})}));
    for (Tensor& t : fetched) all.push_back(std::move(t));
  }
  TROUPE_TRY(auto variables, session.try_variables());
  for (auto& [name, value] : variables) all.push_back(value);
  return test::on_heap(all);
}

std::string fault_of(std::uint64_t seed) {
  Random random(seed);
  std::string fake = "order=" + std::to_string(random.below(100));
  if (random.below(3) != 0)
    fake += ",delay_us=" + std::to_string(random.below(120)) + ",seed=" + std::to_string(seed);
  switch (random.below(5)) {
    case 0:
      return fake + ",out_of_memory_at=" + std::to_string(1 + random.below(3));
    case 1:
      return fake + ",out_of_memory_from=" + std::to_string(1 + random.below(4));
    case 2:
    case 3:
      return fake + ",launch_error_at=" + std::to_string(1 + random.below(40)) +
             (random.below(2) ? ",error=719" : "");
    default:
      return fake + (random.below(2) ? ",no_pinned=1" : "");
  }
}

struct Seen {
  int right = 0, told = 0;
};

Seen play(std::uint64_t first, std::uint64_t seeds) {
  std::vector<Tensor> want;
  {
    const test::Emulated emulated;
    want = value_or_throw(small_program());
  }
  Seen seen;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::string fake = fault_of(seed);
    INFO("seed " << seed << ": " << fake);
    const test::Emulated emulated(fake);
    const auto got = small_program();
    if (got.ok()) {
      CHECK(test::same_bits(*got, want));
      ++seen.right;
      continue;
    }
    const std::string text = got.status().text();
    INFO(text);
    // The node, or the first and the last of all that it may be. A GPU that fails loses its worker;
    // one that has no memory does not.
    const bool named =
        test::contains(text, "in node '") || test::contains(text, "in one of the nodes '");
    CHECK(named);
    const bool lost =
        got.status().code() == Code::unavailable && test::contains(text, "worker 0 (process ");
    const bool full = got.status().code() == Code::resource_exhausted &&
                      test::contains(text, "of /job:worker/task:0/cuda:0 are in use");
    CHECK((lost || full));
    ++seen.told;
  }
  return seen;
}

}  // namespace

TEST_CASE("a GPU that is slow, short of memory or broken gives the right result or names a node") {
  const Seen seen = play(1, 30);
  CHECK(seen.right > 5);
  CHECK(seen.told > 5);
}

TEST_CASE("the same with a thousand seeds [slow]") {
  const Seen seen = play(1000, 1000);
  CHECK(seen.right > 100);
  CHECK(seen.told > 100);
}
