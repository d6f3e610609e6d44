// What a message that crosses between processes says of itself, in its own file of messages/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "core/transaction.hpp"

namespace troupe {

// Who may send it: the master to workers, a worker to the master, or both.
enum class Sender : std::uint8_t { master, worker, either };

// Who gets it where it arrives.
enum class Receiver : std::uint8_t {
  actor,       // the worker's (interfaces.hpp: WorkerActor), or the master's (CoordinatorActor)
  membership,  // who knows of the processes of the job: HubOwner::message
  hub,         // nobody else
};

// Message number N; the number is the first word of its bytes. Each is specialised by one file:
//
//   using Type                           the struct
//   Sender kSender, Receiver kReceiver   anything else closes the peer that sent it
//   bool kShortWork                      for an actor: its handler may run on the thread that
//                                        brings the message, which also sends heartbeats
//   fields(auto& m)                      a tuple of references to all of its fields; that is how it
//                                        is written and read (detail/words.hpp)
//   speaker(const Type&)                 if it names its sender, a ProcessId or a TaskId: it must
//                                        be that process, or host that task
//   Status check(const Type&)            if not every value of the fields is a message; what an
//                                        enumeration has no name for is one of its values
//
// Numbers are dense. A structured binding in `fields` does not compile when a field is forgotten.
template <std::size_t number>
struct MessageAt;

// The fields of a struct inside messages: `static auto of(auto& m)`, likewise.
template <class T>
struct Fields;

template <>
struct Fields<AttemptId> {
  static auto of(auto& m) {
    auto& [view, a] = m;
    return std::tie(view, a);
  }
};
template <>
struct Fields<RunId> {
  static auto of(auto& m) {
    auto& [session, n] = m;
    return std::tie(session, n);
  }
};
template <>
struct Fields<ResourceId> {
  static auto of(auto& m) {
    auto& [task, hash] = m;
    return std::tie(task, hash);
  }
};
template <>
struct Fields<ResourceWrites> {
  static auto of(auto& m) {
    auto& [resource, keys, outside] = m;
    return std::tie(resource, keys, outside);
  }
};

}  // namespace troupe
