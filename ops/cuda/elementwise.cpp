#include "ops/cuda/elementwise.hpp"

#include <array>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/kernels/support/half_rows.hpp"

namespace troupe::cuda {
namespace {

template <int N>
class Elementwise final : public DeviceKernel {
 public:
  Elementwise(std::string type, DType out, Shapes shapes)
      : function_{std::move(type)}, out_(out), shapes_(shapes) {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

  Status compute(KernelContext& ctx) override {
    std::array<Shape, N> shapes;
    for (int i = 0; i < N; ++i) shapes[std::size_t(i)] = ctx.input(i).shape();
    if constexpr (N == 2) TROUPE_TRY(fit(shapes[0], shapes[1]));
    std::array<const Shape*, N> meeting;
    for (std::size_t i = 0; i < N; ++i) meeting[i] = &shapes[i];
    TROUPE_TRY(auto meet, Broadcast<N>::of(meeting));
    if (shapes_ == Shapes::to_first && meet.out() != shapes[0])
      return invalid_argument("input 0 has shape " + shapes[0].text() + ", not " +
                              meet.out().text() + " as all of them");
    TROUPE_TRY(Tensor y, result(ctx, meet.out()));
    device::ElementwiseArgs<N> args{};
    args.n = y.elements();
    for (int i = 0; i < N; ++i) args.in[i] = ctx.input(i).raw();
    args.out = y.mutable_raw();
    args.walk = walk_of<N>(meet);
    if (args.n != 0) TROUPE_TRY(launch(ctx, function_, grid_for(args.n), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  // What stands where the second input is along the dimensions of the first.
  Status fit(const Shape& first, Shape& second) const {
    const int rank = second.rank();
    bool fits = true;
    if (shapes_ == Shapes::equal) fits = second == first;
    if (shapes_ == Shapes::last)
      fits = rank == 1 && first.rank() >= 1 && second.dim(0) == first.dim(first.rank() - 1);
    if (shapes_ == Shapes::first) {
      fits = rank <= first.rank() && Shape(first.dims().first(std::size_t(rank))) == second;
      for (int i = rank; fits && i < first.rank(); ++i) second.append(1);
    }
    if (fits) return ok_status();
    return invalid_argument("inputs of shapes " + first.text() + " and " + second.text() +
                            " do not fit");
  }
  Expected<Tensor> result(const KernelContext& ctx, const Shape& shape) const {
    for (int i = 0; i < N; ++i) {
      const Tensor& in = ctx.input(i);
      if (dtype_size(in.dtype()) == dtype_size(out_) && in.shape() == shape && ctx.may_reuse(i))
        return ctx.reuse_or_allocate(i, out_, shape);
    }
    return ctx.allocate(out_, shape);
  }

  GpuFunction function_;
  DType out_;
  Shapes shapes_;
};

std::string elementwise_type(const std::string& formula, const std::string& out_type,
                             std::vector<std::string> in) {
  in.insert(in.begin(), {formula, out_type});
  return device_type("Elementwise", in);
}

// The output under the name of its type on the device, and as a dtype.
Expected<std::unique_ptr<Kernel>> make(const std::string& formula, const std::string& out_type,
                                       std::vector<std::string> in, DType out,
                                       Shapes shapes = Shapes::broadcast) {
  const std::size_t inputs = in.size();
  const std::string type = elementwise_type(formula, out_type, std::move(in));
  switch (inputs) {
    case 1:
      return std::unique_ptr<Kernel>(new Elementwise<1>(type, out, shapes));
    case 2:
      return std::unique_ptr<Kernel>(new Elementwise<2>(type, out, shapes));
    default:
      return std::unique_ptr<Kernel>(new Elementwise<3>(type, out, shapes));
  }
}

}  // namespace

Expected<std::unique_ptr<Kernel>> elementwise_kernel(const KernelSpec& spec,
                                                     const Formula& formula) {
  const DType in = spec.type(), out = formula.test ? DType::bool_ : in;
  const auto named = [&](DType dtype) {
    return element_type(formula.wraps ? without_sign(dtype) : dtype);
  };
  return make(name_of(*formula.type), named(out),
              std::vector<std::string>(std::size_t(formula.inputs), named(in)), out,
              formula.shapes);
}

GpuFunction elementwise_function(const std::type_info& formula, int inputs, DType dtype) {
  const std::string type = element_type(dtype);
  return {elementwise_type(name_of(formula), type,
                           std::vector<std::string>(std::size_t(inputs), type))};
}

Expected<std::unique_ptr<Kernel>> select(const KernelSpec& spec) {
  const std::string moved = moved_type(spec.type());
  return make("troupe::formula::Choose", moved, {"bool", moved, moved}, spec.type());
}

// As ops/kernels/math/cast.cpp does it: integers by their bits, and to f16 and bf16 rounded once.
Expected<std::unique_ptr<Kernel>> cast(const KernelSpec& spec) {
  const DType from = spec.type("from"), to = spec.type("to");
  if (from == to) return pass(spec);
  const bool rounds_twice =
      is_half(to) && !is_half(from) && from != DType::f32 && dtype_size(from) >= sizeof(float);
  const DType bits = is_integer(from) ? without_sign(to) : to;
  std::string formula = "troupe::formula::ConvertToOdd";
  if (!rounds_twice)
    formula = "troupe::formula::Convert<" + (is_half(to) ? "float" : element_type(bits)) + ">";
  return make(formula, element_type(bits), {element_type(from)}, to);
}

}  // namespace troupe::cuda
