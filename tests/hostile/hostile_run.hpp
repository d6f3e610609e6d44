// Builds, compiles and runs a hostile case, and says what was wrong with how it ended.
#pragma once

#include <memory>
#include <string>

#include "devices/device.hpp"
#include "ops/compile_host.hpp"
#include "tests/hostile/hostile_case.hpp"

namespace troupe::test {

// What a step may hold, and the largest block that anybody may take for it.
inline constexpr std::uint64_t kHostileMemory = std::uint64_t{64} << 20;

enum class HostileEnd : std::uint8_t {
  refused,  // as a graph or its gradient, or by the compiler
  not_fed,  // a feed contradicts its placeholder
  failed,   // in the run
  asked,    // the run asks a resource for something
  computed,
};
inline constexpr std::size_t kHostileEnds = 5;

struct HostileOutcome {
  HostileEnd end = HostileEnd::refused;
  std::string fault;   // empty: it ended as it should
  std::string status;  // with which it ended
};

// The way of a program through one process: builder, gradients, compiler, burst. One thread.
class HostileRunner {
 public:
  explicit HostileRunner(const OpTable& table);
  ~HostileRunner();
  HostileOutcome run(const HostileCase& drawn);

 private:
  const OpTable& table_;
  CompileHost host_;
  std::unique_ptr<Device> device_;
};

}  // namespace troupe::test
