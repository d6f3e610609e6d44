// The ops of control flow: those that a client's graph holds, and the paper's primitives that
// lowering makes of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"
#include "graph/op_def.hpp"

namespace troupe {

inline constexpr std::string_view kArgumentOp = "Argument";
// Iterations of a loop that may be under way at once, at most.
inline constexpr std::int64_t kWidestWindow = 1024;
inline constexpr std::string_view kSavedOp = "Saved";
inline constexpr std::string_view kSavedListOp = "SavedList";
inline constexpr std::string_view kSavedTripsOp = "SavedTrips";
// In a lowered step: a value, whose declared shape only a run can check.
inline constexpr std::string_view kEnsuredOp = "_EnsureShape";

// What goes into a body, handles aside.
inline constexpr std::string_view kValueTypes =
    "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128 string list";

// The functions that a node of role `call` may run: the one of Call; of If those for false and
// true; the branches of Case, of which one its predicate or index says. Those of While: its
// condition and its body.
std::vector<std::string> functions_of(const NodeDef& call);
// Makes these the functions of a call of op `op` with these attributes, in that order.
void set_functions_of(std::string_view op, AttrMap& attrs, const std::vector<std::string>& names);
// How many inputs come before the arguments: the predicate or the index.
inline std::size_t selectors(const NodeDef& call) {
  return call.op == "Call" || call.op == "While" ? 0 : 1;
}
// How many of the arguments of a While are variables.
std::size_t loop_variables(const NodeDef& loop);
// Its last output, behind the results: what the run of the function leaves for gradients. No value.
inline std::uint32_t saved_port(const NodeDef& call) {
  return std::uint32_t(call.out_types.size()) - 1;
}

// What holds of both shapes: dimensions in which they differ are unknown.
PartialShape common_shape(const PartialShape& a, const PartialShape& b);

}  // namespace troupe
