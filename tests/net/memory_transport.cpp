#include "tests/net/memory_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/net/rx.hpp"
#include "actors/net/tx.hpp"

namespace troupe {
namespace {
enum Lanes { kControlLane = 0, kDataLane = 1 };
enum Tags : std::uint64_t { kHello = 1, kWelcome, kAttach, kReady, kBytes, kBye, kSilence, kRetry };
constexpr MemoryNetwork::Time kRetryAfter = std::chrono::milliseconds(50);
}  // namespace

// One direction of one connection.
struct MemoryNetwork::Lane {
  Lane(TxOptions tx_options, RxLimits rx_limits, RxSink& sink)
      : tx(tx_options), rx(rx_limits, sink) {}
  Tx tx;
  Rx rx;
  std::uint64_t queued = 0;
  bool above_mark = false;
  bool under_way = false;
};

// Two processes that are, or try to be, peers. Side 0 connected, side 1 listens.
struct MemoryNetwork::Link : std::enable_shared_from_this<Link> {
  // What arrives at one side.
  struct Sink : RxSink {
    Status on_control(std::uint16_t type, Buffer payload) override;
    Expected<Buffer> on_tensor_begin(const TensorHeader& header) override;
    Status on_tensor(const TensorHeader& header, Buffer bytes) override;
    Link* link = nullptr;
    int side = 0;
  };
  struct Side {
    std::shared_ptr<MemoryTransport> host;
    PeerId id = 0;
    Hello hello;
    bool up = false;
    bool owed = false;              // a peer_down, to the handler
    bool over = false;              // the side's end was decided
    bool held = false;              // reads no tensors
    std::function<bool()> stopped;  // the other one, which may then be silent
    Sink sink;
    std::array<std::unique_ptr<Lane>, 2> out;  // lanes that this side sends on
    std::vector<std::pair<std::uint64_t, std::function<void()>>> waiting;  // for up, or a heal
  };
  std::uint64_t number = 0;
  std::array<Side, 2> side;
};

class MemoryTransport : public Transport, public std::enable_shared_from_this<MemoryTransport> {
 public:
  using Link = MemoryNetwork::Link;
  MemoryTransport(MemoryNetwork& network, std::string name, TransportHandler& handler)
      : network_(network), name_(std::move(name)), handler_(&handler) {}

  Expected<std::uint16_t> listen(const Endpoint& at, Hello hello) override {
    if (handler_ == nullptr) return cancelled("this process is gone");
    if (at.host != name_)
      return invalid_argument(fmt::format("{} cannot listen as {}", name_, at.host));
    if (hello.size() > kMaxHello) return invalid_argument("a hello is at most 3072 bytes");
    std::uint16_t port = at.port;
    while (port == 0 || (at.port == 0 && hellos_.count(port) != 0)) ++port;
    if (!hellos_.emplace(port, std::move(hello)).second)
      return unavailable(fmt::format("{} listens already", at.text()));
    return port;
  }

  PeerId name_peer() override { return ++last_peer_; }

  using Transport::connect;
  Status connect(PeerId peer, const Endpoint& to, Hello hello,
                 std::chrono::milliseconds within) override {
    if (handler_ == nullptr) return cancelled("this process is gone");
    if (hello.size() > kMaxHello) return invalid_argument("a hello is at most 3072 bytes");
    auto link = std::make_shared<Link>();
    link->side[0].hello = std::move(hello);
    link->side[0].owed = true;
    join(link, 0, peer);
    std::erase_if(network_.links_, [](auto& weak) { return weak.expired(); });
    network_.links_.push_back(link);
    link->number = ++network_.connected_;
    network_.knock(link, to, network_.now() + within);
    return {};
  }

  void allow_silence(PeerId peer, std::function<bool()> stopped) override {
    auto it = peers_.find(peer);
    if (it == peers_.end()) return;
    auto& [link, side] = it->second;
    link->side[std::size_t(side)].stopped = std::move(stopped);
  }

  Status send_control(PeerId peer, std::span<const ByteView> pieces) override {
    return send_message<std::vector<std::byte>>(peer, pieces);
  }
  using Transport::send_bulk;
  Status send_bulk(PeerId peer, std::span<const ByteView> pieces) override {
    return send_message<BulkFrame>(peer, pieces);
  }
  template <class Frame>
  Status send_message(PeerId peer, std::span<const ByteView> pieces) {
    auto found = find(peer);
    if (!found.ok()) return found.status();
    std::size_t size = 0;
    for (ByteView piece : pieces) size += piece.size();
    if (size > network_.options_.limits.control_bytes)
      return resource_exhausted(fmt::format("a control message of {} bytes", size));
    auto frame = control_frame(FrameType::message, pieces);
    std::uint64_t bytes = std::is_same_v<Frame, BulkFrame> ? 0 : frame.size();
    push(*found, kControlLane, Frame{std::move(frame)}, bytes);
    return {};
  }

  Status send_tensor(PeerId peer, const TensorHeader& header, Buffer bytes,
                     std::size_t offset) override {
    auto found = find(peer);
    if (!found.ok()) return found.status();
    TROUPE_CHECK(offset <= bytes.size() && header.bytes <= bytes.size() - offset,
                 "a tensor's bytes are inside its buffer");
    push(*found, kDataLane, OutgoingTensor{header, std::move(bytes), offset}, header.bytes);
    return {};
  }

  std::uint64_t queued_bytes(PeerId peer) const override {
    auto it = peers_.find(peer);
    if (it == peers_.end()) return 0;
    auto& [link, side] = it->second;
    auto& lane = link->side[std::size_t(side)].out[kDataLane];
    return lane ? lane->queued : 0;
  }

  void hold_tensors(PeerId peer, bool hold) override {
    auto found = find(peer);
    if (!found.ok()) return;
    auto [link, side] = *found;
    link->side[std::size_t(side)].held = hold;
    if (!hold) network_.pump(link, 1 - side, kDataLane);
  }

  void close(PeerId peer, Status why) override {
    TROUPE_CHECK(!why.ok(), "a peer is closed for a reason");
    auto it = peers_.find(peer);
    if (it == peers_.end()) return;
    auto [link, side] = it->second;
    network_.drop(link, side, std::move(why), true);
  }

  void shutdown() override {
    if (handler_ == nullptr) return;
    auto peers = peers_;
    for (auto& [id, where] : peers) {
      auto [link, side] = where;
      if (!leave(link, side)) continue;
      network_.drop(link, side, cancelled("the transport shut down"), true);
      if (link->side[std::size_t(side)].owed)
        handler_->peer_down(id, cancelled("the transport shut down"));
    }
    end();
  }

  // No more callbacks, no more listening.
  void end() {
    handler_ = nullptr;
    hellos_.clear();
    peers_.clear();
  }

  void join(const std::shared_ptr<Link>& link, int side, PeerId peer) {
    Link::Side& s = link->side[std::size_t(side)];
    s.host = shared_from_this();
    s.id = peer;
    s.sink.link = link.get();
    s.sink.side = side;
    peers_[s.id] = {link, side};
  }
  // True when the peer was still known.
  bool leave(const std::shared_ptr<Link>& link, int side) {
    return peers_.erase(link->side[std::size_t(side)].id) != 0;
  }

  const std::string& name() const { return name_; }
  TransportHandler* handler() const { return handler_; }
  const Hello* hello_at(std::uint16_t port) const {
    auto it = hellos_.find(port);
    return it == hellos_.end() ? nullptr : &it->second;
  }
  const std::map<PeerId, std::pair<std::shared_ptr<Link>, int>>& peers() const { return peers_; }

 private:
  Expected<std::pair<std::shared_ptr<Link>, int>> find(PeerId peer) const {
    auto it = peers_.find(peer);
    if (it == peers_.end() || !it->second.first->side[std::size_t(it->second.second)].up)
      return unavailable(fmt::format("peer {} is not up", peer));
    return it->second;
  }

  template <class Item>
  void push(const std::pair<std::shared_ptr<Link>, int>& to, int lane, Item item,
            std::uint64_t bytes) {
    auto& [link, side] = to;
    MemoryNetwork::Lane& l = *link->side[std::size_t(side)].out[std::size_t(lane)];
    l.tx.push(std::move(item));
    l.queued += bytes;
    if (lane == kDataLane && l.queued > network_.options_.limits.queue_mark) l.above_mark = true;
    network_.pump(link, side, lane);
  }

  MemoryNetwork& network_;
  std::string name_;
  TransportHandler* handler_;
  std::map<std::uint16_t, Hello> hellos_;
  std::map<PeerId, std::pair<std::shared_ptr<Link>, int>> peers_;
  PeerId last_peer_ = 0;
};

Status MemoryNetwork::Link::Sink::on_control(std::uint16_t, Buffer payload) {
  Side& s = link->side[std::size_t(side)];
  if (TransportHandler* h = s.host->handler(); h && !s.over) h->control(s.id, std::move(payload));
  return {};
}
Expected<Buffer> MemoryNetwork::Link::Sink::on_tensor_begin(const TensorHeader& header) {
  Side& s = link->side[std::size_t(side)];
  TransportHandler* h = s.host->handler();
  if (h == nullptr || s.over) return cancelled("the peer is over");
  return h->accept_tensor(s.id, header);
}
Status MemoryNetwork::Link::Sink::on_tensor(const TensorHeader& header, Buffer bytes) {
  Side& s = link->side[std::size_t(side)];
  if (TransportHandler* h = s.host->handler(); h && !s.over)
    h->tensor(s.id, header, std::move(bytes));
  return {};
}

MemoryNetwork::MemoryNetwork(std::uint64_t seed, Options options)
    : options_(options), random_(seed) {}

// Links and hosts refer to each other.
MemoryNetwork::~MemoryNetwork() {
  queue_.clear();
  for (auto& [name, host] : hosts_) host->end();
  for (auto& weak : links_) {
    if (auto link = weak.lock()) link->side[0].waiting.clear(), link->side[1].waiting.clear();
  }
}

std::shared_ptr<Transport> MemoryNetwork::host(const std::string& name, TransportHandler& handler) {
  auto& slot = hosts_[name];
  TROUPE_CHECK(slot == nullptr || slot->handler() == nullptr, "two hosts of one name");
  slot = std::make_shared<MemoryTransport>(*this, name, handler);
  return slot;
}

bool MemoryNetwork::step() {
  if (queue_.empty()) return false;
  auto node = queue_.extract(queue_.begin());
  now_ = std::max(now_, node.key().first);
  ++events_;
  trace_ = hash_combine(trace_, hash_combine(node.mapped().tag, std::uint64_t(now_.count())));
  node.mapped().run();
  return true;
}

std::optional<MemoryNetwork::Time> MemoryNetwork::next() const {
  if (queue_.empty()) return std::nullopt;
  return std::max(now_, queue_.begin()->first.first);
}

void MemoryNetwork::advance_to(Time t) {
  TROUPE_CHECK(t >= now_, "time does not go back");
  now_ = t;
}

MemoryNetwork::Time MemoryNetwork::delay(const Link& link, int from) {
  auto range = std::uint64_t((options_.longest - options_.shortest).count());
  Time time = options_.shortest + Time(std::int64_t(random_.below(range + 1)));
  const auto &sender = link.side[std::size_t(from)].host,
             &to = link.side[std::size_t(1 - from)].host;
  if (slow_.empty() || !sender || !to) return time;
  auto more = slow_.find({sender->name(), to->name()});
  return more == slow_.end() ? time : time + more->second;
}

void MemoryNetwork::schedule(Time after, std::uint64_t tag, std::function<void()> run) {
  queue_.emplace(Key{now_ + after, scheduled_++}, Event{tag, std::move(run)});
}

bool MemoryNetwork::is_cut(const std::string& from, const std::string& to) const {
  return cut_.contains({from, to});
}

bool MemoryNetwork::is_mute(const std::string& from, const std::string& to) const {
  return is_cut(from, to) || paused_.contains(from);
}

void MemoryNetwork::hop(const std::shared_ptr<Link>& link, int from, std::uint64_t tag,
                        std::function<void()> run) {
  std::uint64_t where = hash_combine(tag, hash_combine(link->number, std::uint64_t(from)));
  schedule(delay(*link, from), where, [this, link, from, tag, run = std::move(run)]() mutable {
    auto& sender = link->side[std::size_t(from)];
    auto& receiver = link->side[std::size_t(1 - from)];
    bool early = tag == kBytes && !receiver.up;
    bool blocked = receiver.host && (is_cut(sender.host->name(), receiver.host->name()) ||
                                     paused_.contains(receiver.host->name()));
    if (receiver.over) return;
    if (early || blocked)
      sender.waiting.emplace_back(tag, std::move(run));
    else
      run();
  });
}

// Hops that waited for a heal, or for the receiver to come up, start again, in order: each stream
// has one hop under way at most.
void MemoryNetwork::release(const std::shared_ptr<Link>& link, int from) {
  auto waiting = std::exchange(link->side[std::size_t(from)].waiting, {});
  for (auto& [tag, run] : waiting) hop(link, from, tag, std::move(run));
}

// Handshake, as over TCP: hello ->, welcome <-, attach -> (the listener is up), ready <- (the
// connector is up).
void MemoryNetwork::knock(const std::shared_ptr<Link>& link, const Endpoint& to, Time deadline) {
  auto& client = link->side[0];
  hop(link, 0, kHello, [this, link, to, deadline, &client] {
    if (client.over) return;
    auto it = hosts_.find(to.host);
    auto server = it == hosts_.end() ? nullptr : it->second;
    const Hello* hello = server ? server->hello_at(to.port) : nullptr;
    bool reachable = hello != nullptr && !is_cut(client.host->name(), to.host) &&
                     !is_cut(to.host, client.host->name()) && !paused_.contains(to.host);
    // Its time stands still while it does.
    const bool paused = paused_.contains(client.host->name());
    if (reachable && !paused) return answer(link, server, *hello);
    if (!paused && now_ + kRetryAfter > deadline)
      return drop(link, 0, deadline_exceeded(fmt::format("nobody answers at {}", to.text())),
                  false);
    const Time until = paused ? deadline + kRetryAfter : deadline;
    schedule(kRetryAfter, kRetry, [this, link, to, until] { knock(link, to, until); });
  });
}

void MemoryNetwork::answer(const std::shared_ptr<Link>& link,
                           std::shared_ptr<MemoryTransport> server, const Hello& hello) {
  auto& client = link->side[0];
  auto& listener = link->side[1];
  listener.hello = hello;
  server->join(link, 1, server->name_peer());
  Status s = server->handler()->admit(listener.id, client.hello);
  if (!s.ok()) {
    server->leave(link, 1);
    listener.over = true;
    return hop(link, 1, kBye,
               [this, link, s] { drop(link, 0, s.in("refused by the peer"), false); });
  }
  listener.owed = true;
  for (int side : {0, 1}) {
    const TransportLimits& l = options_.limits;
    auto& from = link->side[std::size_t(side)];
    RxSink& sink = link->side[std::size_t(1 - side)].sink;
    TxOptions tx{.chunk_bytes = l.send_chunk_bytes};
    from.out[kControlLane] =
        std::make_unique<Lane>(tx, RxLimits{.control_bytes = l.control_bytes}, sink);
    from.out[kDataLane] = std::make_unique<Lane>(tx, RxLimits{.chunk_bytes = l.chunk_bytes}, sink);
  }
  hop(link, 1, kWelcome, [this, link, &client, &listener] {
    if (client.over) return;
    Status admitted = client.host->handler()->admit(client.id, listener.hello);
    if (!admitted.ok()) return drop(link, 0, std::move(admitted), true);
    hop(link, 0, kAttach, [this, link] {
      raise(link, 1);
      hop(link, 1, kReady, [this, link] { raise(link, 0); });
    });
  });
}

void MemoryNetwork::raise(const std::shared_ptr<Link>& link, int side) {
  auto& s = link->side[std::size_t(side)];
  if (s.over) return;
  s.up = true;
  s.host->handler()->peer_up(s.id, link->side[std::size_t(1 - side)].hello);
  release(link, 1 - side);
}

// One portion of a lane's bytes is under way at a time; the rest waits in its Tx.
void MemoryNetwork::pump(const std::shared_ptr<Link>& link, int from, int lane) {
  Lane& l = *link->side[std::size_t(from)].out[std::size_t(lane)];
  if (l.under_way || (lane == kDataLane && link->side[std::size_t(1 - from)].held)) return;
  auto pieces = l.tx.gather();
  if (pieces.empty()) return;
  l.under_way = true;
  std::size_t size = 0;
  for (const iovec& p : pieces) size += p.iov_len;
  if (random_.below(4) == 0) size = 1 + random_.below(size);
  hop(link, from, kBytes, [this, link, from, lane, size] { deliver(link, from, lane, size); });
}

void MemoryNetwork::deliver(const std::shared_ptr<Link>& link, int from, int lane,
                            std::size_t limit) {
  auto& sender = link->side[std::size_t(from)];
  Lane& l = *sender.out[std::size_t(lane)];
  if (lane == kDataLane && link->side[std::size_t(1 - from)].held) {
    l.under_way = false;
    return;
  }
  Status s;
  std::size_t left = limit;
  for (const iovec& p : l.tx.gather()) {
    std::size_t n = std::min(left, p.iov_len);
    if (n == 0 || !s.ok()) break;
    s = l.rx.consume({static_cast<const std::byte*>(p.iov_base), n});
    left -= n;
  }
  if (!s.ok()) return drop(link, 1 - from, std::move(s), true);
  l.queued -= l.tx.sent(limit);
  l.under_way = false;
  if (sender.over) return;
  if (l.above_mark && l.queued <= options_.limits.queue_mark / 2) {
    l.above_mark = false;
    if (sender.host->handler()) sender.host->handler()->drained(sender.id);
  }
  if (!sender.over) pump(link, from, lane);
}

// Ends one side, and after a hop the other.
void MemoryNetwork::drop(const std::shared_ptr<Link>& link, int side, Status why, bool tell) {
  auto& s = link->side[std::size_t(side)];
  auto& other = link->side[std::size_t(1 - side)];
  if (s.over) return;
  s.over = true;
  s.up = false;
  s.waiting.clear();
  if (tell && other.host && !other.over) {
    hop(link, side, kBye,
        [this, link, side, why] { drop(link, 1 - side, why.in("closed by the peer"), false); });
  }
  schedule(Time(0), kBye, [link, side, why] {
    auto& ended = link->side[std::size_t(side)];
    TransportHandler* handler = ended.host->handler();
    if (ended.host->leave(link, side) && handler && ended.owed) handler->peer_down(ended.id, why);
  });
}

void MemoryNetwork::cut(const std::string& from, const std::string& to) {
  if (cut_.insert({from, to}).second) listen_anew(from, to);
}

// From now on silence counts, unless it counts already or there is none.
void MemoryNetwork::listen_anew(const std::string& from, const std::string& to) {
  if (!is_mute(from, to)) {
    mute_.erase({from, to});
  } else if (auto [known, fresh] = mute_.emplace(Direction{from, to}, 0); fresh) {
    known->second = ++moments_;
    watch(from, to, moments_);
  }
}

// Who is known to be stopped may be silent for as long as it is, and is looked at again. A receiver
// that is stopped itself looks when it goes on.
void MemoryNetwork::watch(const std::string& from, const std::string& to, std::uint64_t mute) {
  schedule(options_.limits.silence, kSilence, [this, from, to, mute] {
    auto it = mute_.find({from, to});
    auto host = hosts_.find(to);
    if (it == mute_.end() || it->second != mute || host == hosts_.end()) return;
    if (paused_.contains(to)) return;
    bool excused = false;
    auto peers = host->second->peers();
    for (auto& [id, where] : peers) {
      auto& [link, side] = where;
      auto& other = link->side[std::size_t(1 - side)];
      if (!other.host || other.host->name() != from) continue;
      const auto& stopped = link->side[std::size_t(side)].stopped;
      if (stopped && stopped())
        excused = true;
      else
        drop(link, side,
             unavailable(
                 fmt::format("{} was silent for {} ms", from, options_.limits.silence.count())),
             true);
    }
    if (excused && paused_.contains(from)) watch(from, to, mute);
  });
}

void MemoryNetwork::heal(const std::string& from, const std::string& to) {
  if (cut_.erase({from, to}) == 0) return;
  listen_anew(from, to);
  release_between(from, to);
}

void MemoryNetwork::release_between(const std::string& from, const std::string& to) {
  for (auto& weak : links_) {
    auto link = weak.lock();
    if (!link) continue;
    for (int side : {0, 1}) {
      auto &a = link->side[std::size_t(side)], &b = link->side[std::size_t(1 - side)];
      if (a.host && b.host && a.host->name() == from && b.host->name() == to) release(link, side);
    }
  }
}

void MemoryNetwork::slow(const std::string& from, const std::string& to, Time more) {
  if (more > Time(0))
    slow_[{from, to}] = more;
  else
    slow_.erase({from, to});
}

void MemoryNetwork::pause(const std::string& name) {
  if (!paused_.insert(name).second) return;
  for (auto& [other, host] : hosts_)
    if (other != name) listen_anew(name, other);
}

void MemoryNetwork::resume(const std::string& name) {
  if (paused_.erase(name) == 0) return;
  for (auto& [other, host] : hosts_) {
    if (other == name) continue;
    listen_anew(name, other);
    mute_.erase({other, name});
    listen_anew(other, name);
    release_between(other, name);
  }
}

void MemoryNetwork::reset(const std::string& a, const std::string& b) {
  for (auto& weak : links_) {
    auto link = weak.lock();
    if (!link || !link->side[0].host || !link->side[1].host) continue;
    const std::string &x = link->side[0].host->name(), &y = link->side[1].host->name();
    if (!((x == a && y == b) || (x == b && y == a))) continue;
    for (int side : {0, 1}) drop(link, side, unavailable("the connection was reset"), false);
  }
}

void MemoryNetwork::crash(const std::string& name) {
  auto it = hosts_.find(name);
  TROUPE_CHECK(it != hosts_.end(), "only a host can crash");
  auto host = it->second;
  auto peers = host->peers();
  host->end();
  for (auto& [id, where] : peers) {
    std::shared_ptr<Link> link = where.first;
    link->side[std::size_t(where.second)].over = true;
    int side = where.second, other = 1 - side;
    if (!link->side[std::size_t(other)].host) continue;
    hop(link, side, kBye, [this, link, other] {
      drop(link, other, unavailable("the peer closed the connection"), false);
    });
  }
}

}  // namespace troupe
