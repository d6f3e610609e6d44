#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/wait.hpp"
#include "serialization/message.hpp"

namespace troupe {

// What one attempt at a partition waits for. Every attempt that the task knows and that has not
// ended is in at least one.
struct NodeWait {
  RunId run;
  AttemptId attempt;
  std::uint32_t partition = 0;
  Wait::On on = Wait::On::node;
  std::string node, op, site;  // empty: not for a node
  std::string device;
  std::string what;
  std::uint64_t resource = 0;      // On::resource: ResourceId::hash
  std::uint32_t from = 0;          // On::tensor: the sending partition
  std::uint64_t milliseconds = 0;  // waiting time
};

// Task to master, the reply to AskWaits: what its attempts wait for, which steps it has loaded, and
// which it is preparing. No reply.
struct TaskWaits {
  // Limits of a report for people; `cut` is set if there are more waits.
  static constexpr std::size_t kMost = 1000;
  static constexpr std::size_t kMostText = 1000;

  std::uint64_t round = 0;
  TaskId task{};
  bool cut = false;
  std::vector<NodeWait> waits;
  std::vector<CompiledId> loaded, preparing;
};

template <>
struct Fields<NodeWait> {
  static auto of(auto& m) {
    auto& [run, attempt, partition, on, node, op, site, device, what, resource, from,
           milliseconds] = m;
    return std::tie(run, attempt, partition, on, node, op, site, device, what, resource, from,
                    milliseconds);
  }
};

template <>
struct MessageAt<24> {
  using Type = TaskWaits;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [round, task, cut, waits, loaded, preparing] = m;
    return std::tie(round, task, cut, waits, loaded, preparing);
  }
  static TaskId speaker(const TaskWaits& m) { return m.task; }
  static Status check(const TaskWaits& m) {
    if (m.waits.size() > TaskWaits::kMost)
      return invalid_argument("a report of " + std::to_string(m.waits.size()) + " waits");
    for (const NodeWait& wait : m.waits) {
      if (std::size_t(wait.on) > std::size_t(Wait::On::compile))
        return invalid_argument("a wait for nothing that there is");
      for (const std::string* text : {&wait.node, &wait.op, &wait.site, &wait.device, &wait.what})
        if (text->size() > TaskWaits::kMostText)
          return invalid_argument("a wait with a text of " + std::to_string(text->size()) +
                                  " bytes");
    }
    return ok_status();
  }
};

}  // namespace troupe
