// `digits SEED FIRST COUNT`: generated digits (ops/data/digits.hpp), f32 [28,28,1] in [0,1], and
// their labels i64. Small sets are drawn once and kept, others when they are read.
#include <limits>

#include "ops/data/digits.hpp"
#include "ops/data/sources/drawn_range.hpp"
#include "ops/data/sources/pixels.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

constexpr std::int64_t kPixels = kDigitSide * kDigitSide;
constexpr std::int64_t kMostKept = 150'000;  // about 120 MB

Signature digits_signature() {
  return {{DType::f32, {kDigitSide, kDigitSide, 1}}, {DType::i64, PartialShape::scalar()}};
}

class DigitsSource final : public Source {
 public:
  // `kept`: what digit_set says of the range, or nothing.
  DigitsSource(const DrawnRange& range, std::vector<Tensor> kept)
      : Source(digits_signature()), range_(range), kept_(std::move(kept)) {}
  std::optional<std::uint64_t> count() const override { return std::uint64_t(range_.count); }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    std::vector<Tensor> drawn;
    if (kept_.empty()) {
      TROUPE_TRY(drawn, digit_set(range_.seed, range_.first + first, n));
    }
    const std::vector<Tensor>& set = kept_.empty() ? drawn : kept_;
    const std::int64_t at = kept_.empty() ? 0 : std::int64_t(first);
    to_floats({set[0].data<char>() + at * kPixels, std::size_t(n * kPixels)},
              out[0].mutable_data<float>() + row * kPixels);
    to_labels({set[1].data<char>() + at, std::size_t(n)},
              out[1].mutable_data<std::int64_t>() + row);
    return ok_status();
  }

 private:
  DrawnRange range_;
  std::vector<Tensor> kept_;
};

Expected<Signature> signature_of_digits(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(drawn_range(stage));
  return digits_signature();
}

Expected<StagePtr> open_digits(const StageText& stage, Signature, Stages, StageOpening&) {
  TROUPE_TRY(const DrawnRange range, drawn_range(stage));
  std::vector<Tensor> kept;
  if (range.count <= kMostKept) {
    TROUPE_TRY(kept, digit_set(range.seed, range.first, range.count));
  }
  return source_stage(std::make_unique<DigitsSource>(range, std::move(kept)));
}

}  // namespace

StageKind digits_source() { return {"digits", 0, signature_of_digits, open_digits}; }

}  // namespace troupe
