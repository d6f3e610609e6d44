#include "apps/bench/channel_bench.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "actors/net/pool.hpp"
#include "actors/net/tcp.hpp"
#include "apps/bench/statistics.hpp"
#include "core/number.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
constexpr std::uint64_t kMark = 8u << 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
double quantile(std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1, std::size_t(q * double(sorted.size())))];
}
Buffer filled(std::uint64_t bytes) {
  Buffer b = Buffer::allocate(heap_allocator(), bytes).value();
  std::memset(b.data(), 0x5a, bytes);
  return b;
}

// --- the raw peer -------------------------------------------------------------------------------

void read_all(int fd, void* to, std::size_t size) {
  for (auto* p = static_cast<char*>(to); size > 0;) {
    ssize_t n = ::recv(fd, p, size, 0);
    if (n <= 0) _exit(0);
    p += n, size -= std::size_t(n);
  }
}

// One message: eight bytes of length, then the payload, in one writev as far as the kernel takes
// it.
Status write_message(int fd, const void* data, std::uint64_t size) {
  iovec parts[2] = {{&size, sizeof size}, {const_cast<void*>(data), size}};
  int first = 0;
  while (first < 2) {
    ssize_t n = ::writev(fd, parts + first, 2 - first);
    if (n < 0) return unavailable("the raw peer is gone");
    for (auto left = std::size_t(n); left > 0 || (first < 2 && parts[first].iov_len == 0);) {
      std::size_t part = std::min(left, parts[first].iov_len);
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + part;
      parts[first].iov_len -= part;
      left -= part;
      if (parts[first].iov_len == 0) ++first;
    }
  }
  return {};
}

// Receives messages into one buffer; answers an empty message with one byte, so that it serves
// both as the end of a series and as a ping.
[[noreturn]] void raw_server(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::vector<char> buffer(256u << 20);
  for (;;) {
    std::uint64_t size = 0;
    read_all(fd, &size, sizeof size);
    if (size > 0)
      read_all(fd, buffer.data(), size);
    else if (::send(fd, "!", 1, MSG_NOSIGNAL) != 1)
      _exit(0);
  }
}

// --- our peer -----------------------------------------------------------------------------------

// Counts tensors; answers "count N" once N more came, "ping" at once, "mark" by forgetting the
// bytes counted so far, "spread" with the fewest and the most bytes of a connection.
class BenchServer : public TransportHandler {
 public:
  Status admit(PeerId, const Hello&) override { return {}; }
  void peer_up(PeerId peer, const Hello&) override {
    std::lock_guard lock(mutex_);
    bytes_[peer] = 0;
  }
  void peer_down(PeerId, Status) override { _exit(0); }
  void control(PeerId peer, Buffer message) override {
    std::string text(static_cast<char*>(message.data()), message.size());
    if (text == "ping") return reply(peer, "pong");
    std::lock_guard lock(mutex_);
    if (text.starts_with("count ")) {
      wanted_ += parse_number<std::int64_t>(std::string_view(text).substr(6)).value_or(0);
      waiting_ = peer;
      answer();
    } else if (text == "mark") {
      for (auto& [id, n] : bytes_) n = 0;
    } else if (text == "spread") {
      auto [least, most] = std::minmax_element(
          bytes_.begin(), bytes_.end(), [](auto& a, auto& b) { return a.second < b.second; });
      std::uint64_t sum = 0;
      for (auto& [id, n] : bytes_) sum += n;
      reply(peer, fmt::format("{} {} {}", least->second, most->second, sum));
    }
  }
  Expected<Buffer> accept_tensor(PeerId, const TensorHeader& header) override {
    return pool_.take(header.bytes);
  }
  void tensor(PeerId peer, const TensorHeader& header, Buffer) override {
    std::lock_guard lock(mutex_);
    bytes_[peer] += header.bytes;
    --wanted_;
    answer();
  }
  Transport* transport = nullptr;

 private:
  void reply(PeerId peer, std::string_view text) {
    (void)transport->send_control(peer, as_bytes(text));
  }
  void answer() {
    if (wanted_ == 0 && waiting_ != 0) reply(std::exchange(waiting_, 0), "done");
  }
  std::mutex mutex_;
  std::map<PeerId, std::uint64_t> bytes_;
  std::int64_t wanted_ = 0;
  PeerId waiting_ = 0;
  BufferPool pool_{std::uint64_t{1} << 30};
};

TransportLimits bench_limits() {
  TransportLimits limits;
  limits.queue_mark = kMark;
  return limits;
}

[[noreturn]] void our_server(int report, const Security& security) {
  auto* server = new BenchServer;
  auto transport = make_tcp_transport(security, bench_limits(), *server);
  if (!transport.ok()) _exit(1);
  server->transport = transport->get();
  auto port = (*transport)->listen({"127.0.0.1", 0}, "bench");
  if (!port.ok() || ::write(report, &*port, sizeof *port) != sizeof *port) _exit(1);
  for (;;) ::pause();
}

class BenchClient : public TransportHandler {
 public:
  Status admit(PeerId, const Hello&) override { return {}; }
  void peer_up(PeerId, const Hello&) override {
    change([&] { ++up_; });
  }
  void peer_down(PeerId, Status why) override {
    change([&] { lost_ = why; });
  }
  void control(PeerId, Buffer message) override {
    change([&] { answer_.assign(static_cast<char*>(message.data()), message.size()); });
  }
  Expected<Buffer> accept_tensor(PeerId, const TensorHeader&) override {
    return failed_precondition("the client of a benchmark receives no tensors");
  }
  void tensor(PeerId, const TensorHeader&, Buffer) override {}
  void drained(PeerId) override {
    change([&] { drained_ = true; });
  }

  Status wait_up(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return up_ >= count || !lost_.ok(); });
    return lost_;
  }
  Expected<std::string> ask(PeerId peer, std::string_view question) {
    change([&] { answer_.clear(); });
    TROUPE_TRY(transport->send_control(peer, as_bytes(question)));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !answer_.empty() || !lost_.ok(); });
    TROUPE_TRY(lost_);
    return answer_;
  }
  // Queues one tensor; first waits while too much is queued.
  Status send(PeerId peer, const Buffer& bytes) {
    change([&] { drained_ = false; });
    if (transport->queued_bytes(peer) > kMark) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return drained_ || !lost_.ok(); });
    }
    return transport->send_tensor(peer, TensorHeader(as_bytes("bench"), bytes.size()), bytes, 0);
  }
  void wait_drained() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10ms, [&] { return std::exchange(drained_, false); });
  }
  Transport* transport = nullptr;

 private:
  template <class F>
  void change(F f) {
    {
      std::lock_guard lock(mutex_);
      f();
    }
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  int up_ = 0;
  bool drained_ = false;
  std::string answer_;
  Status lost_;
};

// --- the two processes --------------------------------------------------------------------------

struct ChildProcess {
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept : pid(std::exchange(other.pid, 0)) {}
  ~ChildProcess() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  pid_t pid = 0;
};

struct Raw {
  ~Raw() {
    if (fd >= 0) ::close(fd);
  }
  ChildProcess child;
  int fd = -1;
};

Status start_raw(Raw& raw) {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(listener, address, size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, address, &size) != 0)
    return unavailable("a socket for the raw peer");
  raw.child.pid = fork();
  if (raw.child.pid == 0) raw_server(::accept(listener, nullptr, nullptr));
  ::close(listener);
  raw.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int on = 1;
  setsockopt(raw.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(raw.fd, address, size) != 0) return unavailable("the raw peer does not answer");
  return {};
}

struct Ours {
  ~Ours() {
    if (transport) transport->shutdown();
  }
  ChildProcess child;
  std::uint16_t port = 0;
  BenchClient client;
  std::unique_ptr<Transport> transport;
  std::vector<PeerId> peers;
};

Status start_server(Ours& ours, const Security& security) {
  int report[2];
  if (::pipe(report) != 0) return unavailable("a pipe");
  ours.child.pid = fork();
  if (ours.child.pid == 0) our_server(report[1], security);
  bool told = ::read(report[0], &ours.port, sizeof ours.port) == sizeof ours.port;
  ::close(report[0]), ::close(report[1]);
  return told ? Status{} : unavailable("the server did not start");
}

Status connect_all(Ours& ours, const Security& security, int count) {
  TROUPE_TRY(ours.transport, make_tcp_transport(security, bench_limits(), ours.client));
  ours.client.transport = ours.transport.get();
  for (int i = 0; i < count; ++i) {
    TROUPE_TRY(auto peer, ours.transport->connect({"127.0.0.1", ours.port}, "bench", 10s));
    ours.peers.push_back(peer);
  }
  return ours.client.wait_up(count);
}

// --- measurements -------------------------------------------------------------------------------

struct Size {
  const char* name;
  std::uint64_t bytes;
  std::uint64_t total;
};
constexpr Size kSizes[] = {{"4KiB", 4u << 10, 256u << 20},
                           {"64KiB", 64u << 10, std::uint64_t{1} << 30},
                           {"1MiB", 1u << 20, std::uint64_t{2} << 30},
                           {"16MiB", 16u << 20, std::uint64_t{2} << 30},
                           {"256MiB", 256u << 20, std::uint64_t{2} << 30}};

Expected<double> raw_throughput(Raw& raw, const Buffer& bytes, std::uint64_t count) {
  auto start = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i)
    TROUPE_TRY(write_message(raw.fd, bytes.data(), bytes.size()));
  TROUPE_TRY(write_message(raw.fd, nullptr, 0));
  char done;
  read_all(raw.fd, &done, 1);
  return double(bytes.size() * count) / seconds_since(start) / 1e9;
}

Expected<double> our_throughput(Ours& ours, const Buffer& bytes, std::uint64_t count) {
  PeerId peer = ours.peers[0];
  auto start = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i) TROUPE_TRY(ours.client.send(peer, bytes));
  TROUPE_TRY(auto done, ours.client.ask(peer, fmt::format("count {}", count)));
  return double(bytes.size() * count) / seconds_since(start) / 1e9;
}

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

Expected<std::vector<double>> our_pings(Ours& ours, int count, std::chrono::microseconds pause) {
  std::vector<double> us;
  for (int i = 0; i < count; ++i) {
    auto start = Clock::now();
    TROUPE_TRY(auto pong, ours.client.ask(ours.peers[0], "ping"));
    us.push_back(seconds_since(start) * 1e6);
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }
  return sorted(std::move(us));
}

Expected<std::vector<double>> raw_pings(Raw& raw, int count) {
  std::vector<double> us;
  char pong;
  for (int i = 0; i < count; ++i) {
    auto start = Clock::now();
    TROUPE_TRY(write_message(raw.fd, nullptr, 0));
    read_all(raw.fd, &pong, 1);
    us.push_back(seconds_since(start) * 1e6);
  }
  return sorted(std::move(us));
}

// Pings every millisecond while another thread keeps the data connection full.
Expected<double> ping_under_load(Ours& ours, int count) {
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> sent{0};
  Status failed;
  Buffer bytes = filled(1u << 20);
  // The client waits for one thing at a time, so the load polls its queue.
  std::thread load([&] {
    while (!stop && failed.ok()) {
      if (ours.transport->queued_bytes(ours.peers[0]) > kMark) {
        std::this_thread::sleep_for(200us);
        continue;
      }
      failed = ours.transport->send_tensor(ours.peers[0],
                                           TensorHeader(as_bytes("bench"), bytes.size()), bytes, 0);
      ++sent;
    }
  });
  auto us = our_pings(ours, count, 1ms);
  stop = true;
  load.join();
  TROUPE_TRY(failed);
  TROUPE_TRY(auto pings, std::move(us));
  TROUPE_TRY(auto done, ours.client.ask(ours.peers[0], fmt::format("count {}", sent.load())));
  return quantile(pings, 0.99) / 1e3;
}

struct Spread {
  double fairness = 0, throughput = 0;
};

// All peers sent to at once, 1 MiB tensors, each queue kept full.
Expected<Spread> fan(Ours& ours, double seconds) {
  Buffer bytes = filled(1u << 20);
  TensorHeader header(as_bytes("bench"), bytes.size());
  auto feed = [&](double until) -> Status {
    for (auto start = Clock::now(); seconds_since(start) < until;) {
      for (PeerId peer : ours.peers) {
        while (ours.transport->queued_bytes(peer) <= kMark)
          TROUPE_TRY(ours.transport->send_tensor(peer, header, bytes, 0));
      }
      ours.client.wait_drained();
    }
    return {};
  };
  TROUPE_TRY(feed(seconds / 4));
  TROUPE_TRY(ours.transport->send_control(ours.peers[0], as_bytes("mark")));
  auto start = Clock::now();
  std::uint64_t least = 0, most = 0, sum = 0;
  double took = 0;
  // A machine that is busy elsewhere may get nothing through at first.
  while (most == 0 && took < 20 * seconds) {
    TROUPE_TRY(feed(seconds));
    TROUPE_TRY(auto answer, ours.client.ask(ours.peers[0], "spread"));
    took = seconds_since(start);
    const std::string_view text = answer;
    const std::size_t first = text.find(' '), second = text.rfind(' ');
    const auto parts = {parse_number<std::uint64_t>(text.substr(0, first)),
                        parse_number<std::uint64_t>(text.substr(first + 1, second - first - 1)),
                        parse_number<std::uint64_t>(text.substr(second + 1))};
    if (first >= second ||
        !std::all_of(parts.begin(), parts.end(), [](auto& n) { return bool(n); }))
      return internal_error("the benchmark's server answered " + answer);
    least = **parts.begin(), most = **(parts.begin() + 1), sum = **(parts.begin() + 2);
  }
  if (most == 0) return unavailable("nothing reached the benchmark's server");
  return Spread{double(least) / double(most), double(sum) / took / 1e9};
}

ChannelRow row(std::string name, double value, std::string unit, std::string peer,
               double peer_value) {
  return {std::move(name), value,      std::move(unit),
          std::move(peer), peer_value, peer_value > 0 ? value / peer_value : 0};
}

// Of rounds in turns.
ChannelRow throughput(std::string name, const std::vector<double>& gbs, std::string peer,
                      const std::vector<double>& peer_gbs) {
  return {std::move(name), median(gbs),      "GB/s",
          std::move(peer), median(peer_gbs), median_ratio(gbs, peer_gbs)};
}

}  // namespace

Expected<std::vector<ChannelRow>> bench_channel(const ChannelBench& options) {
  auto wanted = [&](const std::string& name) {
    return options.only.empty() || name.find(options.only) != std::string::npos;
  };
  Security plain = Security::plaintext();
  Security tls = Security::shared_secret("a secret for a benchmark");
  tls.encrypt_loopback_data = true;
  // All processes are forked before this one starts its I/O threads.
  Raw raw;
  Ours ours, encrypted, many;
  TROUPE_TRY(start_raw(raw));
  TROUPE_TRY(start_server(ours, plain));
  TROUPE_TRY(start_server(encrypted, tls));
  TROUPE_TRY(start_server(many, plain));
  TROUPE_TRY(connect_all(ours, plain, 1));
  TROUPE_TRY(connect_all(encrypted, tls, 1));

  std::vector<ChannelRow> rows;
  double one_mib = 0;
  for (const Size& size : kSizes) {
    std::string tcp_name = fmt::format("channel.tcp.{}", size.name);
    std::string tls_name = fmt::format("channel.tls.{}", size.name);
    bool with_tls = size.bytes >= (64u << 10) && wanted(tls_name);
    if (!wanted(tcp_name) && !with_tls) continue;
    Buffer bytes = filled(size.bytes);
    auto count =
        std::max<std::uint64_t>(1, std::uint64_t(options.scale * double(size.total)) / size.bytes);
    std::vector<double> ours_gbs, raw_gbs, tls_gbs;
    for (int i = -1; i < options.rounds; ++i) {  // one round to warm up
      TROUPE_TRY(double r, raw_throughput(raw, bytes, count));
      TROUPE_TRY(double o, our_throughput(ours, bytes, count));
      double t = 0;
      if (with_tls) {
        TROUPE_TRY(t, our_throughput(encrypted, bytes, std::max<std::uint64_t>(1, count / 2)));
      }
      if (i < 0) continue;
      raw_gbs.push_back(r), ours_gbs.push_back(o), tls_gbs.push_back(t);
    }
    if (size.bytes == 1u << 20) one_mib = median(ours_gbs);
    if (wanted(tcp_name)) rows.push_back(throughput(tcp_name, ours_gbs, "raw socket", raw_gbs));
    if (with_tls) rows.push_back(throughput(tls_name, tls_gbs, "plain", ours_gbs));
  }

  int pings = std::max(100, int(4000 * options.scale));
  if (wanted("channel.control_p50_idle")) {
    TROUPE_TRY(auto theirs, raw_pings(raw, pings));
    TROUPE_TRY(auto mine, our_pings(ours, pings, 0us));
    rows.push_back(row("channel.control_p50_idle", quantile(mine, 0.5), "us", "raw socket",
                       quantile(theirs, 0.5)));
    TROUPE_TRY(auto hidden, our_pings(encrypted, pings, 0us));
    rows.push_back(row("channel.control_p50_idle_tls", quantile(hidden, 0.5), "us", "plain",
                       quantile(mine, 0.5)));
  }
  if (wanted("channel.control_p99_under_load")) {
    TROUPE_TRY(double ms, ping_under_load(ours, std::max(200, int(2000 * options.scale))));
    rows.push_back(row("channel.control_p99_under_load", ms, "ms", "limit", 5));
  }
  if (wanted("channel.64_peers.")) {
    TROUPE_TRY(connect_all(many, plain, 64));
    TROUPE_TRY(auto spread, fan(many, std::max(0.1, 3 * options.scale)));
    rows.push_back(row("channel.64_peers.fairness", spread.fairness, "ratio", "limit", 0.8));
    rows.push_back(row("channel.64_peers.throughput", spread.throughput, "GB/s",
                       one_mib > 0 ? "one peer" : "", one_mib));
  }
  return rows;
}

}  // namespace troupe
