// The loops of a step, and the lists of values of their iterations.
//
//   loop          _LoopBody -> ... value ... ListPush -> _LoopNext --- list
//                                                                       |
//   its reverse   _LoopBody -> ListPop -> value ... -> _LoopNext <------'
//
// Such a list is a variable of both loops. If the value is on a branch, _Keep and _Kept replace
// ListPush and ListPop.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "graph/control/lowering/detail/step_writer.hpp"

namespace troupe::detail {

// The frames of a step during lowering: the step itself (number 0), its loops, and its recursive
// functions. A frame has a higher number than the one around it. A loop whose values are requested
// elsewhere gets more variables and invariants, after the client's. Lives for one pass over a step,
// as long as the StepWriter.
class Loops {
 public:
  // A loop whose iterations have begun: its first node is there, the last one is not.
  struct Begun {
    NodeDef like;                 // the call, whose line is used for nodes of the loop
    std::uint32_t parent = 0;     // the frame around it
    std::uint32_t reverses = 0;   // the frame that it reverses; 0: none
    std::uint32_t variables = 0;  // of the client
    Place around, inside;         // of nodes made before it, and in an iteration
    NodeId begin = kNoNode;       // its _LoopBody
    std::vector<Value> passed;    // by output of `begin`: its value before the loop
  };

  explicit Loops(StepWriter& out);

  // Adds a loop and returns its number.
  std::uint32_t begin(Begun loop);
  // `next` is the loop's _LoopNext.
  void end(std::uint32_t loop, NodeId next);
  // Adds the frame of a recursive function, and returns its number. `like` and `reverses` as for a
  // loop.
  std::uint32_t add_function(const NodeDef& like, std::uint32_t parent, std::uint32_t reverses);

  // --- the tree of frames ---

  const NodeDef& like(std::uint32_t frame) const { return frames_[frame].like; }
  std::uint32_t parent(std::uint32_t frame) const { return frames_[frame].parent; }
  // The number of frames around a node in this one.
  std::size_t depth(std::uint32_t frame) const;
  // Whether `outer` is `inner` or around it.
  bool is_around(std::uint32_t outer, std::uint32_t inner) const;
  // The frames from `to` to `from`, each of which reverses the next; empty if there is no such
  // path.
  std::vector<std::uint32_t> way_back(std::uint32_t from, std::uint32_t to) const;
  // The value before the loop of an iteration's port that is invariant; else nullptr.
  const Value* before_loop(std::uint32_t loop, Port port) const;

  // --- values of iterations ---

  // The list of the values of `value` in all iterations, after the loop. invalid_argument if the
  // loop has no end yet.
  Expected<Value> keep(std::uint32_t loop, const Value& value);
  // In an iteration of `loop`, pops the last element of a list around it. `kept`: the value of loop
  // `from` whose list it is.
  Expected<Value> take(std::uint32_t loop, const Value& list, const Value& kept,
                       std::uint32_t from);
  // A value from around the loop, in its iterations.
  Expected<Value> enter(std::uint32_t loop, const Value& value);
  // The number of iterations, after the loop. invalid_argument if it has no end yet.
  Expected<Value> trips(std::uint32_t loop);

  // Loops with more variables: by _LoopBody, the new index of each of its outputs.
  using Moved = std::map<NodeId, std::vector<std::uint32_t>>;
  // Puts variables before invariants, once everything is lowered.
  Moved settle();

 private:
  struct Frame : Begun {
    NodeId next = kNoNode;
    std::size_t first_passed = 0;  // number of `passed` that the client's loop has
    struct Added {
      std::uint32_t output = 0;  // of `begin`
      Port next;
    };
    std::vector<Added> added;       // variables
    std::map<Port, Value> kept;     // value of an iteration -> list after the loop
    std::map<Port, Value> entered;  // value around the loop -> the same in an iteration
    std::map<Port, Value> taken;    // list around the loop -> its element in an iteration
    Value trips;                    // number of iterations
  };
  Expected<Value> add_input(Frame& frame, const Value& value);
  Expected<Value> add_variable(Frame& frame, const Value& first);
  Value set_next(Frame& frame, const Value& next);
  void add_to_next(Frame& frame, Port next);
  Value append_before(Frame& frame, NodeDef node);
  void stay_with(NodeDef& node, Port value) const;
  bool is_invariant(const Frame& frame, Port port) const;

  StepWriter& out_;
  std::deque<Frame> frames_;
};

}  // namespace troupe::detail
