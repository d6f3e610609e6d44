// Memory of a GPU for a library's call.
#pragma once

#include <cstddef>

#include "ops/op.hpp"

namespace troupe::cuda {

// So many bytes, aligned to 256, in `space`, which is kept if it is large enough: what the stream
// does with it is in order. Null for none.
Expected<void*> workspace_of(const KernelContext& ctx, std::size_t bytes, Tensor& space);

}  // namespace troupe::cuda
