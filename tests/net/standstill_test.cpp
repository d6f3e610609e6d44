// Connections that stand still while both ends live.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>

#include "actors/net/tcp.hpp"
#include "tests/net/peers.hpp"
#include "tests/net/proxy.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

struct Wired {
  explicit Wired(bool encrypted, std::chrono::milliseconds silence = 300ms) {
    Security security = Security::plaintext();
    if (encrypted) {
      security = Security::shared_secret("0123456789abcdef0123456789abcdef");
      security.encrypt_loopback_data = true;
    }
    TransportLimits limits;
    limits.silence = silence;
    limits.heartbeat = 20ms;
    a = make_tcp_transport(security, limits, at_a).value();
    b = make_tcp_transport(security, limits, at_b).value();
    wire = std::make_unique<Proxy>(Endpoint{"127.0.0.1", b->listen({"127.0.0.1", 0}, "b").value()});
    to_b = a->connect({"127.0.0.1", wire->port()}, "a", 20s).value();
    REQUIRE(at_a.wait_up(to_b));
    to_a = at_b.only();
  }
  ~Wired() {
    a->shutdown();
    b->shutdown();
  }
  RecordingHandler at_a, at_b;
  std::unique_ptr<Transport> a, b;
  std::unique_ptr<Proxy> wire;
  PeerId to_a = 0, to_b = 0;
};

constexpr std::size_t kControl = 0, kData = 1;  // connections, in the order in which they are made

}  // namespace

TEST_CASE(
    "a data connection that stands still ends the peer, though its control connection lives") {
  for (bool encrypted : {false, true})
    for (bool to_listener : {false, true}) {
      CAPTURE(encrypted);
      CAPTURE(to_listener);
      Wired w(encrypted);
      w.wire->stop(kData);
      // Small enough to be gone as far as its sender can tell.
      Transport& from = to_listener ? *w.a : *w.b;
      RecordingHandler& at = to_listener ? w.at_a : w.at_b;
      const PeerId to = to_listener ? w.to_b : w.to_a;
      REQUIRE(send_bytes(from, to, "t", "a few bytes").ok());
      const Status why = at.wait_down(to);
      CAPTURE(why.text());
      CHECK(why.code() == Code::unavailable);
      CHECK(why.text().find("the data connection to the peer stood still for") !=
            std::string::npos);
      // The other side learns why.
      RecordingHandler& other = to_listener ? w.at_b : w.at_a;
      CHECK(other.wait_down(to_listener ? w.to_a : w.to_b).text().find("stood still") !=
            std::string::npos);
    }
}

TEST_CASE("a data connection that breaks ends the peer, however its control connection lives") {
  for (bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    Wired w(encrypted, 1h);  // heartbeats come more often than last words are waited for
    w.wire->cut(kData);
    for (const Status& why : {w.at_a.wait_down(w.to_b), w.at_b.wait_down(w.to_a)}) {
      CAPTURE(why.text());
      CHECK(why.code() == Code::unavailable);
    }
  }
}

TEST_CASE("a control connection that stands still ends the peer") {
  Wired w(false);
  w.wire->stop(kControl);
  CHECK(w.at_a.wait_down(w.to_b).text().find("the peer was silent for") != std::string::npos);
}

TEST_CASE("a peer that holds its tensors for longer than the limit is not lost for that") {
  Wired w(false);
  w.b->hold_tensors(w.to_a, true);
  REQUIRE(send_bytes(*w.a, w.to_b, "t", std::string(8u << 20, 'x')).ok());
  // Another connection attempt outlasts the limit.
  const PeerId never = w.a->connect({"127.0.0.1", 1}, "", 800ms).value();
  CHECK(w.at_a.wait_down(never).code() == Code::deadline_exceeded);
  CHECK_MESSAGE(!w.at_a.copy(w.to_b).down, w.at_a.copy(w.to_b).why.text());
  w.b->hold_tensors(w.to_a, false);
  CHECK(w.at_b.wait([&] { return w.at_b.log(w.to_a).tensors.size() == 1; }));
}
