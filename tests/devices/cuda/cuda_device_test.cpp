// What a CUDA device promises beyond every device, on the fake driver.
#include "devices/cuda/cuda_device.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <future>
#include <random>

#include "devices/named_work.hpp"
#include "devices/types.hpp"
#include "tests/contains.hpp"
#include "tests/devices/conformance.hpp"
#include "tests/devices/touch.hpp"
#include "tests/devices/update_order.hpp"

using namespace troupe;
using namespace troupe::conformance;
using troupe::test::contains;
using troupe::test::FakeCuda;

namespace {

Tensor full(std::int64_t n, float value) {
  Tensor t = Tensor::make(DType::f32, Shape{n}).value();
  std::fill_n(t.mutable_data<float>(), n, value);
  return t;
}

// y = x + by, of n elements.
cuda::Result add(const fake_cuda::Launched& launched) {
  auto* y = *static_cast<float* const*>(launched.arguments[0]);
  const auto* x = *static_cast<const float* const*>(launched.arguments[1]);
  const float by = *static_cast<const float*>(launched.arguments[2]);
  const auto n = *static_cast<const std::int64_t*>(launched.arguments[3]);
  static const auto touch = test::of_fake_cuda<fake_cuda::Touch>("troupe_fake_touch");
  touch(x, std::size_t(n) * sizeof(float), 0);
  touch(y, std::size_t(n) * sizeof(float), 1);
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] + by;
  return cuda::kSuccess;
}

// A device on the fake driver, that the test sees as what it is.
struct Gpu {
  explicit Gpu(const std::string& fake = {})
      : Gpu(test::make_cuda_on_fake(device_name("cuda"), fake).value()) {}
  explicit Gpu(std::unique_ptr<CudaDevice> made)
      : device(made.get()), host_kernels(*made), d("cuda", std::move(made)) {
    test::register_in_fake_cuda(
        "add", add, {sizeof(float*), sizeof(float*), sizeof(float), sizeof(std::int64_t)});
    add_function = device->function(fake_cuda::kImage, "add").value();
  }
  // The same as a library does it.
  Status issue_add(const Tensor& x, float by, Tensor& y, Status answer) {
    const void* from = x.raw();
    void* to = y.mutable_raw();
    std::int64_t n = x.elements();
    void* arguments[] = {&to, &from, &by, &n};
    return device->issue([&](cuda::StreamHandle stream) {
      const cuda::Context& context = device->context();
      TROUPE_TRY(context.check(context.driver().cuLaunchKernel(add_function, 1, 1, 1, 32, 1, 1, 0,
                                                               stream, arguments, nullptr),
                               "cuLaunchKernel"));
      return answer;
    });
  }
  Tensor make(std::int64_t n) {
    return Tensor::make(DType::f32, Shape{n}, device->allocator()).value();
  }
  Status add_to(const Tensor& x, float by, Tensor& y) {
    const void* from = x.raw();
    void* to = y.mutable_raw();
    std::int64_t n = x.elements();
    void* arguments[] = {&to, &from, &by, &n};
    return device->launch_kernel(
        {.function = add_function, .block = {32, 1, 1}, .arguments = arguments});
  }

  CudaDevice* device;
  test::HostKernels host_kernels;
  Subject d;
  cuda::FunctionHandle add_function = nullptr;
};

// Another tensor in the memory of `x`, which work still writes that waits for `go`, and an upload
// into it: the upload comes behind that work.
Tensor upload_over(Gpu& gpu, Tensor x, std::promise<void>& go) {
  const void* address = x.raw();
  const std::int64_t n = x.elements();
  x = Tensor();
  Tensor y = gpu.make(n);
  REQUIRE(y.raw() == address);
  const Ticket uploaded = gpu.device->copy(full(n, 7), y);
  go.set_value();
  gpu.device->stream().wait(uploaded);
  CHECK(Tensor::same(gpu.d.to_host(y), full(n, 7)));
  return y;
}

}  // namespace

TEST_CASE("CUDA: a device says of its GPU what the driver says") {
  Gpu gpu("memory_mb=100");
  CHECK(gpu.device->context().gpu().name == "Fake GPU");
  CHECK(gpu.device->context().gpu().architecture == "sm_90");
  CHECK(gpu.device->memory_size() == (std::size_t{100} << 20) / 10 * 9);
  CHECK_FALSE(gpu.device->locates_failures());
}

TEST_CASE("CUDA: a device that cannot be made says what doctor says") {
  const auto why = [](const std::string& fake) {
    Status status = test::make_cuda_on_fake(device_name("cuda"), fake).status();
    CHECK(status.code() == Code::failed_precondition);
    return status.message();
  };
  CHECK(contains(why("stub=1"), "is a stub"));
  CHECK(contains(why("version=11000"), "too old: "));
  CHECK(contains(why("devices=0"), "no device: "));
  FakeCuda on("devices=2");
  CudaOptions options;
  options.search = test::fake_cuda_search();
  options.ordinal = 2;
  Status status = make_cuda_device(device_name("cuda"), options).status();
  CHECK(status.code() == Code::out_of_range);
  CHECK(status.message() == "there is no GPU 2: the driver has 2");
}

TEST_CASE("CUDA: the table of device types makes one where there is a driver") {
  const DeviceTypes types = builtin_device_types();
  const DeviceName name{"worker", 0, "CUDA", 0};
  const test::EnvironmentVariable nowhere("TROUPE_CUDA_PATH", "-");
  Status none = types.make(name, {}).status();
  CHECK(none.code() == Code::failed_precondition);
  CHECK(contains(none.text(), "no driver: libcuda.so.1 is not searched for anywhere"));
  CHECK(contains(none.text(), name.text()));
  const test::EnvironmentVariable fake("TROUPE_CUDA_PATH",
                                       test::fake_cuda_search().folders[0] + ":-");
  auto made = types.make(name, {.memory = 5 << 20});
  REQUIRE(made.ok());
  CHECK((*made)->memory_size() == 5 << 20);
}

TEST_CASE("CUDA: nothing is left when the device and its tensors are gone") {
  Tensor kept, pinned;
  {
    Gpu gpu;
    kept = gpu.d.to_device(full(100'000, 1));
    pinned = gpu.d.to_host(kept);
    CHECK(test::count_in_fake_cuda("streams") == 3);
    CHECK(test::count_in_fake_cuda("modules") == 1);
  }
  CHECK(test::count_in_fake_cuda("streams") == 0);
  CHECK(test::count_in_fake_cuda("events") == 0);
  CHECK(test::count_in_fake_cuda("modules") == 0);
  CHECK(test::count_in_fake_cuda("blocks") == 1);
  CHECK(pinned.data<float>()[99'999] == 1);
  kept = Tensor();
  CHECK(test::count_in_fake_cuda("contexts") == 1);  // the pinned memory is of it
  pinned = Tensor();
  CHECK(test::count_in_fake_cuda("contexts") == 0);
  CHECK(test::count_in_fake_cuda("pinned") == 0);
}

TEST_CASE("CUDA: the host faults on the memory of a device, and fresh memory is not zero") {
  Gpu gpu;
  for (std::int64_t n : {1, 1000, 1'000'000}) {
    Tensor t = gpu.make(n);
    CHECK(test::touch(t.raw(), false) == test::kFaults);
    CHECK(std::isnan(gpu.d.to_host(t).data<float>()[n - 1]));
  }
}

TEST_CASE("CUDA: a chain of kernels needs no reference on its memory once it is issued") {
  for (int seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    Gpu gpu("delay_us=100,seed=" + std::to_string(seed));
    Tensor x = gpu.d.to_device(full(300, 0));
    for (int i = 0; i < 30; ++i) {
      Tensor y = gpu.make(300);
      CHECK(gpu.add_to(x, 1, y).ok());
      x = y;
    }
    CHECK(gpu.device->bytes_in_use() < 3 * 2048);  // it went back at once
    CHECK(Tensor::same(gpu.d.to_host(x), full(300, 30)));
  }
}

TEST_CASE("CUDA: an upload into memory that a kernel still writes waits for it") {
  Gpu gpu;
  std::promise<void> go;
  CHECK(gpu.host_kernels
            .launch([&] {
              go.get_future().wait();
              return ok_status();
            })
            .ok());
  Tensor zeros = gpu.d.to_device(full(100, 0)), x = gpu.make(100);
  CHECK(gpu.add_to(zeros, 5, x).ok());
  Tensor y = upload_over(gpu, std::move(x), go);
  // One that is written while it lives, by a kernel that was issued before the upload.
  std::promise<void> again;
  CHECK(gpu.host_kernels
            .launch([&] {
              again.get_future().wait();
              return ok_status();
            })
            .ok());
  CHECK(gpu.add_to(zeros, 5, y).ok());
  const Ticket second = gpu.device->copy(full(100, 9), y);
  again.set_value();
  CHECK(gpu.d.wait(second).ok());
  CHECK(Tensor::same(gpu.d.to_host(y), full(100, 9)));
}

TEST_CASE("CUDA: an upload into memory that no kernel has had goes on beside kernels") {
  Gpu gpu;
  std::promise<void> go;
  const Ticket kernel = gpu.host_kernels.enqueue([&] {
    go.get_future().wait();
    return ok_status();
  });
  Tensor x = gpu.make(100);
  CHECK(gpu.d.wait(gpu.device->copy(full(100, 3), x)).ok());  // it would wait for ever
  CHECK_FALSE(gpu.device->stream().last().complete());
  go.set_value();
  CHECK(gpu.d.wait(kernel).ok());
}

TEST_CASE("CUDA: updates of variables start before bursts that were launched earlier") {
  CudaOptions options;
  options.lanes = 1;
  auto device = test::make_cuda_on_fake(device_name("cuda"), "", options).value();
  CHECK(test::order_of_updates(std::move(device)) ==
        std::vector<std::string>{"update 1", "update 2", "burst 1", "burst 2"});
}

TEST_CASE("CUDA: memory that is not pinned is copied through memory that is") {
  const std::size_t before = test::count_in_fake_cuda("pageable_copies");
  {
    Gpu gpu;
    Tensor x = gpu.d.to_device(full(5000, 2));
    Tensor back = full(5000, 0);  // of the heap
    CHECK(gpu.d.wait(gpu.device->copy(x, back)).ok());
    CHECK(Tensor::same(back, full(5000, 2)));
    CHECK(test::count_in_fake_cuda("pageable_copies") == before);
  }
  // Where there is none the driver does it, and the caller waits.
  Gpu gpu("no_pinned=1");
  CHECK(Tensor::make(DType::f32, Shape{8}, gpu.device->host_allocator()).ok());
  Tensor x = gpu.d.to_device(full(5000, 2)), back = full(5000, 0);
  CHECK(gpu.d.wait(gpu.device->copy(x, back)).ok());
  CHECK(Tensor::same(back, full(5000, 2)));
  CHECK(test::count_in_fake_cuda("pageable_copies") == before + 2);
}

TEST_CASE("CUDA: a copy of nothing to the host is done after the copies before it") {
  Gpu gpu("slow=download,slow_us=20000");
  Tensor x = gpu.d.to_device(full(100, 3)), nothing = gpu.make(0);
  Allocator& host = gpu.device->host_allocator();
  Tensor back = Tensor::make(DType::f32, Shape{100}, host).value();
  std::fill_n(back.mutable_data<float>(), 100, 0.0f);
  gpu.device->copy(x, back);
  Tensor none = Tensor::make(DType::f32, Shape{0}, host).value();
  CHECK(gpu.d.wait(gpu.device->copy(nothing, none)).ok());
  CHECK(Tensor::same(back, full(100, 3)));
}

TEST_CASE("CUDA: memory runs out as a status, and is cut anew for other sizes") {
  Gpu gpu("memory_mb=16");
  for (int round = 1; round <= 3; ++round) {
    std::vector<Tensor> tensors;
    for (;;) {
      auto t = Tensor::make(DType::f32, Shape{round * 100'000}, gpu.device->allocator());
      if (!t.ok()) {
        CHECK(t.status().code() == Code::resource_exhausted);
        break;
      }
      tensors.push_back(std::move(t).value());
    }
    CHECK(int(tensors.size()) >= 25 / round);
  }
  // What other sizes have left in small pieces is one block again.
  const auto [had, left] = std::pair(test::count_in_fake_cuda("blocks"), Shape{2'800'000});
  CHECK(Tensor::make(DType::f32, left, gpu.device->allocator()).ok());
  CHECK(test::count_in_fake_cuda("blocks") < had);
  Gpu once("out_of_memory_at=1");
  Tensor x = once.make(100);  // the next, smaller piece is there
  CHECK(Tensor::same(once.d.to_host(once.d.to_device(full(100, 4))), full(100, 4)));
}

TEST_CASE("CUDA: a device that was asked for too much tells what its memory is used for, once") {
  Gpu gpu("memory_mb=16");
  CHECK(gpu.device->memory_text() == "");
  const auto asked_for_too_much = [&] {
    const auto refused = Tensor::make(DType::f32, Shape{4 << 20}, gpu.device->allocator());
    CHECK(refused.status().code() == Code::resource_exhausted);
    return gpu.device->memory_text();
  };
  CHECK(contains(asked_for_too_much(), "0 bytes of 14.3 MiB of "));
  CHECK(gpu.device->memory_text() == "");
  std::vector<Tensor> kept;
  const auto take = [&](std::string_view node, std::int64_t floats) {
    const NamedWork work(node);
    kept.push_back(gpu.make(floats));
  };
  for (const char* node : {"small", "large", "large", "middle"})
    take(node, node[0] == 's' ? 1000 : node[0] == 'm' ? 300'000 : 262'144);
  kept.push_back(gpu.make(100'000));
  std::string text = asked_for_too_much();
  INFO(text);
  CHECK(contains(text, "the most is held: 2 MiB by 'large' (2 tensors), 1.2 MiB by 'middle', "));
  CHECK(contains(text, " by no node, 4 KiB by 'small'"));
  CHECK(contains(text, " are cached"));
  kept.erase(kept.begin() + 1, kept.end());
  text = asked_for_too_much();
  CHECK(contains(text, "the most is held: 4 KiB by 'small'"));
  CHECK_FALSE(contains(text, "large"));
  CHECK(gpu.device->failure().ok());
}

TEST_CASE("CUDA: a device that has failed says so") {
  Gpu gpu("launch_error_at=1");
  Tensor x = gpu.d.to_device(full(10, 0)), y = gpu.make(10);
  CHECK(gpu.device->failure().ok());
  CHECK(gpu.add_to(x, 1, y).ok());
  const Ticket last = gpu.device->stream().mark();
  CHECK_FALSE(gpu.d.wait(last).ok());
  CHECK(contains(gpu.device->failure().text(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
  // More than the first piece, so that the driver is asked.
  CHECK_FALSE(Tensor::make(DType::f32, Shape{1 << 20}, gpu.device->allocator()).ok());
  CHECK(contains(gpu.device->memory_text(), "cuMemAlloc: CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE("CUDA: a device that has failed says so before anybody has asked for its work") {
  Gpu gpu("launch_error_at=1");
  Tensor x = gpu.d.to_device(full(10, 0)), y = gpu.make(10);
  CHECK(gpu.add_to(x, 1, y).ok());
  while (gpu.device->failure().ok()) {  // until the kernel has run
  }
  CHECK(contains(gpu.device->failure().text(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK_FALSE(gpu.d.wait(gpu.device->stream().mark()).ok());
}

TEST_CASE("CUDA: a device whose host waits says which launch fails") {
  CudaOptions options;
  options.synchronous = true;
  Gpu gpu(test::make_cuda_on_fake(device_name("cuda"), "delay_us=50,launch_error_at=3", options)
              .value());
  Tensor x = gpu.d.to_device(full(10, 0)), y = gpu.make(10);
  CHECK(gpu.add_to(x, 1, y).ok());
  CHECK(gpu.add_to(y, 1, x).ok());
  const Status failed = gpu.add_to(x, 1, y);
  CHECK(contains(failed.text(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK_FALSE(gpu.device->failure().ok());
  CHECK_FALSE(gpu.d.wait(gpu.device->stream().mark()).ok());
}

TEST_CASE("CUDA: a device whose host waits says which call of a library fails") {
  CudaOptions options;
  options.synchronous = true;
  Gpu gpu(test::make_cuda_on_fake(device_name("cuda"), "delay_us=50,launch_error_at=2", options)
              .value());
  Tensor x = gpu.d.to_device(full(10, 0)), y = gpu.make(10);
  CHECK(gpu.issue_add(x, 1, y, ok_status()).ok());
  const Status failed = gpu.issue_add(y, 1, x, ok_status());
  CHECK(contains(failed.text(), "a library's call: CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK_FALSE(gpu.device->failure().ok());
}

TEST_CASE("CUDA: what a library issues before it refuses a call is waited for") {
  Gpu gpu("check=1");
  std::promise<void> go;
  gpu.host_kernels.enqueue([&] {
    go.get_future().wait();
    return ok_status();
  });
  Tensor zeros = gpu.d.to_device(full(100, 0));
  gpu.device->stream().wait(gpu.device->copy(full(100, 0), zeros));
  const std::uint64_t before = gpu.device->stream().mark().sequence;
  Tensor x = gpu.make(100);
  CHECK(gpu.issue_add(zeros, 5, x, unimplemented("refused")).message() == "refused");
  CHECK(gpu.device->stream().last().sequence > before);
  // Memory that it writes is another's: an upload comes behind it.
  upload_over(gpu, std::move(x), go);
  CHECK(test::fake_reports().empty());
}

TEST_CASE("CUDA: memory that a GPU does not take back since it has failed is told of") {
  Gpu gpu("memory_mb=16,launch_error_at=1");
  {
    Tensor x = gpu.d.to_device(full(300'000, 0));
    CHECK(gpu.add_to(x, 1, x).ok());
    CHECK_FALSE(gpu.d.wait(gpu.device->stream().mark()).ok());
  }
  // With the first piece it would be more than the cap.
  CHECK_FALSE(Tensor::make(DType::f32, Shape{3'500'000}, gpu.device->allocator()).ok());
  const std::string text = gpu.device->memory_text();
  INFO(text);
  CHECK(contains(text, "cuMemFree: CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE("CUDA: memory of the driver stays below the cap where it is in fragments") {
  CudaOptions options;
  options.memory = 9 << 20;
  Gpu gpu(test::make_cuda_on_fake(device_name("cuda"), "memory_mb=64", options).value());
  const auto take = [&](std::int64_t mib) {
    return Tensor::make(DType::u8, Shape{mib << 20}, gpu.device->allocator());
  };
  const auto small = take(1);  // in a piece of 2 MiB
  REQUIRE(small.ok());
  CHECK(take(8).status().code() == Code::resource_exhausted);  // would be 10 MiB with it
  CHECK(take(7).ok());
}

TEST_CASE("CUDA: an error of the GPU fails all that was not known to be done, on every stream") {
  Gpu gpu("launch_error_at=3,error=700");
  Tensor x = gpu.d.to_device(full(10, 0)), y = gpu.make(10);
  CHECK(gpu.add_to(x, 1, y).ok());
  const Ticket good = gpu.device->stream().mark();
  CHECK(gpu.d.wait(good).ok());
  CHECK(gpu.add_to(y, 1, x).ok());
  const Ticket unknown = gpu.device->stream().mark();
  CHECK(gpu.add_to(x, 1, y).ok());  // the one that fails
  Status status = gpu.d.wait(gpu.device->stream().mark());
  CHECK(status.code() == Code::internal);
  CHECK(contains(status.text(), "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access"));
  CHECK(
      contains(status.text(), "in one of work 2 to 3 of stream 0 on " + gpu.device->name().text()));
  CHECK_FALSE(gpu.d.wait(unknown).ok());
  CHECK(gpu.d.wait(good).ok());
  CHECK(gpu.add_to(x, 1, y).ok());  // dropped
  CHECK_FALSE(gpu.d.wait(gpu.device->stream().mark()).ok());
  CHECK_FALSE(gpu.device->stream().last().complete());
  Tensor back = full(10, 0);
  CHECK_FALSE(gpu.d.wait(gpu.device->copy(y, back)).ok());
  CHECK_FALSE(gpu.d.wait(gpu.device->copy(full(10, 0), x)).ok());
  bool ran = false;
  gpu.d.run([&](Lanes&) { ran = true; });
  CHECK(ran);
}

TEST_CASE("CUDA: an error that the next launch tells is not that launch's") {
  Gpu gpu;
  CHECK(gpu.host_kernels.launch([] { return internal_error("planted"); }).ok());
  Status status;
  while (status.ok()) {  // until the driver knows
    status = gpu.host_kernels.launch([] { return ok_status(); });
    REQUIRE(status.ok());
    status =
        gpu.device->stream().last().complete() ? Status() : gpu.d.wait(gpu.device->stream().last());
  }
  CHECK(contains(status.text(), "in one of work 1 to ") !=
        contains(status.text(), "in work 1 of "));
}

TEST_CASE("CUDA: what the driver refuses is the launch's own failure") {
  Gpu gpu;
  Tensor x = gpu.d.to_device(full(10, 0)), y = gpu.make(10);
  Status refused = gpu.device->launch_kernel({.function = gpu.add_function, .block = {2000, 1, 1}});
  CHECK(refused.message() == "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  CHECK(gpu.add_to(x, 1, y).ok());
  CHECK(Tensor::same(gpu.d.to_host(y), full(10, 1)));
  CHECK(gpu.device->function("no image", "add").status().message() ==
        "cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE (device kernel image is invalid)");
  Status no_kernel = gpu.device->function(fake_cuda::kImage, "no such").status();
  CHECK(contains(no_kernel.text(), "CUDA_ERROR_NOT_FOUND"));
  CHECK(contains(no_kernel.text(), "for kernel 'no such'"));
}

TEST_CASE("CUDA: a copy that the driver refuses fails its stream and who waits for it") {
  Gpu gpu;
  Tensor nowhere(
      DType::f32, Shape{10},
      Buffer::wrap(reinterpret_cast<void*>(4096), 40, MemorySpace::device, nullptr, nullptr));
  Tensor x = gpu.make(10), y = gpu.d.to_device(full(10, 1));
  CHECK(gpu.add_to(y, 1, x).ok());
  const Ticket before = gpu.device->stream().mark();
  const Ticket bad = gpu.device->copy(full(10, 0), nowhere);
  const Ticket late = gpu.device->copy(full(10, 0), gpu.make(10));
  Status status = gpu.d.wait(bad);
  CHECK(contains(status.text(), "cuMemcpyHtoDAsync: CUDA_ERROR_INVALID_VALUE"));
  CHECK(contains(status.text(), " of stream 1 on "));
  CHECK_FALSE(gpu.d.wait(late).ok());
  CHECK(Tensor::same(gpu.d.to_host(x), full(10, 2)));  // other streams go on
  gpu.device->stream().wait(late);
  const Ticket after = gpu.device->stream().mark();
  CHECK(contains(gpu.d.wait(after).text(), " of stream 1 on "));
  CHECK(gpu.d.wait(before).ok());
}

TEST_CASE("CUDA: a kernel that does not wait for an upload is reported") {
  for (const bool waits : {true, false}) {
    CAPTURE(waits);
    Gpu gpu("check=1");
    test::fake_reports();
    Tensor x = gpu.make(100), y = gpu.make(100);
    std::promise<void> go;
    gpu.host_kernels.enqueue([&] {  // the upload comes after it: kernels may have x
      go.get_future().wait();
      return ok_status();
    });
    const Ticket uploaded = gpu.device->copy(full(100, 3), x);
    if (waits) gpu.device->stream().wait(uploaded);
    CHECK(gpu.add_to(x, 1, y).ok());
    go.set_value();
    CHECK(gpu.d.wait(uploaded).ok());
    CHECK(gpu.d.wait(gpu.device->stream().mark()).ok());
    CHECK(contains(test::fake_reports(), "a kernel reads") == !waits);
  }
}

TEST_CASE("CUDA: random work gives what the host computes") {
  test::fake_reports();
  const unsigned seed = std::random_device()();
  MESSAGE("seed ", seed);
  for (unsigned round = 0; round < 12; ++round) {
    CAPTURE(round);
    std::mt19937 random(seed + round);
    Gpu gpu("memory_mb=16,delay_us=30,check=1,seed=" + std::to_string(seed % 1000 + round));
    struct Value {
      Tensor there;
      float expected;
      Ticket ready;  // of an upload that kernels have not waited for
    };
    std::vector<Value> values;
    std::vector<std::pair<Tensor, float>> fetched;
    const auto pick = [&]() -> Value& { return values[random() % values.size()]; };
    const auto ready = [&](Value& v) -> Tensor& {
      gpu.device->stream().wait(std::exchange(v.ready, {}));
      return v.there;
    };
    for (int i = 0; i < 150; ++i) {
      const int what = values.empty() ? 0 : int(random() % 6);
      if (what <= 1) {
        const float value = float(random() % 100);
        Tensor t = gpu.make(500);
        const Ticket ticket = gpu.device->copy(full(500, value), t);
        values.push_back({t, value, ticket});
      } else if (what == 2 || what == 3) {
        Value& v = pick();
        Tensor y = gpu.make(500);
        CHECK(gpu.add_to(ready(v), float(i), y).ok());
        values.push_back({y, v.expected + float(i), {}});
      } else if (what == 4) {
        Value& v = pick();
        ready(v);
        Tensor back =
            random() % 2
                ? Tensor::make(DType::f32, Shape{500}).value()
                : Tensor::make(DType::f32, Shape{500}, gpu.device->host_allocator()).value();
        gpu.device->copy(v.there, back);
        fetched.emplace_back(back, v.expected);
      } else {
        Value& v = pick();
        ready(v);  // what is let go may be given to a kernel
        v = values.back();
        values.pop_back();
      }
    }
    for (Value& v : values) fetched.emplace_back(gpu.d.to_host(ready(v)), v.expected);
    gpu.d.destroy();
    for (auto& [tensor, expected] : fetched)
      REQUIRE(Tensor::same(tensor.reshaped(Shape{500}), full(500, expected)));
    CHECK(test::fake_reports() == "");
  }
}
