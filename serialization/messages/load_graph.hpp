#pragma once

#include <memory>

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Master to workers, before a LoadStep that needs it: the nodes added to a session's graph since
// `from`, up to which the receiver has it; with `from` 0 the whole graph, which replaces an earlier
// one. Inputs refer to nodes by their positions in the whole graph.
struct LoadGraph {
  std::uint64_t session = 0;
  std::uint64_t version = 0;  // number of nodes after
  std::shared_ptr<const GraphDef> graph;
  std::uint64_t from = 0;  // number of nodes before
};

template <>
struct MessageAt<3> {
  using Type = LoadGraph;
  static constexpr Sender kSender = Sender::master;
  static constexpr Receiver kReceiver = Receiver::actor;
  static constexpr bool kBulk = true;
  static constexpr bool kShortWork = false;
  static auto fields(auto& m) {
    auto& [session, version, graph, from] = m;
    return std::tie(session, version, from, graph);
  }
  static Status check(const LoadGraph& m) {
    if (m.version >= m.from && m.version - m.from == m.graph->nodes.size()) return ok_status();
    return invalid_argument("a graph that grows from " + std::to_string(m.from) + " to " +
                            std::to_string(m.version) + " nodes by " +
                            std::to_string(m.graph->nodes.size()));
  }
};

}  // namespace troupe
