// Kernels that ask tensors for what is not there.
#include <doctest/doctest.h>

#include "devices/kernel.hpp"

using namespace troupe;

TEST_CASE("a kernel that reads elements as another type than the tensor's fails with an error") {
  struct Reads : Kernel {
    Status compute(KernelContext& ctx) override {
      return ctx.input(0).data<float>()[0] > 0 ? ok_status() : cancelled("");
    }
  } kernel;
  for (const bool right : {true, false}) {
    Slot slots[1];
    slots[0].tensor = right ? Tensor::scalar(1.0f) : Tensor::scalar(std::int64_t{1});
    const std::uint32_t inputs[] = {0};
    KernelContext ctx({.slots = slots, .input_slots = inputs, .inputs = 1});
    const Status status = result_of(kernel, ctx);
    CHECK(status.ok() == right);
    if (!right) CHECK(status.message() == "elements of i64[] were asked for as f32");
  }
}
