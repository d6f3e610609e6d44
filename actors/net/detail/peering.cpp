// How peers of the TCP transport come and go. All of it runs on the control thread.
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "actors/net/detail/tcp_transport.hpp"
#include "core/log.hpp"

namespace troupe {
namespace {

// Who connects tries again after so long, and after twice that each time until the latter: somebody
// who is about to listen is found at once, and who does not is asked a few times a second.
constexpr std::chrono::milliseconds kFirstRetryAfter{5}, kRetryAfter{50};
// At least so long for one of several addresses.
constexpr std::chrono::milliseconds kAddress{500};
constexpr int kBeatsOfTheLiving = 4;  // more than are under way when a peer closes
// The longest that last words may take.
constexpr std::chrono::milliseconds kMostLinger{5000};
constexpr int kAcceptsPerEvent = 64;

ByteView bytes_of(const Buffer& b) { return {static_cast<const std::byte*>(b.data()), b.size()}; }

std::int64_t nanoseconds(std::chrono::steady_clock::time_point t) {
  return std::chrono::nanoseconds(t.time_since_epoch()).count();
}

}  // namespace

std::string TcpTransport::greeting(const Hello& hello, bool encrypt_data, Token token) const {
  return encode(Greeting{limits_.control_bytes, limits_.chunk_bytes, encrypt_data, token, hello});
}

TcpTransport::PeerRef TcpTransport::find(PeerId id) {
  auto it = peers_.find(id);
  return it == peers_.end() ? nullptr : it->second;
}

// --- strangers ----------------------------------------------------------------------------------

void TcpTransport::accept_all(Listener& listener) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    Address from;
    from.size = sizeof from.storage;
    Descriptor fd(::accept4(listener.fd.get(), reinterpret_cast<sockaddr*>(&from.storage),
                            &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      welcome_stranger(listener, std::move(fd), from);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The connection stays in the backlog; looking again at once would only spin.
      TROUPE_LOG(warning, "net", "out of file descriptors: new peers have to wait");
      listener.paused = true;
      control_->modify(listener.fd.get(), listener.id, 0);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void TcpTransport::welcome_stranger(Listener& listener, Descriptor fd, const Address& from) {
  std::uint64_t id = ++last_connection_;
  tune(fd.get());
  Connection::Setup setup;
  setup.id = id;
  setup.side = tls_ ? Connection::Side::sniff : Connection::Side::accepted;
  setup.tls = tls_.get();
  setup.plain_allowed = !security_.encrypt_loopback_data && between_loopbacks(fd.get());
  setup.rx = {.control_bytes = kStrangerFrame};
  setup.queue_mark = limits_.queue_mark;
  auto c = std::make_shared<Connection>(std::move(fd), *this, setup);
  std::shared_ptr<Listener> where;
  {
    std::lock_guard lock(listeners_mutex_);
    for (auto& l : listeners_) {
      if (l.get() == &listener) where = l;
    }
  }
  if (!where) return;
  send_away(limits_on_strangers_.add(id, from.host(), now()));
  strangers_[id] = {c, where};
  if (Status s = c->start(*control_); !s.ok()) forget_stranger(id);
}

void TcpTransport::forget_stranger(std::uint64_t id) {
  limits_on_strangers_.remove(id);
  strangers_.erase(id);
}

void TcpTransport::send_away(std::optional<std::uint64_t> stranger) {
  if (!stranger) return;
  auto c = strangers_.at(*stranger).connection;
  forget_stranger(*stranger);
  c->close();
}

Status TcpTransport::stranger_frame(Connection& c, FrameType type, ByteView payload) {
  if (type == FrameType::attach) return on_attach(c, payload);
  if (type != FrameType::hello)
    return invalid_argument(fmt::format("frame of type {} from a stranger", unsigned(type)));
  if (tls_ && !c.encrypted())
    return failed_precondition("a control connection is encrypted, or plain on both sides");
  return on_hello(c, payload);
}

Status TcpTransport::on_hello(Connection& c, ByteView payload) {
  TROUPE_TRY(auto g, decode_greeting(payload));
  auto known = strangers_.find(c.id());
  if (known == strangers_.end()) return cancelled("the listener is gone");
  auto peer = std::make_shared<Peer>();
  peer->id = ++last_peer_;
  Status admitted = handler_.admit(peer->id, g.hello);
  if (!admitted.ok()) {
    auto connection = known->second.connection;
    forget_stranger(c.id());
    part(connection, admitted.in("refused by the peer"));
    return {};
  }
  peer->state = Peer::State::attaching;
  peer->theirs = std::move(g.hello);
  peer->control_bytes = g.control_bytes;
  peer->chunk_bytes = g.chunk_bytes;
  peer->control = known->second.connection;
  bool local = between_loopbacks(c.fd()) && !security_.encrypt_loopback_data;
  peer->encrypt_data = tls_ != nullptr && !local;
  random_bytes(peer->token);
  tokens_[peer->token] = peer->id;
  c.role = Connection::Role::control;
  c.peer = peer->id;
  peer->deadline = now() + limits_.handshake;
  peers_[peer->id] = peer;
  std::string answer = greeting(known->second.listener->hello, peer->encrypt_data, peer->token);
  forget_stranger(c.id());
  c.send(control_frame(FrameType::welcome, as_bytes(answer)));
  return {};
}

// The token is spent whatever comes of it.
Status TcpTransport::on_attach(Connection& c, ByteView payload) {
  if (payload.size() != kTokenSize) return invalid_argument("a token has 32 bytes");
  Token token;
  std::copy(payload.begin(), payload.end(), token.begin());
  auto it = tokens_.find(token);
  auto known = strangers_.find(c.id());
  PeerRef peer = it == tokens_.end() ? nullptr : find(it->second);
  if (it != tokens_.end()) tokens_.erase(it);
  if (!peer || peer->state != Peer::State::attaching || known == strangers_.end())
    return failed_precondition("this token opens nothing");
  if (peer->encrypt_data && !c.encrypted())
    return failed_precondition("this data connection must be encrypted");
  peer->data = known->second.connection;
  c.role = Connection::Role::data;
  c.peer = peer->id;
  forget_stranger(c.id());
  // Not from within its own callback: the connection is about to change threads.
  control_->post([this, peer] { bring_up(peer); });
  return {};
}

// --- connecting ---------------------------------------------------------------------------------

void TcpTransport::begin_connect(const PeerRef& peer) {
  peer->retry_at.reset();
  peer->next_address_at.reset();
  peer->state = Peer::State::connecting;
  auto c = dial(*peer, Connection::Role::control, tls_ != nullptr);
  if (!c.ok()) return retry(*peer, c.status());
  peer->control = *c;
  if (Status s = (*c)->start(*control_); !s.ok()) return drop(peer, s, false);
  if (peer->addresses.size() == 1) return;
  // The first one may be there later: it has a second turn.
  const std::size_t turns = peer->addresses.size() - peer->attempts % peer->addresses.size() + 1;
  const Time patience = std::max<Time>(kAddress, (peer->deadline - now()) / std::int64_t(turns));
  peer->next_address_at = now() + patience;
  control_->tick_within(patience);
}

Expected<std::shared_ptr<Connection>> TcpTransport::dial(const Peer& peer, Connection::Role role,
                                                         bool encrypted) {
  TROUPE_TRY(auto fd, start_connect(peer.addresses[peer.attempts % peer.addresses.size()]));
  Connection::Setup setup;
  setup.id = ++last_connection_;
  setup.side = Connection::Side::connecting;
  setup.tls = encrypted ? tls_.get() : nullptr;
  setup.rx = {.control_bytes = kStrangerFrame};
  setup.queue_mark = limits_.queue_mark;
  auto c = std::make_shared<Connection>(std::move(fd), *this, setup);
  c->role = role;
  c->peer = peer.id;
  return c;
}

void TcpTransport::opened(Connection& c) {
  if (c.role == Connection::Role::stranger) {
    if (c.encrypted()) send_away(limits_on_strangers_.prove(c.id()));
    return;
  }
  PeerRef peer = find(c.peer);
  if (!peer || !peer->outgoing) return;
  if (c.role == Connection::Role::control) {
    peer->state = Peer::State::greeting;
    c.send(control_frame(FrameType::hello, as_bytes(greeting(peer->ours))));
  } else {
    c.send(control_frame(FrameType::attach, peer->token));
  }
}

Status TcpTransport::on_welcome(Peer& peer, ByteView payload) {
  TROUPE_TRY(auto g, decode_greeting(payload));
  if (tls_ && !g.encrypt_data && !between_loopbacks(peer.control->fd()))
    return failed_precondition("the peer asks for plain data off loopback");
  if (!tls_ && g.encrypt_data) return failed_precondition("the peer asks for encrypted data");
  TROUPE_TRY(handler_.admit(peer.id, g.hello));
  peer.theirs = std::move(g.hello);
  peer.control_bytes = g.control_bytes;
  peer.chunk_bytes = g.chunk_bytes;
  peer.encrypt_data = g.encrypt_data;
  peer.token = g.token;
  peer.state = Peer::State::attaching;
  TROUPE_TRY(peer.data, dial(peer, Connection::Role::data, g.encrypt_data));
  // Tensors may follow on the data connection before `ready` does on this one; they wait.
  peer.data->set_reading(false);
  return peer.data->start(*control_);
}

Status TcpTransport::frame(Connection& c, FrameType type, Buffer payload) {
  switch (c.role) {
    case Connection::Role::stranger:
      return stranger_frame(c, type, bytes_of(payload));
    case Connection::Role::control:
      return peer_frame(c, type, std::move(payload));
    case Connection::Role::data:
      break;
  }
  return invalid_argument("a control frame on a data connection");
}

Status TcpTransport::peer_frame(Connection& c, FrameType type, Buffer payload) {
  PeerRef peer = find(c.peer);
  if (!peer || peer->control.get() != &c) return cancelled("the peer is gone");
  bool up = peer->state == Peer::State::up;
  switch (type) {
    case FrameType::message:
      if (!up) break;
      handler_.control(peer->id, std::move(payload));
      return {};
    case FrameType::heartbeat:
      if (!up) break;
      return on_heartbeat(*peer, bytes_of(payload));
    case FrameType::welcome:
      if (!peer->outgoing || peer->state != Peer::State::greeting) break;
      return on_welcome(*peer, bytes_of(payload));
    case FrameType::ready:
      if (!peer->outgoing || peer->state != Peer::State::attaching) break;
      bring_up(peer);
      return {};
    case FrameType::bye:
      fail(peer, decode_bye(bytes_of(payload)).in("closed by the peer"), false);
      return {};
    case FrameType::hello:
    case FrameType::attach:
      break;
  }
  return invalid_argument(fmt::format("frame of type {} out of order", unsigned(type)));
}

// --- up -----------------------------------------------------------------------------------------

// The shard of all data connections, with room for one more.
Expected<IoShard*> TcpTransport::data_shard() {
  if (!data_) {
    TROUPE_TRY(data_, IoShard::start_shared());
  } else if (data_->threads() < std::min(processors_, data_connections_ + 1)) {
    data_->add_thread();
  }
  return data_.get();
}

void TcpTransport::bring_up(const PeerRef& peer) {
  if (peer->state != Peer::State::attaching) return;
  if (!peer->data->is_open() || !peer->control->is_open())
    return fail(peer, unavailable("a connection ended during the handshake"), true);
  auto shard = data_shard();
  if (!shard.ok()) return drop(peer, shard.status(), true);
  bool trailer = !peer->data->encrypted();
  peer->control->set_limits({.control_bytes = limits_.control_bytes});
  keep_little_unsent(peer->control->fd());
  peer->data->set_limits({.chunk_bytes = limits_.chunk_bytes, .data_trailer = trailer});
  peer->data->set_tx({.chunk_bytes = std::min(limits_.send_chunk_bytes, peer->chunk_bytes),
                      .data_trailer = trailer});
  if (Status s = peer->data->move_to(**shard); !s.ok()) return drop(peer, s, true);
  ++data_connections_;
  peer->state = Peer::State::up;
  peer->life = Liveness(limits_.silence);
  peer->life.heard(now());
  // `ready` goes first, so that the other side is up before it hears anything else.
  if (!peer->outgoing) peer->control->send(control_frame(FrameType::ready));
  routes_.set(peer->id, {peer->control, peer->data, peer->control_bytes});
  handler_.peer_up(peer->id, peer->theirs);
  peer->data->read_on();
}

// --- down ---------------------------------------------------------------------------------------

void TcpTransport::lost(const std::shared_ptr<Connection>& c, Status why) {
  forget_stranger(c->id());
  PeerRef peer = c->role == Connection::Role::stranger ? nullptr : find(c->peer);
  if (!peer || (peer->control != c && peer->data != c)) {
    TROUPE_LOG(debug, "net", "a connection ended: " + why.text());
    return;
  }
  if (peer->data == c && peer->state == Peer::State::up && why.code() == Code::unavailable) {
    // The peer knows better why: its control connection is about to say so, or to end too.
    peer->data_lost = std::move(why);
    peer->data_lost_at = now();
    return;
  }
  fail(peer, std::move(why), true);
}

// A handshake that breaks off is no refusal: one side may have been too slow for the other. Who
// connects tries again until its deadline.
void TcpTransport::fail(const PeerRef& peer, Status why, bool tell) {
  const bool shaking_hands = peer->state < Peer::State::up;
  const bool broke = why.code() == Code::unavailable || why.code() == Code::deadline_exceeded;
  if (!peer->outgoing || !shaking_hands || !broke) return drop(peer, std::move(why), tell);
  retry(*peer, std::move(why));
}

void TcpTransport::retry(Peer& peer, Status why) {
  for (const auto& c : {std::exchange(peer.control, nullptr), std::exchange(peer.data, nullptr)})
    if (c) c->close();
  peer.state = Peer::State::connecting;
  peer.next_address_at.reset();
  peer.last_error = std::move(why);
  const auto after = std::min<std::chrono::milliseconds>(
      kRetryAfter, kFirstRetryAfter * (1 << std::min<std::size_t>(peer.attempts, 8)));
  peer.retry_at = now() + after;
  control_->tick_within(after);
  ++peer.attempts;
}

// Says goodbye on an open connection and lets it linger, so that the peer can read why.
void TcpTransport::part(const std::shared_ptr<Connection>& c, const Status& why) {
  c->send(control_frame(FrameType::bye, as_bytes(encode_bye(why))));
  c->linger();
  if (!c->lingering()) return;
  const auto most = std::max(limits_.linger, std::min(limits_.silence, kMostLinger));
  lingering_.push_back({c, c->delivered(), now() + limits_.linger, now() + most});
}

void TcpTransport::drop(const PeerRef& peer, Status why, bool tell) {
  if (peer->state == Peer::State::ending) return;
  peer->state = Peer::State::ending;
  routes_.erase(peer->id);
  tokens_.erase(peer->token);
  if (peer->control) {
    if (tell)
      part(peer->control, why);
    else
      peer->control->close();
  }
  auto data = peer->data;
  if (!data || &data->shard() == control_.get()) {
    if (data) data->close();
    return control_->post([=, this] { finish(peer, why); });
  }
  --data_connections_;
  // A data thread may be in a callback for this peer: peer_down follows when it is not.
  data->shard().post([=, this] {
    data->retire();
    control_->post([=, this] { finish(peer, why); });
  });
}

void TcpTransport::finish(const PeerRef& peer, Status why) {
  peers_.erase(peer->id);
  handler_.peer_down(peer->id, std::move(why));
  check_idle();
}

// --- time ---------------------------------------------------------------------------------------

void TcpTransport::tick(Clock::time_point moment) {
  clock_.look(moment.time_since_epoch());
  for (std::uint64_t id : limits_on_strangers_.expired(clock_.reading())) send_away(id);
  auto peers = peers_;
  for (auto& [id, peer] : peers) look_after(peer);
  settle_lingering();
  std::lock_guard lock(listeners_mutex_);
  for (auto& l : listeners_) {
    if (std::exchange(l->paused, false)) control_->modify(l->fd.get(), l->id, EPOLLIN);
  }
}

void TcpTransport::listen_to(Peer& peer) {
  const auto heard = std::max(peer.control->last_heard(), peer.data->last_heard());
  if (heard != peer.heard) peer.life.heard(clock_.at(heard.time_since_epoch()));
  peer.heard = heard;
  // From the first sign on, so that none of the time in which it was stopped counts.
  if (!peer.stopped || peer.life.silence(clock_.reading()) <= 2 * limits_.heartbeat) return;
  if (peer.stopped()) peer.life.excuse(clock_.reading());
}

void TcpTransport::look_after(const PeerRef& peer) {
  const Time now = clock_.reading();
  if (peer->state == Peer::State::up) {
    if (!peer->data_lost.ok() && has_said_all(*peer)) return drop(peer, peer->data_lost, true);
    // Bytes that wait to leave say as much as a heartbeat behind them.
    if (peer->control->queued_bytes() == 0) send_heartbeat(*peer);
    listen_to(*peer);
    const auto ms = [](Time t) { return t / std::chrono::milliseconds(1); };
    if (peer->life.silent(now))
      return drop(
          peer,
          unavailable(fmt::format("the peer was silent for {} ms", ms(peer->life.silence(now)))),
          true);
    if (peer->life.stalled(now))
      return drop(peer,
                  unavailable(fmt::format("the data connection to the peer stood still for {} ms",
                                          ms(peer->life.standstill(now)))),
                  true);
    return;
  }
  if (peer->state == Peer::State::ending) return;
  if (now >= peer->deadline) {
    std::string because = peer->last_error.ok() ? "" : ": " + peer->last_error.message();
    return drop(peer, deadline_exceeded(fmt::format("no peer at {}{}", peer->to, because)), true);
  }
  if (peer->outgoing && peer->retry_at && now >= *peer->retry_at) return begin_connect(peer);
  if (peer->state < Peer::State::attaching && peer->next_address_at &&
      now >= *peer->next_address_at) {
    retry(*peer, deadline_exceeded("nobody answers at one of its addresses"));
  }
}

void TcpTransport::send_heartbeat(const Peer& peer) {
  const Heartbeat heartbeat{nanoseconds(Clock::now()), peer.echo, peer.echo_arrived,
                            peer.data->bytes_read(), peer.data->held()};
  peer.control->send(control_frame(FrameType::heartbeat, as_bytes(encode(heartbeat))));
}

// Each heartbeat answers the last one of the other side, so that both learn of the other's clock.
Status TcpTransport::on_heartbeat(Peer& peer, ByteView payload) {
  TROUPE_TRY(Heartbeat heartbeat, decode_heartbeat(payload));
  if (!peer.data_lost.ok()) ++peer.beats_since_lost;
  const bool first = peer.echo_arrived == 0;
  peer.echo = heartbeat.sent;
  peer.echo_arrived = nanoseconds(peer.control->last_heard());
  if (first) send_heartbeat(peer);  // sooner than the next look: short jobs want to know, too
  const Liveness::Arrived arrived{Time(heartbeat.sent), heartbeat.data, heartbeat.held};
  peer.life.arrived(arrived, peer.data->bytes_sent(), now());
  if (heartbeat.echo == 0) return {};
  peer.clock.exchange(heartbeat.echo, heartbeat.arrived, heartbeat.sent, peer.echo_arrived);
  handler_.clock(peer.id, peer.clock);
  return {};
}

// Last words may come behind much that the peer had said before; one that goes on to send
// heartbeats has not closed.
bool TcpTransport::has_said_all(const Peer& peer) const {
  const Time now = clock_.reading();
  const Time heard = clock_.at(peer.control->last_heard().time_since_epoch());
  return peer.beats_since_lost >= kBeatsOfTheLiving ||
         now - std::max(heard, peer.data_lost_at) >= limits_.last_words ||
         now - peer.data_lost_at >= limits_.silence;
}

void TcpTransport::settle_lingering() {
  const Time now = clock_.reading();
  for (Leaving& each : lingering_) {
    const std::int64_t delivered = each.connection->delivered();
    if (delivered != each.delivered) each.until = now + limits_.linger;
    each.delivered = delivered;
    if (now >= std::min(each.until, each.last)) each.connection->close();
  }
  forget_those_who_left();
  check_idle();
}

void TcpTransport::forget_those_who_left() {
  std::erase_if(lingering_, [](const Leaving& each) { return !each.connection->lingering(); });
}

void TcpTransport::check_idle() {
  if (!stopping_ || !peers_.empty()) return;
  forget_those_who_left();
  if (!lingering_.empty()) return;
  std::lock_guard lock(idle_mutex_);
  idle_ = true;
  idle_changed_.notify_all();
}

}  // namespace troupe
