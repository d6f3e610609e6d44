// Checks of shapes that are known only in the run.
#pragma once

#include <string>
#include <vector>

#include "graph/control/lowering/detail/step_writer.hpp"

namespace troupe::detail {

// Adds an _EnsureShape after a value if its known shape does not imply the shape that a function or
// loop declares: the run checks it and names the line. invalid_argument if the registry lacks that
// op. Lives for one pass over a step.
class ShapeChecks {
 public:
  explicit ShapeChecks(StepWriter& out) : out_(out) {}

  // `value` as argument i of the function.
  Expected<Value> argument(const FunctionDef& f, std::size_t i, const Value& value,
                           const Place& place);
  // `value` as result k of the function.
  Expected<Value> result(const FunctionDef& f, std::size_t k, const Value& value,
                         const Place& place);
  // `value` as what `node`, of role saved, takes from the run of a function. Whoever made the node
  // may have known more of the function's shapes.
  Expected<Value> saved(const NodeDef& node, const Value& value, const Place& place);
  // The first values of a loop's variables: replaces the leading ones of `arguments`.
  Status first_variables(const NodeDef& loop, const FunctionDef& body,
                         std::vector<Value>& arguments, const Place& before);
  // The next values: replaces the results of `iteration`.
  Status next_variables(const NodeDef& loop, Inlined& iteration, const Place& frame);

 private:
  // The name of the check's node, the message if the shape differs, and the line.
  struct Check {
    std::string name, message;
    Site site;
  };
  Expected<Value> ensured(const Value& value, const PartialShape& declared, Check check,
                          const Place& place);

  StepWriter& out_;
};

}  // namespace troupe::detail
