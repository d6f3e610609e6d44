// The ops of control flow: those of a client's graph, and the paper's primitives that lowering
// makes of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"
#include "graph/op_def.hpp"

namespace troupe {

inline constexpr std::string_view kArgumentOp = "Argument";
// The largest `window` of a loop.
inline constexpr std::int64_t kWidestWindow = 1024;
inline constexpr std::string_view kSavedOp = "Saved";
inline constexpr std::string_view kSavedListOp = "SavedList";
inline constexpr std::string_view kSavedTripsOp = "SavedTrips";
// In a lowered step: checks the declared shape of a value in the run.
inline constexpr std::string_view kEnsuredOp = "_EnsureShape";

// The types of values passed into a body, without resource handles.
inline constexpr std::string_view kValueTypes =
    "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128 string list";

// The functions that a node of role `call` may run: the one of Call; those of If for false and
// true; the branches of Case, by index; the condition and the body of While.
std::vector<std::string> functions_of(const NodeDef& call);
// Sets the functions of a call of op `op` with these attributes, in that order.
void set_functions_of(std::string_view op, AttrMap& attrs, const std::vector<std::string>& names);
// The number of inputs before the arguments: the predicate or the index.
inline std::size_t selectors(const NodeDef& call) {
  return call.op == "Call" || call.op == "While" ? 0 : 1;
}
// The number of loop variables among the arguments of a While.
std::size_t loop_variables(const NodeDef& loop);
// The last output, after the results: the handle for gradients on values of the run. Not a tensor.
inline std::uint32_t saved_port(const NodeDef& call) {
  return std::uint32_t(call.out_types.size()) - 1;
}

// What both shapes have in common: dimensions in which they differ are unknown.
PartialShape common_shape(const PartialShape& a, const PartialShape& b);

}  // namespace troupe
