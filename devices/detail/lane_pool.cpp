#include "devices/detail/lane_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "core/check.hpp"
#include "core/float_environment.hpp"
#include "devices/detail/spin.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t kSpinNanoseconds = 50'000;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Whether this thread is inside a chunk: nested parallel() then runs inline.
thread_local bool inside_chunk = false;

// The pool whose burst or update this thread runs, if any.
thread_local const LanePool* inside_pool = nullptr;

}  // namespace

LanePool::LanePool(int lanes, std::function<void()> on_start)
    : on_start_(std::move(on_start)), count_(lanes) {
  TROUPE_CHECK(lanes >= 1, "a pool has at least one lane");
  for (int i = 0; i <= lanes; ++i) lanes_.push_back(std::make_unique<Lane>(*this, i));
  try {
    for (auto& lane : lanes_)
      if (lane != lanes_.back()) lane->thread_ = std::thread([this, &lane] { run(*lane); });
  } catch (...) {  // there is no thread for one of them
    end();
    throw;
  }
}

void LanePool::end() {
  end_spare();
  stopping_.store(true);
  announce(count());
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return lent_ == 0; });
  }
  for (auto& lane : lanes_)
    if (lane->thread_.joinable()) lane->thread_.join();
}

LanePool::~LanePool() {
  end();
  TROUPE_CHECK(next_queue().empty(), "a launched burst runs, also while shutting down");
}

void LanePool::launch(std::function<void(Lanes&)> burst, Queue& queue) {
  LentThread* const thread = LentThread::current;
  bool lent = false;
  {
    std::lock_guard lock(mutex_);
    queue.push_back({std::move(burst), NamedBursts::current, thread});
    queued_.fetch_add(1);
    unfinished_.fetch_add(1);
    lent = thread && queue.back().is_for(*thread) && lend_lane(*thread);
    if (!lent && &queue == &updates_ && all_busy_elsewhere()) call_spare();
  }
  if (!lent) announce(1);
}

// ------------------------------------------------------------------ the thread for updates

// REQUIRES: mutex_ is held. A lane that launches an update is about to be free, as a rule.
bool LanePool::all_busy_elsewhere() const {
  return inside_pool != this && running_.load() >= count_;
}

// REQUIRES: mutex_ is held. Without such a thread the update waits for a lane.
void LanePool::call_spare() {
  if (spare_ends_) return;
  if (std::thread& spare = lanes_.back()->thread_; !spare.joinable()) {
    try {
      spare = std::thread([this] { run_updates(); });
    } catch (const std::system_error&) {
      return;
    }
  }
  for_spare_.notify_one();
}

void LanePool::run_updates() {
  pthread_setname_np(pthread_self(), "updates");
  const FloatEnvironment not_that_of_who_launched;
  if (on_start_) on_start_();
  std::unique_lock lock(mutex_);
  for (;;) {
    for_spare_.wait(lock, [&] { return spare_ends_ || !updates_.empty(); });
    if (updates_.empty()) return;
    std::function<void(Lanes&)> update = std::move(updates_.front().burst);
    updates_.pop_front();
    queued_.fetch_sub(1);
    lock.unlock();
    run_launched(*lanes_.back(), std::move(update));
    lock.lock();
  }
}

// Before the lanes end, since an update may launch bursts.
void LanePool::end_spare() {
  {
    std::lock_guard lock(mutex_);
    spare_ends_ = true;
  }
  for_spare_.notify_one();
  if (std::thread& spare = lanes_.back()->thread_; spare.joinable()) spare.join();
}

// ------------------------------------------------------------------ lanes

void LanePool::drain() {
  for (int n; (n = unfinished_.load()) != 0;) unfinished_.wait(n);
}

void LanePool::run(Lane& lane) {
  pthread_setname_np(pthread_self(), ("lane " + std::to_string(lane.index_)).c_str());
  const FloatEnvironment not_that_of_who_made_the_pool;
  if (on_start_) on_start_();
  for (std::int64_t idle_since = 0;;) {
    // Read before looking for work: work that comes later changes it, so the lane does not sleep.
    const std::uint32_t seen = news_.load();
    const bool stopping = stopping_.load();
    if (help_any(lane) || run_burst(lane)) {
      idle_since = 0;
      continue;
    }
    if (stopping) return;
    if (idle_since == 0) idle_since = now();
    rest(lane, seen, idle_since);
  }
}

// Runs the oldest update, or else burst, if there is one; with `only_for`, only if it is for that
// thread.
bool LanePool::run_burst(Lane& lane, const LentThread* only_for) {
  if (queued_.load() == 0) return false;
  std::function<void(Lanes&)> burst;
  {
    std::lock_guard lock(mutex_);
    Queue& queue = next_queue();
    if (queue.empty() || (only_for && !queue.front().is_for(*only_for))) return false;
    burst = std::move(queue.front().burst);
    queue.pop_front();
    queued_.fetch_sub(1);
    running_.fetch_add(1);
  }
  run_launched(lane, std::move(burst));
  return true;
}

void LanePool::run_launched(Lane& lane, std::function<void(Lanes&)> burst) {
  const LanePool* const outer = std::exchange(inside_pool, this);
  burst(lane);
  burst = nullptr;  // its captures are destroyed before it counts as over
  inside_pool = outer;
  if (&lane != lanes_.back().get()) running_.fetch_sub(1);
  if (unfinished_.fetch_sub(1) == 1) unfinished_.notify_all();
}

bool LanePool::help_any(const Lane& lane, Done done) {
  const int n = int(lanes_.size());
  for (int i = 1; i < n; ++i)
    if (help(lanes_[std::size_t((lane.index_ + i) % n)]->job_, done)) return true;
  return false;
}

// The owner closes the job, then waits until there are no helpers; a helper counts itself, then
// looks whether the job is open. All four are sequentially consistent: either the owner sees the
// helper and waits, or the helper sees the job closed and leaves.
bool LanePool::help(Job& job, Done done) {
  if (!job.open.load(std::memory_order_relaxed) ||
      job.next.load(std::memory_order_relaxed) >= job.chunks.load(std::memory_order_relaxed))
    return false;  // the usual case, without writing to the owner's cache line
  job.helpers.fetch_add(1);
  const bool open = job.open.load();
  if (open) work_on(job, false, done);
  if (job.helpers.fetch_sub(1) == 1) job.helpers.notify_all();
  return open;
}

void LanePool::work_on(Job& job, bool owner, Done done) {
  const std::int64_t chunks = job.chunks.load(std::memory_order_relaxed);
  std::int64_t front = 0;
  inside_chunk = true;
  while (!done || !(*done)()) {
    if (job.next.fetch_add(1, std::memory_order_relaxed) >= chunks) break;
    const std::int64_t i =
        owner ? front++ : chunks - 1 - job.by_helpers.fetch_add(1, std::memory_order_relaxed);
    try {
      (*job.chunk)(i);
    } catch (...) {
      job.keep_thrown(i);
    }
  }
  inside_chunk = false;
}

// REQUIRES: a catch block.
void LanePool::Job::keep_thrown(std::int64_t by) noexcept {
  std::lock_guard lock(thrown_mutex);
  if (thrown && thrown_by < by) return;
  thrown = std::current_exception();
  thrown_by = by;
}

bool LanePool::has_chunks_left() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) {
    const Job& job = lane->job_;
    return job.open.load() && job.next.load() < job.chunks.load();
  });
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
  job_.by_helpers.store(0, std::memory_order_relaxed);
  job_.open.store(true);
  pool_.announce(int(std::min<std::int64_t>(chunks - 1, pool_.count())));
  work_on(job_, true, nullptr);
  job_.open.store(false);
  await_helpers(job_);
  if (job_.thrown) std::rethrow_exception(std::exchange(job_.thrown, nullptr));
}

// Wakes up to `work` lanes. A lane declares itself asleep, and then sleeps only if news_ is what it
// was before it looked for work; here news_ changes before the search for sleeping lanes.
void LanePool::announce(int work) {
  news_.fetch_add(1);
  if (sleeping_.load() == 0) return;
  for (auto& lane : lanes_) {
    if (work == 0) return;
    if (wake(*lane)) --work;
  }
}

void LanePool::rest(Lane& lane, std::uint32_t seen, std::int64_t idle_since) {
  while (running_.load(std::memory_order_relaxed) != 0 && now() - idle_since < kSpinNanoseconds) {
    for (int i = 0; i < 16; ++i) {
      if (news_.load(std::memory_order_relaxed) != seen) return;
      relax();
    }
  }
  sleeping_.fetch_add(1);
  lane.state_.store(State::asleep);
  if (news_.load() != seen && take(lane, State::awake)) return;
  for (State s; (s = lane.state_.load()) != State::awake;) lane.state_.wait(s);
}

// Claims a sleeping lane; of several threads that try, one succeeds.
bool LanePool::take(Lane& lane, State to) {
  State asleep = State::asleep;
  if (!lane.state_.compare_exchange_strong(asleep, to)) return false;
  sleeping_.fetch_sub(1);
  return true;
}

bool LanePool::wake(Lane& lane) {
  if (!take(lane, State::awake)) return false;
  lane.state_.notify_one();
  return true;
}

// ------------------------------------------------------------------ threads that lend themselves

// REQUIRES: mutex_ is held. True if the thread now has a lane; it will then look at the queue.
bool LanePool::lend_lane(LentThread& thread) {
  if (thread.pool_ || on_start_ || queued_.load() != 1) return false;
  for (auto& lane : lanes_) {  // that of the thread for updates is never asleep
    if (!take(*lane, State::lent)) continue;
    ++lent_;
    thread.pool_ = this;
    thread.lane_ = lane->index_;
    return true;
  }
  return false;
}

// Does not run other threads' bursts, since this thread might still be in one when its own result
// is ready. A kernel that waits for a step does not help with chunks: it might take the next chunk
// of the job whose chunk it is in.
bool LanePool::work(const LentThread& thread, FunctionRef<bool()> done) noexcept {
  const FloatEnvironment as_on_a_lane;
  Lane& lane = *lanes_[std::size_t(thread.lane_)];
  for (std::int64_t idle_since = 0; !done();) {
    if ((!inside_chunk && help_any(lane, &done)) || run_burst(lane, &thread)) {
      idle_since = 0;
      continue;
    }
    if (queued_.load() != 0) return false;
    if (idle_since == 0) idle_since = now();
    if (now() - idle_since >= kSpinNanoseconds) return true;
    std::this_thread::yield();
  }
  return false;
}

// Work that came meanwhile has woken at most other lanes, so this one is woken if there is any. As
// in rest(), it first declares itself asleep and then looks. The pool may be destroyed as soon as
// the lock is released.
void LanePool::give_back(const LentThread& thread) {
  Lane& lane = *lanes_[std::size_t(thread.lane_)];
  std::lock_guard lock(mutex_);
  sleeping_.fetch_add(1);
  lane.state_.store(State::asleep);
  if (queued_.load() != 0 || stopping_.load() || has_chunks_left()) wake(lane);
  if (--lent_ == 0) returned_.notify_all();
}

}  // namespace troupe::detail
