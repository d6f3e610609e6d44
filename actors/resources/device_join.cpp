#include "actors/resources/device_join.hpp"

#include <array>

#include "ops/api/constant.hpp"
#include "ops/evaluate.hpp"

namespace troupe {
namespace {

Expected<std::unique_ptr<Kernel>> kernel_of(const OpTable& ops, NodeDef node, DType dtype,
                                            Device& device) {
  TROUPE_TRY(const OpInfo* op, ops.ops.lookup(node.op));
  node.name = "join";
  node.out_types = {dtype};
  for (const AttrSpec& spec : op->attrs)
    if (spec.fallback) node.attrs.emplace(spec.name, *spec.fallback);
  return ops.kernels.make(node, *op, *device.name().type);
}

// As on a CPU, contributions of other types are not divided.
bool can_divide(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64 ||
         is_complex(dtype);
}

}  // namespace

Expected<std::shared_ptr<DeviceJoin>> DeviceJoin::make(const OpTable& ops, DType dtype,
                                                       std::uint32_t replicas, bool divides,
                                                       Device& device) {
  std::shared_ptr<DeviceJoin> join(new DeviceJoin(device));
  join->dtype_ = dtype;
  const AttrMap one{{"T", Attr(dtype)}},
      many{{"T", Attr(dtype)}, {"N", Attr(std::int64_t(replicas))}};
  TROUPE_TRY(join->add_, kernel_of(ops, {.op = "AddN", .attrs = many}, dtype, device));
  TROUPE_TRY(join->concat_, kernel_of(ops, {.op = "Concat", .attrs = many}, dtype, device));
  std::vector<Kernel*> all{join->add_.get(), join->concat_.get()};
  if (divides && can_divide(dtype)) {
    TROUPE_TRY(join->divide_, kernel_of(ops, {.op = "Div", .attrs = one}, dtype, device));
    all.push_back(join->divide_.get());
  }
  TROUPE_TRY(device.prepare(all));
  return join;
}

Expected<Tensor> DeviceJoin::sum(std::vector<Tensor> parts, Lanes& lanes) const {
  return result(*add_, std::move(parts), lanes);
}

Expected<Tensor> DeviceJoin::mean(std::vector<Tensor> parts, Lanes& lanes) const {
  const std::size_t n = parts.size();
  TROUPE_TRY(Tensor all, sum(std::move(parts), lanes));
  return quotient(std::move(all), n, lanes);
}

Expected<Tensor> DeviceJoin::rows(std::vector<Tensor> parts, Lanes& lanes) const {
  const std::size_t n = parts.size();
  TROUPE_TRY(Tensor all, result(*concat_, std::move(parts), lanes));
  return is_trainable(dtype_) ? quotient(std::move(all), n, lanes)
                              : Expected<Tensor>(std::move(all));
}

Expected<Tensor> DeviceJoin::quotient(Tensor x, std::size_t n, Lanes& lanes) const {
  if (!divide_) return unimplemented("a mean over replicas of " + std::string(dtype_name(dtype_)));
  TROUPE_TRY(const Tensor number, scalar_of(dtype_, std::uint64_t(n)));
  return result(*divide_, {std::move(x), number}, lanes);
}

Expected<Tensor> DeviceJoin::result(Kernel& kernel, std::vector<Tensor> inputs,
                                    Lanes& lanes) const {
  for (Tensor& input : inputs) {
    if (input.space() == device_.space()) continue;
    const Tensor here = std::move(input);
    TROUPE_TRY(input, Tensor::make(here.dtype(), here.shape(), device_.allocator()));
    device_.stream().wait(device_.copy(here, input));
  }
  const KernelPlace place{.device = &device_, .lanes = &lanes};
  TROUPE_TRY(auto outputs, call_with(kernel, std::move(inputs), 1, place, true));
  return std::move(outputs.front());
}

}  // namespace troupe
