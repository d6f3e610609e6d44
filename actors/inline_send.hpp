// Sends a message and handles it on the calling thread, where the other way is to wake a thread of
// CAF's for a few microseconds of work: waking an idle CPU costs more than a whole short step.
#pragma once

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/mailbox_element.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace troupe {

// What a thread that brings a message may do for the actor that gets it. The type of an actor's
// state says so, as `kInline`.
enum class InlineWork : int {
  // Only moves messages. No message of a step keeps it longer than a few microseconds, with nothing
  // to wait for: variables are updated on lanes. Those that compute, decode or touch files
  // (datasets, files) say nothing.
  short_work = 1 << 16,
  // Likewise, and all that it gets is work for its lanes, of which a step may have several pieces
  // at once.
  passes_on = 1 << 17,
};

// Notes what the state says, before the actor's first message. spawn_actor does it.
template <class Self>
void note_inline(Self* self) {
  // In bits of CAF's that CAF does not use, and whoever sends looks there.
  if constexpr (requires { std::remove_reference_t<decltype(self->state)>::kInline; })
    self->setf(int(std::remove_reference_t<decltype(self->state)>::kInline));
}

// So many messages of one call at most; CAF's threads take the rest. Two that answer each other for
// as long as a loop runs must not keep a thread that came to send a message.
inline constexpr std::size_t kInlineMessages = 64;

// Messages that threads of this process have handled this way, for those who count messages.
std::uint64_t inline_messages();

namespace detail {
void enqueue_inline(caf::actor_system& system, caf::abstract_actor& to, caf::mailbox_element_ptr);
}

// As caf::anon_send, for messages that are short work for `to`. When `to` is idle its behavior runs
// here, before this returns, and so do those of other actors of short work that it sends to, and so
// on; whoever is busy, or says nothing, gets its message from CAF's own threads. Of what waits
// behind that message only a device's are handled here, too: they are work to pass on to lanes.
// Messages keep their order either way. Not from a thread that must not block on `to` (holding a
// lock that its behavior takes). Within such a call it only adds to what the outer one runs.
template <class Actor, class Message>
void send_inline(const Actor& to, Message&& message) {
  using Signatures = typename Actor::signatures;
  using Plain = std::remove_cvref_t<Message>;
  static_assert(caf::detail::tl_index_of<Signatures, caf::reacts_to<Plain>>::value >= 0,
                "the actor does not take this message");
  auto target = caf::actor_cast<caf::strong_actor_ptr>(to);
  detail::enqueue_inline(*target->home_system, *caf::actor_cast<caf::abstract_actor*>(to),
                         caf::make_mailbox_element(nullptr, caf::make_message_id(), {},
                                                   std::forward<Message>(message)));
}

}  // namespace troupe
