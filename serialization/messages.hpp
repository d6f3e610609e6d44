// The messages between the processes of a cluster. Each has a file, which states its sender,
// receiver, reply and errors, and how it is written and read. Inside one process the same structs
// are actor messages, so that local and remote use the same code.
//
// A new message is a file in messages/ and a line here. The actor that receives it does not compile
// without a handler for it.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "serialization/messages/abort_partition.hpp"
#include "serialization/messages/ask_waits.hpp"
#include "serialization/messages/blocked_report.hpp"
#include "serialization/messages/drop_containers.hpp"
#include "serialization/messages/forget_graph.hpp"
#include "serialization/messages/grant_returned.hpp"
#include "serialization/messages/leave.hpp"
#include "serialization/messages/link_lost.hpp"
#include "serialization/messages/live_list.hpp"
#include "serialization/messages/load_graph.hpp"
#include "serialization/messages/load_step.hpp"
#include "serialization/messages/members.hpp"
#include "serialization/messages/message_part.hpp"
#include "serialization/messages/partition_done.hpp"
#include "serialization/messages/prepare.hpp"
#include "serialization/messages/ready.hpp"
#include "serialization/messages/record_trace.hpp"
#include "serialization/messages/revoke_grant.hpp"
#include "serialization/messages/staged.hpp"
#include "serialization/messages/start_partition.hpp"
#include "serialization/messages/step_loaded.hpp"
#include "serialization/messages/task_waits.hpp"
#include "serialization/messages/trace_spans.hpp"
#include "serialization/messages/unload_step.hpp"
#include "serialization/messages/welcome.hpp"

namespace troupe {

namespace detail {

template <std::size_t first = 0>
consteval std::size_t count_messages() {
  if constexpr (requires { typename MessageAt<first>::Type; })
    return count_messages<first + 1>();
  else
    return first;
}

template <std::size_t... numbers>
std::variant<typename MessageAt<numbers>::Type...> any_message(std::index_sequence<numbers...>);

template <Sender sender, std::size_t... numbers>
auto to_actors(std::index_sequence<numbers...>) -> decltype(std::tuple_cat(
    std::conditional_t<MessageAt<numbers>::kSender == sender &&
                           MessageAt<numbers>::kReceiver == Receiver::actor,
                       std::tuple<typename MessageAt<numbers>::Type>, std::tuple<>>{}...));

template <class M, std::size_t number = 0>
consteval std::size_t number_of() {
  if constexpr (std::is_same_v<M, typename MessageAt<number>::Type>)
    return number;
  else
    return number_of<M, number + 1>();
}

}  // namespace detail

inline constexpr std::size_t kMessages = detail::count_messages();

// Any message on a control connection: the alternative at N is message number N.
using WireMessage = decltype(detail::any_message(std::make_index_sequence<kMessages>{}));

// The rules of a message (message.hpp).
template <class M>
using MessageRules = MessageAt<detail::number_of<M>()>;

// Whether others overtake it (message.hpp).
template <class M>
inline constexpr bool kIsBulk = [] {
  if constexpr (requires { MessageRules<M>::kBulk; })
    return MessageRules<M>::kBulk;
  else
    return false;
}();
inline bool is_bulk(const WireMessage& message) {
  return std::visit([]<class M>(const M&) { return kIsBulk<M>; }, message);
}

// The messages from that sender to actors, as a tuple of types.
template <Sender sender>
using ToActors = decltype(detail::to_actors<sender>(std::make_index_sequence<kMessages>{}));

namespace detail {

template <class M, class Variant>
inline constexpr bool is_one_of = false;
template <class M, class... Ms>
inline constexpr bool is_one_of<M, std::variant<Ms...>> = (std::is_same_v<M, Ms> || ...);

}  // namespace detail

// One of the messages.
template <class M>
concept Crosses = detail::is_one_of<M, WireMessage>;

}  // namespace troupe
