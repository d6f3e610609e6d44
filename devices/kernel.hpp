// Kernel: the implementation of a node on a device, and the context of its calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/hash.hpp"
#include "core/tensor.hpp"
#include "devices/device.hpp"
#include "devices/spares.hpp"

namespace troupe {

// Holds a produced tensor for its readers.
struct Slot {
  Tensor tensor;
  Ticket ticket;      // of the work that makes the tensor's contents
  bool dead = false;  // on a branch that was not taken (paper, section 4.4)
};

// Random numbers of one node in one run: key of the node, counter of the run.
// Element block b of the output is philox(key, {b_low, b_high, run_low, run_high}).
struct RandomState {
  std::uint64_t key = 0;
  std::uint64_t run = 0;  // hash of (R+1, k, iteration numbers)
  PhiloxBlock block(std::uint64_t b) const {
    return philox(key, {std::uint32_t(b), std::uint32_t(b >> 32), std::uint32_t(run),
                        std::uint32_t(run >> 32)});
  }
};

// The environment of kernels, equal for all calls of a burst.
struct KernelPlace {
  Device* device = nullptr;
  Lanes* lanes = nullptr;
  const std::atomic<bool>* cancelled = nullptr;
  Spares* spares = nullptr;  // of host memory; null: none
  // The allocators of calls; null: the device's.
  Allocator* memory = nullptr;
  Allocator* host_memory = nullptr;
};

// One call of a kernel. Made by the burst on its stack, lives for that call. No virtual functions,
// because it is on the hot path. Inputs and outputs are slots of the step.
class KernelContext {
 public:
  struct Setup {
    Slot* slots = nullptr;                       // base of the iteration's block
    const std::uint32_t* input_slots = nullptr;  // relative to it
    std::uint32_t* readers = nullptr;            // remaining readers by slot; null: never reuse
    Slot* outputs = nullptr;
    std::uint16_t inputs = 0;
    std::uint16_t n_outputs = 0;
    const KernelPlace* place = nullptr;
    RandomState random;
  };
  explicit KernelContext(const Setup& setup) : s_(setup) {}

  int inputs() const { return s_.inputs; }
  int outputs() const { return s_.n_outputs; }
  const Tensor& input(int i) const { return s_.slots[s_.input_slots[i]].tensor; }

  // Whether this call may overwrite input i: it is the slot's last reader, and nothing else holds
  // the buffer.
  bool may_reuse(int i) const {
    std::uint32_t slot = s_.input_slots[i];
    return s_.readers != nullptr && s_.readers[slot] == 1 && s_.slots[slot].tensor.unique();
  }
  // Memory of this device. resource_exhausted if there is none, or the step's limit refuses it.
  Expected<Tensor> allocate(DType dtype, const Shape& shape) const {
    if (s_.place->spares && shape.rank() == 0)
      if (Buffer spare = s_.place->spares->take(dtype))
        return Tensor(dtype, shape, std::move(spare));
    return Tensor::make(dtype, shape, allocator());
  }
  Expected<Tensor> allocate_host(DType dtype, const Shape& shape) const {
    return Tensor::make(dtype, shape, host_allocator());
  }
  Allocator& allocator() const {
    return s_.place->memory ? *s_.place->memory : device().allocator();
  }
  Allocator& host_allocator() const {
    return s_.place->host_memory ? *s_.place->host_memory : device().host_allocator();
  }
  // Input i itself, with the new dtype and shape, if it may be overwritten, is in memory of this
  // device and has elements of the same size and number; else new memory. The result may alias
  // input(i): write element k only after reading element k.
  Expected<Tensor> reuse_or_allocate(int i, DType dtype, const Shape& shape) const {
    const Tensor& in = input(i);
    if (in.defined() && dtype_size(in.dtype()) == dtype_size(dtype) &&
        in.dtype() != DType::string && in.elements() == shape.elements() &&
        in.space() == s_.place->device->space() && may_reuse(i))
      return in.retyped(dtype).reshaped(shape);
    return allocate(dtype, shape);
  }
  void set_output(int i, Tensor tensor) { s_.outputs[i].tensor = std::move(tensor); }

  // Splits work over lanes; the number of chunks must depend only on shapes (Lanes).
  void parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) const {
    if (chunks == 1) return chunk(0);
    s_.place->lanes->parallel(chunks, chunk);
  }
  // Whether the result is no longer needed. Long kernels poll this between chunks.
  bool cancelled() const {
    return s_.place->cancelled != nullptr && s_.place->cancelled->load(std::memory_order_relaxed);
  }
  const RandomState& random() const { return s_.random; }
  Device& device() const { return *s_.place->device; }
  Stream& stream() const { return device().stream(); }
  Lanes& lanes() const { return *s_.place->lanes; }

 private:
  Setup s_;
};

// The implementation of one node, made when its plan is loaded and used by all steps of the plan,
// so that it can keep what is expensive to make (primitives). Steps may overlap: compute() must be
// re-entrant. On an asynchronous device it issues work on stream() and returns; outputs
// are allocated before it returns, their contents come later. Called through call_kernel().
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status compute(KernelContext& ctx) = 0;
};

}  // namespace troupe
