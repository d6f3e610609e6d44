// `range COUNT`: the numbers 0 to COUNT - 1, i64 []; -1: as many as there are below 2^63.
#include <limits>

#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

Signature range_signature() { return {{DType::i64, PartialShape::scalar()}}; }

class RangeSource final : public Source {
 public:
  explicit RangeSource(std::uint64_t count) : Source(range_signature()), count_(count) {}
  std::optional<std::uint64_t> count() const override { return count_; }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    std::int64_t* to = out[0].mutable_data<std::int64_t>() + row;
    for (std::int64_t i = 0; i < n; ++i) to[i] = std::int64_t(first) + i;
    return ok_status();
  }

 private:
  std::uint64_t count_;
};

Expected<Signature> signature_of_range(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(stage.takes(1, 1));
  TROUPE_TRY(stage.number(0, -1));
  return range_signature();
}

Expected<StagePtr> open_range(const StageText& stage, Signature, Stages, StageOpening&) {
  TROUPE_TRY(const std::int64_t count, stage.number(0, -1));
  return source_stage(std::make_unique<RangeSource>(
      count < 0 ? std::uint64_t(std::numeric_limits<std::int64_t>::max()) : std::uint64_t(count)));
}

}  // namespace

StageKind range_source() { return {"range", 0, signature_of_range, open_range}; }

}  // namespace troupe
