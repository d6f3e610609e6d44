// Shapes that only a run knows.
#pragma once

#include <string>
#include <vector>

#include "graph/control/lowering/detail/step_writer.hpp"

namespace troupe::detail {

// Puts an _EnsureShape behind a value where less is known of its shape than a function or a loop
// declares: a run checks it, with the line. A value of which enough is known stays as it is.
// invalid_argument if the registry lacks that op. Lives for one pass over a step.
class ShapeChecks {
 public:
  explicit ShapeChecks(StepWriter& out) : out_(out) {}

  // `value` as argument i of the function.
  Expected<Value> argument(const FunctionDef& f, std::size_t i, const Value& value,
                           const Place& place);
  // `value` as result k of the function.
  Expected<Value> result(const FunctionDef& f, std::size_t k, const Value& value,
                         const Place& place);
  // What the variables of a loop are at first: the leading ones of `arguments`, which it replaces.
  Status first_variables(const NodeDef& loop, const FunctionDef& body,
                         std::vector<Value>& arguments, const Place& before);
  // What they are next: the results of an iteration, which it replaces.
  Status next_variables(const NodeDef& loop, Inlined& iteration, const Place& frame);

 private:
  // The check's name, the message of a run in which the shape is another one, and its line.
  struct Check {
    std::string name, message;
    Site site;
  };
  Expected<Value> ensured(const Value& value, const PartialShape& declared, Check check,
                          const Place& place);

  StepWriter& out_;
};

}  // namespace troupe::detail
