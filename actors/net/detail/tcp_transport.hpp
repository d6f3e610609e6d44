// The class that make_tcp_transport returns. tcp.cpp: calls, and data threads; peering.cpp: how
// peers come and go.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/net/detail/connection.hpp"
#include "actors/net/detail/handshake.hpp"
#include "actors/net/detail/io_shard.hpp"
#include "actors/net/detail/tls.hpp"
#include "actors/net/liveness.hpp"
#include "actors/net/transport.hpp"
#include "core/accumulating_clock.hpp"
#include "core/clock_offset.hpp"
#include "core/processors.hpp"

namespace troupe {

// The connections that messages for a peer that is up are sent on. Immutable.
struct Route {
  std::shared_ptr<Connection> control, data;
  std::uint32_t control_bytes = 0;  // largest message it accepts
};

// The peers that are up, for senders on any thread.
class Routes {
 public:
  std::shared_ptr<const Route> find(PeerId peer) const {
    std::shared_lock lock(mutex_);
    auto it = routes_.find(peer);
    return it == routes_.end() ? nullptr : it->second;
  }
  void set(PeerId peer, Route route) {
    std::unique_lock lock(mutex_);
    routes_[peer] = std::make_shared<const Route>(std::move(route));
  }
  void erase(PeerId peer) {
    std::unique_lock lock(mutex_);
    routes_.erase(peer);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<PeerId, std::shared_ptr<const Route>> routes_;
};

class TcpTransport final : public Transport, public Connection::Owner {
 public:
  TcpTransport(Security security, TransportLimits limits, TransportHandler& handler,
               std::unique_ptr<TlsContext> tls);
  ~TcpTransport() override;
  Status start();

  Expected<std::uint16_t> listen(const Endpoint& at, Hello hello) override;
  PeerId name_peer() override { return ++last_peer_; }
  using Transport::connect;
  Status connect(PeerId peer, const Endpoint& to, Hello hello,
                 std::chrono::milliseconds within) override;
  void allow_silence(PeerId peer, std::function<bool()> stopped) override;
  using Transport::send_control;
  Status send_control(PeerId peer, std::span<const ByteView> pieces) override;
  using Transport::send_bulk;
  Status send_bulk(PeerId peer, std::span<const ByteView> pieces) override;
  Status send_tensor(PeerId peer, const TensorHeader& header, Buffer bytes,
                     std::size_t offset) override;
  std::uint64_t queued_bytes(PeerId peer) const override;
  void hold_tensors(PeerId peer, bool hold) override;
  void close(PeerId peer, Status why) override;
  void shutdown() override;

 private:
  using Clock = std::chrono::steady_clock;
  // All timeouts of this side are measured by a clock that stops while this process does: after a
  // pause of its own, no peer is late.
  using Time = AccumulatingClock::Time;

  // A peer from its first sign to its peer_down. Control thread only.
  struct Peer {
    enum class State : std::uint8_t { connecting, greeting, attaching, up, ending };
    PeerId id = 0;
    bool outgoing = false;
    State state = State::connecting;
    std::string to;                  // for messages
    std::vector<Address> addresses;  // outgoing: tried in turn
    std::size_t attempts = 0;
    Time deadline{};  // until it is up
    std::optional<Time> retry_at;
    std::optional<Time> next_address_at;  // else one that nobody answers at would be tried for ever
    Status last_error;
    Status data_lost;  // its data connection broke, and when
    Time data_lost_at{};
    int beats_since_lost = 0;
    Liveness life;              // once it is up
    Clock::time_point heard{};  // when last
    std::function<bool()> stopped;
    std::int64_t echo = 0, echo_arrived = 0;  // of its last heartbeat (Heartbeat)
    ClockOffset clock;
    Hello ours, theirs;
    std::uint32_t control_bytes = 0, chunk_bytes = 0;  // what the peer accepts
    bool encrypt_data = false;
    Token token{};
    std::shared_ptr<Connection> control, data;
  };
  struct Listener : IoShard::Source {
    void on_ready(std::uint32_t) override { owner->accept_all(*this); }
    TcpTransport* owner = nullptr;
    Descriptor fd;
    std::uint64_t id = 0;
    Hello hello;
    bool paused = false;  // out of descriptors
  };
  struct Stranger {
    std::shared_ptr<Connection> connection;
    std::shared_ptr<Listener> listener;
  };
  using PeerRef = std::shared_ptr<Peer>;
  // A connection that is closed once the peer has taken what was sent, or takes no more of it.
  struct Leaving {
    std::shared_ptr<Connection> connection;
    std::int64_t delivered = 0;
    Time until{}, last{};
  };

  template <class Frame>
  Status send_message(PeerId peer, std::span<const ByteView> pieces);

  // Connection::Owner
  void spoke(Connection& c) override { limits_on_strangers_.spoke(c.id()); }
  void opened(Connection& c) override;
  Status frame(Connection& c, FrameType type, Buffer payload) override;
  Expected<Buffer> grant(Connection& c, const TensorHeader& header) override;
  void tensor(Connection& c, const TensorHeader& header, Buffer bytes) override;
  void drained(Connection& c) override;
  void ended(Connection& c, Status why) override;
  void left(Connection&) override { check_idle(); }

  // On the control thread, in peering.cpp.
  void accept_all(Listener& listener);
  void welcome_stranger(Listener& listener, Descriptor fd, const Address& from);
  void forget_stranger(std::uint64_t id);
  void send_away(std::optional<std::uint64_t> stranger);
  Status stranger_frame(Connection& c, FrameType type, ByteView payload);
  Status on_hello(Connection& c, ByteView payload);
  Status on_attach(Connection& c, ByteView payload);
  Status peer_frame(Connection& c, FrameType type, Buffer payload);
  Status on_welcome(Peer& peer, ByteView payload);
  void begin_connect(const PeerRef& peer);
  Expected<std::shared_ptr<Connection>> dial(const Peer& peer, Connection::Role role,
                                             bool encrypted);
  void bring_up(const PeerRef& peer);
  Expected<IoShard*> data_shard();
  void lost(const std::shared_ptr<Connection>& c, Status why);
  void fail(const PeerRef& peer, Status why, bool tell);
  void retry(Peer& peer, Status why);
  void drop(const PeerRef& peer, Status why, bool tell);
  void finish(const PeerRef& peer, Status why);
  void part(const std::shared_ptr<Connection>& c, const Status& why);
  void tick(Clock::time_point moment);
  void look_after(const PeerRef& peer);
  void send_heartbeat(const Peer& peer);
  Status on_heartbeat(Peer& peer, ByteView payload);
  void listen_to(Peer& peer);
  bool has_said_all(const Peer& peer) const;
  void settle_lingering();
  void forget_those_who_left();
  void check_idle();
  PeerRef find(PeerId id);
  Time now() const { return clock_.at(Clock::now().time_since_epoch()); }
  std::string greeting(const Hello& hello, bool encrypt_data = false, Token token = {}) const;

  const Security security_;
  const TransportLimits limits_;
  TransportHandler& handler_;
  const std::unique_ptr<TlsContext> tls_;
  Routes routes_;
  std::atomic<PeerId> last_peer_{0};
  std::atomic<bool> stopped_{false};

  std::mutex listeners_mutex_;
  std::vector<std::shared_ptr<Listener>> listeners_;

  // Control thread only.
  std::map<PeerId, PeerRef> peers_;
  std::unordered_map<std::uint64_t, Stranger> strangers_;
  Strangers limits_on_strangers_;
  std::map<Token, PeerId> tokens_;
  std::vector<Leaving> lingering_;
  const std::size_t processors_ = std::size_t(usable_processors());
  std::size_t data_connections_ = 0;
  std::uint64_t last_connection_ = 0;
  AccumulatingClock clock_;
  bool stopping_ = false;

  std::mutex idle_mutex_;
  std::condition_variable idle_changed_;
  bool idle_ = false;

  std::unique_ptr<IoShard> control_;
  std::unique_ptr<IoShard> data_;  // shared by up to one thread per core; made with the first peer
};

}  // namespace troupe
