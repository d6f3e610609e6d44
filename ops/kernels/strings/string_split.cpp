// StringSplit: the parts of texts between separators.
#include <string_view>
#include <vector>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status string_split_shape(InferenceContext& c) {
  c.set(0, PartialShape::unknown_of_rank(1));
  c.set(1, c.shape(0));
  return ok_status();
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Between blanks, however many: no part is empty.
void split_words(std::string_view text, std::vector<std::string_view>& parts) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && !is_blank(text[end])) ++end;
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

void split_at(std::string_view text, std::string_view separator,
              std::vector<std::string_view>& parts) {
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == text.npos) return;
    at = end + separator.size();
  }
}

struct StringSplit final : Kernel {
  explicit StringSplit(const KernelSpec& s) : separator(s.string_attr("separator")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(Tensor lengths, ctx.allocate(DType::i64, x.shape()));
    std::vector<std::string_view> parts;
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const std::string_view text = x.data<std::string>()[i];
      const std::size_t before = parts.size();
      if (separator.empty())
        split_words(text, parts);
      else
        split_at(text, separator, parts);
      lengths.mutable_data<std::int64_t>()[i] = std::int64_t(parts.size() - before);
    }
    TROUPE_TRY(Tensor y, ctx.allocate(DType::string, Shape{std::int64_t(parts.size())}));
    std::copy(parts.begin(), parts.end(), y.mutable_data<std::string>());
    ctx.set_output(0, std::move(y));
    ctx.set_output(1, std::move(lengths));
    return ok_status();
  }
  std::string separator;
};

}  // namespace

TROUPE_OPS(string_split) {
  r.add({.name = "StringSplit",
         .in = {"x: string"},
         .out = {"parts: string", "lengths: i64"},
         .attrs = {"separator: string = "},
         .shape = string_split_shape,
         .no_gradient = "text",
         .doc = "The parts of each string in x between separators, all in one vector, and the "
                "number of parts of each string. Two adjacent separators have an empty part "
                "between them. Without a separator: the words between blanks, none of them empty."})
      // Not on devices that want to know shapes before a kernel has run.
      .on("CPU", make_kernel<StringSplit>);
}
