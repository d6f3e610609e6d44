// `shapes SEED FIRST COUNT`: pictures of shapes (ops/data/shapes.hpp), f32 [32,32,3] in [0,1], and
// their labels i64. They are drawn when they are read.
#include <array>

#include "ops/data/shapes.hpp"
#include "ops/data/sources/drawn_range.hpp"
#include "ops/data/sources/pixels.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

constexpr std::int64_t kShapeColours = 3, kValues = kShapeSide * kShapeSide * kShapeColours;

Signature shapes_signature() {
  return {{DType::f32, {kShapeSide, kShapeSide, kShapeColours}}, {DType::i64, PartialShape::scalar()}};
}

class ShapesSource final : public Source {
 public:
  explicit ShapesSource(const DrawnRange& range) : Source(shapes_signature()), range_(range) {}
  std::optional<std::uint64_t> count() const override { return std::uint64_t(range_.count); }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    std::array<std::uint8_t, kValues> picture;
    for (std::int64_t i = 0; i < n; ++i) {
      const int label =
          draw_shape(range_.seed, range_.first + first + std::uint64_t(i), picture.data());
      to_floats({reinterpret_cast<const char*>(picture.data()), picture.size()},
                out[0].mutable_data<float>() + (row + i) * kValues);
      out[1].mutable_data<std::int64_t>()[row + i] = label;
    }
    return ok_status();
  }

 private:
  DrawnRange range_;
};

Expected<Signature> signature_of_shapes(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(drawn_range(stage));
  return shapes_signature();
}

Expected<StagePtr> open_shapes(const StageText& stage, Signature, Stages, StageOpening&) {
  TROUPE_TRY(const DrawnRange range, drawn_range(stage));
  return source_stage(std::make_unique<ShapesSource>(range));
}

}  // namespace

StageKind shapes_source() { return {"shapes", 0, signature_of_shapes, open_shapes}; }

}  // namespace troupe
