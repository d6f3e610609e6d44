#include <doctest/doctest.h>

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include "actors/net/detail/io_shard.hpp"
#include "actors/net/socket.hpp"
#include "actors/net/tcp.hpp"
#include "tests/net/peers.hpp"
#include "tests/net/raw_client.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

const char* const kSecret = "0123456789abcdef0123456789abcdef";

Security with_secret(bool encrypt_data = false) {
  Security s = Security::shared_secret(kSecret);
  s.encrypt_loopback_data = encrypt_data;
  return s;
}

// The threads that are started meanwhile share one processor with this one.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

// So long by the clock of this thread, after which whoever is woken goes before it.
void compute_for(std::chrono::nanoseconds time) {
  const auto used = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  };
  for (const auto begin = used(); used() - begin < time;) {
  }
}

// Two transports in this process, connected over loopback.
struct Pair {
  explicit Pair(const Security& security, TransportLimits limits = {})
      : a(make_tcp_transport(security, limits, at_a).value()),
        b(make_tcp_transport(security, limits, at_b).value()) {
    port = b->listen({"127.0.0.1", 0}, "I am b").value();
    to_b = a->connect({"127.0.0.1", port}, "I am a", 5s).value();
    up = at_a.wait_up(to_b);
    if (up) to_a = at_b.only();
  }
  ~Pair() {
    a->shutdown();
    b->shutdown();
    CHECK(!at_a.misused());
    CHECK(!at_b.misused());
  }
  RecordingHandler at_a, at_b;
  std::unique_ptr<Transport> a, b;
  std::uint16_t port = 0;
  PeerId to_a = 0, to_b = 0;
  bool up = false;
};

void exchange_everything(Pair& p) {
  REQUIRE_MESSAGE(p.up, p.at_a.copy(p.to_b).why.text());
  CHECK(p.at_a.copy(p.to_b).hello == "I am b");
  CHECK(p.at_b.copy(p.to_a).hello == "I am a");
  std::vector<std::string> texts;
  for (std::size_t size : {0u, 1u, 100u, 60'000u, 70'000u, 3'000'000u}) {
    texts.push_back(std::string(size, 'm'));
    CHECK(send_text(*p.a, p.to_b, texts.back()).ok());
    CHECK(send_text(*p.b, p.to_a, texts.back()).ok());
  }
  std::vector<SeenTensor> tensors;
  Random random(1);
  for (std::size_t size : {0u, 1u, 4096u, 65'536u, 1'048'577u, 5'000'000u}) {
    tensors.push_back({fmt::format("tag {:09}", size), random_text(random, size)});
    CHECK(send_bytes(*p.a, p.to_b, tensors.back().tag, tensors.back().bytes).ok());
    CHECK(send_bytes(*p.b, p.to_a, tensors.back().tag, tensors.back().bytes).ok());
  }
  std::pair<RecordingHandler*, PeerId> sides[] = {{&p.at_b, p.to_a}, {&p.at_a, p.to_b}};
  for (auto& side : sides) {
    RecordingHandler* at = side.first;
    PeerId id = side.second;
    bool all = at->wait([&] {
      return at->log(id).down || (at->log(id).messages.size() == texts.size() &&
                                  at->log(id).tensors.size() == tensors.size());
    });
    REQUIRE_MESSAGE(all, at->copy(id).messages.size() << " " << at->copy(id).tensors.size());
    REQUIRE_MESSAGE(!at->copy(id).down, at->copy(id).why.text());
    auto log = at->copy(id);
    CHECK(log.messages == texts);
    std::sort(log.tensors.begin(), log.tensors.end(),
              [](auto& x, auto& y) { return x.tag < y.tag; });
    CHECK(log.tensors == tensors);
  }
}

// Certificates made by the openssl program: an authority, two members, and an outsider.
struct Certificates {
  Certificates() {
    char name[] = "/tmp/troupe-net-XXXXXX";
    dir = mkdtemp(name);
    const std::string quiet = " >/dev/null 2>&1",
                      key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256";
    auto run = [&](const std::string& command) {
      REQUIRE(std::system(("cd " + dir + " && " + command + quiet).c_str()) == 0);
    };
    for (std::string ca : {"ca", "other"}) {
      run("openssl req -x509 " + key + " -nodes -days 2 -subj /CN=" + ca + " -keyout " + ca +
          ".key -out " + ca + ".pem");
      run("openssl req " + key + " -nodes -subj /CN=member -keyout " + ca + "-m.key -out m.csr");
      run("openssl x509 -req -in m.csr -days 2 -CA " + ca + ".pem -CAkey " + ca +
          ".key -CAcreateserial -out " + ca + "-m.pem");
    }
  }
  ~Certificates() { std::filesystem::remove_all(dir); }
  Security member(const std::string& of, const std::string& trusts) const {
    Security s;
    s.mode = Security::Mode::certificates;
    s.certificate_file = dir + "/" + of + "-m.pem";
    s.key_file = dir + "/" + of + "-m.key";
    s.authority_file = dir + "/" + trusts + ".pem";
    return s;
  }
  std::string dir;
};

// How an attempt to join ends when the two sides do not fit. Some do not learn it until the time is
// over.
Status outcome(const Security& client, const Security& server,
               std::chrono::milliseconds within = 15s) {
  RecordingHandler at_a, at_b;
  auto a = make_tcp_transport(client, {}, at_a).value();
  auto b = make_tcp_transport(server, {}, at_b).value();
  std::uint16_t port = b->listen({"127.0.0.1", 0}, "b").value();
  PeerId id = a->connect({"127.0.0.1", port}, "a", within).value();
  Status why = at_a.wait_down(id);
  a->shutdown(), b->shutdown();
  CHECK(!at_a.log(id).up);
  CHECK(at_b.all().empty());
  return why;
}

}  // namespace

TEST_CASE("threads of the network leave signals to the program") {
  const auto shard = IoShard::start({}).value();
  std::promise<sigset_t> told;
  shard->post([&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    told.set_value(mask);
  });
  const sigset_t blocked = told.get_future().get();
  for (int number : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) CHECK(sigismember(&blocked, number) == 1);
  CHECK(sigismember(&blocked, SIGSEGV) == 0);
}

TEST_CASE("messages and tensors of any size cross a plain connection both ways") {
  Pair p(Security::plaintext());
  exchange_everything(p);
}

TEST_CASE("a shared secret encrypts control, and data goes plain over loopback") {
  Pair p(with_secret());
  exchange_everything(p);
}

TEST_CASE("a shared secret encrypts control and data") {
  Pair p(with_secret(true));
  exchange_everything(p);
}

TEST_CASE("certificates of one authority make peers, those of another do not") {
  Certificates c;
  {
    Pair p(c.member("ca", "ca"));
    exchange_everything(p);
  }
  Status why = outcome(c.member("other", "ca"), c.member("ca", "ca"), 1s);
  CHECK_MESSAGE(!why.ok(), why.text());
  why = outcome(c.member("ca", "other"), c.member("ca", "ca"));
  CHECK_MESSAGE(why.code() == Code::failed_precondition, why.text());
}

TEST_CASE("a 64 MiB tensor arrives whole") {
  Pair p(Security::plaintext());
  REQUIRE(p.up);
  Random random(1);
  std::string bytes = random_text(random, 64u << 20);
  REQUIRE_MESSAGE(send_bytes(*p.a, p.to_b, "large", bytes).ok(),
                  p.at_a.copy(p.to_b).why.text() << p.at_b.copy(p.to_a).why.text());
  REQUIRE(p.at_b.wait([&] { return p.at_b.log(p.to_a).tensors.size() == 1; }));
  CHECK(p.at_b.copy(p.to_a).tensors[0].bytes == bytes);
}

TEST_CASE("another secret, no secret and no encryption are refused") {
  Status why = outcome(Security::shared_secret("another secret, as long"), with_secret());
  CHECK_MESSAGE(why.code() == Code::failed_precondition, why.text());
  CHECK(!outcome(Security::plaintext(), with_secret(), 1s).ok());
  CHECK(!outcome(with_secret(), Security::plaintext(), 1s).ok());
}

TEST_CASE("plaintext is refused off loopback, by the listener and by the connector") {
  RecordingHandler at;
  auto t = make_tcp_transport(Security::plaintext(), {}, at).value();
  CHECK(t->listen({"0.0.0.0", 0}, "").status().code() == Code::failed_precondition);
  CHECK(t->listen({"::", 0}, "").status().code() == Code::failed_precondition);
  CHECK(t->connect({"192.0.2.1", 1}, "", 1s).status().code() == Code::failed_precondition);
  auto s = make_tcp_transport(with_secret(), {}, at).value();
  CHECK(s->listen({"0.0.0.0", 0}, "").ok());
  CHECK(is_loopback({"127.3.2.1", 0}).value());
  CHECK(!is_loopback({"192.0.2.1", 0}).value());
}

TEST_CASE("a secret has 16 to 64 bytes") {
  RecordingHandler at;
  for (std::size_t size : {0u, 15u, 65u}) {
    auto t = make_tcp_transport(Security::shared_secret(std::string(size, 's')), {}, at);
    CHECK(t.status().code() == Code::invalid_argument);
  }
}

TEST_CASE("an address is host, colon, port") {
  CHECK(parse_endpoint("127.0.0.1:7077").value() == Endpoint{"127.0.0.1", 7077});
  CHECK(parse_endpoint("[::1]:1").value() == Endpoint{"::1", 1});
  for (const char* text : {"[::1]:1", "127.0.0.1:7077", "[fe80::1%lo]:7077", "node7:80"})
    CHECK(parse_endpoint(text)->text() == text);
  for (const char* bad : {"", "a", ":1", "a:", "a:b", "a:70000", "::1:5", "[::1]", "a:1x"})
    CHECK_MESSAGE(!parse_endpoint(bad).ok(), bad);
}

TEST_CASE("a peer that is refused learns why") {
  RecordingHandler at_a, at_b;
  auto a = make_tcp_transport(with_secret(), {}, at_a).value();
  auto b = make_tcp_transport(with_secret(), {}, at_b).value();
  std::uint16_t port = b->listen({"127.0.0.1", 0}, "b").value();
  PeerId id = a->connect({"127.0.0.1", port}, "refuse me", 5s).value();
  Status why = at_a.wait_down(id);
  CHECK(why.text() ==
        "failed_precondition: not this one (refused by the peer) (closed by the peer)");
  a->shutdown(), b->shutdown();
}

TEST_CASE("a connector waits for its listener and gives up at its deadline") {
  RecordingHandler at_a, at_b;
  auto a = make_tcp_transport(Security::plaintext(), {}, at_a).value();
  std::uint16_t port;
  {
    auto b = make_tcp_transport(Security::plaintext(), {}, at_b).value();
    port = b->listen({"127.0.0.1", 0}, "b").value();
  }
  Status why;
  // A slow machine may not have tried within the first.
  for (auto within = 100ms; within < 15s && why.text().find("refused") == std::string::npos;
       within *= 2) {
    why = at_a.wait_down(a->connect({"127.0.0.1", port}, "a", within).value());
    CHECK(why.code() == Code::deadline_exceeded);
  }
  CHECK_MESSAGE(why.text().find("refused") != std::string::npos, why.text());
  PeerId later = a->connect({"127.0.0.1", port}, "a", 10s).value();
  auto b = make_tcp_transport(Security::plaintext(), {}, at_b).value();
  REQUIRE(b->listen({"127.0.0.1", port}, "b").ok());
  CHECK(at_a.wait_up(later));
  a->shutdown(), b->shutdown();
}

TEST_CASE("a handshake that breaks is tried again, a refusal is not") {
  Address any = resolve({"127.0.0.1", 0}).value().front();
  Descriptor listener = listen_on(any).value();
  RecordingHandler at;
  auto t = make_tcp_transport(Security::plaintext(), {}, at).value();
  PeerId id = t->connect({"127.0.0.1", local_address(listener.get()).port()}, "", 20s).value();
  FrameType type{};
  {
    RawClient silent = RawClient::accepted_by(listener.get());
    silent.frame(&type);
    CHECK(type == FrameType::hello);
  }
  {
    RawClient halfway = RawClient::accepted_by(listener.get());
    halfway.frame();
    halfway.send(frame_of(FrameType::welcome, encode(Greeting{1u << 20, 1u << 20, false, {}, ""})));
    RawClient data = RawClient::accepted_by(listener.get());
    data.frame(&type);
    CHECK(type == FrameType::attach);
  }
  {
    RawClient slow = RawClient::accepted_by(listener.get());
    slow.frame(&type);
    CHECK(type == FrameType::hello);
    slow.send(frame_of(FrameType::bye, encode_bye(deadline_exceeded("you took too long"))));
  }
  RawClient last = RawClient::accepted_by(listener.get());
  last.frame();
  last.send(frame_of(FrameType::bye, encode_bye(failed_precondition("not you"))));
  CHECK(at.wait_down(id).text() == "failed_precondition: not you (closed by the peer)");
  CHECK(!at.misused());
  t->shutdown();
}

TEST_CASE("close tells both sides why") {
  Pair p(with_secret());
  REQUIRE(p.up);
  p.a->close(p.to_b, aborted("enough"));
  CHECK(p.at_a.wait_down(p.to_b) == aborted("enough"));
  Status there = p.at_b.wait_down(p.to_a);
  CHECK(there.code() == Code::aborted);
  CHECK(there.message() == "enough");
  CHECK(send_text(*p.a, p.to_b, "x").code() == Code::unavailable);
}

TEST_CASE("shutdown ends peers on both sides and can be repeated") {
  Pair p(with_secret());
  REQUIRE(p.up);
  p.b->shutdown();
  CHECK(p.at_b.copy(p.to_a).why.code() == Code::cancelled);
  CHECK(p.at_a.wait_down(p.to_b).code() == Code::cancelled);
  p.b->shutdown();
  CHECK(!p.b->connect({"127.0.0.1", p.port}, "", 1s).ok());
}

TEST_CASE("shutdown ends when the peers have closed, not at the next look after them") {
  TransportLimits limits;
  limits.heartbeat = 10min;
  limits.silence = 30min;
  Pair p(with_secret(), limits);
  REQUIRE(p.up);
  p.b->shutdown();
  CHECK(p.at_a.wait_down(p.to_b).code() == Code::cancelled);
}

TEST_CASE("a tensor without credit ends the peer on both sides") {
  Pair p(Security::plaintext());
  REQUIRE(p.up);
  p.at_b.budget = 10;
  CHECK(send_bytes(*p.a, p.to_b, "t", std::string(11, 'x')).ok());
  CHECK(p.at_b.wait_down(p.to_a).text() == "resource_exhausted: no credit");
  CHECK(p.at_a.wait_down(p.to_b).code() == Code::resource_exhausted);
}

TEST_CASE("a message beyond what the peer accepts is refused at the sender") {
  TransportLimits limits;
  limits.control_bytes = 10'000;
  Pair p(Security::plaintext(), limits);
  REQUIRE(p.up);
  CHECK(send_text(*p.a, p.to_b, std::string(10'001, 'x')).code() == Code::resource_exhausted);
  CHECK(send_text(*p.a, p.to_b, std::string(10'000, 'x')).ok());
  CHECK(p.at_b.wait([&] { return p.at_b.log(p.to_a).messages.size() == 1; }));
}

TEST_CASE("sixty-four peers talk to one") {
  RecordingHandler at_hub;
  auto hub = make_tcp_transport(with_secret(), {}, at_hub).value();
  std::uint16_t port = hub->listen({"127.0.0.1", 0}, "hub").value();
  RecordingHandler at_spokes;
  auto spokes = make_tcp_transport(with_secret(), {}, at_spokes).value();
  std::vector<PeerId> ids;
  for (int i = 0; i < 64; ++i)
    ids.push_back(spokes->connect({"127.0.0.1", port}, "spoke", 10s).value());
  for (PeerId id : ids) REQUIRE(at_spokes.wait_up(id));
  std::string bytes(1'000'000, 'x');
  for (PeerId id : ids) {
    CHECK(send_text(*spokes, id, "hello").ok());
    CHECK(send_bytes(*spokes, id, "t", bytes).ok());
  }
  CHECK(at_hub.wait([&] {
    auto& all = at_hub.all();
    return all.size() == 64 && std::all_of(all.begin(), all.end(), [&](auto& e) {
             return e.second.messages.size() == 1 && e.second.tensors.size() == 1;
           });
  }));
  spokes->shutdown(), hub->shutdown();
}

TEST_CASE("an idle peer stays up past the handshake and silence limits") {
  TransportLimits limits;
  limits.handshake = 150ms;
  limits.silence = 250ms;
  Pair p(with_secret(), limits);
  REQUIRE(p.up);
  // Time passes on the other side of a third connection, whose deadline outlasts both limits.
  PeerId never = p.a->connect({"127.0.0.1", 1}, "", 600ms).value();
  CHECK(p.at_a.wait_down(never).code() == Code::deadline_exceeded);
  CHECK(send_text(*p.a, p.to_b, "still here").ok());
  CHECK(p.at_b.wait([&] { return !p.at_b.log(p.to_a).messages.empty(); }));
  CHECK(!p.at_a.copy(p.to_b).down);
}

// Both read the same clock, so what they learn from heartbeats is to be 0, but for the error that
// the estimate admits.
TEST_CASE("peers learn how far their clocks are apart") {
  for (bool secret : {false, true}) {
    CAPTURE(secret);
    Pair p(secret ? with_secret() : Security::plaintext(), {.heartbeat = 5ms});
    REQUIRE(p.up);
    std::pair<RecordingHandler*, PeerId> sides[] = {{&p.at_b, p.to_a}, {&p.at_a, p.to_b}};
    for (auto& [at, id] : sides) {
      REQUIRE(at->wait([&, at = at, id = id] { return at->log(id).clocks >= 20; }));
      const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
      const auto estimate = at->copy(id).clock.at(now);
      REQUIRE(estimate);
      CHECK(std::llabs(estimate->offset_ns) <= estimate->error_ns);
      MESSAGE("offset " << estimate->offset_ns << " ns, error " << estimate->error_ns << " ns");
    }
  }
}

TEST_CASE("a process that is always busy still finds out who is silent") {
  TransportLimits limits;
  limits.silence = 500ms;
  Pair p(Security::plaintext(), limits);
  REQUIRE(p.up);
  RawClient control(p.port), data(p.port);
  data.send(frame_of(FrameType::attach, greet(control)));
  REQUIRE(
      p.at_b.wait([&] { return p.at_b.all().size() == 2 && p.at_b.all().rbegin()->second.up; }));
  const PeerId silent = p.at_b.all().rbegin()->first;
  // The thread that looks after peers comes back late each time.
  p.at_b.on_control = [](PeerId, const Buffer&) { ::poll(nullptr, 0, 150); };
  for (int i = 0; i < 20 && !p.at_b.copy(silent).down; ++i) {
    REQUIRE(send_text(*p.a, p.to_b, "work").ok());
    const std::size_t sent = std::size_t(i) + 1;
    REQUIRE(p.at_b.wait([&] { return p.at_b.log(p.to_a).messages.size() == sent; }));
  }
  CHECK(p.at_b.copy(silent).why.text().find("silent for") != std::string::npos);
  CHECK(!p.at_b.copy(p.to_a).down);
}

namespace {

// Listens, and lets in whoever connects; then it says nothing more.
struct SilentListener {
  SilentListener() : socket(listen_on(resolve({"127.0.0.1", 0}).value().front()).value()) {}
  Endpoint at() const { return {"127.0.0.1", local_address(socket.get()).port()}; }
  void let_in() {
    control.emplace(RawClient::accepted_by(socket.get()));
    control->frame();
    control->send(
        frame_of(FrameType::welcome, encode(Greeting{1u << 20, 1u << 20, false, {}, ""})));
    data.emplace(RawClient::accepted_by(socket.get()));
    data->frame();
    control->send(frame_of(FrameType::ready, ""));
  }
  void leave() {
    control.reset();
    data.reset();
  }
  Descriptor socket;
  std::optional<RawClient> control, data;
};

}  // namespace

TEST_CASE("a peer whose silence is allowed is lost when its connection ends") {
  SilentListener patient, other;
  TransportLimits limits;
  limits.silence = 250ms;
  RecordingHandler at;
  auto t = make_tcp_transport(Security::plaintext(), limits, at).value();
  const PeerId kept = t->connect(patient.at(), "", 20s).value();
  t->allow_silence(kept, [] { return true; });
  patient.let_in();
  REQUIRE(at.wait_up(kept));
  const PeerId lost = t->connect(other.at(), "", 20s).value();
  other.let_in();
  CHECK(at.wait_down(lost).text().find("silent for") != std::string::npos);
  CHECK(!at.copy(kept).down);
  patient.leave();
  CHECK(at.wait_down(kept).code() == Code::unavailable);
  CHECK(at.copy(kept).why.text().find("silent for") == std::string::npos);
  t->shutdown();
}

TEST_CASE("many threads may send to one peer, each in its own order") {
  Pair p(with_secret());
  REQUIRE(p.up);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        (void)send_text(*p.a, p.to_b, fmt::format("{} {}", t, i));
        (void)send_bytes(*p.a, p.to_b, fmt::format("{} {}", t, i), std::string(100, 'x'));
      }
    });
  }
  for (auto& t : threads) t.join();
  REQUIRE(p.at_b.wait([&] {
    auto& log = p.at_b.log(p.to_a);
    return log.messages.size() == 4000 && log.tensors.size() == 4000;
  }));
  int next[4] = {};
  for (auto& m : p.at_b.copy(p.to_a).messages) {
    int t = m[0] - '0';
    CHECK(m == fmt::format("{} {}", t, next[t]++));
  }
}

// On one processor whoever is woken there runs in the place of the sender. Counted are the times
// that this happened to it: in all, since it may find its peer's threads before its own.
TEST_CASE("a sender of tensors is not kept from going on by those whom it wakes") {
  const OneProcessor only;
  Pair p(Security::plaintext());
  REQUIRE(p.up);
  constexpr int kTensors = 32;
  rusage before{}, after{};
  const std::string bytes(512u << 10, 'x');
  getrusage(RUSAGE_THREAD, &before);
  for (int i = 0; i < kTensors; ++i) {
    compute_for(5ms);
    REQUIRE(send_bytes(*p.a, p.to_b, "large", bytes).ok());
    REQUIRE(p.at_b.wait([&] { return int(p.at_b.log(p.to_a).tensors.size()) == i + 1; }));
  }
  getrusage(RUSAGE_THREAD, &after);
  const long displaced = after.ru_nivcsw - before.ru_nivcsw;
  MESSAGE("displaced " << displaced << " times in " << kTensors << " tensors");
  CHECK(displaced < 20 * kTensors);
}

TEST_CASE("a message overtakes bulk messages that wait for a slow peer") {
  for (const Security& security : {Security::plaintext(), with_secret(true)}) {
    std::promise<void> go_on;
    Pair p(security, {.silence = 60s});
    REQUIRE(p.up);
    // The peer takes the first one and no more, until everything else is on its way.
    p.at_b.on_control = [&, may_go = go_on.get_future().share()](PeerId, const Buffer&) {
      (void)may_go.wait_for(20s);
    };
    constexpr std::size_t kBulk = 256, kBytes = 256u << 10;
    for (std::size_t i = 0; i < kBulk; ++i) {
      const std::string text = fmt::format("{:06}", i) + std::string(kBytes, 'b');
      REQUIRE(p.a->send_bulk(p.to_b, as_bytes(text)).ok());
    }
    REQUIRE(p.at_b.wait([&] { return !p.at_b.log(p.to_a).messages.empty(); }));
    REQUIRE(send_text(*p.a, p.to_b, "urgent").ok());
    go_on.set_value();
    REQUIRE(p.at_b.wait([&] { return p.at_b.log(p.to_a).messages.size() == kBulk + 1; }));
    std::vector<std::string> heard = p.at_b.copy(p.to_a).messages;
    const auto urgent = std::find(heard.begin(), heard.end(), "urgent");
    CHECK(urgent - heard.begin() < std::ptrdiff_t(kBulk) / 2);
    REQUIRE(urgent != heard.end());
    heard.erase(urgent);
    for (std::size_t i = 0; i < kBulk; ++i) CHECK(heard[i].substr(0, 6) == fmt::format("{:06}", i));
  }
}

TEST_CASE("a slow peer that is closed hears what was said last, and why") {
  for (const Security& security : {Security::plaintext(), with_secret(true)}) {
    std::promise<void> go_on;
    Pair p(security, {.silence = 60s, .linger = 20s, .last_words = 20s});
    REQUIRE(p.up);
    // The peer takes nothing until it is closed: both ends of the socket are full.
    p.at_b.on_control = [&, may_go = go_on.get_future().share()](PeerId, const Buffer&) {
      (void)may_go.wait_for(20s);
    };
    constexpr std::size_t kBulk = 256, kBytes = 256u << 10;
    for (std::size_t i = 0; i < kBulk; ++i)
      REQUIRE(p.a->send_bulk(p.to_b, as_bytes(std::string(kBytes, 'b'))).ok());
    REQUIRE(p.at_b.wait([&] { return !p.at_b.log(p.to_a).messages.empty(); }));
    REQUIRE(send_text(*p.a, p.to_b, "leave").ok());
    p.a->close(p.to_b, failed_precondition("enough"));
    CHECK(p.at_a.wait_down(p.to_b).code() == Code::failed_precondition);
    go_on.set_value();
    const Status why = p.at_b.wait_down(p.to_a);
    CHECK_MESSAGE(why.code() == Code::failed_precondition, why.text());
    CHECK(why.text().find("enough") != std::string::npos);
    const std::vector<std::string> heard = p.at_b.copy(p.to_a).messages;
    CHECK(std::count(heard.begin(), heard.end(), "leave") == 1);
    CHECK(heard.size() < kBulk);  // the graph is of no use any more
  }
}

TEST_CASE("a closed peer that takes nothing is waited for no longer than it stands still") {
  std::promise<void> go_on;
  Pair p(Security::plaintext(), {.silence = 60s, .linger = 50ms});
  REQUIRE(p.up);
  p.at_b.on_control = [&, may_go = go_on.get_future().share()](PeerId, const Buffer&) {
    (void)may_go.wait_for(20s);
  };
  for (int i = 0; i < 64; ++i)
    REQUIRE(p.a->send_bulk(p.to_b, as_bytes(std::string(256u << 10, 'b'))).ok());
  REQUIRE(p.at_b.wait([&] { return !p.at_b.log(p.to_a).messages.empty(); }));
  std::promise<void> over;
  std::thread ends([&] {
    p.a->shutdown();
    over.set_value();
  });
  CHECK(over.get_future().wait_for(20s) == std::future_status::ready);
  go_on.set_value();
  ends.join();
}

TEST_CASE("tensors of a peer that is held wait, its messages do not") {
  for (const Security& security : {Security::plaintext(), with_secret(true)}) {
    Pair p(security);
    REQUIRE(p.up);
    p.b->hold_tensors(p.to_a, true);
    CHECK(send_bytes(*p.a, p.to_b, "first", std::string(64u << 20, 'x')).ok());
    for (int i = 0; i < 20; ++i) {
      CHECK(send_bytes(*p.a, p.to_b, "small", "x").ok());
      CHECK(send_text(*p.a, p.to_b, "a message").ok());
    }
    CHECK(p.at_b.wait([&] { return p.at_b.log(p.to_a).messages.size() == 20; }));
    CHECK(p.at_b.copy(p.to_a).tensors.empty());
    CHECK(p.a->queued_bytes(p.to_b) > 32u << 20);
    p.b->hold_tensors(p.to_a, false);
    CHECK(p.at_b.wait([&] { return p.at_b.log(p.to_a).tensors.size() == 21; }));
  }
}

TEST_CASE("a peer that is held when it goes is missed") {
  Pair p(Security::plaintext());
  REQUIRE(p.up);
  p.b->hold_tensors(p.to_a, true);
  CHECK(send_bytes(*p.a, p.to_b, "t", std::string(20u << 20, 'x')).ok());
  p.a->shutdown();
  CHECK(p.at_b.wait_down(p.to_a).code() == Code::cancelled);
}

TEST_CASE("a long queue reports when it has drained") {
  TransportLimits limits;
  limits.queue_mark = 1u << 20;
  Pair p(with_secret(true), limits);
  REQUIRE(p.up);
  CHECK(send_bytes(*p.a, p.to_b, "t", std::string(20u << 20, 'x')).ok());
  CHECK(p.at_a.wait([&] { return p.at_a.log(p.to_b).drained == 1; }));
  CHECK(p.at_b.wait([&] { return p.at_b.log(p.to_a).tensors.size() == 1; }));
  CHECK(p.a->queued_bytes(p.to_b) == 0);
}

TEST_CASE("a sender that waits for its queue to drain never waits for ever") {
  TransportLimits limits;
  limits.queue_mark = 100'000;
  Pair p(Security::plaintext(), limits);
  REQUIRE(p.up);
  Buffer bytes = buffer_of(std::string(110'000, 'x'));  // each one passes the mark
  for (int i = 0, drained = 0; i < 3000; ++i) {
    REQUIRE(p.a->send_tensor(p.to_b, TensorHeader({}, bytes.size()), bytes, 0).ok());
    if (p.a->queued_bytes(p.to_b) <= limits.queue_mark) continue;
    REQUIRE(p.at_a.wait([&] {
      int now = p.at_a.log(p.to_b).drained;
      return p.a->queued_bytes(p.to_b) <= limits.queue_mark || std::exchange(drained, now) != now;
    }));
  }
  CHECK(p.at_b.wait([&] { return p.at_b.log(p.to_a).tensors.size() == 3000; }));
}

namespace {

// A child process that joins and then does nothing. Made before this process has threads.
struct Child {
  explicit Child(const Security& security) {
    int to_child[2];
    REQUIRE(pipe(to_child) == 0);
    pid = fork();
    if (pid == 0) {
      ::close(to_child[1]);
      std::uint16_t port = 0;
      if (::read(to_child[0], &port, sizeof port) != sizeof port) _exit(1);
      static RecordingHandler handler;
      auto t = make_tcp_transport(security, {}, handler).value();
      (void)t->connect({"127.0.0.1", port}, "child", 10s);
      char end;
      while (::read(to_child[0], &end, 1) > 0) {
      }
      _exit(0);
    }
    ::close(to_child[0]);
    pipe_ = to_child[1];
  }
  ~Child() {
    ::close(pipe_);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  void tell(std::uint16_t port) { REQUIRE(::write(pipe_, &port, sizeof port) == sizeof port); }
  pid_t pid = 0;

 private:
  int pipe_ = -1;
};

}  // namespace

TEST_CASE("the death of a process is noticed at once, its standstill after the limit") {
  const Security security = with_secret();
  Child killed(security), stopped(security);
  const auto lost_by = [&](Child& child, int signal, std::chrono::milliseconds silence) {
    TransportLimits limits;
    limits.silence = silence;
    RecordingHandler at;
    auto t = make_tcp_transport(security, limits, at).value();
    child.tell(t->listen({"127.0.0.1", 0}, "parent").value());
    const PeerId id = at.only();
    REQUIRE(id != 0);
    ::kill(child.pid, signal);
    const Status why = at.wait_down(id);
    t->shutdown();
    return why;
  };
  CHECK(lost_by(killed, SIGKILL, 1h).code() == Code::unavailable);  // not for its silence
  const Status why = lost_by(stopped, SIGSTOP, 500ms);
  CHECK_MESSAGE(why.text().find("was silent for") != std::string::npos, why.text());
}

TEST_CASE("a socket that connects to itself is refused, and leaves the port to others") {
  Address at = value_or_throw(resolve({"127.0.0.1", 0})).front();
  {
    Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(fd.get(), at.get(), at.size) == 0);
    at = local_address(fd.get());
    REQUIRE(::connect(fd.get(), at.get(), at.size) == 0);
    CHECK(connect_result(fd.get()).code() == Code::unavailable);
  }
  CHECK(listen_on(at).ok());
}
