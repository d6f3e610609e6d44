#include "actors/resources/device_join.hpp"

#include <array>

#include "devices/kernel_call.hpp"

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

Expected<Tensor> scalar_of(DType dtype, std::size_t n) {
  switch (dtype) {
    case DType::f32:
      return Tensor::scalar(float(n));
    case DType::f64:
      return Tensor::scalar(double(n));
    case DType::i32:
      return Tensor::scalar(std::int32_t(n));
    case DType::i64:
      return Tensor::scalar(std::int64_t(n));
    default:
      return unimplemented("a mean over replicas of " + std::string(dtype_name(dtype)));
  }
}

}  // namespace

Expected<std::shared_ptr<DeviceJoin>> DeviceJoin::make(const OpTable& ops, DType dtype,
                                                       std::uint32_t replicas, Device& device) {
  std::shared_ptr<DeviceJoin> join(new DeviceJoin(device));
  join->dtype_ = dtype;
  const AttrMap one{{"T", Attr(dtype)}},
      many{{"T", Attr(dtype)}, {"N", Attr(std::int64_t(replicas))}};
  TROUPE_TRY(join->add_, kernel_of(ops, {.op = "AddN", .attrs = many}, dtype, device));
  TROUPE_TRY(join->concat_, kernel_of(ops, {.op = "Concat", .attrs = many}, dtype, device));
  TROUPE_TRY(join->divide_, kernel_of(ops, {.op = "Div", .attrs = one}, dtype, device));
  const std::array<Kernel*, 3> all{join->add_.get(), join->concat_.get(), join->divide_.get()};
  TROUPE_TRY(device.prepare(all));
  return join;
}

Expected<Tensor> DeviceJoin::sum(std::vector<Tensor> parts, Lanes& lanes) const {
  return result(*add_, std::move(parts), lanes);
}

Expected<Tensor> DeviceJoin::rows(std::vector<Tensor> parts, Lanes& lanes) const {
  return result(*concat_, std::move(parts), lanes);
}

Expected<Tensor> DeviceJoin::quotient(Tensor x, std::size_t n, Lanes& lanes) const {
  TROUPE_TRY(const Tensor number, scalar_of(dtype_, n));
  return result(*divide_, {std::move(x), number}, lanes);
}

Expected<Tensor> DeviceJoin::result(Kernel& kernel, std::vector<Tensor> inputs,
                                    Lanes& lanes) const {
  const std::size_t n = inputs.size();
  std::vector<Slot> slots(n + 1);
  std::vector<std::uint32_t> order(n), readers(n + 1, 1);
  for (std::size_t i = 0; i < n; ++i) {
    order[i] = std::uint32_t(i);
    slots[i].tensor = std::move(inputs[i]);
    if (slots[i].tensor.space() == device_.space()) continue;
    Tensor here = std::move(slots[i].tensor);
    TROUPE_TRY(slots[i].tensor, Tensor::make(here.dtype(), here.shape(), device_.allocator()));
    device_.stream().wait(device_.copy(here, slots[i].tensor));
  }
  const KernelPlace place{.device = &device_, .lanes = &lanes};
  KernelContext context({.slots = slots.data(),
                         .input_slots = order.data(),
                         .readers = readers.data(),
                         .outputs = slots.data() + n,
                         .inputs = std::uint16_t(n),
                         .n_outputs = 1,
                         .place = &place});
  TROUPE_TRY(call_kernel(kernel, context));
  return std::move(slots[n].tensor);
}

}  // namespace troupe
