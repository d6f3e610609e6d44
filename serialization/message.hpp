// The rules of a message between processes, declared in the message's file in messages/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "core/transaction.hpp"

namespace troupe {

// The permitted sender: the master (to workers), a worker (to the master), or both.
enum class Sender : std::uint8_t { master, worker, either };

// Its receiver in the process where it arrives.
enum class Receiver : std::uint8_t {
  actor,       // the worker's (interfaces.hpp: WorkerActor), or the master's (CoordinatorActor)
  membership,  // the owner of the hub: HubOwner::message
  hub,         // the hub itself
};

// Message number N; the number is the first word of its bytes. Each is specialised by one file:
//
//   using Type                           the struct
//   Sender kSender, Receiver kReceiver   a peer that breaks them is closed
//   bool kShortWork                      for an actor: its handler may run on the thread that
//                                        delivers the message, which also sends heartbeats
//   bool kBulk                           optional: it may be long, and others overtake it on the
//   way;
//                                        messages with it keep their order
//   fields(auto& m)                      a tuple of references to all fields, by which it is
//                                        written and read (detail/words.hpp)
//   speaker(const Type&)                 optional, for a message that names its sender: a ProcessId
//                                        or a TaskId. The sender must be that process or host it
//   Status check(const Type&)            optional: checks the values of the fields, also that
//                                        enumerations have a named value
//
// Numbers are dense. The structured binding in `fields` does not compile if a field is missing.
template <std::size_t number>
struct MessageAt;

// The fields of a struct inside messages: `static auto of(auto& m)`, like `fields`.
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
