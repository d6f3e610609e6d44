// PartitionDone (core/transaction.hpp) between processes. Large or numerous fetches are
// undefined here; they are sent as tensors on the data connection.
#pragma once

#include "core/transaction.hpp"
#include "serialization/message.hpp"

namespace troupe {

template <>
struct Fields<Fetched> {
  static auto of(auto& m) {
    auto& [index, value] = m;
    return std::tie(index, value);
  }
};
template <>
struct Fields<Uses> {
  static auto of(auto& m) {
    auto& [reads, updates, own_dequeues, enqueues] = m;
    return std::tie(reads, updates, own_dequeues, enqueues);
  }
};
template <>
struct MessageAt<9> {
  using Type = PartitionDone;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kShortWork = true;
  static auto fields(auto& m) {
    auto& [attempt, run, partition, status, fetches, writes, uses, fast_committed, elements] = m;
    return std::tie(attempt, run, partition, status, fetches, writes, uses, fast_committed,
                    elements);
  }
};

}  // namespace troupe
