// The client's graph: a builder over all ops of this build.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "graph/builder.hpp"
#include "ops/api/control.hpp"
#include "ops/op.hpp"

namespace troupe {

// A name scope: nodes made in it have names that start with its prefix ("mlp/"). Cheap to copy;
// valid as long as its graph.
class Scope {
 public:
  Scope(GraphBuilder& graph, std::string prefix) : graph_(&graph), prefix_(std::move(prefix)) {}
  GraphBuilder& graph() const { return *graph_; }
  const std::string& prefix() const { return prefix_; }

  // A scope inside this one; the name is made unique.
  Scope scope(std::string_view name, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) const {
    auto inside = enter();
    auto child = graph_->with_scope(name, file, line);
    return {*graph_, graph_->scope_prefix()};
  }
  // New nodes are in this scope while the guard is alive.
  GraphBuilder::Guard enter() const { return graph_->with_scope(prefix_); }

 private:
  GraphBuilder* graph_;
  std::string prefix_;
};

// A graph that uses all ops of this build; see GraphBuilder. All random ops depend on the seed.
class Graph : public GraphBuilder {
 public:
  explicit Graph(std::uint64_t seed = 0) : GraphBuilder(ops::builtin().ops, seed) {}
  // Goes on with a graph that was built before: Graph g{value_or_throw(read_graph("net.graph"))}.
  explicit Graph(GraphDef def) : GraphBuilder(ops::builtin().ops, std::move(def)) {}

  // A new scope inside the current one; the name is made unique.
  Scope scope(std::string_view name, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
    auto inside = with_scope(name, file, line);
    return {*this, scope_prefix()};
  }

  // See ops/api/control.hpp.
  template <class F>
  Function function(std::string_view name, const std::vector<ValueType>& arguments,
                    const std::vector<ValueType>& results, F&& body, Site site = Site::here()) {
    return troupe::function(*this, name, arguments, results, body, std::move(site));
  }
};

}  // namespace troupe
