#include "troupe/devices/detail/lane_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "troupe/core/check.hpp"
#include "troupe/devices/detail/spin.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t kSpinNanoseconds = 50'000;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// This thread is inside a chunk: whatever it splits further runs inline.
thread_local bool inside_chunk = false;

}  // namespace

LanePool::LanePool(int lanes, std::function<void()> on_start) : on_start_(std::move(on_start)) {
  TROUPE_CHECK(lanes >= 1, "a pool has at least one lane");
  for (int i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<Lane>(*this, i));
  for (auto& lane : lanes_) lane->thread_ = std::thread([this, &lane] { run(*lane); });
}

LanePool::~LanePool() {
  stopping_.store(true);
  news_.fetch_add(1);
  news_.notify_all();
  for (auto& lane : lanes_) lane->thread_.join();
  TROUPE_CHECK(bursts_.empty(), "a launched burst runs, also while shutting down");
}

void LanePool::launch(std::function<void(Lanes&)> burst) {
  {
    std::lock_guard lock(mutex_);
    bursts_.push_back(std::move(burst));
    queued_.fetch_add(1);
    unfinished_.fetch_add(1);
  }
  announce(1);
}

void LanePool::drain() {
  for (int n; (n = unfinished_.load()) != 0;) unfinished_.wait(n);
}

void LanePool::run(Lane& lane) {
  pthread_setname_np(pthread_self(), ("lane " + std::to_string(lane.index_)).c_str());
  if (on_start_) on_start_();
  for (std::int64_t idle_since = 0;;) {
    // Read before looking for work: what comes after the look changes it, and nobody sleeps on it.
    const std::uint32_t seen = news_.load();
    const bool stopping = stopping_.load();
    if (help_any(lane) || run_burst(lane)) {
      idle_since = 0;
      continue;
    }
    if (stopping) return;
    if (idle_since == 0) idle_since = now();
    rest(seen, idle_since);
  }
}

bool LanePool::run_burst(Lane& lane) {
  if (queued_.load() == 0) return false;
  std::function<void(Lanes&)> burst;
  {
    std::lock_guard lock(mutex_);
    if (bursts_.empty()) return false;
    burst = std::move(bursts_.front());
    bursts_.pop_front();
    queued_.fetch_sub(1);
    running_.fetch_add(1);
  }
  burst(lane);
  burst = nullptr;  // what it holds goes before anybody can think that it is over
  running_.fetch_sub(1);
  if (unfinished_.fetch_sub(1) == 1) unfinished_.notify_all();
  return true;
}

bool LanePool::help_any(const Lane& lane) {
  const int n = count();
  for (int i = 1; i < n; ++i)
    if (help(lanes_[std::size_t((lane.index_ + i) % n)]->job_)) return true;
  return false;
}

// The owner closes the job, then waits until there are no helpers; a helper counts itself, then
// looks whether the job is open. All four are sequentially consistent: either the owner sees the
// helper and waits, or the helper sees the job closed and leaves.
bool LanePool::help(Job& job) {
  if (!job.open.load(std::memory_order_relaxed) ||
      job.next.load(std::memory_order_relaxed) >= job.chunks.load(std::memory_order_relaxed))
    return false;  // the usual case, without writing to the owner's cache line
  job.helpers.fetch_add(1);
  const bool open = job.open.load();
  if (open) work_on(job);
  if (job.helpers.fetch_sub(1) == 1) job.helpers.notify_all();
  return open;
}

void LanePool::work_on(Job& job) {
  const std::int64_t chunks = job.chunks.load(std::memory_order_relaxed);
  inside_chunk = true;
  for (std::int64_t i; (i = job.next.fetch_add(1, std::memory_order_relaxed)) < chunks;)
    (*job.chunk)(i);
  inside_chunk = false;
}

void LanePool::await_helpers(Job& job) {
  std::int64_t since = 0;
  for (int helpers; (helpers = job.helpers.load()) != 0;) {
    if (since == 0) since = now();
    if (now() - since < kSpinNanoseconds)
      relax();
    else
      job.helpers.wait(helpers);
  }
}

void LanePool::Lane::parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) {
  if (chunks <= 1 || inside_chunk || pool_.count() == 1) {
    for (std::int64_t i = 0; i < chunks; ++i) chunk(i);
    return;
  }
  job_.chunk = &chunk;
  job_.chunks.store(chunks, std::memory_order_relaxed);
  job_.next.store(0, std::memory_order_relaxed);
  job_.open.store(true);
  pool_.announce(int(std::min<std::int64_t>(chunks - 1, pool_.count())));
  work_on(job_);
  job_.open.store(false);
  await_helpers(job_);
}

// Wakes up to `work` sleepers. A lane counts itself as sleeping, then sleeps only if news_ is what
// it was before it looked for work; here news_ changes first, then the sleepers are counted.
void LanePool::announce(int work) {
  news_.fetch_add(1);
  const int sleeping = sleeping_.load();
  if (sleeping == 0) return;
  if (work >= sleeping)
    news_.notify_all();
  else
    for (int i = 0; i < work; ++i) news_.notify_one();
}

void LanePool::rest(std::uint32_t seen, std::int64_t idle_since) {
  while (running_.load(std::memory_order_relaxed) != 0 && now() - idle_since < kSpinNanoseconds) {
    for (int i = 0; i < 16; ++i) {
      if (news_.load(std::memory_order_relaxed) != seen) return;
      relax();
    }
  }
  sleeping_.fetch_add(1);
  news_.wait(seen);
  sleeping_.fetch_sub(1);
}

}  // namespace troupe::detail
