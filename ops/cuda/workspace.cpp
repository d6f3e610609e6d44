#include "ops/cuda/workspace.hpp"

#include <cstdint>

namespace troupe::cuda {

Expected<void*> workspace_of(const KernelContext& ctx, std::size_t bytes, Tensor& space) {
  constexpr std::size_t kAlignment = 256;
  if (bytes == 0) return nullptr;
  if (!space.defined() || space.bytes() < bytes + kAlignment) {
    TROUPE_TRY(space, ctx.allocate(DType::u8, Shape{std::int64_t(bytes + kAlignment)}));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(space.mutable_raw());
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace troupe::cuda
