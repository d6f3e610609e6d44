// A network of one thread and virtual time: the same Transport, with delays and faults that follow
// from a seed. A whole cluster runs on it deterministically.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/net/transport.hpp"
#include "core/hash.hpp"

namespace troupe {

class MemoryTransport;

// Owns virtual time and everything under way. Everything happens inside step(), on the caller's
// thread: each call delivers one event (a portion of one connection's bytes, a hop of a handshake,
// the end of a peer) and calls the handlers concerned. Bytes cross the same framing as over TCP.
// Each direction of each connection is first in, first out; across connections the delays decide.
// The same seed and the same calls give the same events: trace() is a hash of all of them.
//
//   MemoryNetwork net(seed);
//   auto a = net.host("a", handler_a), b = net.host("b", handler_b);
//   b->listen({"b", 1}, "I am b");
//   a->connect({"b", 1}, "I am a", 1s);
//   while (net.step()) {}
class MemoryNetwork {
 public:
  using Time = std::chrono::nanoseconds;  // since the network was made
  struct Options {
    Time shortest{20'000};  // of a delivery, drawn evenly between the two
    Time longest{200'000};
    TransportLimits limits{};
  };

  explicit MemoryNetwork(std::uint64_t seed) : MemoryNetwork(seed, Options{}) {}
  MemoryNetwork(std::uint64_t seed, Options options);
  ~MemoryNetwork();
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;

  // A process named `name`, which is also its address. A name may be used again after crash().
  // The network outlives what it returns; the handler is not called after shutdown() or crash().
  std::shared_ptr<Transport> host(const std::string& name, TransportHandler& handler);

  // Delivers the next event and moves now() to its time. False: nothing is under way.
  bool step();
  std::optional<Time> next() const;  // when the next event is due
  Time now() const { return now_; }
  // Time passes without the network's doing, up to next(). REQUIRES: t >= now().
  void advance_to(Time t);

  // What `from` sends no longer reaches `to`; it waits. The receiving side of a cut notices the
  // silence after limits.silence, and ends the peer.
  void cut(const std::string& from, const std::string& to);
  void heal(const std::string& from, const std::string& to);
  // What `from` sends to `to` takes so much longer.
  void slow(const std::string& from, const std::string& to, Time more);
  // The process is stopped: what is for it waits, and its peers hear nothing of it. It takes nobody
  // for silent because of a time in which it stood still itself.
  void pause(const std::string& name);
  void resume(const std::string& name);
  bool paused(const std::string& name) const { return paused_.contains(name); }
  // Connections between the two break now; both sides are told.
  void reset(const std::string& a, const std::string& b);
  // The process is gone: its handler hears nothing more, its peers see the connection end.
  void crash(const std::string& name);

  std::uint64_t trace() const { return trace_; }
  std::uint64_t events() const { return events_; }

 private:
  friend class MemoryTransport;
  struct Link;
  struct Lane;
  struct Event {
    std::uint64_t tag;  // what it is, for the trace
    std::function<void()> run;
  };
  using Key = std::pair<Time, std::uint64_t>;  // due, then order of scheduling

  Time delay(const Link& link, int from);
  void schedule(Time after, std::uint64_t tag, std::function<void()> run);
  // One hop from a side of the link to the other: waits while the direction is cut.
  void hop(const std::shared_ptr<Link>& link, int from, std::uint64_t tag,
           std::function<void()> run);
  void pump(const std::shared_ptr<Link>& link, int from, int lane);
  void deliver(const std::shared_ptr<Link>& link, int from, int lane, std::size_t limit);
  bool is_cut(const std::string& from, const std::string& to) const;
  bool is_mute(const std::string& from, const std::string& to) const;
  void listen_anew(const std::string& from, const std::string& to);
  void watch(const std::string& from, const std::string& to, std::uint64_t mute);
  void release_between(const std::string& from, const std::string& to);
  void release(const std::shared_ptr<Link>& link, int from);
  void raise(const std::shared_ptr<Link>& link, int side);
  void drop(const std::shared_ptr<Link>& link, int side, Status why, bool tell);
  void knock(const std::shared_ptr<Link>& link, const Endpoint& to, Time deadline);
  void answer(const std::shared_ptr<Link>& link, std::shared_ptr<MemoryTransport> server,
              const Hello& hello);

  Options options_;
  Random random_;
  Time now_{0};
  std::uint64_t scheduled_ = 0, events_ = 0, trace_ = 0, moments_ = 0, connected_ = 0;
  std::map<Key, Event> queue_;
  std::map<std::string, std::shared_ptr<MemoryTransport>> hosts_;
  using Direction = std::pair<std::string, std::string>;
  std::set<Direction> cut_;
  std::set<std::string> paused_;
  std::map<Direction, Time> slow_;
  // Directions in which nothing arrives, and since when: a number of that moment.
  std::map<Direction, std::uint64_t> mute_;
  std::vector<std::weak_ptr<Link>> links_;
};

}  // namespace troupe
