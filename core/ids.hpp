// Numbers that name things in the runtime.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "core/hash.hpp"

namespace troupe {

// The client's choice, so that a request it repeats is known as the same run.
struct RunId {
  std::uint64_t session = 0;
  std::uint64_t n = 0;
  friend auto operator<=>(const RunId&, const RunId&) = default;
};

// One try of a run: membership view, and the count of STARTs in that view.
struct AttemptId {
  std::uint64_t view = 0;
  std::uint64_t a = 0;
  friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
  std::string text() const { return std::to_string(view) + "." + std::to_string(a); }
};

// The last commit when an attempt started: what all its reads see. Commit numbers are dense.
using CommitNumber = std::uint64_t;

// A process of the cluster: 0 is the master's.
using ProcessId = std::uint32_t;

// A channel of a compiled step: dense, fixed at partition time.
using ChannelId = std::uint32_t;

// A compiled step, numbered by the master that compiled it.
using CompiledId = std::uint64_t;

}  // namespace troupe

template <>
struct std::hash<troupe::AttemptId> {
  std::size_t operator()(const troupe::AttemptId& id) const {
    return std::size_t(troupe::hash_combine(id.view, id.a));
  }
};
template <>
struct std::hash<troupe::RunId> {
  std::size_t operator()(const troupe::RunId& id) const {
    return std::size_t(troupe::hash_combine(id.session, id.n));
  }
};
