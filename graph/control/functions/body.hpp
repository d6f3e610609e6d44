// The body of a function under construction.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.hpp"
#include "graph/value_type.hpp"

namespace troupe {

// What a builder of a body knows beyond its nodes.
struct BodyState {
  GraphBuilder* parent = nullptr;  // the graph or the body around it
  std::string function;
  Site site;
  bool finished = false;
  std::vector<NodeId> arguments;
  std::size_t declared = 0;      // of the arguments; those behind are captured
  std::vector<Output> captured;  // values of the parent, in the order of their arguments
  std::size_t handed_on = 0;     // of these: its calls of itself pass them
  std::map<Port, NodeId> here;   // captured ports of the parent -> argument
  std::vector<Op> waits;         // nodes of the parent that a run of the function comes after
  bool called_itself = false;
  bool repeated = false;  // of a loop
  bool tape = false;      // of nodes that gradient functions are made of
};

// One layer of the nodes that a function is differentiated over (gradients.hpp of this folder):
// nodes [begin, end) are those of `function`.
struct TapeLayer {
  std::string function;
  NodeId begin = 0, end = 0;
};

// A function as its graph's builder keeps it.
struct FunctionRecord {
  std::unique_ptr<GraphBuilder> body;
  std::vector<Output> results;
  std::size_t position = 0;  // among GraphDef::functions, once finished
  bool differentiating = false;
  std::string gradient;  // of one that calls itself: the function that its gradient calls, if made
  // Of a gradient function: the function that it belongs to and itself in one body, in which its
  // arguments behind the `handles` first are `inputs`. Null: the body says all.
  std::unique_ptr<GraphBuilder> tape;
  std::vector<TapeLayer> layers;
  std::size_t handles = 0;
  std::vector<Port> inputs, outputs;
};

// Opens the body of a new function of the graph; until it is closed, nodes go there. Bodies nest,
// and end in the reverse order of their making. What is not finished leaves the graph as it was.
//
//   Body body(g, "square", site);
//   Output x = value_or_throw(body.argument({DType::f32, {}}, "x"));
//   throw_if_error(body.returns({x * x}));
//   FunctionRecord* square = value_or_throw(body.finish());
class [[nodiscard]] Body {
 public:
  // The name is made unique. Throws Error for what is no name. `beside`: nodes added to the graph
  // do not go there; the caller adds to graph() itself.
  Body(GraphBuilder& g, std::string_view name, Site site, bool beside = false);
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body();

  GraphBuilder& graph() { return *graph_; }
  const std::string& name() const { return name_; }
  // Before anything is captured.
  Expected<Output> argument(const ValueType& type, std::string_view name);
  // What the function returns, so that its body can call it. REQUIRES: all arguments are there.
  void declare(const std::vector<ValueType>& results);
  // Values of the builder around it that its calls of itself pass on. Before it is declared.
  Status hand_on(const std::vector<Output>& values);
  // It calls itself, and uses more of the builder around it than it hands on: all of that.
  std::vector<Output> to_hand_on() const;
  // It is of a loop.
  void repeat() { state().repeated = true; }
  // Closes the body. Values of the builders around it become arguments here, too. invalid_argument
  // where they cannot be what was declared; a run checks what is not known of shapes.
  Status returns(const std::vector<Output>& results);
  const std::vector<Output>& results() const { return results_; }
  // Values of the builder around the body that are arguments now, behind those that were declared.
  const std::vector<Output>& captured() const;
  // Makes these the captured ones, in that order, used or not. REQUIRES: they are all of them.
  Status capture(const std::vector<Output>& values);
  // REQUIRES: it has its results.
  Expected<FunctionRecord*> finish();

 private:
  friend class ReadsBefore;  // graph/control/state/loop_reads.cpp
  void close();
  BodyState& state();
  Status check_declared() const;

  GraphBuilder& root_;
  GraphBuilder* const parent_;
  const bool beside_;
  std::string name_;
  std::deque<GraphBuilder::Attempt> attempts_;  // at each builder around it
  GraphBuilder* graph_ = nullptr;
  FunctionRecord* record_ = nullptr;
  std::vector<Output> results_;
  bool declared_ = false, finished_ = false;
};

}  // namespace troupe
