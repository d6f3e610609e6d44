#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "actors/net/detail/handshake.hpp"
#include "core/hash.hpp"

using namespace troupe;
using namespace std::chrono_literals;

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

TEST_CASE("a heartbeat survives its encoding, and one of another length is a status") {
  const Heartbeat heartbeat{-1, 0x0102030405060708, std::numeric_limits<std::int64_t>::max()};
  const std::string bytes = encode(heartbeat);
  auto read = decode_heartbeat(as_bytes(bytes));
  REQUIRE(read.ok());
  CHECK(read->sent == heartbeat.sent);
  CHECK(read->echo == heartbeat.echo);
  CHECK(read->arrived == heartbeat.arrived);
  for (const std::string& wrong : {std::string(), bytes.substr(1), bytes + "x"})
    CHECK(decode_heartbeat(as_bytes(wrong)).status().code() == Code::invalid_argument);
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

TEST_CASE("strangers have a deadline") {
  TransportLimits limits;
  limits.handshake = 2000ms;
  Strangers s(limits);
  CHECK(!s.add(1, "a", 0ms));
  CHECK(!s.add(2, "a", 100ms));
  CHECK(!s.add(3, "b", 500ms));
  CHECK(s.remove(2));
  CHECK(!s.remove(2));
  CHECK(!s.remove(4));
  CHECK(!s.prove(3));  // which gives it no more time
  CHECK(s.expired(1999ms).empty());
  CHECK(s.expired(2000ms) == std::vector<std::uint64_t>{1});
  CHECK(s.expired(2500ms).size() == 2);
}

TEST_CASE("of too many strangers from one address the oldest leaves") {
  TransportLimits limits;
  limits.strangers_per_address = 2;
  Strangers s(limits);
  CHECK(!s.add(1, "a", 0ms));
  CHECK(!s.add(2, "b", 0ms));
  CHECK(!s.add(3, "a", 0ms));
  CHECK(s.add(4, "a", 0ms) == 1);
  CHECK(s.add(5, "a", 0ms) == 3);
  CHECK(!s.add(6, "b", 0ms));
  CHECK(s.remove(4));
  CHECK(!s.add(7, "a", 0ms));
  CHECK(s.add(8, "a", 0ms) == 5);
  CHECK(s.size() == 4);
}

TEST_CASE("of too many strangers in all the oldest of the most crowded address leaves") {
  TransportLimits limits;
  limits.strangers = 5;
  limits.strangers_per_address = 3;
  Strangers s(limits);
  CHECK(!s.add(1, "quiet", 0ms));
  for (std::uint64_t id : {2, 3, 4}) CHECK(!s.add(id, "crowd", 0ms));
  CHECK(!s.add(5, "other", 0ms));
  CHECK(s.add(6, "another", 0ms) == 2);
  CHECK(s.add(7, "crowd", 0ms) == 3);
  CHECK(s.size() == 5);
}

TEST_CASE("strangers who said something leave after all who did not") {
  TransportLimits limits;
  limits.strangers_per_address = 3;
  Strangers s(limits);
  for (std::uint64_t id : {1, 2, 3}) CHECK(!s.add(id, "a", 0ms));
  s.spoke(1);
  s.spoke(1);
  s.spoke(99);
  CHECK(s.add(4, "a", 0ms) == 2);
  CHECK(s.add(5, "a", 0ms) == 3);
  s.spoke(4);
  s.spoke(5);
  CHECK(s.add(6, "a", 0ms) == 1);
  CHECK(s.add(7, "a", 0ms) == 6);
  CHECK(!s.prove(4));
  s.spoke(4);  // which takes nothing back
  CHECK(!s.add(8, "a", 0ms));
  CHECK(s.add(9, "a", 0ms) == 7);
}

TEST_CASE("whoever proved to know the secret leaves for nobody who did not") {
  TransportLimits limits;
  limits.strangers = limits.strangers_per_address = 2;
  Strangers s(limits);
  CHECK(!s.add(1, "a", 0ms));
  CHECK(!s.prove(1));
  CHECK(!s.prove(1));
  CHECK(!s.prove(99));
  for (std::uint64_t id = 2; id < 1000; ++id) {
    auto leaves = s.add(id, "a", 0ms);
    CHECK(leaves == (id < 4 ? std::nullopt : std::optional(id - 2)));
  }
  CHECK(s.size() == 3);
  CHECK(!s.prove(998));
  CHECK(s.prove(999) == 1);  // there is an end to those, too
  CHECK(s.remove(999));
  CHECK(s.remove(998));
  CHECK(s.size() == 0);
}

TEST_CASE("strangers are counted right through any coming and going") {
  const std::uint64_t seed = 1;
  INFO("seed " << seed);
  Random random(seed);
  TransportLimits limits;
  limits.strangers = 12;
  limits.strangers_per_address = 4;
  Strangers s(limits);
  std::map<std::uint64_t, std::pair<std::string, bool>> there;  // address, proved
  auto unproved = [&](const std::string* address) {
    return std::count_if(there.begin(), there.end(), [&](auto& e) {
      return !e.second.second && (address == nullptr || e.second.first == *address);
    });
  };
  for (std::uint64_t id = 1; id < 5000; ++id) {
    const std::string address(1, char('a' + random.below(6)));
    std::optional<std::uint64_t> leaves = s.add(id, address, 0ms);
    if (leaves) {
      REQUIRE(there.contains(*leaves));
      CHECK(!there[*leaves].second);
      there.erase(*leaves);
    }
    there[id] = {address, false};
    CHECK(unproved(nullptr) <= 12);
    CHECK(unproved(&address) <= 4);
    const std::uint64_t some = id - random.below(8);
    if (random.below(4) == 0) s.spoke(some);
    if (random.below(4) == 0) {
      if (there.contains(some)) there[some].second = true;
      if (auto older = s.prove(some)) CHECK(there.erase(*older) == 1);
    } else if (random.below(3) == 0) {
      CHECK(s.remove(some) == (there.erase(some) == 1));
    }
    REQUIRE(s.size() == there.size());
  }
}
