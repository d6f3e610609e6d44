// What may come to a process from others, and what came before anybody waited for it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/hub.hpp"
#include "actors/processes/task_hosts.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// Large feeds and fetches travel apart from their messages, and elements of channels may overtake
// the START of their attempt. So some tensors have to wait here or at an executor, and each of them
// is memory that another process decided to take. What bounds it:
//
//  fetches         A master takes those that it asked for: of a partition that it started, from the
//                  process that hosts its task, numbers below the step's fetches, each once.
//  feeds           A worker takes those that its StartPartition leaves out, each once.
//  channels        From the process that hosts the task where the channel begins, one element each
//                  an attempt outside loops, of the channel's type and shape.
//  early ones      Feeds and elements for a partition that the master has not spoken of yet: up to
//                  `limit_early` from one process. Beyond that its tensors are held: not read until
//                  attempts begin or are over. That is no error, and no legal job stands still by
//                  it: START leaves the master for all partitions at one time, on connections that
//                  tensors do not share, so the word that lets go is always on its way.
//
// Tensors of attempts that are over are not wanted. No I/O and no lock: the owner has both.
class Arrivals {
 public:
  static constexpr std::uint64_t kEarlyBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kTensorCost = 256;  // of an early one beside its bytes

  // `hosts` outlives it, and changes only while nothing of this is called.
  Arrivals(bool master, const TaskHosts& hosts) : master_(master), hosts_(hosts) {}
  void limit_early(std::uint64_t bytes) { limit_ = bytes; }

  // Master: `task` is about to be told `start`, of a step with so many fetches. False: it was.
  bool ask(TaskId task, const StartPartition& start, std::uint32_t fetches);

  void expect(CompiledId compiled, std::vector<InboundChannel> channels);
  void forget(CompiledId compiled);
  void live(const LiveList& list);
  // The process's connection ended. What it sent stays, and so does the account of it.
  void disconnected(ProcessId process) { held_.erase(process); }

  // What a process claims about a tensor, before any of its bytes is read. Whether it is wanted.
  Expected<bool> admit(ProcessId from, const TensorTag& tag, std::uint64_t bytes);
  // A feed or fetch that was admitted. The message that waited for it, if it was the last.
  std::optional<WireMessage> add(const TensorTag& tag, Tensor tensor);
  // A message, once all its tensors are there. invalid_argument: that process was not asked, or not
  // for that run.
  Expected<std::optional<WireMessage>> add(ProcessId from, WireMessage message);

  // Processes whose tensors have to be held from now on (true), or no longer.
  std::vector<std::pair<ProcessId, bool>> take_holds() { return std::exchange(holds_, {}); }

 private:
  // Of an attempt. `compiled` is 0 at the master, where tags of fetches do not name it.
  struct Key {
    AttemptId attempt;
    CompiledId compiled = 0;
    std::uint32_t partition = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Part {
    bool begun = false;         // asked (master), or spoken of by the master (worker)
    TaskId task{};              // master: who was asked
    RunId run;                  // master: of the attempt
    std::uint32_t fetches = 0;  // master: how many there are
    std::map<ProcessId, std::uint64_t> early;  // what each process sent before it began
    std::set<std::uint32_t> admitted;          // feeds or fetches
    std::map<std::uint32_t, Tensor> tensors;   // of these, what has arrived
    std::optional<WireMessage> message;        // waits for them
  };

  Key key(const TensorTag& tag) const;
  Status check(ProcessId from, const TensorTag& tag) const;
  Status admit_channel(ProcessId from, const TensorTag& tag);
  Status admit_fetch(ProcessId from, const TensorTag& tag);
  Status admit_feed(Part& part, const TensorTag& tag);
  Status charge(ProcessId from, Part& part, std::uint64_t bytes);
  void discharge(Part& part);
  Expected<Part*> asked(ProcessId from, const AttemptId& attempt, const RunId& run,
                        std::uint32_t partition);

  const bool master_;
  const TaskHosts& hosts_;
  std::uint64_t limit_ = kEarlyBytes;
  LiveList live_;
  std::map<CompiledId, std::map<ChannelId, InboundChannel>> expected_;
  std::set<std::pair<AttemptId, ChannelId>> received_;
  std::map<Key, Part> parts_;
  std::unordered_map<ProcessId, std::uint64_t> early_;
  std::set<ProcessId> held_;
  std::vector<std::pair<ProcessId, bool>> holds_;
};

}  // namespace troupe
