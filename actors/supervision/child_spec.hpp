// Supervision as data: the children of a supervisor, and what it does when one of them ends.
//
// The vocabulary is that of Erlang/OTP (supervisor behaviour), for actors and processes alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "core/transaction.hpp"

namespace troupe {

// When a child that ended by itself is started again.
enum class Restart : std::uint8_t {
  permanent,  // always
  transient,  // if it ended abnormally
  temporary,  // never
};

// Which children are restarted with the one that ended.
enum class Strategy : std::uint8_t {
  one_for_one,   // none
  one_for_all,   // all
  rest_for_one,  // those after it in the order of the specs
};

// When a supervisor ends because children that are not started again have ended.
enum class AutoShutdown : std::uint8_t {
  never,
  any_significant,  // one significant child has
  all_significant,  // all of them have
};

// How a supervisor ends a child: it asks, and kills what is still there after `within`.
struct Shutdown {
  Instant within = std::chrono::seconds(5);

  static Shutdown brutal() { return {Instant(0)}; }  // killed at once, without being asked
  static Shutdown timed(Instant within) { return {within}; }
  static Shutdown infinite() { return {kNever}; }  // never killed: for children that supervise
};

struct ChildSpec {
  std::string id;  // unique among the children of a supervisor, not empty
  Restart restart = Restart::permanent;
  Shutdown shutdown = {};
  bool significant = false;  // for AutoShutdown; not with Restart::permanent
};

struct SupervisorSpec {
  Strategy strategy = Strategy::one_for_one;
  // More restarts than `intensity` within `period` end the supervisor: it stops all its children
  // and ends abnormally, so that its own supervisor decides. A restart of several children for one
  // that ended counts once.
  int intensity = 1;
  Instant period = std::chrono::seconds(5);
  // The pause before a child is started again; doubles with each of its restarts within `period`,
  // with jitter over the upper half. 0: none.
  Instant first_pause{0}, longest_pause{0};
  AutoShutdown auto_shutdown = AutoShutdown::never;

  // invalid_argument names the field or the child, and what is expected.
  Status check(const std::vector<ChildSpec>& children) const;
};

// How a child ended.
struct ChildExit {
  bool normal = false;
  std::string how;  // the rest of a sentence: "was ended by signal 9 (Killed)"
};

const char* name_of(Restart restart);

}  // namespace troupe
