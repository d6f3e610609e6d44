// Stages of input pipelines; each kind is one file in stages/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ops/data/source.hpp"

namespace troupe {

// An example in a pipeline: either a position in a source, read when the values are needed, or the
// values. A batch is an example, too.
struct Example {
  const Source* source = nullptr;
  std::uint64_t index = 0;
  std::vector<Tensor> values;  // if source is null
  Origin origin = {};          // of the values, if they come from a single record
};
std::size_t bytes_of(const Example& example);
// The error, with the origin of the example if that is known.
Status in_example(const Status& status, const Example& example);
Origin origin_of(const Example& example);

// One pass over the examples of a stage, which outlives it. Not thread-safe.
class Pass {
 public:
  virtual ~Pass() = default;
  // The next example; nullopt at the end and in all later calls. Unusable after an error unless
  // goes_on().
  virtual Expected<std::optional<Example>> next() = 0;
  // After an error: whether only one example, or the rest of one file, is lost, and next()
  // continues after it.
  virtual bool goes_on() const { return false; }
  // Skips the next `n` examples, or all that are left; returns how many. As for Cursor::skip(), an
  // example that is bad itself counts as one, so that others have the same numbers in any case.
  virtual Expected<std::uint64_t> skip(std::uint64_t n) { return skip_by_next(*this, n); }
  // An independent pass at the same position.
  virtual std::unique_ptr<Pass> clone() const = 0;
  virtual std::size_t bytes_held() const = 0;  // approximate memory of a clone
};

// The count() of an endless stage.
inline constexpr std::uint64_t kEndless = ~std::uint64_t{0};

// A stage of an open pipeline. The examples of a pass depend only on the stage and the number of
// the pass. Immutable.
class Stage {
 public:
  explicit Stage(Signature signature) : signature_(std::move(signature)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const Signature& signature() const { return signature_; }
  // The number of examples per pass, or kEndless; nullopt if unknown without reading.
  virtual std::optional<std::uint64_t> count() const = 0;
  // Whether skipping takes constant time.
  virtual bool direct() const = 0;
  // Whether all passes have the same number of examples.
  virtual bool steady() const = 0;
  virtual std::unique_ptr<Pass> pass(std::uint64_t number) const = 0;

 private:
  Signature signature_;
};
using StagePtr = std::unique_ptr<const Stage>;
using Stages = std::vector<StagePtr>;

}  // namespace troupe
