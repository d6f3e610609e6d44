// `unbatch`: the rows of each example, one after the other. Its components have equally many rows.
#include <algorithm>

#include "ops/data/stack.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

// After so many examples without rows it fails, since an endless input might never have one.
constexpr int kMostWithoutRows = 100'000;

Shape shape_of_row(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

class UnbatchPass final : public Pass {
 public:
  // `each`: the number of rows of every example, if known.
  UnbatchPass(std::unique_ptr<Pass> input, std::optional<std::uint64_t> each)
      : input_(std::move(input)), each_(each) {}
  UnbatchPass(const UnbatchPass& other)
      : input_(other.input_->clone()),
        each_(other.each_),
        failed_(other.failed_),
        values_(other.values_),
        origin_(other.origin_),
        row_(other.row_),
        rows_(other.rows_),
        goes_on_(other.goes_on_) {}

  Expected<std::optional<Example>> next() override {
    TROUPE_TRY(const bool found, find_row());
    if (!found) return std::optional<Example>();
    if (!failed_.ok()) {
      ++row_;
      return failed_;
    }
    std::vector<Tensor> row;
    for (const Tensor& value : values_) {
      const Tensor part = value.rows(row_, row_ + 1).reshaped(shape_of_row(value.shape()));
      row.push_back(part);
      if (rows_ == 1) continue;
      // A part of its buffer would keep the whole example alive as long as the row.
      TROUPE_TRY(row.back(), part.clone());
    }
    ++row_;
    return std::optional(Example{nullptr, 0, std::move(row), origin_});
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    std::uint64_t passed = 0;
    while (passed < n) {
      if (row_ == rows_ && each_ && n - passed >= *each_) {
        const std::uint64_t wanted = (n - passed) / *each_;
        const auto whole = input_->skip(wanted);
        goes_on_ = input_->goes_on();
        if (!whole.ok()) return whole.status();
        passed += *whole * *each_;
        if (*whole < wanted) return passed;
        continue;
      }
      const auto found = find_row();
      if (!found.ok()) {
        if (!goes_on_ || !is_of_data(found.status())) return found.status();
        ++passed;
        continue;
      }
      if (!*found) return passed;
      const std::uint64_t here = std::min(std::uint64_t(rows_ - row_), n - passed);
      row_ += std::int64_t(here);
      passed += here;
    }
    return passed;
  }
  bool goes_on() const override { return goes_on_; }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<UnbatchPass>(*this); }
  std::size_t bytes_held() const override {
    return sizeof *this + input_->bytes_held() + bytes_of(Example{nullptr, 0, values_});
  }

 private:
  // Whether there is another row. Of an example whose number of rows is known each is bad if it is.
  Expected<bool> find_row() {
    for (int tries = 0; row_ == rows_; ++tries) {
      auto found = find_example(tries);
      if (found.ok()) {
        if (!*found) return false;
        continue;
      }
      if (!each_ || !goes_on_ || !is_of_data(found.status())) return found;
      failed_ = found.status();
      rows_ = std::int64_t(*each_);
    }
    return true;
  }
  Expected<bool> find_example(int tries) {
    auto example = input_->next();
    goes_on_ = example.ok() || input_->goes_on();
    values_.clear();
    failed_ = {};
    row_ = rows_ = 0;
    if (!example.ok()) return example.status();
    if (!*example) return false;
    auto values = values_of(**example);
    if (!values.ok()) return in_example(values.status(), **example);
    for (const Tensor& value : *values)
      if (value.rank() == 0 || value.dim(0) != (*values)[0].dim(0))
        return in_example(
            invalid_argument("an example of " + signature_text(troupe::signature_of(*values)) +
                             " has no rows to part it in"),
            **example);
    if (tries == kMostWithoutRows)
      return invalid_argument(std::to_string(tries) + " examples without a row");
    origin_ = origin_of(**example);
    rows_ = (*values)[0].dim(0);
    values_ = std::move(*values);
    return true;
  }

  std::unique_ptr<Pass> input_;
  std::optional<std::uint64_t> each_;
  Status failed_;               // of an example that is as many bad rows as it should have
  std::vector<Tensor> values_;  // the example whose rows are next
  Origin origin_;
  std::int64_t row_ = 0, rows_ = 0;
  bool goes_on_ = false;
};

class UnbatchStage final : public Stage {
 public:
  UnbatchStage(Signature signature, StagePtr input, std::optional<std::uint64_t> each)
      : Stage(std::move(signature)), input_(std::move(input)), each_(each) {}
  std::optional<std::uint64_t> count() const override {
    const auto below = input_->count();
    if (!below || !each_) return std::nullopt;
    return *below > (kEndless - 1) / *each_ ? kEndless : *below * *each_;
  }
  bool direct() const override { return each_ && input_->direct(); }
  bool steady() const override { return each_ && input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<UnbatchPass>(input_->pass(number), each_);
  }

 private:
  StagePtr input_;
  std::optional<std::uint64_t> each_;
};

// The number of rows of every example, if a shape has it.
Expected<std::optional<std::uint64_t>> rows_of_each(const Signature& input) {
  std::optional<std::uint64_t> each;
  for (const Component& component : input) {
    if (!component.shape.known_rank()) continue;
    if (component.shape.rank() == 0)
      return invalid_argument("unbatch: examples of " + signature_text(input) + " have no rows");
    if (!component.shape.known(0)) continue;
    const auto rows = std::uint64_t(component.shape.dim(0));
    if (rows == 0 || (each && rows != *each))
      return invalid_argument("unbatch: examples of " + signature_text(input) +
                              (rows == 0 ? " have no rows" : " differ in rows"));
    each = rows;
  }
  return each;
}

Expected<Signature> signature_of_unbatch(const StageText& stage,
                                         const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(0, 0));
  TROUPE_TRY(rows_of_each(inputs[0]));
  Signature rows = inputs[0];
  for (Component& component : rows)
    if (component.shape.known_rank()) {
      TROUPE_TRY(component.shape, PartialShape::make(std::span(component.shape.dims()).subspan(1)));
    }
  return rows;
}

Expected<StagePtr> open_unbatch(const StageText&, Signature signature, Stages inputs,
                                StageOpening&) {
  TROUPE_TRY(const auto each, rows_of_each(inputs[0]->signature()));
  return StagePtr(std::make_unique<UnbatchStage>(std::move(signature), std::move(inputs[0]), each));
}

}  // namespace

StageKind unbatch_stage() { return {"unbatch", 1, signature_of_unbatch, open_unbatch}; }

}  // namespace troupe
