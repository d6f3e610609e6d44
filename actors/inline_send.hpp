// Sends a message and handles it on the calling thread, where the other way is to wake a thread of
// CAF's for a few microseconds of work: waking an idle CPU costs more than a whole short step.
#pragma once

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>
#include <cstddef>
#include <cstdint>

namespace troupe {

// Names of the actors that only move messages, as their states have them (`name`). No message of a
// step keeps them longer than a few microseconds, with nothing to wait for: variables are updated
// on lanes. Those that compute, decode or touch files (datasets, files) have other names, or none.
inline constexpr const char* kMaster = "master";
inline constexpr const char* kWorker = "worker";
inline constexpr const char* kExecutor = "executor";
inline constexpr const char* kDevice = "device";
inline constexpr const char* kVariables = "variables";
inline constexpr const char* kProxy = "proxy";

// So many messages of one call at most; CAF's threads take the rest. Two that answer each other for
// as long as a loop runs must not keep a thread that came to send a message.
inline constexpr std::size_t kInlineMessages = 64;

// Messages that threads of this process have handled this way, for those who count messages.
std::uint64_t inline_messages();

namespace detail {
void enqueue_inline(caf::actor_system& system, caf::abstract_actor& to, caf::mailbox_element_ptr);
}

// As caf::anon_send, for messages that are short work for `to`. When `to` is idle its behavior runs
// here, before this returns, and so do those of the actors named above that it sends to, and so
// on; whoever is busy, or has another name, gets its message from CAF's own threads. Of what waits
// behind that message only a device's are handled here, too: they are work to pass on to lanes.
// Messages keep their order either way. Not from a thread that must not block on `to` (holding a
// lock that its behavior takes). Within such a call it only adds to what the outer one runs.
template <class Actor, class Message>
void send_inline(const Actor& to, Message message) {
  using Signatures = typename Actor::signatures;
  static_assert(caf::detail::tl_index_of<Signatures, caf::reacts_to<Message>>::value >= 0,
                "the actor does not take this message");
  auto target = caf::actor_cast<caf::strong_actor_ptr>(to);
  detail::enqueue_inline(
      *target->home_system, *caf::actor_cast<caf::abstract_actor*>(to),
      caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, std::move(message)));
}

}  // namespace troupe
