// Fourier transforms over the last one, two or three dimensions. The kernels are in ops/complex/.
#include "ops/complex/fft.hpp"

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

using Kind = FftOp::Kind;

// What all ops of one rank and direction have in common.
template <int rank, bool inverse>
struct Fft {
  static constexpr FftOp of(Kind kind) { return {kind, rank, inverse}; }
  static std::string name(std::string_view prefix, std::string_view suffix = {}) {
    return std::string(prefix) + "FFT" + (rank == 1 ? "" : std::to_string(rank) + "D") +
           std::string(suffix);
  }

  template <Kind kind>
  static Expected<std::unique_ptr<Kernel>> kernel(const KernelSpec& spec) {
    return fft_kernel(spec, of(kind));
  }
  static Status complex_shape(InferenceContext& c) {
    TROUPE_TRY(PartialShape y, fft_shape(of(Kind::complex), c.shape(0), {}));
    c.set(0, std::move(y));
    return ok_status();
  }
  template <Kind kind>
  static Status half_shape(InferenceContext& c) {
    TROUPE_TRY(PartialShape y, fft_shape(of(kind), c.shape(0), c.ints_attr("fft_length")));
    c.set(0, std::move(y));
    return ok_status();
  }
  static Status grad_shape(InferenceContext& c) {
    TROUPE_TRY(c.want_rank_at_least(0, rank));
    return set_shape_from(c, 1);
  }

  // The adjoint of a transform is the other one, which is divided where this one is not.
  static std::vector<Output> complex_grad(GradContext& c) {
    const std::string& norm = c.string_attr("norm");
    const std::string other = norm == "ortho" ? norm : norm == "forward" ? "backward" : "forward";
    return {c.g.add(name(inverse ? "" : "I"), {c.dy[0]}, {{"norm", other}})};
  }
  static AttrMap attrs_of(GradContext& c) {
    return {{"fft_length", c.ints_attr("fft_length")}, {"norm", c.string_attr("norm")}};
  }
  static std::vector<Output> half_grad(GradContext& c) {
    return {c.g.add(name(inverse ? "IR" : "R", "Grad"), {c.dy[0], c.g.add("Shape", {c.x[0]})},
                    attrs_of(c))};
  }
  // Transforms are linear: the gradient of the gradient is the transform.
  static std::vector<Output> half_grad_grad(GradContext& c) {
    return {c.g.add(name(inverse ? "IR" : "R"), {c.dy[0]}, attrs_of(c)), Output()};
  }
};

const std::string kNorm = "norm: string {backward ortho forward} = backward";

std::string dimensions(int rank) {
  return rank == 1 ? "the last dimension" : "the last " + std::to_string(rank) + " dimensions";
}

template <int rank, bool inverse>
void add_complex(OpTable& r) {
  using F = Fft<rank, inverse>;
  const std::string what = inverse ? "The inverse of " + Fft<rank, false>::name("") + ": over "
                                   : "The discrete Fourier transform over ";
  const std::string sum = inverse ? "y[k] = sum over j of x[j] e^(2 pi i j k / n), divided by n"
                                  : "y[k] = sum over j of x[j] e^(-2 pi i j k / n)";
  r.add({.name = F::name(inverse ? "I" : ""),
         .in = {"x"},
         .out = {"y"},
         .types = kComplex,
         .attrs = {kNorm},
         .shape = F::complex_shape,
         .grad = F::complex_grad,
         .doc = what + dimensions(rank) + ": " + sum + (rank == 1 ? "" : ", along each") +
                ". Dimensions may have any size. norm: which direction is divided by n, the "
                "number of elements of a transform, or both by its square root (ortho)."})
      .cpu(F::template kernel<Kind::complex>);
}

template <int rank>
void add_half(OpTable& r) {
  using F = Fft<rank, false>;
  using I = Fft<rank, true>;
  const std::string last = dimensions(rank);
  r.add({.name = F::name("R"),
         .in = {"x"},
         .out = {"y: complex of T"},
         .types = kReals,
         .attrs = {"fft_length: list(int) = []", kNorm},
         .shape = F::template half_shape<Kind::real>,
         .grad = F::half_grad,
         .doc = F::name("") + " of real numbers, over " + last +
                ": the first n / 2 + 1 elements of the last one. The others are their conjugates. "
                "fft_length: n of each dimension, to which x is cut off or filled up with zeros; "
                "if the list is empty, the dimensions of x. norm: as " +
                F::name("") + " has it."})
      .cpu(F::template kernel<Kind::real>);
  r.add({.name = I::name("IR"),
         .in = {"x"},
         .out = {"y: real of T"},
         .types = kComplex,
         .attrs = {"fft_length: list(int) = []", kNorm},
         .shape = I::template half_shape<Kind::hermitian>,
         .grad = I::half_grad,
         .doc = "The inverse of " + F::name("R") + ", over " + last +
                ": x has the first n / 2 + 1 elements of the last one. fft_length: n of each "
                "dimension, to which x is cut off or filled up with zeros; if the list is empty, "
                "the dimensions of x, but 2 (d - 1) for the last one, d. Imaginary parts that a "
                "transform of real numbers does not have are not read. norm: as " +
                F::name("") + " has it."})
      .cpu(I::template kernel<Kind::hermitian>);
  r.add({.name = F::name("R", "Grad"),
         .in = {"dy", "shape: i64"},
         .out = {"dx: real of T"},
         .types = kComplex,
         .attrs = {"fft_length: list(int) = []", kNorm},
         .shape = F::grad_shape,
         .grad = F::half_grad_grad,
         .host = {"shape"},
         .doc = "The gradient of " + F::name("R") + " for an x of `shape`."})
      .cpu(F::template kernel<Kind::real_grad>);
  r.add({.name = I::name("IR", "Grad"),
         .in = {"dy", "shape: i64"},
         .out = {"dx: complex of T"},
         .types = kReals,
         .attrs = {"fft_length: list(int) = []", kNorm},
         .shape = I::grad_shape,
         .grad = I::half_grad_grad,
         .host = {"shape"},
         .doc = "The gradient of " + I::name("IR") + " for an x of `shape`."})
      .cpu(I::template kernel<Kind::hermitian_grad>);
}

template <int rank>
void add_rank(OpTable& r) {
  add_complex<rank, false>(r);
  add_complex<rank, true>(r);
  add_half<rank>(r);
}

}  // namespace

TROUPE_OPS(fft) {
  add_rank<1>(r);
  add_rank<2>(r);
  add_rank<3>(r);
}
