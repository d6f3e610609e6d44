#include "devices/cuda/cuda_device.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/log.hpp"
#include "core/processors.hpp"
#include "devices/arena.hpp"
#include "devices/cuda/memory.hpp"
#include "devices/cuda/programs.hpp"
#include "devices/cuda/settings.hpp"
#include "devices/cuda/stream.hpp"
#include "devices/detail/host_copy.hpp"
#include "devices/detail/progress.hpp"

namespace troupe {
namespace {

using cuda::CudaStream;
using cuda::DeviceAddress;
using cuda::StreamHandle;

constexpr int kProcessorsToSpin = 4;

DeviceAddress address_of(const Tensor& tensor) {
  return reinterpret_cast<DeviceAddress>(tensor.raw());
}

class Cuda final : public CudaDevice {
 public:
  Cuda(DeviceName name, const CudaOptions& options, cuda::ContextPtr context, std::size_t memory)
      : streams_(std::move(name), context,
                 options.spin.value_or(usable_processors() > kProcessorsToSpin),
                 options.synchronous.value_or(false)),
        memory_(new cuda::GpuMemory(context, memory)),
        host_(make_arena(0, cuda::pinned_pages(context))),
        lanes_(std::make_unique<detail::LanePool>(options.lanes)),
        programs_(std::make_unique<cuda::Programs>(context, options.search)),
        search_(options.search) {
    TROUPE_CHECK(streams_.name.full(), "a device has a full name");
  }
  ~Cuda() override { shut_down(); }

  Status open() {
    const std::string device = streams_.name.text();
    TROUPE_TRY(kernels_, CudaStream::make(streams_, "kernels on " + device));
    TROUPE_TRY(uploads_, CudaStream::make(streams_, "uploads to " + device));
    TROUPE_TRY(downloads_, CudaStream::make(streams_, "downloads from " + device));
    return ok_status();
  }

  const DeviceName& name() const override { return streams_.name; }
  MemorySpace space() const override { return MemorySpace::device; }
  Allocator& allocator() override { return *memory_; }
  Allocator& host_allocator() override { return *host_; }
  Stream& stream() override { return *kernels_; }
  const cuda::Context& context() const override { return *streams_.context; }

  void launch(std::function<void(Lanes&)> burst) override { lanes_->launch(std::move(burst)); }
  void launch_update(std::function<void(Lanes&)> update) override {
    lanes_->launch_update(std::move(update));
  }
  Ticket copy(const Tensor& src, Tensor dst) override;
  void on_complete(Ticket ticket, std::function<void(Status)> done) override;
  Status prepare(std::span<Kernel* const> kernels) override;
  Expected<cuda::FunctionHandle> function(const std::string& image, const char* name) override {
    return programs_->function(image, name);
  }
  cuda::FunctionHandle prepared(std::string_view type) const override {
    return programs_->prepared(type);
  }
  cuda::Products* products() const override { return products_.get(); }
  cuda::Convolutions* convolutions() const override { return convolutions_.get(); }
  cuda::Attentions* attentions() const override { return attentions_.get(); }
  Status issue(FunctionRef<Status(StreamHandle)> call) override;
  int compiled_functions() const override { return programs_->compiled(); }
  Status launch_kernel(const KernelLaunch& launch) override;

  std::size_t memory_size() const override { return memory_->cap(); }
  std::size_t bytes_in_use() const override { return memory_->bytes_in_use(); }
  std::size_t peak_bytes() const override { return memory_->peak_bytes(); }
  void reset_peak() override { memory_->reset_peak(); }
  Status failure() const override;
  std::string memory_text() const override { return memory_->text(streams_.name.text()); }

 private:
  Ticket upload(const Tensor& src, const Tensor& dst);
  Ticket download(const Tensor& src, const Tensor& dst);
  Ticket move_within(const Tensor& src, const Tensor& dst);
  Ticket copy_nothing(const Tensor& dst);
  Buffer staging_for(const Tensor& tensor);
  // With the mutex held: the kernels' stream has been given something.
  void told() { memory_->issued(kernels_->progress().issued()); }
  Status choose_products();
  // The library for Plans, if it is chosen, into `to`. `variable` chose it.
  template <class Plans>
  Status choose(Expected<cuda::TableChoice<cuda::Cudnn>> (*choose)(const cuda::Search&,
                                                                   const cuda::Driver&),
                const char* variable, const char* what, bool& chosen, std::unique_ptr<Plans>& to);
  void shut_down();

  const cuda::Driver& driver() const { return streams_.context->driver(); }

  mutable cuda::Streams streams_;  // its mutex
  const cuda::GpuMemoryPtr memory_;
  const ArenaPtr host_;
  std::unique_ptr<CudaStream> kernels_, uploads_, downloads_;
  std::unique_ptr<detail::LanePool> lanes_;
  std::unique_ptr<cuda::Programs> programs_;
  const cuda::Search search_;
  std::mutex chosen_mutex_;
  bool products_chosen_ = false, convolutions_chosen_ = false, attentions_chosen_ = false;
  // Written before a kernel that reads it is prepared.
  std::unique_ptr<cuda::Products> products_;
  std::unique_ptr<cuda::Convolutions> convolutions_;
  std::unique_ptr<cuda::Attentions> attentions_;
};

Ticket Cuda::copy(const Tensor& src, Tensor dst) {
  detail::check_copy(src, dst);
  TROUPE_CHECK(src.space() == MemorySpace::device || dst.space() == MemorySpace::device,
               "a GPU copies from or to its own memory");
  if (src.bytes() == 0) return copy_nothing(dst);
  if (src.space() == MemorySpace::host) return upload(src, dst);
  return dst.space() == MemorySpace::host ? download(src, dst) : move_within(src, dst);
}

Ticket Cuda::upload(const Tensor& src, const Tensor& dst) {
  const void* from = src.raw();
  Buffer staging = staging_for(src);
  if (staging) from = std::memcpy(staging.data(), src.raw(), src.bytes());
  const std::size_t bytes = src.bytes();
  std::lock_guard lock(streams_.mutex);
  const std::uint64_t after = memory_->may_use_after(dst.buffer().data());
  const detail::StreamProgress& kernels = kernels_->progress();
  // A copy fails with what was issued before, if it has to wait for that or not.
  if (kernels.failed()) uploads_->wait_for(kernels.last());
  if (after > 0) uploads_->wait_for({kernels_->id(), after});
  return uploads_->issue(
      "cuMemcpyHtoDAsync",
      [&](StreamHandle s) {
        return driver().cuMemcpyHtoDAsync_v2(address_of(dst), from, bytes, s);
      },
      [held = staging ? Tensor() : src, staging, dst] {});
}

Ticket Cuda::download(const Tensor& src, const Tensor& dst) {
  Tensor to = dst;
  Buffer staging = staging_for(dst);
  void* target = staging ? staging.data() : to.mutable_raw();
  const std::size_t bytes = src.bytes();
  std::lock_guard lock(streams_.mutex);
  downloads_->wait_for(kernels_->mark_locked());
  return downloads_->issue(
      "cuMemcpyDtoHAsync",
      [&](StreamHandle s) {
        return driver().cuMemcpyDtoHAsync_v2(target, address_of(src), bytes, s);
      },
      [src, to, staging, bytes]() mutable {
        if (staging) std::memcpy(to.mutable_raw(), staging.data(), bytes);
      });
}

Ticket Cuda::move_within(const Tensor& src, const Tensor& dst) {
  std::lock_guard lock(streams_.mutex);
  const Ticket ticket = kernels_->issue("cuMemcpyDtoDAsync", [&](StreamHandle s) {
    return driver().cuMemcpyDtoDAsync_v2(address_of(dst), address_of(src), src.bytes(), s);
  });
  told();
  return ticket;
}

// Of copies to the host callers wait for the last one alone, which may be of nothing.
Ticket Cuda::copy_nothing(const Tensor& dst) {
  std::lock_guard lock(streams_.mutex);
  const Ticket before = kernels_->mark_locked();
  if (dst.space() == MemorySpace::device) return before;
  downloads_->wait_for(before);
  return downloads_->mark_locked();
}

// Pinned memory for a copy of what is not pinned, or none: the driver then copies by itself, and
// lets the caller wait for it.
Buffer Cuda::staging_for(const Tensor& tensor) {
  if (tensor.buffer().allocator() == host_.get()) return {};
  auto staging = Buffer::allocate(*host_, tensor.bytes());
  return staging.ok() ? std::move(staging).value() : Buffer();
}

void Cuda::on_complete(Ticket ticket, std::function<void(Status)> done) {
  if (ticket.complete()) return done(ok_status());
  streams_.all.at(ticket.stream)->on_complete(ticket.sequence, std::move(done));
}

Status Cuda::prepare(std::span<Kernel* const> kernels) {
  std::vector<cuda::GpuKernel*> of_gpu;
  for (Kernel* kernel : kernels)
    if (auto* one = dynamic_cast<cuda::GpuKernel*>(kernel)) of_gpu.push_back(one);
  for (cuda::GpuKernel* kernel : of_gpu) {
    if (kernel->multiplies()) TROUPE_TRY(choose_products());
    if (kernel->attends())
      TROUPE_TRY(choose(cuda::choose_attentions, "TROUPE_CUDA_ATTENTION", "attention is",
                        attentions_chosen_, attentions_));
    if (!kernel->convolves()) continue;
    TROUPE_TRY(choose(cuda::choose_convolutions, "TROUPE_CUDA_CONV", "convolutions are",
                      convolutions_chosen_, convolutions_));
    kernel->convolve_by_library(convolutions_ != nullptr);
  }
  return programs_->prepare(of_gpu);
}

Status Cuda::choose_products() {
  std::lock_guard lock(chosen_mutex_);
  if (products_chosen_) return ok_status();
  TROUPE_TRY(const bool tf32, cuda::allows_tf32());
  TROUPE_TRY(cuda::ProductsChoice choice, cuda::choose_products(search_, driver()));
  if (choice.library) {
    TROUPE_TRY(products_, cuda::Products::make(std::move(*choice.library), streams_.context,
                                               choice.asked, tf32));
  }
  products_chosen_ = true;
  TROUPE_LOG(info, "cuda", "products of matrices are computed by " + choice.text);
  return ok_status();
}

template <class Plans>
Status Cuda::choose(Expected<cuda::TableChoice<cuda::Cudnn>> (*choose)(const cuda::Search&,
                                                                       const cuda::Driver&),
                    const char* variable, const char* what, bool& chosen,
                    std::unique_ptr<Plans>& to) {
  std::lock_guard lock(chosen_mutex_);
  if (chosen) return ok_status();
  TROUPE_TRY(const bool tf32, cuda::allows_tf32());
  TROUPE_TRY(const bool measures, cuda::measures_choices());
  TROUPE_TRY(auto choice, choose(search_, driver()));
  const std::string computed = std::string(what) + " computed by ";
  if (choice.library) {
    auto made = Plans::make(std::move(*choice.library), streams_.context,
                            {.memory = memory_->cap(),
                             .alone = choice.asked,
                             .tf32 = tf32,
                             .measures = measures,
                             .kept = cuda::ImageCache::standard(!driver().fake)});
    if (made.ok()) {
      to = std::move(*made);
    } else if (choice.asked || made.status().code() != Code::unimplemented) {
      return Status(made.status().code(),
                    made.status().message() + "; " + variable + "=kernels does without it");
    } else {
      choice.text = "Troupe's kernels: " + made.status().message();
      TROUPE_LOG(warning, "cuda", computed + choice.text);
    }
  }
  chosen = true;
  TROUPE_LOG(info, "cuda", computed + choice.text);
  return ok_status();
}

Status Cuda::issue(FunctionRef<Status(StreamHandle)> call) {
  std::lock_guard lock(streams_.mutex);
  Status refused;
  const Status status = kernels_->try_issue("a library's call", [&](StreamHandle stream) {
    refused = call(stream);
    return refused.ok() ? cuda::kSuccess : cuda::kInvalidValue;
  });
  // What was refused may have issued a part of its work, which has no number: the next one is its.
  if (!refused.ok())
    (void)kernels_->try_issue("a library's call", [](StreamHandle) { return cuda::kSuccess; });
  told();
  return status.ok() || refused.ok() ? status : refused;
}

Status Cuda::launch_kernel(const KernelLaunch& launch) {
  std::lock_guard lock(streams_.mutex);
  TROUPE_TRY(kernels_->try_issue("cuLaunchKernel", [&](StreamHandle s) {
    return driver().cuLaunchKernel(launch.function, launch.grid[0], launch.grid[1], launch.grid[2],
                                   launch.block[0], launch.block[1], launch.block[2],
                                   launch.shared_bytes, s, launch.arguments, nullptr);
  }));
  told();
  return ok_status();
}

// The first that knows of it. If none does, the driver may: any of its calls then tells.
Status Cuda::failure() const {
  {
    std::lock_guard lock(streams_.mutex);
    for (const CudaStream* stream : streams_.all)
      if (Status status = stream->failure(); !status.ok()) return status;
  }
  if (Status status = memory_->failure(); !status.ok()) return status;
  context().enter();
  std::size_t free = 0, total = 0;
  return context().check(driver().cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
}

void Cuda::shut_down() {
  // Work that nobody has asked for yet is over only when its event tells so.
  const auto idle = [&] {
    bool all = true;
    for (CudaStream* stream : streams_.all) {
      stream->flush();
      all &= stream->idle();
    }
    return all;
  };
  std::unique_lock lock(streams_.mutex);
  detail::drain(*lanes_, lock, streams_.changed, idle);
  streams_.stopping = true;
  lock.unlock();
  streams_.changed.notify_all();
  for (CudaStream* stream : streams_.all) stream->end();
  // Before the stream that their handles know.
  attentions_.reset();
  convolutions_.reset();
  products_.reset();
  kernels_.reset();
  uploads_.reset();
  downloads_.reset();
  lanes_.reset();
  programs_.reset();
}

// Room for what the driver and libraries take later.
std::size_t most_of(std::size_t free) {
  constexpr std::size_t kRoom = std::size_t{512} << 20;
  return free / 10 * 9 > kRoom ? std::min(free / 10 * 9, free - kRoom) : free / 10 * 9;
}

}  // namespace

Expected<std::unique_ptr<CudaDevice>> make_cuda_device(DeviceName name, CudaOptions options) {
  if (!options.synchronous) {
    TROUPE_TRY(options.synchronous, cuda::waits_for_each());
  }
  TROUPE_TRY(cuda::Driver driver, cuda::open_driver(options.search));
  TROUPE_TRY(auto context, cuda::Context::make(std::move(driver), options.ordinal));
  context->enter();
  std::size_t free = 0, total = 0;
  TROUPE_TRY(context->check(context->driver().cuMemGetInfo_v2(&free, &total), "cuMemGetInfo"));
  const std::size_t memory = options.memory > 0 ? options.memory : most_of(free);
  auto device = std::make_unique<Cuda>(std::move(name), options, std::move(context), memory);
  TROUPE_TRY(device->open());
  return std::unique_ptr<CudaDevice>(std::move(device));
}

}  // namespace troupe
