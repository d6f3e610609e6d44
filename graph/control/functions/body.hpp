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

// The state of a body's builder, besides its nodes.
struct BodyState {
  GraphBuilder* parent = nullptr;  // the graph or the body around it
  std::string function;
  Site site;
  bool finished = false;
  std::vector<NodeId> arguments;
  std::size_t declared = 0;      // number of declared arguments; the others are captured
  std::vector<Output> captured;  // values of the parent, in the order of their arguments
  std::size_t handed_on = 0;     // number of these that its recursive calls pass on
  std::map<Port, NodeId> here;   // captured ports of the parent -> argument
  std::vector<Op> waits;         // nodes of the parent that each run comes after
  bool called_itself = false;
  bool repeated = false;  // the body of a loop
  bool tape = false;      // a tape (gradients/detail/tape.hpp)
};

// One layer of a tape (gradients.hpp): nodes [begin, end) are those of `function`.
struct TapeLayer {
  std::string function;
  NodeId begin = 0, end = 0;
};

// A function in its graph's builder.
struct FunctionRecord {
  std::unique_ptr<GraphBuilder> body;
  std::vector<Output> results;
  std::size_t position = 0;  // among GraphDef::functions, once finished
  bool differentiating = false;
  // A gradient function of a loaded graph: the function that it differentiates is not known.
  bool loaded_gradient = false;
  std::string gradient;  // of a recursive function: its gradient function, if made
  // Of a gradient function: the function that it differentiates and itself in one body, in which
  // its arguments after the first `handles` are `inputs`. Null: the body is complete.
  std::unique_ptr<GraphBuilder> tape;
  std::vector<TapeLayer> layers;
  std::size_t handles = 0;
  std::vector<Port> inputs, outputs;
};

// Opens the body of a new function of the graph; until it is closed, new nodes go there. Bodies
// nest, and end in reverse order. A body that is not finished leaves the graph unchanged.
//
//   Body body(g, "square", site);
//   Output x = value_or_throw(body.argument({DType::f32, {}}, "x"));
//   throw_if_error(body.returns({x * x}));
//   FunctionRecord* square = value_or_throw(body.finish());
class [[nodiscard]] Body {
 public:
  // Makes the name unique. Throws Error for an invalid name. `beside`: nodes added to the graph do
  // not go into the body; the caller adds to graph() itself.
  Body(GraphBuilder& g, std::string_view name, Site site, bool beside = false);
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body();

  GraphBuilder& graph() { return *graph_; }
  const std::string& name() const { return name_; }
  // Before anything is captured.
  Expected<Output> argument(const ValueType& type, std::string_view name);
  // Declares the results, so that the body can call it. REQUIRES: all arguments are there.
  void declare(const std::vector<ValueType>& results);
  // Values of the outer builder that its recursive calls pass on. Call before declare().
  Status hand_on(const std::vector<Output>& values);
  // If it calls itself and captures more than hand_on() was given: all captured values; else empty.
  std::vector<Output> to_hand_on() const;
  // Marks it as a loop's.
  void repeat() { state().repeated = true; }
  // Closes the body. Results from outer builders become arguments first. invalid_argument if
  // results contradict their declaration; unknown shapes are checked in the run.
  Status returns(const std::vector<Output>& results);
  const std::vector<Output>& results() const { return results_; }
  // The outer builder's values that are arguments now, after the declared ones.
  const std::vector<Output>& captured() const;
  // Makes these the captured values, in that order, used or not. REQUIRES: they include all of
  // them.
  Status capture(const std::vector<Output>& values);
  // REQUIRES: returns() was called.
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
  std::deque<GraphBuilder::Attempt> attempts_;  // one for each outer builder
  GraphBuilder* graph_ = nullptr;
  FunctionRecord* record_ = nullptr;
  std::vector<Output> results_;
  bool declared_ = false, finished_ = false;
};

}  // namespace troupe
