#include "devices/cuda/clock.hpp"

#include <cmath>
#include <utility>

#include "core/trace.hpp"

namespace troupe::cuda {
namespace {

constexpr std::int64_t kRenewNs = 1'000'000'000;
constexpr int kTries = 3;

}  // namespace

GpuClock::Zero::~Zero() {
  context_->enter();
  context_->driver().cuEventDestroy_v2(event_);
}

Expected<std::int64_t> GpuClock::Zero::host_ns(EventHandle event) const {
  context_->enter();
  float milliseconds = 0;
  TROUPE_TRY(context_->check(context_->driver().cuEventElapsedTime(&milliseconds, event_, event),
                             "cuEventElapsedTime"));
  return host_ns_ + std::int64_t(std::llround(double(milliseconds) * 1e6));
}

GpuClock::~GpuClock() {
  zero_.reset();
  if (!stream_) return;
  context_->enter();
  context_->driver().cuStreamDestroy_v2(stream_);
}

Expected<std::shared_ptr<const GpuClock::Zero>> GpuClock::zero() {
  if (zero_ && Trace::now_ns() - measured_ns_ < kRenewNs) return zero_;
  const Driver& driver = context_->driver();
  context_->enter();
  if (!stream_) {
    TROUPE_TRY(context_->check(driver.cuStreamCreateWithPriority(&stream_, kStreamNonBlocking, 0),
                               "cuStreamCreate"));
  }
  TROUPE_TRY(zero_, measure());
  measured_ns_ = Trace::now_ns();
  return zero_;
}

Expected<std::shared_ptr<const GpuClock::Zero>> GpuClock::measure() {
  const Driver& driver = context_->driver();
  std::shared_ptr<const Zero> best;
  std::int64_t least = 0;
  for (int i = 0; i < kTries; ++i) {
    EventHandle event = nullptr;
    TROUPE_TRY(context_->check(driver.cuEventCreate(&event, 0), "cuEventCreate"));
    const std::int64_t before = Trace::now_ns();
    Result result = driver.cuEventRecord(event, stream_);
    if (result == kSuccess) result = driver.cuEventSynchronize(event);
    const std::int64_t apart = Trace::now_ns() - before;
    auto zero = std::make_shared<const Zero>(context_, event, before + apart / 2);
    TROUPE_TRY(context_->check(result, "cuEventSynchronize"));
    if (best && apart >= least) continue;
    best = std::move(zero);
    least = apart;
  }
  return best;
}

}  // namespace troupe::cuda
