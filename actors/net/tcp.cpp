#include "actors/net/tcp.hpp"

#include <sys/epoll.h>

#include <fmt/format.h>

#include "actors/net/detail/tcp_transport.hpp"

namespace troupe {

Expected<std::unique_ptr<Transport>> make_tcp_transport(const Security& security,
                                                        const TransportLimits& limits,
                                                        TransportHandler& handler) {
  std::unique_ptr<TlsContext> tls;
  if (security.mode != Security::Mode::plaintext) {
    TROUPE_TRY(tls, TlsContext::make(security));
  }
  auto transport = std::make_unique<TcpTransport>(security, limits, handler, std::move(tls));
  TROUPE_TRY(transport->start());
  return std::unique_ptr<Transport>(std::move(transport));
}

Expected<bool> is_loopback(const Endpoint& endpoint) {
  TROUPE_TRY(auto addresses, resolve(endpoint));
  for (const Address& a : addresses) {
    if (!a.loopback()) return false;
  }
  return true;
}

TcpTransport::TcpTransport(Security security, TransportLimits limits, TransportHandler& handler,
                           std::unique_ptr<TlsContext> tls)
    : security_(std::move(security)),
      limits_(limits),
      handler_(handler),
      tls_(std::move(tls)),
      limits_on_strangers_(limits),
      clock_(std::max(std::chrono::milliseconds(100), 2 * limits.heartbeat)) {}

TcpTransport::~TcpTransport() { shutdown(); }

Status TcpTransport::start() {
  IoShard::Ticker ticker{limits_.heartbeat, [this](Clock::time_point moment) { tick(moment); }};
  TROUPE_TRY(control_, IoShard::start(std::move(ticker)));
  return {};
}

Expected<std::uint16_t> TcpTransport::listen(const Endpoint& at, Hello hello) {
  if (stopped_) return cancelled("the transport shut down");
  if (hello.size() > kMaxHello) return invalid_argument("a hello is at most 3072 bytes");
  TROUPE_TRY(auto addresses, resolve(at));
  const Address& address = addresses.front();
  if (!tls_ && !address.loopback())
    return failed_precondition(
        fmt::format("{} is not a loopback address: it needs a secret or certificates", at.text()));
  auto listener = std::make_shared<Listener>();
  TROUPE_TRY(listener->fd, listen_on(address));
  listener->owner = this;
  listener->hello = std::move(hello);
  std::uint16_t port = local_address(listener->fd.get()).port();
  std::lock_guard lock(listeners_mutex_);
  TROUPE_TRY(control_->add(listener->fd.get(), EPOLLIN, listener, listener->id));
  listeners_.push_back(std::move(listener));
  return port;
}

Status TcpTransport::connect(PeerId id, const Endpoint& to, Hello hello,
                             std::chrono::milliseconds within) {
  if (stopped_) return cancelled("the transport shut down");
  if (hello.size() > kMaxHello) return invalid_argument("a hello is at most 3072 bytes");
  auto peer = std::make_shared<Peer>();
  TROUPE_TRY(peer->addresses, resolve(to));
  for (const Address& a : peer->addresses) {
    if (!tls_ && !a.loopback())
      return failed_precondition(fmt::format(
          "{} is not a loopback address: it needs a secret or certificates", to.text()));
  }
  peer->id = id;
  peer->outgoing = true;
  peer->to = to.text();
  peer->ours = std::move(hello);
  control_->post([this, peer, within] {
    peer->deadline = now() + within;
    peers_[peer->id] = peer;
    if (stopping_) return drop(peer, cancelled("the transport shut down"), false);
    begin_connect(peer);
  });
  return {};
}

void TcpTransport::allow_silence(PeerId peer, std::function<bool()> stopped) {
  control_->post([this, peer, stopped = std::move(stopped)] {
    if (auto found = find(peer)) found->stopped = stopped;
  });
}

template <class Frame>
Status TcpTransport::send_message(PeerId peer, std::span<const ByteView> pieces) {
  auto route = routes_.find(peer);
  if (!route) return unavailable(fmt::format("peer {} is not up", peer));
  std::uint64_t size = 0;
  for (ByteView piece : pieces) size += piece.size();
  if (size > route->control_bytes)
    return resource_exhausted(fmt::format("a control message of {} bytes; the peer accepts {}",
                                          size, route->control_bytes));
  route->control->send(Frame{control_frame(FrameType::message, pieces)});
  return {};
}

Status TcpTransport::send_control(PeerId peer, std::span<const ByteView> pieces) {
  return send_message<std::vector<std::byte>>(peer, pieces);
}

Status TcpTransport::send_bulk(PeerId peer, std::span<const ByteView> pieces) {
  return send_message<BulkFrame>(peer, pieces);
}

Status TcpTransport::send_tensor(PeerId peer, const TensorHeader& header, Buffer bytes,
                                 std::size_t offset) {
  auto route = routes_.find(peer);
  if (!route) return unavailable(fmt::format("peer {} is not up", peer));
  TROUPE_CHECK(offset <= bytes.size() && header.bytes <= bytes.size() - offset,
               "a tensor's bytes are inside its buffer");
  route->data->send(OutgoingTensor{header, std::move(bytes), offset});
  return {};
}

std::uint64_t TcpTransport::queued_bytes(PeerId peer) const {
  auto route = routes_.find(peer);
  return route ? route->data->queued_bytes() : 0;
}

void TcpTransport::hold_tensors(PeerId peer, bool hold) {
  if (auto route = routes_.find(peer)) route->data->hold(hold);
}

void TcpTransport::close(PeerId peer, Status why) {
  TROUPE_CHECK(!why.ok(), "a peer is closed for a reason");
  control_->post([this, peer, why = std::move(why)] {
    if (auto found = find(peer)) drop(found, why, true);
  });
}

void TcpTransport::shutdown() {
  if (control_ == nullptr || stopped_.exchange(true)) return;
  TROUPE_CHECK(!control_->on_thread(), "shutdown() is not for callbacks");
  control_->post([this] {
    stopping_ = true;
    {
      std::lock_guard lock(listeners_mutex_);
      for (auto& l : listeners_) control_->remove(l->fd.get(), l->id);
      listeners_.clear();
    }
    auto peers = peers_;
    for (auto& [id, peer] : peers) drop(peer, cancelled("the transport shut down"), true);
    auto strangers = strangers_;
    for (auto& [id, stranger] : strangers) {
      stranger.connection->close();
      forget_stranger(id);
    }
    check_idle();
  });
  {
    std::unique_lock lock(idle_mutex_);
    idle_changed_.wait(lock, [&] { return idle_; });
  }
  control_->stop();
  if (data_) data_->stop();
}

Expected<Buffer> TcpTransport::grant(Connection& c, const TensorHeader& header) {
  return handler_.accept_tensor(c.peer, header);
}

void TcpTransport::tensor(Connection& c, const TensorHeader& header, Buffer bytes) {
  handler_.tensor(c.peer, header, std::move(bytes));
}

void TcpTransport::drained(Connection& c) {
  if (c.role == Connection::Role::data) handler_.drained(c.peer);
}

void TcpTransport::ended(Connection& c, Status why) {
  control_->post([this, self = c.shared_from_this(), why = std::move(why)] { lost(self, why); });
}

}  // namespace troupe
