// A thread that serves file descriptors.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "actors/net/socket.hpp"

namespace troupe {

// One epoll instance and the threads that serve it: one, or, when shared, as many as are added.
// Callbacks come from these threads and none may block. In a shared shard a source is served by one
// thread at a time: after on_ready() it is left alone until modify() arms it again. Ready sources
// queue in the kernel, so that no thread has more of them to serve than another.
// Everything but staging() and again() may be called from any thread.
class IoShard {
 public:
  using Clock = std::chrono::steady_clock;

  class Source {
   public:
    virtual ~Source() = default;
    virtual void on_ready(std::uint32_t events) = 0;
  };

  // `tick` is called every `period`, after each delay of the loop, and as tick_within() requests.
  struct Ticker {
    std::chrono::milliseconds period{};  // 0: none
    std::function<void(Clock::time_point)> tick;
  };

  static Expected<std::unique_ptr<IoShard>> start(Ticker ticker);
  static Expected<std::unique_ptr<IoShard>> start_shared();
  void add_thread();  // REQUIRES: shared
  std::size_t threads() const;
  bool shared() const { return shared_; }
  ~IoShard() { stop(); }
  // Runs what was posted before; joins the threads. The object stays usable, but serves nothing.
  void stop();

  void post(std::function<void()> task);
  bool on_thread() const;

  // The source is held until it is removed. `id` is what modify and remove take; it is set before
  // the first event.
  Status add(int fd, std::uint32_t events, std::shared_ptr<Source> source, std::uint64_t& id);
  void modify(int fd, std::uint64_t id, std::uint32_t events);
  void remove(int fd, std::uint64_t id);

  // Calls on_ready(0) of the source in the next round of this thread, without waiting for the
  // kernel: for bytes that the source itself buffers, as TLS does. Not armed meanwhile.
  void again(std::uint64_t id);
  // Makes the next tick come within that time. On the thread of a shard with a ticker.
  void tick_within(Clock::duration time);
  // A place to read into, free between callbacks.
  std::span<std::byte> staging();

  static constexpr std::size_t kStaging = 128u << 10;

 private:
  IoShard(Descriptor epoll, Descriptor wake, Ticker ticker, bool shared)
      : epoll_(std::move(epoll)),
        wake_(std::move(wake)),
        ticker_(std::move(ticker)),
        shared_(shared) {}
  static Expected<std::unique_ptr<IoShard>> make(Ticker ticker, bool shared);
  void launch();
  void loop();
  void serve_again();
  void run_tasks();
  void wake();
  int patience() const;
  std::shared_ptr<Source> find(std::uint64_t id);

  Descriptor epoll_, wake_;
  Ticker ticker_;
  const bool shared_;

  mutable std::mutex mutex_;  // of the rest
  std::vector<std::function<void()>> tasks_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Source>> sources_;
  std::uint64_t last_id_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe
