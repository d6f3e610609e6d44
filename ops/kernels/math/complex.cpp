// Complex numbers: made of their parts, and taken apart.
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Output of_parts(Output re, Output im) { return re.graph().add("Complex", {re, im}); }
Output real_part(Output z) { return z.graph().add("Real", {z}); }
Output imaginary_part(Output z) { return z.graph().add("Imag", {z}); }
Output zeros_like(Output x) { return x.graph().add("ZerosLike", {x}); }
Output is_zero(Output r) { return r.graph().add("Equal", {r, scalar_like(r, 0)}); }
// r where it is not zero, else 1.
Output not_zero(Output r) { return where(is_zero(r), scalar_like(r, 1), r); }
// dy where r is not zero, else 0, even where dy is infinite.
Output but_at_zero(Output dy, Output r) { return where(is_zero(r), scalar_like(dy, 0), dy); }

std::vector<Output> complex_grad(GradContext& c) {
  return {unbroadcast(real_part(c.dy[0]), c.x[0], c.x[1]),
          unbroadcast(imaginary_part(c.dy[0]), c.x[1], c.x[0])};
}
std::vector<Output> real_grad(GradContext& c) { return {of_parts(c.dy[0], zeros_like(c.dy[0]))}; }
std::vector<Output> imag_grad(GradContext& c) { return {of_parts(zeros_like(c.dy[0]), c.dy[0])}; }
std::vector<Output> conj_grad(GradContext& c) { return {conjugate(c.dy[0])}; }
// dy z / |z|: the parts are scaled one by one, so that 0 * inf of a product is no NaN.
std::vector<Output> complex_abs_grad(GradContext& c) {
  const Output z = c.x[0], r = not_zero(c.y[0]), dy = but_at_zero(c.dy[0], c.y[0]);
  return {
      of_parts(multiply(dy, divide(real_part(z), r)), multiply(dy, divide(imaginary_part(z), r)))};
}
// dy i z / |z|^2
std::vector<Output> angle_grad(GradContext& c) {
  const Output z = c.x[0], size = c.g.add("ComplexAbs", {z}), r = not_zero(size);
  const Output slope = divide(but_at_zero(c.dy[0], size), r);
  return {of_parts(negate(multiply(slope, divide(imaginary_part(z), r))),
                   multiply(slope, divide(real_part(z), r)))};
}

OpDef of_complex(std::string name, std::string out, GradFn grad, std::string doc) {
  return {.name = std::move(name),
          .in = {"z"},
          .out = {std::move(out)},
          .types = kComplex,
          .shape = same_shape,
          .grad = grad,
          .elementwise = true,
          .doc = std::move(doc)};
}

}  // namespace

TROUPE_OPS(complex) {
  r.add({.name = "Complex",
         .in = {"re", "im"},
         .out = {"z: complex of T"},
         .types = kReals,
         .shape = broadcast_shape,
         .grad = complex_grad,
         .elementwise = true,
         .doc = "z = re + i im. The inputs broadcast."})
      .cpu(complex_kernel);
  r.add(of_complex("Real", "re: real of T", real_grad, "The real part of z.")).cpu(complex_kernel);
  r.add(of_complex("Imag", "im: real of T", imag_grad, "The imaginary part of z."))
      .cpu(complex_kernel);
  r.add(of_complex("Conj", "y", conj_grad, "The conjugate of z: its imaginary part negated."))
      .cpu(complex_kernel);
  r.add(of_complex("Angle", "angle: real of T", angle_grad,
                   "The angle in [-pi, pi] of z in the complex plane, with the signs of C's atan2. "
                   "The gradient at 0 is 0."))
      .cpu(complex_kernel);
  r.add(
       of_complex("ComplexAbs", "y: real of T", complex_abs_grad,
                  "y = |z|, without overflow between. The gradient is dy * z / |z|, at 0 it is 0."))
      .cpu(complex_kernel);
}
