// LanePool: the threads behind Device::launch and Lanes::parallel.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "devices/lanes.hpp"
#include "devices/lent_thread.hpp"

namespace troupe::detail {

// N threads. A free lane first takes chunks of kernels that other lanes are running, then the
// oldest burst. While a burst runs, idle lanes spin for at most 50 us after their last work,
// because the next kernel usually comes sooner than a wake-up (about 55 us); then, and if nothing
// runs, they sleep. A LentThread may take the place of a sleeping lane. Owned by a device. launch
// may be called from any thread. The destructor runs all launched bursts, and those that these
// launch; it must not be called on a lane.
//
// Updates start before bursts. One that is launched while every lane runs a burst does not wait for
// a lane: one more thread, made when it is first needed, runs such updates in their order. A lane
// that launches an update runs it itself after its burst, unless another is free before.
class LanePool {
 public:
  // `on_start` runs first on every lane.
  explicit LanePool(int lanes, std::function<void()> on_start = {});
  ~LanePool();
  LanePool(const LanePool&) = delete;
  LanePool& operator=(const LanePool&) = delete;

  void launch(std::function<void(Lanes&)> burst) { launch(std::move(burst), bursts_); }
  void launch_update(std::function<void(Lanes&)> update) { launch(std::move(update), updates_); }
  int count() const { return count_; }

  // For a LentThread with a lane of this pool. An exception of a burst ends the process, as on the
  // lane's own thread. See LentThread::work.
  bool work(const LentThread& thread, FunctionRef<bool()> done) noexcept;
  void give_back(const LentThread& thread);

  // Whether no burst is queued or running. drain() waits for that.
  bool idle() const { return unfinished_.load() == 0; }
  void drain();

 private:
  // The kernel that a lane is running, open to helpers while it has chunks. It lives as long as the
  // lane, so that a late helper reads valid memory; `open` and `helpers` together decide whether a
  // helper may touch the rest (see help()). The owner takes chunks from the front and helpers from
  // the back, so that in successive kernels each lane finds its own results in its cache.
  struct alignas(64) Job {
    std::atomic<bool> open{false};
    std::atomic<std::int64_t> chunks{0};
    const FunctionRef<void(std::int64_t)>* chunk = nullptr;
    alignas(64) std::atomic<std::int64_t> next{0};  // number of chunks taken
    std::atomic<std::int64_t> by_helpers{0};
    std::atomic<int> helpers{0};
    // The exception of the first chunk that threw; the owner rethrows it.
    std::mutex thrown_mutex;
    std::int64_t thrown_by = 0;
    std::exception_ptr thrown;
    void keep_thrown(std::int64_t chunk) noexcept;
  };
  struct Launched {
    std::function<void(Lanes&)> burst;
    std::uint64_t name = 0;
    const LentThread* from = nullptr;
    bool is_for(const LentThread& thread) const {
      return name != 0 ? name == thread.waits_for_ : from == &thread;
    }
  };
  using Queue = std::deque<Launched>;
  using Done = const FunctionRef<bool()>*;  // null: never
  enum class State : int { awake, asleep, lent };
  class Lane final : public Lanes {
   public:
    Lane(LanePool& pool, int index) : pool_(pool), index_(index) {}
    void parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) override;
    int count() const override { return pool_.count(); }

   private:
    friend class LanePool;
    LanePool& pool_;
    const int index_;
    Job job_;
    std::atomic<State> state_{State::awake};  // its own thread sleeps on this
    std::thread thread_;
  };

  void launch(std::function<void(Lanes&)> burst, Queue& queue);
  bool all_busy_elsewhere() const;
  void call_spare();
  void run_updates();
  void end_spare();
  void end();
  void run(Lane& lane);
  bool help_any(const Lane& lane, Done done = nullptr);
  static bool help(Job& job, Done done);
  static void work_on(Job& job, bool owner, Done done);
  bool has_chunks_left() const;
  static void await_helpers(Job& job);
  bool run_burst(Lane& lane, const LentThread* only_for = nullptr);
  Queue& next_queue() { return updates_.empty() ? bursts_ : updates_; }
  void run_launched(Lane& lane, std::function<void(Lanes&)> burst);
  void announce(int work);
  void rest(Lane& lane, std::uint32_t seen, std::int64_t idle_since);
  bool take(Lane& lane, State to);
  bool wake(Lane& lane);
  bool lend_lane(LentThread& thread);

  const std::function<void()> on_start_;
  const int count_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // and, last, that of the thread for updates
  std::mutex mutex_;
  Queue bursts_, updates_;   // guarded by mutex_
  bool spare_ends_ = false;  // guarded by mutex_
  std::condition_variable for_spare_;
  int lent_ = 0;                      // lent lanes; guarded by mutex_
  std::condition_variable returned_;  // no lane is lent
  std::atomic<int> queued_{0};        // size of both queues, readable without the lock
  std::atomic<int> running_{0};       // bursts and updates on lanes
  std::atomic<int> unfinished_{0};    // all of these, and updates on the other thread
  std::atomic<bool> stopping_{false};
  // Incremented with every burst and every open job; idle lanes watch it.
  alignas(64) std::atomic<std::uint32_t> news_{0};
  std::atomic<int> sleeping_{0};  // lanes whose state is asleep
};

}  // namespace troupe::detail
