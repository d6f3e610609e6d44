// Fourier transforms over the last one, two or three dimensions. The kernels are in ops/complex/.
#include "ops/complex/fft.hpp"

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

using Kind = FftOp::Kind;

// "FFT", "IRFFT2D", "RFFT3DGrad": all ops have the functions below, which go by the name.
std::string name_of(std::string_view prefix, int rank, std::string_view suffix = {}) {
  std::string name(prefix);
  name += "FFT";
  if (rank > 1) (name += char('0' + rank)) += 'D';
  return name += suffix;
}
FftOp fft_op(std::string_view name) {
  FftOp op;
  op.inverse = name[0] == 'I';
  const bool half = name[op.inverse ? 1 : 0] == 'R', grad = name.ends_with("Grad");
  if (half && op.inverse) op.kind = grad ? Kind::hermitian_grad : Kind::hermitian;
  if (half && !op.inverse) op.kind = grad ? Kind::real_grad : Kind::real;
  const auto digit = name.find_first_of("23");
  if (digit != std::string_view::npos) op.rank = name[digit] - '0';
  return op;
}

Expected<std::unique_ptr<Kernel>> make_fft(const KernelSpec& spec) {
  return fft_kernel(spec, fft_op(spec.node.op));
}
Status fft_op_shape(InferenceContext& c) {
  const FftOp op = fft_op(c.op().def.name);
  const std::vector<std::int64_t> none;
  TROUPE_TRY(
      PartialShape y,
      fft_shape(op, c.shape(0), op.kind == Kind::complex ? none : c.ints_attr("fft_length")));
  c.set(0, std::move(y));
  return ok_status();
}
Status fft_grad_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, fft_op(c.op().def.name).rank));
  return set_shape_from(c, 1);
}

// The adjoint of a transform is the other one, which is divided where this one is not.
std::vector<Output> fft_grad(GradContext& c) {
  const FftOp op = fft_op(c.node().op);
  const std::string& norm = c.string_attr("norm");
  const std::string other = norm == "ortho" ? norm : norm == "forward" ? "backward" : "forward";
  return {c.g.add(name_of(op.inverse ? "" : "I", op.rank), {c.dy[0]}, {{"norm", other}})};
}
std::vector<Output> half_fft_grad(GradContext& c) {
  return {c.g.add(c.node().op + "Grad", {c.dy[0], c.g.add("Shape", {c.x[0]})},
                  {{"fft_length", c.ints_attr("fft_length")}, {"norm", c.string_attr("norm")}})};
}
// Transforms are linear: the gradient of the gradient is the transform.
std::vector<Output> half_fft_grad_grad(GradContext& c) {
  const std::string grad = c.node().op, op = grad.substr(0, grad.size() - 4);
  return {c.g.add(op, {c.dy[0]},
                  {{"fft_length", c.ints_attr("fft_length")}, {"norm", c.string_attr("norm")}}),
          Output()};
}

std::string dimensions(int rank) {
  return rank == 1 ? "the last dimension" : "the last " + std::to_string(rank) + " dimensions";
}

OpDef transform(std::string name, std::string out, std::string types, GradFn grad,
                std::string doc) {
  OpDef def{.name = std::move(name),
            .in = {"x"},
            .out = {std::move(out)},
            .types = std::move(types),
            .attrs = {"norm: string {backward ortho forward} = backward"},
            .shape = fft_op_shape,
            .grad = grad,
            .doc = std::move(doc)};
  if (grad != fft_grad) def.attrs.insert(def.attrs.begin(), "fft_length: list(int) = []");
  return def;
}
OpDef gradient_of_transform(const OpDef& of, std::string out, std::string types) {
  OpDef def = transform(of.name + "Grad", std::move(out), std::move(types), half_fft_grad_grad,
                        "The gradient of " + of.name + " for an x of `shape`.");
  def.in = {"dy", "shape: i64"};
  def.shape = fft_grad_shape;
  def.host = {"shape"};
  return def;
}

void add_transforms(OpTable& r, int rank) {
  const std::string over = dimensions(rank), fft = name_of("", rank), rfft = name_of("R", rank);
  const std::string each = rank == 1 ? "" : ", along each";
  const std::string norm =
      "norm: which direction is divided by n, the number of elements of a "
      "transform, or both by its square root (ortho).";
  const std::string fitted =
      "fft_length: n of each dimension, to which x is cut off or filled up "
      "with zeros; if the list is empty, the dimensions of x";
  r.add(transform(fft, "y", kComplex, fft_grad,
                  "The discrete Fourier transform over " + over +
                      ": y[k] = sum over j of x[j] e^(-2 pi i j k / n)" + each +
                      ". Dimensions may have any size. " + norm))
      .cpu(make_fft);
  r.add(transform(name_of("I", rank), "y", kComplex, fft_grad,
                  "The inverse of " + fft + ": over " + over +
                      ", y[k] = sum over j of x[j] e^(2 pi i j k / n), divided by n" + each + ". " +
                      norm))
      .cpu(make_fft);
  const OpDef half = transform(rfft, "y: complex of T", kReals, half_fft_grad,
                               fft + " of real numbers, over " + over +
                                   ": the first n / 2 + 1 elements of the last one. The others are "
                                   "their conjugates. " +
                                   fitted + ". norm: as " + fft + " has it.");
  const OpDef back =
      transform(name_of("IR", rank), "y: real of T", kComplex, half_fft_grad,
                "The inverse of " + rfft + ", over " + over +
                    ": x has the first n / 2 + 1 elements of the last one. " + fitted +
                    ", but 2 (d - 1) for the last one, d. Imaginary parts that a transform of real "
                    "numbers does not have are not read. norm: as " +
                    fft + " has it.");
  r.add(half).cpu(make_fft);
  r.add(back).cpu(make_fft);
  r.add(gradient_of_transform(half, "dx: real of T", kComplex)).cpu(make_fft);
  r.add(gradient_of_transform(back, "dx: complex of T", kReals)).cpu(make_fft);
}

}  // namespace

TROUPE_OPS(fft) {
  for (int rank = 1; rank <= 3; ++rank) add_transforms(r, rank);
}
