#pragma once

#include <atomic>

#include <troupe/troupe.hpp>

namespace outside {

extern std::atomic<int> passes_run;
// Before the first graph, in every process of the job.
void register_all();
void register_stack();
// x^3, elementwise, f32.
troupe::Output cube(troupe::Output x, troupe::Site site = troupe::Site::here());

// A stack of f32 scalars, by the node's name; what runs do with it is committed with them.
troupe::Output stack(troupe::GraphBuilder& g, troupe::Site site = troupe::Site::here());
troupe::Op push(troupe::Output stack, troupe::Output value,
                troupe::Site site = troupe::Site::here());
troupe::Output pop(troupe::Output stack, troupe::Site site = troupe::Site::here());

}  // namespace outside
