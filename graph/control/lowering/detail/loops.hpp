// The loops of a step, and the lists of what their iterations computed.
//
//   loop          _LoopBody -> ... value ... ListPush -> _LoopNext --- list
//                                                                       |
//   its reverse   _LoopBody -> ListPop -> value ... -> _LoopNext <------'
//
// Such a list is one more variable of both loops. Where the value is on a branch, _Keep and _Kept
// stand in the places of ListPush and ListPop.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "graph/control/lowering/detail/step_writer.hpp"

namespace troupe::detail {

// Knows the frames of a step while it is lowered: the step itself, which is number 0, its loops,
// and its functions that call themselves. A frame has a higher number than the one around it. A
// loop whose values others ask for becomes longer: it gets more variables and invariants, behind
// those of the client. Lives for one pass over a step, as long as the StepWriter.
class Loops {
 public:
  // A loop whose iterations have begun: its first node is there, the last one is not.
  struct Begun {
    NodeDef like;                 // the call: what is made for the loop is of its line
    std::uint32_t parent = 0;     // the frame around it
    std::uint32_t reverses = 0;   // the frame that it goes back over; 0: none
    std::uint32_t variables = 0;  // of the client
    Place around, inside;         // of what is made for it, before it and in an iteration
    NodeId begin = kNoNode;       // its _LoopBody
    std::vector<Value> passed;    // by output of `begin`: what it is before the loop
  };

  explicit Loops(StepWriter& out);

  // Adds a loop and returns its number.
  std::uint32_t begin(Begun loop);
  // Says that `next`, its _LoopNext, ends the loop.
  void end(std::uint32_t loop, NodeId next);
  // Adds the frame of a function that calls itself, and returns its number. `like` and `reverses`
  // as of a loop.
  std::uint32_t add_function(const NodeDef& like, std::uint32_t parent, std::uint32_t reverses);

  // --- the tree of frames ---

  const NodeDef& like(std::uint32_t frame) const { return frames_[frame].like; }
  std::uint32_t parent(std::uint32_t frame) const { return frames_[frame].parent; }
  // How many frames are around what stands in this one.
  std::size_t depth(std::uint32_t frame) const;
  // Whether `outer` is `inner` or around it.
  bool is_around(std::uint32_t outer, std::uint32_t inner) const;
  // The frames from `to` to `from`, each of which goes back over the next; empty if there is no
  // such way.
  std::vector<std::uint32_t> way_back(std::uint32_t from, std::uint32_t to) const;
  // The value before the loop, if the port of an iteration is the same in each; else nullptr.
  const Value* before_loop(std::uint32_t loop, Port port) const;

  // --- values of iterations ---

  // The list of the values that `value` had in the iterations, behind the loop. invalid_argument if
  // the loop has no end yet.
  Expected<Value> keep(std::uint32_t loop, const Value& value);
  // In an iteration of `loop`, the last element of a list around it that was not taken yet. `kept`
  // is the value that the list was made of in the loop `from`.
  Expected<Value> take(std::uint32_t loop, const Value& list, const Value& kept,
                       std::uint32_t from);
  // A value around the loop, in its iterations.
  Expected<Value> enter(std::uint32_t loop, const Value& value);
  // How many iterations there were, behind the loop. invalid_argument if it has no end yet.
  Expected<Value> trips(std::uint32_t loop);

  // Loops that got more variables: by their first nodes, where each of its outputs is now.
  using Moved = std::map<NodeId, std::vector<std::uint32_t>>;
  // Puts variables before invariants, once everything is lowered.
  Moved settle();

 private:
  struct Frame : Begun {
    NodeId next = kNoNode;
    std::size_t first_passed = 0;  // how many of `passed` the client's loop has
    struct Added {
      std::uint32_t output = 0;  // of `begin`
      Port next;
    };
    std::vector<Added> added;       // variables
    std::map<Port, Value> kept;     // value of an iteration -> list, behind the loop
    std::map<Port, Value> entered;  // value around it -> in an iteration
    std::map<Port, Value> taken;    // list around it -> its element in an iteration
    Value trips;                    // how many iterations it had
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
