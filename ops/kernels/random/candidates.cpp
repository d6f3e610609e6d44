// Candidate samplers: classes that stand for all in the loss of a classifier with many of them.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ops/kernels/random/substream.hpp"
#include "ops/kernels/support/indices.hpp"

using namespace troupe;

namespace {

// Each class is as probable as any other.
struct UniformLaw {
  explicit UniformLaw(std::int64_t classes) : classes(double(classes)) {}
  double probability(std::int64_t) const { return 1 / classes; }
  double draw(double unit) const { return std::floor(unit * classes); }
  double classes;
};
// Class c has the probability log((c + 2) / (c + 1)) / log(classes + 1): Zipf's law.
struct LogUniformLaw {
  explicit LogUniformLaw(std::int64_t classes) : scale(std::log1p(double(classes))) {}
  double probability(std::int64_t c) const { return std::log1p(1 / (double(c) + 1)) / scale; }
  double draw(double unit) const { return std::floor(std::exp(unit * scale)) - 1; }
  double scale;
};

Status candidates_shape(InferenceContext& c) {
  const std::int64_t n = c.int_attr("n"), classes = c.int_attr("range_max");
  const std::int64_t most = c.type_attr("T") == DType::i32 ? std::int64_t{1} << 31  //
                                                           : std::int64_t{1} << 53;
  if (n < 0) return invalid_argument(fmt::format("n is {}; it must not be negative", n));
  if (classes < 1 || classes > most)
    return invalid_argument(fmt::format("range_max is {}, not in [1, {}]", classes, most));
  if (c.bool_attr("unique") && n > classes)
    return invalid_argument(fmt::format("{} different classes of {}", n, classes));
  TROUPE_TRY(PartialShape sampled, PartialShape::make(std::vector<std::int64_t>{n}));
  c.set(0, sampled);
  c.set(1, c.shape(0));
  c.set(2, std::move(sampled));
  return ok_status();
}

template <class Law>
struct Sampler {
  template <class T>
  struct K final : Kernel {
    explicit K(const KernelSpec& s)
        : n(s.int_attr("n")),
          classes(s.int_attr("range_max")),
          unique(s.bool_attr("unique")),
          counts(s.type("Tcount")),
          law(classes) {}

    Status compute(KernelContext& ctx) override {
      const Tensor& labels = ctx.input(0);
      TROUPE_TRY(check_indices(labels, classes));
      TROUPE_TRY(Tensor sampled, ctx.allocate(dtype_of<T>, Shape{n}));
      const double tries = draw(ctx.random(), sampled.mutable_data<T>());
      TROUPE_TRY(Tensor of_labels, expected(ctx, labels, tries));
      TROUPE_TRY(Tensor of_sampled, expected(ctx, sampled, tries));
      ctx.set_output(0, std::move(sampled));
      ctx.set_output(1, std::move(of_labels));
      ctx.set_output(2, std::move(of_sampled));
      return ok_status();
    }

    // Returns how many draws it took. Try t is a function of the node's key, the run and t alone.
    double draw(const RandomState& random, T* to) const {
      std::unordered_set<T> seen;
      if (unique) seen.reserve(std::size_t(n));
      std::int64_t tries = 0;
      for (std::int64_t i = 0; i < n; ++tries) {
        const double drawn = law.draw(unit_of_element(random, tries));
        const T value = T(std::min(std::int64_t(drawn), classes - 1));  // rounding may go beyond
        if (!unique || seen.insert(value).second) to[i++] = value;
      }
      return double(tries);
    }

    // How often each class is among those drawn, on average; of different ones, how probably.
    Expected<Tensor> expected(KernelContext& ctx, const Tensor& of, double tries) const {
      TROUPE_TRY(Tensor out, ctx.allocate(counts, of.shape()));
      const auto fill = [&](auto* to) {
        const T* from = of.data<T>();
        for (std::int64_t i = 0; i < of.elements(); ++i)
          to[i] = std::decay_t<decltype(*to)>(expected_of(from[i], tries));
      };
      if (counts == DType::f64)
        fill(out.mutable_data<double>());
      else
        fill(out.mutable_data<float>());
      return out;
    }
    double expected_of(T c, double tries) const {
      const double p = law.probability(c);
      if (!unique || tries == 0) return p * tries;
      return -std::expm1(tries * std::log1p(-p));
    }

    const std::int64_t n, classes;
    const bool unique;
    const DType counts;
    const Law law;
  };
};

OpDef sampler(std::string name, const std::string& law) {
  return {
      .name = std::move(name),
      .in = {"true_classes"},
      .out = {"sampled", "true_expected: Tcount", "sampled_expected: Tcount"},
      .types = "i32 i64",
      .attrs = {"Tcount: type {f32 f64} = f32", "n: int", "range_max: int", "unique: bool = true"},
      .shape = candidates_shape,
      .no_gradient = "drawn, not computed of inputs",
      .random = true,
      .doc = "n classes of [0, range_max), " + law +
             ", and how often each of true_classes and of those drawn is drawn on average: "
             "with `unique`, where no class is drawn twice, the probability that it is among "
             "as many draws as that took. A true class outside is an error. New values in "
             "each run, the same for the same seed, node name and run."};
}

}  // namespace

TROUPE_OPS(candidates) {
  r.add(sampler("UniformCandidateSampler", "each as probable as any other"))
      .cpu(typed_kernel<Sampler<UniformLaw>::K, Indices>);
  r.add(sampler("LogUniformCandidateSampler",
                "class c with the probability log((c + 2) / (c + 1)) / log(range_max + 1), which "
                "fits words in descending order of their frequency"))
      .cpu(typed_kernel<Sampler<LogUniformLaw>::K, Indices>);
}
