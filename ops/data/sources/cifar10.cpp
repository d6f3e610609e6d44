// `cifar10 FILES`: the binary version of CIFAR-10 (https://www.cs.toronto.edu/~kriz/cifar.html),
// file after file. A record has 3073 bytes: a label, 0 to 9, then 1024 bytes each of red, green and
// blue, a picture of 32 x 32 row by row. Examples: f32 [32,32,3] in [0,1], i64 []. A plain file has
// random access; a gzipped one is unpacked in memory.
#include <algorithm>

#include "ops/data/byte_stream.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

constexpr std::int64_t kSide = 32, kPlane = kSide * kSide, kColours = 3;
constexpr std::uint64_t kRecord = 1 + kPlane * kColours;
constexpr int kClasses = 10;

Signature cifar_signature() {
  return {{DType::f32, {kSide, kSide, kColours}}, {DType::i64, PartialShape::scalar()}};
}

class Cifar10Source final : public Source {
 public:
  explicit Cifar10Source(std::vector<DataFilePtr> files)
      : Source(cifar_signature()), files_(std::move(files)) {
    for (const DataFilePtr& file : files_) {
      begins_.push_back(count_);
      count_ += file->size() / kRecord;
    }
  }
  std::optional<std::uint64_t> count() const override { return count_; }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    std::string record(kRecord, '\0');
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t example = first + std::uint64_t(i);
      const auto f = std::size_t(std::upper_bound(begins_.begin(), begins_.end(), example) -
                                 begins_.begin() - 1);
      const std::uint64_t at = example - begins_[f];
      TROUPE_TRY(files_[f]->read_at(at * kRecord, record));
      const int label = std::uint8_t(record[0]);
      if (label >= kClasses)
        return in_file(data_loss("record " + std::to_string(at) + " has label " +
                                 std::to_string(label) + "; there are 0 to 9"),
                       *files_[f]);
      out[1].mutable_data<std::int64_t>()[row + i] = label;
      float* pixel = out[0].mutable_data<float>() + (row + i) * kPlane * kColours;
      for (std::int64_t p = 0; p < kPlane; ++p)
        for (std::int64_t c = 0; c < kColours; ++c)
          *pixel++ = float(std::uint8_t(record[std::size_t(1 + c * kPlane + p)])) * (1.0f / 255);
    }
    return ok_status();
  }

 private:
  std::vector<DataFilePtr> files_;
  std::vector<std::uint64_t> begins_;  // of each file, in examples
  std::uint64_t count_ = 0;
};

Expected<Signature> signature_of_cifar10(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(stage.takes(1, 1));
  TROUPE_TRY(stage.number(0, 1));
  return cifar_signature();
}

Expected<StagePtr> open_cifar10(const StageText& stage, Signature, Stages, StageOpening& opening) {
  TROUPE_TRY(const std::int64_t n, stage.number(0, 1));
  std::vector<DataFilePtr> files;
  for (std::int64_t i = 0; i < n; ++i) {
    TROUPE_TRY(DataFilePtr found, opening.next_file());
    TROUPE_TRY(DataFilePtr file, unpacked(std::move(found)));
    if (file->size() == 0 || file->size() % kRecord != 0)
      return in_file(data_loss("not a binary file of CIFAR-10: " + std::to_string(file->size()) +
                               " bytes are no multiple of a record's 3073"),
                     *file);
    files.push_back(std::move(file));
  }
  return source_stage(std::make_unique<Cifar10Source>(std::move(files)));
}

}  // namespace

StageKind cifar10_source() { return {"cifar10", 0, signature_of_cifar10, open_cifar10}; }

}  // namespace troupe
