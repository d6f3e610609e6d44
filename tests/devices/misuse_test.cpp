// Kernels that ask tensors for what is not there, and kernels that throw.
#include <doctest/doctest.h>

#include <functional>
#include <new>
#include <stdexcept>

#include "devices/kernel_call.hpp"

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
    const Status status = call_kernel(kernel, ctx);
    CHECK(status.ok() == right);
    if (!right) CHECK(status.message() == "elements of i64[] were asked for as f32");
  }
}

TEST_CASE("what a kernel throws is its status") {
  struct Throws : Kernel {
    std::function<void()> act;
    Status compute(KernelContext&) override {
      act();
      return ok_status();
    }
  } kernel;
  KernelContext ctx({});
  const auto thrown = [&](std::function<void()> act) {
    kernel.act = std::move(act);
    return call_kernel(kernel, ctx);
  };
  const Status no_memory = thrown([] { throw std::bad_alloc(); });
  CHECK(no_memory.code() == Code::resource_exhausted);
  CHECK(thrown([] { throw std::length_error("vector"); }).code() == Code::resource_exhausted);
  const Status any = thrown([] { throw std::runtime_error("a table is missing"); });
  CHECK(any.code() == Code::internal);
  CHECK(any.message() == "the kernel threw an exception: a table is missing");
  CHECK(thrown([] { throw 7; }).message() == "the kernel threw an exception of unknown type");
  CHECK(thrown([] { throw Error(out_of_range("7")); }).code() == Code::out_of_range);
  CHECK(thrown([] {}).ok());
}
