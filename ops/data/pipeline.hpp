// The input pipeline as a pure function: examples and an element's index in, a batch out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "troupe/core/status.hpp"
#include "troupe/core/tensor.hpp"

namespace troupe {

struct PipelineSpec {
  std::int64_t batch = 1;
  std::int64_t shuffle = 0;  // window in examples; 0: in order
  std::uint64_t seed = 0;    // of the shuffling
  std::int64_t repeat = 1;   // epochs; -1: for ever
  bool drop_remainder = false;
  std::int64_t limit = 0;  // only the first examples; 0: all
};

// Batches over examples held in memory, one tensor a component with the example in dimension 0.
// Element e is a function of e, the examples and the spec alone, so any worker, restarted or not,
// makes the same one. Batches do not cross epochs.
//
// Bytes are turned into what a network takes: u8 [N,H,W] becomes f32 [B,H,W,1] in [0,1], u8 [N]
// becomes i64 [B]. Other components keep their dtype and shape.
//
// One user at a time: it keeps the order of the epochs in use. Does no I/O and has no clock.
class Pipeline {
 public:
  // invalid_argument for components of different lengths, no examples, a spec out of range, or a
  // batch that no epoch fills when the remainder is dropped.
  static Expected<Pipeline> make(std::vector<Tensor> examples, const PipelineSpec& spec);

  const PipelineSpec& spec() const { return spec_; }
  std::int64_t examples() const { return count_; }
  std::uint64_t elements_per_epoch() const { return per_epoch_; }
  // Nullopt when it never ends.
  std::optional<std::uint64_t> elements() const;

  // out_of_range past the end.
  Expected<std::vector<Tensor>> element(std::uint64_t index);
  // What a first element looks like: the right dtypes and shapes, examples in file order.
  Expected<std::vector<Tensor>> sample() const;

 private:
  struct Epoch {
    std::uint64_t number = ~std::uint64_t{0};
    std::vector<std::uint32_t> order;
  };
  Pipeline() = default;
  const std::vector<std::uint32_t>& order_of(std::uint64_t epoch);

  PipelineSpec spec_;
  std::vector<Tensor> examples_;
  std::int64_t count_ = 0;
  std::uint64_t per_epoch_ = 0;
  // Two, so that elements made ahead may already be the next epoch's.
  std::array<Epoch, 2> epochs_;
};

// The order of one epoch: position i shows example order[i]. A window of w keeps the next w
// examples and draws the next one from them; w >= count is a uniform permutation.
std::vector<std::uint32_t> epoch_order(std::int64_t count, std::int64_t window, std::uint64_t seed,
                                       std::uint64_t epoch);

}  // namespace troupe
