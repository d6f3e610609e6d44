// A wire between peers that a test can stop.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/net/socket.hpp"
#include "actors/net/tcp.hpp"

namespace troupe::testing {

// Passes each connection on to `to`, numbered from 0. One that is stopped passes on nothing more:
// both ends still take it for whole. What was sent stays unread.
class Proxy {
 public:
  explicit Proxy(Endpoint to)
      : to_(std::move(to)),
        listener_(value_or_throw(listen_on(value_or_throw(resolve({"127.0.0.1", 0})).front()))),
        wake_(eventfd(0, EFD_CLOEXEC)),
        thread_([this] { run(); }) {}
  ~Proxy() {
    over_ = true;
    (void)eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  std::uint16_t port() const { return local_address(listener_.get()).port(); }
  void stop(std::size_t connection) { stopped_ |= 1u << connection; }
  // Ends it, to both ends.
  void cut(std::size_t connection) {
    cut_ |= 1u << connection;
    (void)eventfd_write(wake_.get(), 1);
  }

 private:
  struct Wire {
    Descriptor ends[2];
    std::string under_way[2];  // read from that end, for the other one
    bool over = false;
  };

  // What an end is waited for: bytes to read while none are under way, or room for those that are.
  static short events_of(const Wire& wire, int side) {
    return short((wire.under_way[side].empty() ? POLLIN : 0) |
                 (wire.under_way[1 - side].empty() ? 0 : POLLOUT));
  }
  void run() {
    std::vector<std::unique_ptr<Wire>> wires;
    while (!over_) {
      std::vector<pollfd> waits{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (std::size_t i = 0; i < wires.size(); ++i)
        for (int side : {0, 1}) {
          const bool still = wires[i]->over || (stopped_ >> i & 1) != 0;
          waits.push_back({still ? -1 : wires[i]->ends[side].get(), events_of(*wires[i], side), 0});
        }
      // Stopped ones are looked for again now and then.
      if (::poll(waits.data(), waits.size(), 20) < 0) continue;
      if (waits[0].revents != 0) {
        eventfd_t woken = 0;
        (void)eventfd_read(wake_.get(), &woken);
      }
      for (std::size_t i = 0; i < wires.size(); ++i)
        if ((cut_ >> i & 1) != 0 && !wires[i]->over) end(*wires[i]);
      for (std::size_t i = 0; i < wires.size(); ++i)
        for (int side : {0, 1})
          if (waits[2 + 2 * i + std::size_t(side)].revents != 0 && (stopped_ >> i & 1) == 0)
            pass(*wires[i], side);
      if (waits[1].revents != 0) {
        auto wire = std::make_unique<Wire>();
        wire->ends[0] = Descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        wire->ends[1] = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        Address at = value_or_throw(resolve(to_)).front();
        if (::connect(wire->ends[1].get(), at.get(), at.size) == 0)
          wires.push_back(std::move(wire));
      }
    }
  }
  // None of it blocks.
  static void pass(Wire& wire, int side) {
    char piece[64 << 10];
    std::string& to_here = wire.under_way[1 - side];
    ssize_t n = 1;
    if (!to_here.empty()) {
      n = ::send(wire.ends[side].get(), to_here.data(), to_here.size(),
                 MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) to_here.erase(0, std::size_t(n));
    }
    const bool gone = n < 0 && errno != EAGAIN;
    if (!gone && wire.under_way[side].empty()) {
      n = ::recv(wire.ends[side].get(), piece, sizeof piece, MSG_DONTWAIT);
      if (n > 0) wire.under_way[side].assign(piece, std::size_t(n));
    }
    if (!gone && (n > 0 || (n < 0 && errno == EAGAIN))) return;
    end(wire);
  }
  static void end(Wire& wire) {
    wire.over = true;
    for (Descriptor& end : wire.ends) ::shutdown(end.get(), SHUT_RDWR);
  }

  Endpoint to_;
  Descriptor listener_, wake_;
  std::atomic<unsigned> stopped_{0}, cut_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace troupe::testing
