#include "ops/data/stages/mapped.hpp"

#include <deque>

#include "core/hash.hpp"
#include "ops/data/stack.hpp"
#include "ops/data/work_pool.hpp"

namespace troupe {

namespace {

Status refused_example(const ExampleFunction& function, const std::vector<Tensor>& values) {
  return invalid_argument("an example is " + signature_text(signature_of(values)) +
                          ", and the function takes " + signature_text(function.arguments()));
}

// The function's random numbers depend on the example's place in its pass, so that they do not
// depend on how that place is reached. An example that fails has a place, too.
class MapPass final : public Pass {
 public:
  // `draws`: of the pass.
  MapPass(std::unique_ptr<Pass> input, ExampleFunctionPtr function, std::uint64_t draws)
      : input_(std::move(input)), function_(std::move(function)), draws_(draws) {}
  MapPass(const MapPass& other)
      : input_(other.input_->clone()),
        function_(other.function_),
        draws_(other.draws_),
        place_(other.place_) {}

  Expected<std::optional<Example>> next() override {
    const auto example = input_->next();
    goes_on_ = example.ok() || input_->goes_on();
    if (!example.ok()) ++place_;
    if (!example.ok()) return example.status();
    if (!*example) return std::optional<Example>();
    const std::uint64_t draw = hash_combine(draws_, place_++);
    auto values = values_of(**example);
    if (!values.ok()) return in_example(values.status(), **example);
    if (!fits(function_->arguments(), *values))
      return in_example(refused_example(*function_, *values), **example);
    auto made = function_->call(std::move(*values), draw);
    if (!made.ok()) return in_example(made.status(), **example);
    return std::optional(Example{nullptr, 0, std::move(*made), origin_of(**example)});
  }
  // Skipped examples are not computed.
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    const auto passed = input_->skip(n);
    goes_on_ = input_->goes_on();
    if (passed.ok()) place_ += *passed;
    return passed;
  }
  bool goes_on() const override { return goes_on_; }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<MapPass>(*this); }
  std::size_t bytes_held() const override { return sizeof *this + input_->bytes_held(); }

 private:
  std::unique_ptr<Pass> input_;
  ExampleFunctionPtr function_;
  std::uint64_t draws_, place_ = 0;
  bool goes_on_ = false;
};

// Computes examples ahead of requests: some for each thread, so that all have work while whoever
// asks makes a batch.
class ParallelMapPass final : public Pass {
 public:
  ParallelMapPass(std::unique_ptr<Pass> input, const ExampleFunction& function, WorkPool& pool,
                  std::uint64_t draws, std::size_t parallel)
      : input_(std::move(input)),
        function_(function),
        pool_(pool),
        draws_(draws),
        parallel_(parallel) {}
  ParallelMapPass(const ParallelMapPass& other)
      : input_(other.input_->clone()),
        function_(other.function_),
        pool_(other.pool_),
        draws_(other.draws_),
        parallel_(other.parallel_),
        place_(other.place_),
        ended_(other.ended_),
        ahead_(other.ahead_) {}

  Expected<std::optional<Example>> next() override {
    fill();
    goes_on_ = true;
    if (ahead_.empty()) return std::optional<Example>();
    const Ahead first = std::move(ahead_.front());
    ahead_.pop_front();
    if (!first.call) {
      goes_on_ = first.goes_on;
      return first.failed;
    }
    auto made = pool_.wait(first.call);
    if (!made.ok()) return in_example(made.status(), first.example);
    return std::optional(Example{nullptr, 0, std::move(*made), first.example.origin});
  }
  // Results of running calls are discarded.
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    std::uint64_t passed = 0;
    goes_on_ = true;
    for (; passed < n && !ahead_.empty(); ++passed) {
      const Ahead first = std::move(ahead_.front());
      ahead_.pop_front();
      if (first.call || first.goes_on) continue;
      goes_on_ = false;
      return first.failed;
    }
    if (passed == n || ended_) return passed;
    const auto more = input_->skip(n - passed);
    goes_on_ = input_->goes_on();
    if (!more.ok()) return more.status();
    place_ += *more;
    return passed + *more;
  }
  bool goes_on() const override { return goes_on_; }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<ParallelMapPass>(*this); }
  std::size_t bytes_held() const override {
    std::size_t bytes = sizeof *this + input_->bytes_held();
    for (const Ahead& one : ahead_) bytes += sizeof one + one.bytes;
    return bytes;
  }

 private:
  struct Ahead {
    PooledCallPtr call;  // null: it failed before the call
    Status failed = {};
    bool goes_on = true;
    Example example = {};   // its origin, without values
    std::size_t bytes = 0;  // of the values
  };

  void fill() {
    while (!ended_ && ahead_.size() < kForEach * parallel_) {
      auto example = input_->next();
      if (!example.ok()) {
        ++place_;
        ended_ = !input_->goes_on();
        ahead_.push_back({nullptr, example.status(), !ended_});
        continue;
      }
      if (!*example) {
        ended_ = true;
        return;
      }
      ahead_.push_back(begin(**example));
    }
  }
  Ahead begin(const Example& example) {
    const std::uint64_t draw = hash_combine(draws_, place_++);
    auto values = values_of(example);
    if (!values.ok()) return {nullptr, in_example(values.status(), example)};
    if (!fits(function_.arguments(), *values))
      return {nullptr, in_example(refused_example(function_, *values), example)};
    const std::size_t bytes = bytes_of(Example{nullptr, 0, *values});
    Ahead one{std::make_shared<PooledCall>(std::move(*values), draw),
              {},
              true,
              Example{nullptr, 0, {}, origin_of(example)},
              bytes};
    pool_.submit(one.call);
    return one;
  }

  static constexpr std::size_t kForEach = 4;

  std::unique_ptr<Pass> input_;
  const ExampleFunction& function_;  // the stage's
  WorkPool& pool_;                   // the stage's
  std::uint64_t draws_;
  std::size_t parallel_;
  std::uint64_t place_ = 0;
  bool ended_ = false, goes_on_ = false;
  std::deque<Ahead> ahead_;
};

class MapStage final : public Stage {
 public:
  MapStage(StagePtr input, ExampleFunctionPtr function, std::uint64_t draws, Signature results,
           std::vector<ExampleFunctionPtr> parallel)
      : Stage(std::move(results)),
        input_(std::move(input)),
        function_(std::move(function)),
        draws_(draws),
        parallel_(parallel.size()) {
    if (!parallel.empty()) pool_ = std::make_unique<WorkPool>(std::move(parallel));
  }
  std::optional<std::uint64_t> count() const override { return input_->count(); }
  bool direct() const override { return input_->direct(); }
  bool steady() const override { return input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    const std::uint64_t draws = hash_combine(draws_, number);
    if (!pool_) return std::make_unique<MapPass>(input_->pass(number), function_, draws);
    return std::make_unique<ParallelMapPass>(input_->pass(number), *function_, *pool_, draws,
                                             parallel_);
  }

 private:
  StagePtr input_;
  ExampleFunctionPtr function_;
  std::uint64_t draws_;
  std::size_t parallel_;
  std::unique_ptr<WorkPool> pool_;  // null: one after the other, in the caller's thread
};

}  // namespace

StagePtr mapped_stage(StagePtr input, ExampleFunctionPtr function, std::uint64_t draws,
                      Signature results, std::int64_t parallel) {
  std::vector<ExampleFunctionPtr> functions;
  for (std::int64_t i = 0; parallel > 1 && i < parallel; ++i) {
    ExampleFunctionPtr another = function->another();
    if (!another) break;
    functions.push_back(std::move(another));
  }
  return std::make_unique<MapStage>(std::move(input), std::move(function), draws,
                                    std::move(results), std::move(functions));
}

}  // namespace troupe
