// Kernels of GPUs on the emulated one, for tests of this process. With TROUPE_TEST_GPU=1 those that
// need nothing of the fake driver run on the GPU of this machine.
#pragma once

#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "devices/cuda/cuda_device.hpp"
#include "devices/cuda/diagnosis.hpp"
#include "ops/op.hpp"
#include "tests/devices/cuda/fake_driver.hpp"

namespace troupe::test {

// The fake driver, and the compiler that knows its functions.
inline cuda::Search emulated_search() {
  return {{build_dir() + "/fake-cuda", build_dir() + "/fake-nvrtc"}, false};
}

inline bool is_on_hardware() {
  const char* asked = std::getenv("TROUPE_TEST_GPU");
  return asked && std::string_view(asked) == "1";
}

// Whether the test is to run on a GPU that this machine does not have; says why.
inline bool skips_without_gpu() {
  if (!is_on_hardware()) return false;
  for (const cuda::Finding& f : cuda::diagnose(cuda::Search::standard()).findings) {
    const bool needed = f.part == "driver" || f.part == "gpu:0" || f.part == "nvrtc";
    if (!needed || f.state == "ready") continue;
    MESSAGE("skipped: " << f.part << " " << f.text);
    return true;
  }
  return false;
}

// The emulated GPU, or that of this machine. `fake`: what the fake driver is like
// (tests/fake_cuda/fake_cuda.hpp).
inline std::unique_ptr<CudaDevice> test_gpu(const std::string& fake = "") {
  std::optional<FakeCuda> on;
  if (!is_on_hardware()) on.emplace(fake);
  CudaOptions options;
  options.search = is_on_hardware() ? cuda::Search::standard() : emulated_search();
  // Of hardware more: cuBLASLt has a workspace there.
  options.memory = std::size_t{is_on_hardware() ? 1024u : 16u} << 20;
  return make_cuda_device(DeviceName::parse("/job:worker/task:0/cuda:0").value(), options).value();
}

// `t` in memory of the device, so many bytes behind where a block begins.
inline Tensor on_device(Device& device, const Tensor& t, std::size_t offset = 0) {
  const Shape bytes{std::int64_t(t.bytes() + offset)};
  Tensor room = Tensor::make(DType::u8, bytes, device.allocator()).value();
  Tensor there(t.dtype(), t.shape(), room.buffer(), offset);
  device.stream().wait(device.copy(t, there));
  return there;
}
inline Expected<Tensor> on_host(Device& device, const Tensor& t) {
  TROUPE_TRY(Tensor here, Tensor::make(t.dtype(), t.shape(), device.host_allocator()));
  std::promise<Status> copied;
  device.on_complete(device.copy(t, here), [&](Status s) { copied.set_value(std::move(s)); });
  TROUPE_TRY(copied.get_future().get());
  return here;
}

// One call of the node's CUDA kernel, on inputs of the host. With `in_place` it may write over all
// of them. On the device they begin `offset` bytes behind a block's begin.
inline Expected<std::vector<Tensor>> run_on_gpu(const OpTable& table, CudaDevice& device,
                                                const NodeDef& node,
                                                const std::vector<Tensor>& inputs,
                                                bool in_place = false,
                                                const RandomState& random = {},
                                                std::size_t offset = 0) {
  const OpInfo& op = *table.ops.find(node.op);
  TROUPE_TRY(auto kernel, table.kernels.make(node, op, "CUDA"));
  Kernel* const kernels[] = {kernel.get()};
  TROUPE_TRY(device.prepare(kernels));
  std::vector<Slot> in(inputs.size()), out(node.out_types.size());
  std::vector<std::uint32_t> slots, readers(inputs.size(), in_place ? 1 : 2);
  for (std::size_t i = 0; i < in.size(); ++i) {
    slots.push_back(std::uint32_t(i));
    const bool host = op.in[std::min(i, op.in.size() - 1)].host;
    in[i].tensor = host ? inputs[i] : on_device(device, inputs[i], offset);
  }
  InlineLanes lanes;
  const KernelPlace place{.device = &device, .lanes = &lanes};
  KernelContext ctx({.slots = in.data(),
                     .input_slots = slots.data(),
                     .readers = readers.data(),
                     .outputs = out.data(),
                     .inputs = std::uint16_t(in.size()),
                     .n_outputs = std::uint16_t(out.size()),
                     .place = &place,
                     .random = random});
  TROUPE_TRY(kernel->compute(ctx));
  std::vector<Tensor> results;
  for (const Slot& slot : out) {
    const bool host = slot.tensor.space() == MemorySpace::host;
    TROUPE_TRY(Tensor made, host ? Expected<Tensor>(slot.tensor) : on_host(device, slot.tensor));
    results.push_back(std::move(made));
  }
  return results;
}

}  // namespace troupe::test
