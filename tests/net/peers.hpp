// A handler that remembers, for tests over any Transport.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "actors/net/pool.hpp"
#include "actors/net/transport.hpp"
#include "tests/net/streams.hpp"

namespace troupe::testing {

// Safe from any thread. wait(f) returns once f holds, false after 20 s.
class RecordingHandler : public TransportHandler {
 public:
  struct PeerLog {
    Hello hello;
    bool admitted = false, up = false, down = false;
    Status why;
    std::vector<std::string> messages;
    std::vector<SeenTensor> tensors;
    int drained = 0;
    ClockOffset clock;
    int clocks = 0;  // times that it was told
  };

  Status admit(PeerId peer, const Hello& hello) override {
    std::lock_guard lock(mutex_);
    log_[peer].admitted = true;
    return hello.find("refuse me") != std::string::npos ? failed_precondition("not this one")
                                                        : Status{};
  }
  void peer_up(PeerId peer, const Hello& hello) override {
    update(peer, [&](PeerLog& l) {
      misuse_ |= l.up || l.down || !l.admitted;
      l.up = true, l.hello = hello;
    });
  }
  void peer_down(PeerId peer, Status why) override {
    update(peer, [&](PeerLog& l) {
      misuse_ |= l.down || why.ok();
      l.down = true, l.why = why;
    });
  }
  void control(PeerId peer, Buffer message) override {
    std::string text = text_of(message);
    update(peer, [&](PeerLog& l) {
      misuse_ |= !l.up || l.down;
      l.messages.push_back(std::move(text));
    });
    if (on_control) on_control(peer, message);
  }
  Expected<Buffer> accept_tensor(PeerId, const TensorHeader& header) override {
    if (header.bytes > budget) return resource_exhausted("no credit");
    return pool.take(header.bytes);
  }
  void tensor(PeerId peer, const TensorHeader& header, Buffer bytes) override {
    SeenTensor seen{text_of(header.tag()), text_of(bytes)};
    update(peer, [&](PeerLog& l) {
      misuse_ |= !l.up || l.down;
      l.tensors.push_back(std::move(seen));
    });
  }
  void drained(PeerId peer) override {
    update(peer, [&](PeerLog& l) { ++l.drained; });
  }
  void clock(PeerId peer, const ClockOffset& clock) override {
    update(peer, [&](PeerLog& l) {
      misuse_ |= !l.up || l.down;
      l.clock = clock;
      ++l.clocks;
    });
  }

  bool wait(const std::function<bool()>& done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), done);
  }
  // Without a lock: for use in wait(), or when nothing runs any more.
  PeerLog& log(PeerId peer) { return log_[peer]; }
  std::map<PeerId, PeerLog>& all() { return log_; }
  PeerLog copy(PeerId peer) {
    std::lock_guard lock(mutex_);
    return log_[peer];
  }
  bool wait_up(PeerId peer) {
    return wait([&] { return log_[peer].up || log_[peer].down; }) && copy(peer).up;
  }
  Status wait_down(PeerId peer) {
    return wait([&] { return log_[peer].down; }) ? copy(peer).why : internal_error("still there");
  }
  // The only peer, once there is one that came up.
  PeerId only() {
    PeerId id = 0;
    wait([&] {
      for (auto& [peer, l] : log_) {
        if (l.up) id = peer;
      }
      return id != 0;
    });
    return id;
  }
  bool misused() {
    std::lock_guard lock(mutex_);
    return misuse_;
  }

  std::function<void(PeerId, const Buffer&)> on_control;
  std::uint64_t budget = std::uint64_t{1} << 32;
  BufferPool pool{256u << 20};

 private:
  template <class F>
  void update(PeerId peer, F f) {
    {
      std::lock_guard lock(mutex_);
      f(log_[peer]);
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<PeerId, PeerLog> log_;
  bool misuse_ = false;
};

inline Status send_text(Transport& t, PeerId peer, std::string_view text) {
  return t.send_control(peer, as_bytes(text));
}
inline Status send_bytes(Transport& t, PeerId peer, std::string_view tag, std::string_view bytes) {
  return t.send_tensor(peer, TensorHeader(as_bytes(tag), bytes.size()), buffer_of(bytes), 0);
}

}  // namespace troupe::testing
