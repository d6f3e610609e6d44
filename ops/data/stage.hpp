// The stages of an input pipeline: one file a kind, in stages/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ops/data/source.hpp"

namespace troupe {

// An example on its way through a pipeline: a place in a source, read when its values are wanted,
// or the values themselves. To the stages a batch is an example, too.
struct Example {
  const Source* source = nullptr;
  std::uint64_t index = 0;
  std::vector<Tensor> values;  // when there is no source
};
std::size_t bytes_of(const Example& example);

// One pass over the examples of a stage. One user at a time; the stage outlives it.
class Pass {
 public:
  virtual ~Pass() = default;
  // nullopt at the end, and ever after. After an error the pass is of no use any more.
  virtual Expected<std::optional<Example>> next() = 0;
  // Passes over the next `n` examples, or as many as there are; says how many.
  virtual Expected<std::uint64_t> skip(std::uint64_t n);
  // One that goes on by itself from here.
  virtual std::unique_ptr<Pass> clone() const = 0;
  virtual std::size_t bytes_held() const = 0;  // about: what a clone costs
};

// Of a stage that never ends.
inline constexpr std::uint64_t kEndless = ~std::uint64_t{0};

// A stage of an opened pipeline. Which examples a pass gives is a function of the stage and the
// number of the pass. Immutable.
class Stage {
 public:
  explicit Stage(Signature signature) : signature_(std::move(signature)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const Signature& signature() const { return signature_; }
  // In each pass, where that is known without reading: kEndless, or how many.
  virtual std::optional<std::uint64_t> count() const = 0;
  // Skipping costs the same however far.
  virtual bool direct() const = 0;
  // All passes have the same number of examples.
  virtual bool steady() const = 0;
  virtual std::unique_ptr<Pass> pass(std::uint64_t number) const = 0;

 private:
  Signature signature_;
};
using StagePtr = std::unique_ptr<const Stage>;
using Stages = std::vector<StagePtr>;

}  // namespace troupe
