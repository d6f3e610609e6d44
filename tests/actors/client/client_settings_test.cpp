// What a client has set for its own thread, which computes at times, and those that start from it.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cfenv>
#include <cfloat>
#include <vector>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/actors/support/square.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace troupe;
using namespace troupe::test;

namespace {

// Rounds down and takes denormals for zero, as numerical programs do that embed us.
class ItsOwnArithmetic {
 public:
  ItsOwnArithmetic() {
    std::fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | kNoDenormals);
#endif
  }
  ~ItsOwnArithmetic() { std::fesetenv(FE_DFL_ENV); }

  static bool kept() {
#if defined(__x86_64__)
    if ((_mm_getcsr() & kNoDenormals) != kNoDenormals) return false;
#endif
    return std::fegetround() == FE_DOWNWARD;
  }

 private:
  static constexpr unsigned kNoDenormals = 0x8040;  // of MXCSR: flush to zero, denormals are zero
};

}  // namespace

TEST_CASE("a client's own rounding changes no bit of a step, and is left alone") {
  // Products that round, sums, and a denormal; cheap ones too, which whoever sends runs.
  const Tensor values = ramp(Shape{256, 256});
  const auto compute = [&](int threads) {
    Square p;
    p.fed = values;
    const Output small = placeholder<float>(p.g, PartialShape{4}, "small");
    const Output folded = constant(p.g, 1.0f) / constant(p.g, 3.0f);
    const Output halves = small * constant(p.g, 0.5f) + small / constant(p.g, 3.0f);
    Variable w = variable(p.g, "w", values);
    const Op train = assign_add(w, p.y * constant(p.g, 1e-7f));
    Cluster cluster;
    cluster.threads = threads;
    Session session(p.g, cluster);
    session.init();
    const CompiledStep step = session.compile({p.y, halves, folded}, {train}, {p.x, small});
    const Tensor denormal = Tensor::of<float>(Shape{4}, {FLT_MIN, FLT_MIN / 8, 0.1f, -0.7f});
    std::vector<Tensor> all;
    for (int i = 0; i < 5; ++i) all = step.run({p.fed, denormal});
    all.push_back(session.variables().at(0).second);
    return all;
  };
  for (int threads : {1, 2}) {
    const std::vector<Tensor> usual = compute(threads);
    std::vector<Tensor> own;
    bool kept = false;
    {
      const ItsOwnArithmetic set;
      own = compute(threads);
      kept = ItsOwnArithmetic::kept();
    }
    CHECK(kept);
    REQUIRE(own.size() == usual.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      CAPTURE(i);
      CHECK(Tensor::same(own[i], usual[i]));
    }
  }
}

TEST_CASE("a client's number of OpenMP threads is left alone") {
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  if (!set || !get) {
    MESSAGE("skipped: there is no OpenMP in this process");
    return;
  }
  const int before = get();
  set(3);
  Square p;
  Session session(p.g, one_thread());
  const CompiledStep step = session.compile({p.y}, {}, {p.x});
  for (int i = 0; i < 20; ++i) step.run({p.fed});
  CHECK(get() == 3);
  set(before);
}
