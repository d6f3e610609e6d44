// The program itself, as a worker in a process of its own: bombarded where it listens, it goes on,
// and then works for a genuine master.
#include <doctest/doctest.h>

#include "serialization/wire.hpp"
#include "tests/actors/support/tcp_workers.hpp"
#include "tests/actors/worker/hostile_frames.hpp"
#include "tests/apps/running_command.hpp"
#include "tests/net/raw_client.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::uint64_t kMostGrowth = 64u << 20;
constexpr std::chrono::seconds kTraining{120};  // a few steps, on a slow build too

bool listens(std::uint16_t port) {
  auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until)
    if (Line(port, nullptr).open()) return true;
  return false;
}

// Of one that has the secret: right up to the point where it breaks off.
std::string greeting_of(ProcessId process) {
  Join join;
  join.process = process;
  return frame_text(
      FrameType::hello,
      encode(Greeting{1u << 20, 1u << 20, false, {}, value_or_throw(encode_join(join))}));
}

class Bombardment {
 public:
  Bombardment(std::uint16_t port, std::uint64_t seed) : port_(port), frames_(program_, seed) {}

  // One connection of somebody who is no member: without the secret, or with it.
  void talk() {
    Random& random = frames_.random();
    const bool secret = random.below(2) == 0;
    Line line(port_, secret ? &secret_context() : nullptr);
    REQUIRE(line.open());
    line.send(secret ? words_with_secret() : words_of_stranger());
    line.finish();
    CHECK(line.closed());
  }
  std::uint64_t said() const { return said_; }

 private:
  std::string words_of_stranger() {
    ++said_;
    return frames_.stranger();
  }
  std::string words_with_secret() {
    Random& random = frames_.random();
    std::string words;
    if (random.below(3) == 0) {
      ++said_;
      words = greeting_of(ProcessId(random.below(4)));
    } else if (random.below(2) == 0) {
      words = words_of_stranger();
    }
    for (std::uint64_t more = random.below(8) + (words.empty() ? 1 : 0); more > 0; --more) {
      ++said_;
      switch (random.below(3)) {
        case 0:
          words += frames_.refused();
          break;
        case 1:
          words += frames_.tensor(random.below(3), random.below(2) == 0);
          break;
        default:
          words += frame_text(FrameType::message, message_text(Leave{}));
      }
    }
    return words;
  }

  std::uint16_t port_;
  JobProgram program_;
  HostileFrames frames_;
  std::uint64_t said_ = 0;
};

// The worker's memory once pools and caches are warm, and at most later.
class Growth {
 public:
  explicit Growth(pid_t process) : process_(std::to_string(process)) {}

  void look() {
    const std::uint64_t now = resident_bytes(process_);
    REQUIRE(now > 0);  // it lives
    if (before_ == 0) before_ = now;
    most_ = std::max(most_, now);
    REQUIRE(now <= before_ + kMostGrowth);
  }
  std::uint64_t bytes() const { return most_ - before_; }

 private:
  std::string process_;
  std::uint64_t before_ = 0, most_ = 0;
};

void bombard(std::uint64_t wanted, std::uint64_t seed) {
  INFO("seed " << seed);
  TemporaryDir dir;
  dir.write("secret", kSecret);
  std::filesystem::permissions(dir.path("secret"), std::filesystem::perms(0600));
  const test::ReservedPort masters, port;
  const std::string at = "127.0.0.1:", master = at + std::to_string(masters.number());
  const std::string secret = dir.path("secret");
  RunningCommand train({"train", "mnist-softmax", "--examples", "512", "--steps", "5", "--quiet",
                        "--listen", master, "--wait-for", "2", "--secret-file", secret, "--log",
                        "info"});
  REQUIRE_MESSAGE(train.wait_for("waiting for workers"), train.output());
  RunningCommand victim({"worker", "--master", master, "--listen",
                         at + std::to_string(port.number()), "--secret-file", secret, "--log",
                         "off"});
  REQUIRE(listens(port.number()));
  Bombardment bombardment(port.number(), seed);
  Growth growth(victim.pid());
  for (std::uint64_t talks = 0; bombardment.said() < wanted; ++talks) {
    bombardment.talk();
    if (bombardment.said() >= wanted / 10 && talks % 16 == 0) growth.look();
  }
  growth.look();
  RunningCommand other({"worker", "--master", master, "--secret-file", secret});
  const int code = train.end(kTraining);
  CHECK_MESSAGE(code == 0, train.output());
  CHECK(train.output().find("params_sha256") != std::string::npos);
  CHECK_MESSAGE(victim.end(kTraining) == 0, victim.output());
  CHECK_MESSAGE(other.end(kTraining) == 0, other.output());
  MESSAGE("hostile frames: " << bombardment.said() << " against a process, growth MiB: "
                             << (growth.bytes() >> 20) << ", seed: " << seed);
}

}  // namespace

TEST_CASE("a worker process survives strangers and works for its master") { bombard(300, 1); }

TEST_CASE("a worker process survives a hundred thousand hostile frames [slow]") {
  bombard(100'000, 2);
}
