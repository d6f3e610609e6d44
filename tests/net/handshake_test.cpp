#include <doctest/doctest.h>

#include "actors/net/detail/handshake.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {
using Time = std::chrono::steady_clock::time_point;
Time at(std::chrono::milliseconds ms) { return Time{} + 1h + ms; }
}  // namespace

TEST_CASE("a greeting and a goodbye survive their encoding") {
  Greeting g{1u << 20, 2u << 20, true, {}, "who I am"};
  g.token[31] = std::byte{7};
  Greeting back = decode_greeting(as_bytes(encode(g))).value();
  CHECK(back.control_bytes == g.control_bytes);
  CHECK(back.chunk_bytes == g.chunk_bytes);
  CHECK(back.encrypt_data);
  CHECK(back.token == g.token);
  CHECK(back.hello == "who I am");
  Status why = aborted("because").in("node x");
  Status told = decode_bye(as_bytes(encode_bye(why)));
  CHECK(told.code() == Code::aborted);
  CHECK(told.message() == "because (node x)");
}

TEST_CASE("malformed greetings and goodbyes are statuses") {
  std::string good = encode(Greeting{1u << 20, 1u << 20, false, {}, ""});
  CHECK(!decode_greeting(as_bytes(good.substr(1))).ok());
  CHECK(!decode_greeting(as_bytes(good + std::string(kMaxHello + 1, 'x'))).ok());
  CHECK(!decode_greeting(as_bytes(encode(Greeting{100, 100, false, {}, ""}))).ok());
  good[0] = 9;
  CHECK(decode_greeting(as_bytes(good)).status().code() == Code::failed_precondition);
  for (std::string_view bad :
       {std::string_view(""), std::string_view("\0", 1), std::string_view("\x63 text")})
    CHECK(decode_bye(as_bytes(bad)).code() == Code::invalid_argument);
  CHECK(decode_bye(as_bytes("\x04" + std::string(100'000, 'x'))).message().size() == 2048);
}

TEST_CASE("strangers have a limit, per address and in all, and a deadline") {
  TransportLimits limits;
  limits.strangers = 3;
  limits.strangers_per_address = 2;
  limits.handshake = 2000ms;
  Strangers s(limits);
  CHECK(s.add(1, "a", at(0ms)).ok());
  CHECK(s.add(2, "a", at(100ms)).ok());
  CHECK(s.add(3, "a", at(200ms)).code() == Code::resource_exhausted);
  CHECK(s.add(4, "b", at(300ms)).ok());
  CHECK(s.add(5, "c", at(400ms)).code() == Code::resource_exhausted);
  CHECK(s.remove(2));
  CHECK(!s.remove(2));
  CHECK(!s.remove(3));
  CHECK(s.add(6, "a", at(500ms)).ok());
  CHECK(s.expired(at(1999ms)).empty());
  CHECK(s.expired(at(2000ms)) == std::vector<std::uint64_t>{1});
  CHECK(s.expired(at(2499ms)).size() == 2);
  CHECK(s.expired(at(2500ms)).size() == 3);
}

TEST_CASE("silence is judged by a clock that did not stand still") {
  Liveness l(2000ms);
  Time heard = at(0ms);
  for (auto t = 0ms; t <= 2000ms; t += 50ms) l.tick(at(t));
  CHECK(!l.lost(heard));
  l.tick(at(2050ms));
  CHECK(l.lost(heard));
  CHECK(l.silence(heard) == 2050ms);
}

TEST_CASE("after a pause of its own the detector blames nobody") {
  Liveness l(2000ms);
  Time heard = at(0ms);
  l.tick(at(0ms));
  l.tick(at(30'000ms));  // stopped for half a minute
  CHECK(!l.lost(heard));
  for (auto t = 30'050ms; t <= 32'000ms; t += 50ms) l.tick(at(t));
  CHECK(!l.lost(heard));
  l.tick(at(32'050ms));
  CHECK(l.lost(heard));
}
