// `digits SEED FIRST COUNT`: generated digits (ops/data/digits.hpp), f32 [28,28,1] in [0,1], and
// their labels i64. They are drawn when they are read; those of a small set are kept.
#include <array>
#include <memory>
#include <vector>

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

struct Digit {
  std::array<std::uint8_t, kPixels> pixels;
  std::uint8_t label;
};

class DigitsSource final : public Source {
 public:
  explicit DigitsSource(const DrawnRange& range)
      : Source(digits_signature()),
        range_(range),
        kept_(range.count <= kMostKept ? std::size_t(range.count) : 0) {}
  std::optional<std::uint64_t> count() const override { return std::uint64_t(range_.count); }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    Digit drawn;
    for (std::uint64_t i = first; i < first + std::uint64_t(n); ++i, ++row) {
      const Digit& digit = kept_.empty() ? draw(i, drawn) : kept(i);
      to_floats({reinterpret_cast<const char*>(digit.pixels.data()), digit.pixels.size()},
                out[0].mutable_data<float>() + row * kPixels);
      out[1].mutable_data<std::int64_t>()[row] = digit.label;
    }
    return ok_status();
  }

 private:
  const Digit& draw(std::uint64_t i, Digit& to) const {
    to.label = std::uint8_t(draw_digit(range_.seed, range_.first + i, to.pixels.data()));
    return to;
  }
  const Digit& kept(std::uint64_t i) const {
    std::unique_ptr<Digit>& digit = kept_[std::size_t(i)];
    if (!digit) {
      digit = std::make_unique<Digit>();
      draw(i, *digit);
    }
    return *digit;
  }

  DrawnRange range_;
  mutable std::vector<std::unique_ptr<Digit>> kept_;  // null: not drawn yet
};

Expected<Signature> signature_of_digits(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(drawn_range(stage));
  return digits_signature();
}

Expected<StagePtr> open_digits(const StageText& stage, Signature, Stages, StageOpening&) {
  TROUPE_TRY(const DrawnRange range, drawn_range(stage));
  return source_stage(std::make_unique<DigitsSource>(range));
}

}  // namespace

StageKind digits_source() { return {"digits", 0, signature_of_digits, open_digits}; }

}  // namespace troupe
