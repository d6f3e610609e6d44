#include "graph/control/paper_loops/loop_ops.hpp"

#include "graph/control/functions/ops.hpp"
#include "graph/gradients.hpp"
#include "graph/passes/shape_inference.hpp"

namespace troupe {
namespace {

Status enter_shape(InferenceContext& c) {
  const std::string& frame = c.string_attr("frame_name");
  if (!valid_node_name(frame))
    return invalid_argument("`frame_name`, which says what loop this enters, is " + quoted(frame) +
                            ", and no name");
  const std::int64_t window = c.int_attr("parallel_iterations");
  if (window < 1 || window > kWidestWindow)
    return invalid_argument("`parallel_iterations` is " + std::to_string(window) +
                            ", not one of 1 to " + std::to_string(kWidestWindow));
  return same_shape(c);
}

Status predicate_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 0));
  return scalar_shape(c);
}

// Differentiation works on graphs without cycles.
std::vector<Output> refuse_gradient(GradContext& c) {
  throw Error(unimplemented("no gradient goes through a loop of Enter and Leave; write it with "
                            "while_loop, which has one")
                  .at(c.node().site));
}

OpDef loop_op(std::string name, Role role, std::string doc) {
  return {.name = std::move(name),
          .in = {"x"},
          .out = {"y"},
          .types = std::string(kValueTypes),
          .shape = same_shape,
          .grad = refuse_gradient,
          .role = role,
          .doc = std::move(doc)};
}

}  // namespace

std::vector<OpDef> loop_ops() {
  std::vector<OpDef> ops;
  OpDef enter =
      loop_op("Enter", Role::enter,
              "Passes x into the loop `frame_name`: as the first value of a loop variable, through "
              "a Merge with its NextIteration, or, if `is_constant`, as a value that is the same "
              "in each iteration. On several devices, up to `parallel_iterations` iterations run "
              "at once.");
  enter.attrs = {"frame_name: string", "is_constant: bool = false",
                 "parallel_iterations: int = 10"};
  enter.shape = enter_shape;
  ops.push_back(std::move(enter));
  ops.push_back(loop_op("Leave", Role::exit,
                        "Passes x out of the loop, from a Switch, once the loop's LoopCond is "
                        "false."));
  ops.push_back(loop_op("Exit", Role::exit, "Leave, under its TensorFlow name."));
  ops.push_back(loop_op("NextIteration", Role::next_iteration,
                        "Passes x to the next iteration, into a Merge: the only edge of a graph "
                        "that may point backwards."));
  ops.push_back({.name = "LoopCond",
                 .in = {"again: bool"},
                 .out = {"y: bool"},
                 .shape = predicate_shape,
                 .no_gradient = "a truth value",
                 .role = Role::loop_cond,
                 .doc = "Whether the loop has another iteration: the predicate of the Switches of "
                        "its variables."});
  return ops;
}

}  // namespace troupe
