// A connection to production code that says whatever a test wants, below every check of our own
// sending side: plain, or under TLS with a shared secret.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "actors/net/detail/handshake.hpp"
#include "actors/net/detail/tls.hpp"
#include "actors/net/socket.hpp"
#include "actors/net/tx.hpp"

namespace troupe::testing {

inline constexpr std::chrono::seconds kPatience{20};  // then the other side hangs

inline std::string_view text_view(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::string frame_text(FrameType type, std::string_view payload) {
  auto frame = control_frame(type, as_bytes(payload));
  return std::string(text_view(frame));
}

class Line {
 public:
  using Clock = std::chrono::steady_clock;

  // Connects; `tls`: and proves that it knows the secret.
  Line(std::uint16_t port, const TlsContext* tls) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    linger reset{1, 0};  // no TIME_WAIT: tests open many
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) open_ = false;
    set_up(tls, false);
  }
  // Takes over an accepted socket.
  Line(Descriptor fd, const TlsContext* tls) : fd_(std::move(fd)) {
    linger reset{1, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    set_up(tls, true);
  }

  bool open() const { return open_; }
  const Status& why() const { return why_; }  // it is not

  // False when the other side closed before all of it was sent.
  bool send(std::string_view bytes) {
    auto until = Clock::now() + kPatience;
    while (open_) {
      std::size_t n = bytes.empty() ? 0 : put(bytes);
      bytes.remove_prefix(n);
      if (bytes.empty() && settle()) return true;
      take(false);  // what it says meanwhile must not fill the pipe
      if (open_ && n == 0) wait(POLLIN | POLLOUT, until);
      if (Clock::now() > until) FAIL("the other side reads nothing");
    }
    return false;
  }
  // How much the other side takes before it reads nothing for `still`.
  std::size_t offer(std::string_view bytes, std::chrono::milliseconds still) {
    std::size_t taken = 0;
    for (pollfd p{fd_.get(), POLLOUT, 0}; open_ && taken < bytes.size();) {
      std::size_t n = put(bytes.substr(taken));
      taken += n;
      if (n == 0 && ::poll(&p, 1, int(still.count())) == 0) break;
    }
    return taken;
  }
  bool send(FrameType type, std::string_view payload) { return send(frame_text(type, payload)); }

  // No more bytes will come from here.
  void finish() { ::shutdown(fd_.get(), SHUT_WR); }

  struct Frame {
    FrameType type{};
    std::string payload;
  };
  // The next frame; none when the connection ended.
  std::optional<Frame> frame(Clock::time_point until = Clock::now() + kPatience) {
    for (;;) {
      if (auto f = parse()) return f;
      if (!open_) return std::nullopt;
      if (Clock::now() > until) FAIL("the other side does not say what is waited for");
      take(true, until);
    }
  }
  // Whether the other side closed in time; drops what it says before.
  bool closed() {
    auto until = Clock::now() + kPatience;
    while (open_ && Clock::now() < until) {
      take(true, until);
      in_.clear();
    }
    return !open_;
  }
  // Forgets what has arrived.
  void drain() {
    take(false);
    while (parse()) {
    }
  }

 private:
  void end(Status why) {
    open_ = false;
    why_ = std::move(why);
  }
  void set_up(const TlsContext* tls, bool server) {
    if (!open_) return;
    tune(fd_.get());
    ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
    if (tls == nullptr) return;
    tls_ = std::make_unique<TlsStream>(*tls, fd_.get(), server);
    for (auto until = Clock::now() + kPatience;;) {
      auto done = tls_->handshake();
      if (!done.ok()) end(done.status());
      if (!done.ok() || *done) return;
      wait(POLLIN, until);
    }
  }
  void wait(short events, Clock::time_point until) {
    pollfd p{fd_.get(), events, 0};
    while (::poll(&p, 1, 200) == 0)
      if (Clock::now() > until) FAIL("the other side neither answers nor closes");
  }
  std::size_t put(std::string_view bytes) {
    if (tls_) {
      iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
      auto n = tls_->write({&piece, 1});
      if (!n.ok()) open_ = false;
      return n.ok() ? *n : 0;
    }
    ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN) open_ = false;
    return n < 0 ? 0 : std::size_t(n);
  }
  bool settle() {
    if (!tls_) return true;
    auto all = tls_->flush();
    if (!all.ok()) open_ = false;
    return all.ok() && *all;
  }
  void take(bool must, Clock::time_point until = {}) {
    std::byte piece[16384];
    for (bool got = false; open_;) {
      std::size_t n = 0;
      if (tls_) {
        auto read = tls_->read(piece);
        if (!read.ok()) end(read.status());
        n = read.ok() ? *read : 0;
      } else {
        ssize_t read = ::recv(fd_.get(), piece, sizeof piece, MSG_DONTWAIT);
        if (read == 0 || (read < 0 && errno != EAGAIN)) open_ = false;
        n = read < 0 ? 0 : std::size_t(read);
      }
      in_.append(reinterpret_cast<char*>(piece), n);
      got |= n > 0;
      if (n > 0) continue;
      if (got || !must || !open_) return;
      wait(POLLIN, until);
    }
  }
  std::optional<Frame> parse() {
    if (in_.size() < kControlHeader) return std::nullopt;
    auto header = decode_control_header(std::span<const std::byte, kControlHeader>(
        reinterpret_cast<const std::byte*>(in_.data()), kControlHeader));
    REQUIRE(header.ok());  // production code says nothing malformed
    std::size_t size = kControlHeader + header->length + kTrailer;
    if (in_.size() < size) return std::nullopt;
    Frame f{FrameType(header->type), in_.substr(kControlHeader, header->length)};
    in_.erase(0, size);
    return f;
  }

  Descriptor fd_;
  std::unique_ptr<TlsStream> tls_;
  bool open_ = true;
  Status why_;
  std::string in_;
};

}  // namespace troupe::testing
