// What peers that hold the secret, and strangers that do not, say to a worker that is not so. Each
// time the answer is a Status or a closed connection. TROUPE_FRAMES and TROUPE_SEED in the
// environment ask for more frames and other ones.
#include <doctest/doctest.h>

#include <malloc.h>

#include <cstdlib>
#include <iostream>

#include "tests/actors/support/quiet.hpp"
#include "tests/actors/worker/hostile_frames.hpp"
#include "tests/net/raw_client.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::uint64_t kMostGrowth = 64u << 20;

std::uint64_t from_environment(const char* name, std::uint64_t usual) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

class Barrage {
 public:
  Barrage(std::uint64_t frames, std::uint64_t seed) : wanted_(frames), seed_(seed) {}

  void run() {
    test::Quiet quiet;
    // Long messages go back to the system when they are freed: what the allocator would keep of
    // them in each of its arenas is no growth of the worker's.
    ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
    // TROUPE_LIFE: from that one on, to see a failure again.
    std::uint64_t first = from_environment("TROUPE_LIFE", 0);
    for (std::uint64_t life = first; frames() < wanted_; ++life) {
      CAPTURE(seed_);
      CAPTURE(life);
      one_life(hash_combine(seed_, life));
      if (life == first + 4) before_ = resident_bytes();  // pools and caches have warmed up
      if (life < first + 4) continue;
      std::uint64_t now = resident_bytes();
      most_ = std::max(most_, now);
      REQUIRE(now <= before_ + kMostGrowth);
    }
    MESSAGE("hostile frames: " << frames() << " (" << strangers_ << " of strangers, " << members_
                               << " of a member, " << masters_ << " of a master), lives: " << lives_
                               << ", growth MiB: " << ((most_ - std::min(most_, before_)) >> 20)
                               << ", seed: " << seed_);
  }

 private:
  std::uint64_t frames() const { return strangers_ + members_ + masters_; }

  void one_life(std::uint64_t seed) {
    HostileFrames frames(program_, seed);
    Random& random = frames.random();
    HostileJob job;
    odd_tensor_ = false;
    ++lives_;
    bool odd_welcome = random.below(16) == 0;
    if (odd_welcome) ++masters_;
    if (!job.join(odd_welcome ? frames.welcome() : HostileJob::welcome())) {
      REQUIRE(odd_welcome);
      return;
    }
    if (!odd_welcome) job.load(program_);
    std::uint64_t most = wanted_ - std::min(wanted_, this->frames());
    for (std::uint64_t round = 1 + random.below(40); round > 0 && most > 0; --round) {
      for (std::uint64_t n = random.below(8); n > 0; --n) talk_as_stranger(job, frames);
      talk_as_member(job, frames);
      if (!talk_as_master(job, frames)) return;
    }
    if (random.below(2) == 0) {  // the last word
      std::string word = frames.refused();
      job.control().send(word);
      CHECK(job.control().closed());
      ++masters_;
    }
  }

  void talk_as_stranger(HostileJob& job, HostileFrames& frames) {
    Line line(job.port(), nullptr);
    line.send(frames.stranger());
    line.finish();  // it may have promised more than there is
    CHECK(line.closed());
    ++strangers_;
  }

  void talk_as_member(HostileJob& job, HostileFrames& frames) {
    if (!job.member()) return;  // the master side will see why
    for (std::uint64_t n = 1 + frames.random().below(8); n > 0; --n) {
      if (!job.member_data().send(frames.tensor(job.next_transfer(true), true))) break;
      ++members_;
    }
    if (frames.random().below(4) != 0) return;
    job.member_control().send(frames.random().below(2) ? frames.message() : frames.refused());
    CHECK(job.member_control().closed());
    ++members_;
  }

  // False once the worker has closed the connection.
  bool talk_as_master(HostileJob& job, HostileFrames& frames) {
    std::uint64_t n = 1 + frames.random().below(60);
    for (std::uint64_t i = 0; i < n; ++i)
      if (!job.control().send(frames.message())) break;
    if (!job.answers()) {
      CHECK_MESSAGE(odd_tensor_, "closed after well-formed messages: " << job.goodbye());
      return false;
    }
    masters_ += n;
    if (frames.random().below(8) != 0) return true;
    ++masters_;
    odd_tensor_ = true;  // which may close the connection, now or a little later
    job.data().send(frames.tensor(job.next_transfer(false), false));
    return job.answers();
  }

  JobProgram program_;
  bool odd_tensor_ = false;
  std::uint64_t wanted_, seed_;
  std::uint64_t strangers_ = 0, members_ = 0, masters_ = 0, lives_ = 0, before_ = 0, most_ = 0;
};

}  // namespace

TEST_CASE("a job played by a test works") {
  JobProgram program;
  HostileJob job;
  REQUIRE(job.join(HostileJob::welcome()));
  job.load(program);
  CHECK(job.answers());
  CHECK(job.ended().code() == Code::unavailable);
}

TEST_CASE("a worker survives hostile frames of strangers, members and masters") {
  Barrage(2'000, from_environment("TROUPE_SEED", 1)).run();
}

TEST_CASE("a worker survives a million hostile frames [slow]") {
  Barrage(from_environment("TROUPE_FRAMES", 1'000'000), from_environment("TROUPE_SEED", 2)).run();
}
