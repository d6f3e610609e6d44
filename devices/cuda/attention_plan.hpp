// AttentionPlan: how cuDNN computes attention of one size, or its gradient.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "devices/cuda/dnn_plan.hpp"

namespace troupe::cuda {

// y = softmax(scale q k^T + bias) v of q [batch, heads, queries, size], k [.., keys, size] and v
// [.., keys, out], with the logarithms of the sums as stats [batch, heads, queries] of f32; or the
// gradients of q, k and v, given y and the stats. f16 or bf16, added up in f32. All tensors lie in
// order, at multiples of 16 bytes. The scale is given with each run.
struct DnnAttention {
  bool gradient = false;
  DType dtype = DType::bf16;
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, size = 1, out = 1;
  bool causal = false;  // query i looks at keys 0 to i
  // Of the bias [batch or 1, heads or 1, queries, keys]; 0: there is none.
  std::int64_t bias_batch = 0, bias_heads = 0;
  auto operator<=>(const DnnAttention&) const = default;
};

struct DnnAttentionOperands {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *y = nullptr, *stats = nullptr;
  const void* bias = nullptr;
  const void *dy = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
  const void* sums = nullptr;  // f32 memory as large as the stats, for a gradient
  float scale = 1;
};

// The first way that cuDNN's heuristics name, and then of all that it falls back to, which has the
// same bits in each run, rounds nothing to fewer bits than its type has, and needs at most so much
// workspace. Immutable. REQUIRES: the library outlives it.
class AttentionPlan {
 public:
  using Problem = DnnAttention;
  using Operands = DnnAttentionOperands;
  using Limits = DnnLimits;
  static constexpr const char* kWhat = "problems of attention";
  // Bytes: a gradient that adds up in order needs the slopes of all scores, of which kernels need
  // twice as much.
  static constexpr std::size_t kMostWorkspace = std::size_t{4} << 30;
  // The oldest library that is asked: older ones have known faults.
  static constexpr int kOldest = 91100;

  // unimplemented: the library knows no such way, or is not asked. That is so for other types, for
  // libraries before kOldest, and for gradients: on GPUs other than sm_8x and sm_9x, as those of
  // newer ones add up in any order; of one query with one key; of keys that are no multiple of 128
  // by libraries up to 9.15.0, which read beyond them. `limits.architecture` names the GPU.
  static Expected<std::vector<AttentionPlan>> make_several(const Cudnn& library,
                                                           const DnnAttention& attention,
                                                           const DnnTarget& target,
                                                           const Limits& limits, std::size_t most,
                                                           bool* for_good = nullptr);
  static Expected<AttentionPlan> make(const Cudnn& library, const DnnAttention& attention,
                                      const DnnTarget& target, const Limits& limits);
  // The attention, in words that no other has.
  static std::string text_of(const DnnAttention& attention);

  std::size_t workspace() const { return plan_.workspace(); }
  std::int64_t engine() const { return plan_.engine(); }
  // Issues it on the handle's stream.
  Status run(DnnHandle handle, const DnnAttentionOperands& operands, void* workspace) const;

 private:
  AttentionPlan(DnnPlan plan, const DnnAttention& attention)
      : plan_(std::move(plan)), attention_(attention) {}

  DnnPlan plan_;
  DnnAttention attention_;
};

}  // namespace troupe::cuda
