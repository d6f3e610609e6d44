#include "actors/net/detail/connection.hpp"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t kEventBudget = 256u << 10;  // bytes per connection and event: fairness
constexpr std::size_t kInlineBytes = 64u << 10;
// Sends from the caller's thread, per connection: a burst of 16, then one every 20 us. A sender
// that is faster than that gains more from the batches of the shard.
constexpr int kInlineBurst = 16;
constexpr std::chrono::microseconds kInlineEvery{20};
constexpr unsigned char kTlsHandshakeRecord = 0x16;

}  // namespace

Connection::Connection(Descriptor fd, Owner& owner, Setup setup)
    : fd_(std::move(fd)),
      owner_(owner),
      setup_(setup),
      phase_(setup.side == Side::connecting ? Phase::connecting
             : setup.side == Side::sniff    ? Phase::sniffing
                                            : Phase::handshake),
      heard_(Clock::now().time_since_epoch().count()),
      rx_(setup.rx, *this) {}

Connection::~Connection() = default;

// --- life ---------------------------------------------------------------------------------------

Status Connection::start(IoShard& shard) {
  shard_ = &shard;
  mask_ = phase_ == Phase::connecting ? EPOLLOUT : EPOLLIN;
  TROUPE_TRY(shard.add(fd_.get(), mask_, shared_from_this(), shard_id_));
  if (phase_ == Phase::handshake) begin_tls();
  return {};
}

void Connection::on_ready(std::uint32_t events) {
  auto self = shared_from_this();  // callbacks may let go of the connection
  if (!shard_->shared()) return serve(events);
  {
    std::lock_guard lock(serve_mutex_);
    serving_ = true;
    again_ = false;
    serve(events);
    if (again_) return;
    serving_ = false;
    armed_ = false;
  }
  pump();  // arms
}

void Connection::again() {
  again_ = true;
  shard_->again(shard_id_);
}

void Connection::serve(std::uint32_t events) {
  switch (phase_.load()) {
    case Phase::connecting:
      return finish_connect();
    case Phase::sniffing:
      return sniff();
    case Phase::handshake:
      return shake();
    case Phase::lingering:
      if ((events & EPOLLOUT) != 0) pump();
      return discard();
    case Phase::closed:
      return;
    case Phase::open:
      break;
  }
  if ((events & EPOLLOUT) != 0) pump();
  bool input = events == 0 || (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;
  // The end of a held connection would be reported again and again.
  if (held_ && (events & (EPOLLHUP | EPOLLERR)) != 0)
    return end(unavailable("the peer closed the connection"));
  if (input && reading_ && !held_ && phase_ == Phase::open) read();
  if (tls_ && phase_ == Phase::open) answer_tls();
}

// Reading may oblige to write: a change of keys.
void Connection::answer_tls() {
  bool unsent;
  {
    std::lock_guard lock(tls_mutex_);
    unsent = tls_->unsent();
  }
  if (unsent) pump();
}

void Connection::finish_connect() {
  if (Status s = connect_result(fd_.get()); !s.ok()) return end(std::move(s));
  begin_tls();
}

void Connection::sniff() {
  unsigned char first = 0;
  ssize_t n = ::recv(fd_.get(), &first, 1, MSG_PEEK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return end(unavailable("the peer closed the connection"));
  owner_.spoke(*this);
  bool encrypted = first == kTlsHandshakeRecord;
  if (!encrypted && !setup_.plain_allowed)
    return end(failed_precondition("this address takes encrypted connections only"));
  if (!encrypted) setup_.tls = nullptr;
  begin_tls();
}

void Connection::begin_tls() {
  if (setup_.tls == nullptr) return open();
  phase_ = Phase::handshake;
  tls_ = std::make_unique<TlsStream>(*setup_.tls, fd_.get(), setup_.side != Side::connecting);
  shake();
}

void Connection::shake() {
  auto done = tls_->handshake();
  if (!done.ok()) return end(done.status());
  if (*done) return open();
  std::uint32_t mask = EPOLLIN | (tls_->unsent() ? EPOLLOUT : 0u);
  std::lock_guard lock(mask_mutex_);
  if (mask != mask_) shard_->modify(fd_.get(), shard_id_, mask_ = mask);
}

void Connection::open() {
  phase_ = Phase::open;
  pump();  // settles the event mask
  owner_.opened(*this);
  if (tls_ && phase_ == Phase::open) again();
}

void Connection::end(Status why) {
  if (phase_ == Phase::closed || phase_ == Phase::lingering) return;
  close();
  owner_.ended(*this, std::move(why));
}

void Connection::leave() { shard_->remove(fd_.get(), shard_id_); }

void Connection::close() {
  if (phase_.exchange(Phase::closed) == Phase::closed) return;
  if (shard_ != nullptr) leave();
  ::shutdown(fd_.get(), SHUT_RDWR);
}

void Connection::retire() {
  std::lock_guard lock(serve_mutex_);
  close();
}

void Connection::linger() {
  if (phase_ != Phase::open) return close();
  reading_ = true;
  phase_ = Phase::lingering;
  pump();
}

std::int64_t Connection::delivered() const {
  int waits = 0;
  (void)::ioctl(fd_.get(), SIOCOUTQ, &waits);
  return std::int64_t(bytes_sent()) - waits;
}

Status Connection::move_to(IoShard& shard) {
  reading_ = false;
  leave();
  std::lock_guard lock(mask_mutex_);
  shard_ = &shard;
  mask_ = 0;
  return shard.add(fd_.get(), 0, shared_from_this(), shard_id_);
}

void Connection::read_on() {
  reading_ = true;
  pump();
  if (tls_)
    shard_->post([self = shared_from_this()] {
      if (self->phase_ == Phase::open) self->on_ready(0);
    });
}

// The thread that serves the connection sees the flag; to go on one has to be sent there, as there
// may be no event: bytes can wait in TLS, and a held connection has none armed.
void Connection::hold(bool on) {
  if (held_.exchange(on) == on || on) return;
  shard_->post([self = shared_from_this()] {
    if (self->phase_ == Phase::open) self->on_ready(0);
  });
}

// --- reading ------------------------------------------------------------------------------------

Status Connection::on_control(std::uint16_t type, Buffer payload) {
  return owner_.frame(*this, FrameType(type), std::move(payload));
}
Expected<Buffer> Connection::on_tensor_begin(const TensorHeader& header) {
  return owner_.grant(*this, header);
}
Status Connection::on_tensor(const TensorHeader& header, Buffer bytes) {
  owner_.tensor(*this, header, std::move(bytes));
  return {};
}

// The window first, the staging area behind it.
Expected<std::size_t> Connection::receive(std::span<std::byte> window,
                                          std::span<std::byte> staging) {
  if (tls_) {
    std::lock_guard lock(tls_mutex_);
    return tls_->read(window.empty() ? staging : window);
  }
  std::array<iovec, 2> parts{{{window.data(), window.size()}, {staging.data(), staging.size()}}};
  msghdr message{};
  message.msg_iov = window.empty() ? &parts[1] : parts.data();
  message.msg_iovlen = window.empty() || staging.empty() ? 1 : 2;
  for (;;) {
    ssize_t n = ::recvmsg(fd_.get(), &message, 0);
    if (n > 0) return std::size_t(n);
    if (n == 0) return unavailable("the peer closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno != EINTR) return errno_status("the connection broke", errno);
  }
}

void Connection::read() {
  for (std::size_t budget = kEventBudget; budget > 0;) {
    auto window = rx_.window();
    auto staging = rx_.window_is_partial() ? std::span<std::byte>{} : shard_->staging();
    auto received = receive(window, staging);
    if (!received.ok()) return end(received.status());
    std::size_t n = *received;
    if (n == 0) return;
    heard_ = Clock::now().time_since_epoch().count();
    bytes_read_.fetch_add(n, std::memory_order_relaxed);
    std::size_t direct = std::min(n, window.size());
    Status s = direct > 0 ? rx_.filled(direct) : Status{};
    if (s.ok() && n > direct) s = rx_.consume(staging.first(n - direct));
    if (phase_ != Phase::open) return;
    if (!s.ok()) return end(std::move(s));
    if (!reading_ || held_) return;
    if (!tls_ && n < window.size() + staging.size()) return;
    budget -= std::min(budget, n);
  }
  if (tls_) {
    std::lock_guard lock(tls_mutex_);
    if (tls_->may_hold_input()) again();
  }
}

void Connection::discard() {
  auto staging = shard_->staging();
  ssize_t n = ::recv(fd_.get(), staging.data(), staging.size(), 0);
  if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
  close();
  owner_.left(*this);
}

// --- sending ------------------------------------------------------------------------------------

void Connection::send(std::vector<std::byte> frame) {
  std::uint64_t bytes = frame.size();
  enqueue(std::move(frame), bytes);
}

void Connection::send(BulkFrame frame) { enqueue(std::move(frame), 0); }

void Connection::send(OutgoingTensor tensor) {
  std::uint64_t bytes = tensor.header.bytes;
  enqueue(std::move(tensor), bytes);
}

void Connection::enqueue(Item item, std::uint64_t bytes) {
  if (queued_.fetch_add(bytes) + bytes > setup_.queue_mark) above_mark_ = true;
  {
    std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(item));
  }
  pump();
}

void Connection::pump() {
  if (work_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  std::uint32_t seen = 1;
  for (;;) {
    flush();
    std::uint32_t before = work_.fetch_sub(seen, std::memory_order_acq_rel);
    if (before == seen) break;
    seen = before - seen;
  }
  apply_mask();
}

// Whether the owner of tx_, who is not the shard, may use the socket.
bool Connection::may_send_inline() {
  if (want_out_ || (tls_ && role == Role::data) || !tx_.fits(kInlineBytes)) return false;
  if (role != Role::data) return true;
  auto now = Clock::now();
  auto earned = (now - credit_time_) / kInlineEvery;
  inline_credit_ = int(std::min<std::int64_t>(kInlineBurst, inline_credit_ + earned));
  credit_time_ = earned < kInlineBurst ? credit_time_ + earned * kInlineEvery : now;
  if (inline_credit_ == 0) return false;
  --inline_credit_;
  return true;
}

void Connection::flush() {
  {
    std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
  }
  for (Item& item : taken_) std::visit([&](auto& i) { tx_.push(std::move(i)); }, item);
  taken_.clear();
  bool on_shard = shard_->on_thread();
  const bool leaving = phase_ == Phase::lingering;
  if (leaving) tx_.drop_bulk();
  bool usable = (leaving || phase_ == Phase::open) && !broken_ && !all_said_;
  if (usable && (on_shard || may_send_inline())) {
    std::size_t budget = kEventBudget;
    std::uint64_t done = 0;
    while (budget > 0) {
      auto pieces = tx_.gather();
      if (pieces.empty()) break;
      auto n = transmit(pieces);
      if (!n.ok()) broken_ = true;
      if (!n.ok() || *n == 0) break;
      bytes_sent_.fetch_add(*n, std::memory_order_relaxed);
      done += tx_.sent(*n);
      budget -= std::min(budget, *n);
    }
    bool left_behind = false;
    if (tls_ && !broken_) {
      std::lock_guard lock(tls_mutex_);
      auto all = tls_->flush();
      broken_ = !all.ok();
      left_behind = all.ok() && !*all;
    }
    want_out_ = !broken_ && (left_behind || !tx_.idle());
    account(done);
  } else {
    want_out_ = usable && (want_out_ || !tx_.idle());
  }
  if (leaving && !want_out_ && !std::exchange(all_said_, true)) ::shutdown(fd_.get(), SHUT_WR);
}

Expected<std::size_t> Connection::transmit(std::span<const iovec> pieces) {
  if (tls_) {
    std::lock_guard lock(tls_mutex_);
    return tls_->write(pieces);
  }
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  for (;;) {
    ssize_t n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (n >= 0) return std::size_t(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno != EINTR) return errno_status("send", errno);
  }
}

void Connection::account(std::uint64_t done) {
  std::uint64_t left = queued_.fetch_sub(done) - done;
  if (left > setup_.queue_mark / 2 || !above_mark_.exchange(false)) return;
  // A sender that passed the mark again before the exchange would not be told of the next time.
  if (queued_.load() > setup_.queue_mark) above_mark_ = true;
  if (shard_->on_thread()) return owner_.drained(*this);
  shard_->post([self = shared_from_this()] {
    if (self->phase_ == Phase::open) self->owner_.drained(*self);
  });
}

// Events may be armed only when nobody owns tx_: the thread that they wake would find it owned and
// leave, be armed again and woken again, and, where it is woken in the place of the owner, keep it
// from ever going on. Whoever comes last sees what all before wanted.
void Connection::apply_mask() {
  std::lock_guard lock(mask_mutex_);
  if (phase_ != Phase::open && phase_ != Phase::lingering) return;
  std::uint32_t mask = (reading_ && !held_ ? EPOLLIN : 0u) | (want_out_ ? EPOLLOUT : 0u);
  if (shard_->shared()) {
    if (serving_ || (armed_.exchange(true) && mask == mask_)) return;
  } else if (mask == mask_) {
    return;
  }
  shard_->modify(fd_.get(), shard_id_, mask_ = mask);
}

}  // namespace troupe
