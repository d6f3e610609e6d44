// The check that every node passes, whether a builder adds it or it comes from outside.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.hpp"
#include "core/status.hpp"
#include "graph/op_def.hpp"
#include "graph/passes/shape_inference.hpp"

namespace troupe::detail {

// More inputs or outputs than any plan can number.
inline constexpr std::size_t kMaxPorts = 65'535;

// The dtypes of `args`, lists flattened. REQUIRES: attributes complete and of their kinds.
Expected<std::vector<DType>> arg_types(const std::vector<ArgSpec>& args, const AttrMap& attrs);

// Argument and position of flat input `i`: "a", "values[2]".
std::string input_label(const OpInfo& op, const AttrMap& attrs, int i);

// Completes `node` from its inputs: type and count attributes that the inputs fix, defaults,
// out_types, out_shapes. Errors are invalid_argument and start with the op's name; `producer(i)`
// names what feeds input i in them.
Status check_node(const OpInfo& op, NodeDef& node, std::span<const InferenceContext::Input> inputs,
                  FunctionRef<std::string(int)> producer);

// That a program may give a node this name: those that begin with a dot are for what a session adds
// to its graph.
Status check_name_of_program(std::string_view name);

// Errors show it: its file's name is text, and not long.
Status check_site(const Site& site);

// That input `i` of `node`, the handle made by node `handle`, stands for values of the dtypes that
// the op works on. invalid_argument names both nodes and both types.
Status check_handle(const OpInfo& op, const NodeDef& node, int i, const NodeDef& handle);

}  // namespace troupe::detail
