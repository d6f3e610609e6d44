// StringToNumber: the numbers that texts say.
#include <fmt/core.h>

#include "core/number.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status string_to_number_shape(InferenceContext& c) {
  c.set(0, c.shape(0));
  return ok_status();
}

// Blanks around a number are no part of it, nor is a plus sign.
std::string_view number_text(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class T>
Status numbers_of(const Tensor& x, Tensor& y) {
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::string& text = x.data<std::string>()[i];
    const auto number = parse_number<T>(number_text(text));
    if (!number)
      return invalid_argument(fmt::format("x[{}] is '{}', which is no {}", i, text.substr(0, 40),
                                          dtype_name(dtype_of<T>)));
    y.mutable_data<T>()[i] = *number;
  }
  return ok_status();
}

struct StringToNumber final : Kernel {
  explicit StringToNumber(const KernelSpec& s) : dtype(s.type("out_type")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(Tensor y, ctx.allocate(dtype, x.shape()));
    TROUPE_TRY(parse_all(x, y));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  Status parse_all(const Tensor& x, Tensor& y) const {
    switch (dtype) {
      case DType::f32:
        return numbers_of<float>(x, y);
      case DType::f64:
        return numbers_of<double>(x, y);
      case DType::i32:
        return numbers_of<std::int32_t>(x, y);
      default:
        return numbers_of<std::int64_t>(x, y);
    }
  }
  DType dtype;
};

}  // namespace

TROUPE_OPS(string_to_number) {
  r.add({.name = "StringToNumber",
         .in = {"x: string"},
         .out = {"y: out_type"},
         .attrs = {"out_type: type {f32 f64 i32 i64} = f32"},
         .shape = string_to_number_shape,
         .no_gradient = "text",
         .doc =
             "The decimal number in each string of x, which blanks may surround; any other string, "
             "and a number that the type cannot hold, is an error."})
      .cpu(make_kernel<StringToNumber>);
}
