#include "actors/net/detail/io_shard.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "actors/net/detail/look_out.hpp"
#include "core/no_signals.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t kWakeId = 0;
constexpr std::size_t kEventsAlone = 128;
constexpr std::size_t kEventsShared = 1;  // what one thread takes, another cannot serve

// After an event the next one is looked out for so long, before the thread sleeps: to wake a thread
// on an idle processor takes as long on many machines, and a peer often answers sooner. Others who
// want the processor have it.
constexpr std::chrono::microseconds kLookOut{50};

// What a thread of a shard has to itself.
struct OwnState {
  const IoShard* shard = nullptr;
  std::vector<std::byte> staging;
  std::vector<std::uint64_t> again;
  IoShard::Clock::time_point next_tick;
};
thread_local OwnState t_own;

// As epoll_wait(), for events that come while it pays to look out for them.
int soon(int epoll, std::span<epoll_event> events, LookOut& look_out) {
  auto now = IoShard::Clock::now();
  if (!look_out.pays(now)) return 0;
  const auto until = now + kLookOut;
  bool goes_on = true;
  int n = 0;
  while ((n = epoll_wait(epoll, events.data(), int(events.size()), 0)) == 0 && goes_on &&
         now < until) {
    const auto left = now;
    sched_yield();
    now = IoShard::Clock::now();
    goes_on = look_out.goes_on(left, now);
  }
  if (goes_on) look_out.was_undisturbed(now);
  return n;
}

}  // namespace

bool IoShard::on_thread() const { return t_own.shard == this; }

void IoShard::again(std::uint64_t id) {
  TROUPE_CHECK(on_thread(), "again() is for the shard's own threads");
  t_own.again.push_back(id);
}

void IoShard::tick_within(Clock::duration time) {
  TROUPE_CHECK(on_thread(), "tick_within() is for the shard's own thread");
  t_own.next_tick = std::min(t_own.next_tick, Clock::now() + time);
}

std::span<std::byte> IoShard::staging() {
  TROUPE_CHECK(on_thread(), "staging() is for the shard's own threads");
  return t_own.staging;
}

Expected<std::unique_ptr<IoShard>> IoShard::start(Ticker ticker) {
  TROUPE_TRY(auto shard, make(std::move(ticker), false));
  shard->launch();
  return shard;
}

Expected<std::unique_ptr<IoShard>> IoShard::start_shared() {
  TROUPE_TRY(auto shard, make(Ticker{}, true));
  shard->launch();
  return shard;
}

Expected<std::unique_ptr<IoShard>> IoShard::make(Ticker ticker, bool shared) {
  Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return errno_status("epoll", errno);
  Descriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake) return errno_status("eventfd", errno);
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.u64 = kWakeId;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &e) != 0)
    return errno_status("epoll_ctl", errno);
  return std::unique_ptr<IoShard>(
      new IoShard(std::move(epoll), std::move(wake), std::move(ticker), shared));
}

void IoShard::launch() {
  std::lock_guard lock(mutex_);
  const NoSignals none;
  threads_.emplace_back([this] { loop(); });
}

void IoShard::add_thread() {
  TROUPE_CHECK(shared_, "one thread serves a shard that is not shared");
  launch();
}

std::size_t IoShard::threads() const {
  std::lock_guard lock(mutex_);
  return threads_.size();
}

void IoShard::wake() {
  std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0 && errno != EAGAIN)
    TROUPE_CHECK(false, "an eventfd takes a number");
}

void IoShard::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    threads.swap(threads_);
  }
  wake();
  for (auto& thread : threads) thread.join();
}

void IoShard::post(std::function<void()> task) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  if (first) wake();
}

Status IoShard::add(int fd, std::uint32_t events, std::shared_ptr<Source> source,
                    std::uint64_t& id) {
  std::lock_guard lock(mutex_);  // find() waits for it, so the id is seen by whoever serves
  id = ++last_id_;
  epoll_event e{};
  e.events = events | (shared_ ? EPOLLONESHOT : 0u);
  e.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e) != 0) return errno_status("epoll_ctl", errno);
  sources_.emplace(id, std::move(source));
  return {};
}

void IoShard::modify(int fd, std::uint64_t id, std::uint32_t events) {
  epoll_event e{};
  e.events = events | (shared_ ? EPOLLONESHOT : 0u);
  e.data.u64 = id;
  // Fails only for a descriptor that was removed meanwhile, which wants no events.
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &e);
}

void IoShard::remove(int fd, std::uint64_t id) {
  std::shared_ptr<Source> last;  // dropped outside the lock
  std::lock_guard lock(mutex_);
  auto it = sources_.find(id);
  if (it == sources_.end()) return;
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  last = std::move(it->second);
  sources_.erase(it);
}

std::shared_ptr<IoShard::Source> IoShard::find(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  auto it = sources_.find(id);
  return it == sources_.end() ? nullptr : it->second;
}

void IoShard::run_tasks() {
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (auto& task : tasks) task();
}

void IoShard::serve_again() {
  std::vector<std::uint64_t> round;
  round.swap(t_own.again);
  for (std::uint64_t id : round) {
    if (auto source = find(id)) source->on_ready(0);
  }
}

int IoShard::patience() const {
  if (!t_own.again.empty()) return 0;
  if (ticker_.period.count() == 0) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(t_own.next_tick - Clock::now());
  return int(std::max<std::int64_t>(0, left.count()));
}

void IoShard::loop() {
  pthread_setname_np(pthread_self(), shared_ ? "tensors" : "control");
  t_own.shard = this;
  t_own.staging.resize(kStaging);
  std::array<epoll_event, kEventsAlone> events;
  const int most = int(shared_ ? kEventsShared : kEventsAlone);
  t_own.next_tick = Clock::now() + ticker_.period;
  bool served = false;
  LookOut look_out;
  for (;;) {
    int n = served ? soon(epoll_.get(), std::span(events).first(std::size_t(most)), look_out) : 0;
    if (n == 0) n = epoll_wait(epoll_.get(), events.data(), most, patience());
    served = n > 0;
    for (int i = 0; i < n; ++i) {
      std::uint64_t id = events[std::size_t(i)].data.u64;
      if (id == kWakeId) {
        std::uint64_t count;
        (void)!::read(wake_.get(), &count, sizeof count);
      } else if (auto source = find(id)) {
        source->on_ready(events[std::size_t(i)].events);
      }
    }
    serve_again();
    run_tasks();
    if (ticker_.period.count() > 0) {
      auto now = Clock::now();
      if (now >= t_own.next_tick) {
        t_own.next_tick = now + ticker_.period;
        ticker_.tick(now);
      }
    }
    std::lock_guard lock(mutex_);
    if (stop_ && tasks_.empty()) break;
  }
  wake();  // the next thread
  t_own = {};
}

}  // namespace troupe
