// `idx SHAPE...`: IDX files, one per component, each with an example's shape ("?" for any). The
// format of the MNIST files (http://yann.lecun.com/exdb/mnist): the bytes 0, 0, a kind (8: unsigned
// bytes) and the rank, the dimensions of 32 bits, then the elements, all big-endian.
//
// Examples [H,W] become f32 [H,W,1] in [0,1] and scalars i64; others stay bytes. A plain file has
// random access; a gzipped one is unpacked in memory, up to the size in its header and 4 GiB.
#include <algorithm>
#include <cstring>

#include "ops/data/byte_stream.hpp"
#include "ops/data/sources/pixels.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

struct IdxFile {
  DataFilePtr file;
  std::uint64_t header = 0;  // bytes
  Shape shape;               // of all, the example in dimension 0
  std::int64_t example() const { return shape.dim(0) == 0 ? 0 : shape.elements() / shape.dim(0); }
};

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (char c : bytes.substr(0, 4)) value = value << 8 | std::uint8_t(c);
  return value;
}

// The shape, from the first bytes of a file.
Expected<Shape> parse_header(std::string_view start) {
  if (start.size() < 4 || start[0] != 0 || start[1] != 0)
    return data_loss("not an IDX file: its first bytes are not zero");
  if (start[2] != 8) return data_loss("not an IDX file of bytes (kind 8)");
  const int rank = std::uint8_t(start[3]);
  if (rank < 1 || rank > kMaxRank)
    return data_loss("an IDX file of rank " + std::to_string(rank) + "; 1 to 8 are possible");
  if (start.size() < 4 + 4 * std::size_t(rank))
    return data_loss("an IDX file that ends inside its header");
  std::vector<std::int64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(big_endian(start.substr(4 + 4 * std::size_t(i))));
  return Shape::make(dims);
}

Expected<std::string> start_of(DataFilePtr file) {
  TROUPE_TRY(ByteStream stream, ByteStream::open(std::move(file)));
  std::string start;
  while (start.size() < 4 + 4 * kMaxRank) {
    TROUPE_TRY(const std::string_view chunk, stream.chunk());
    if (chunk.empty()) break;
    const std::size_t n = std::min(chunk.size(), 4 + 4 * kMaxRank - start.size());
    start.append(chunk.substr(0, n));
    stream.consume(n);
  }
  return start;
}

Shape example_of(const Shape& all) { return Shape(all.dims().subspan(1)); }

Expected<IdxFile> open_idx(DataFilePtr file, const PartialShape& wanted) {
  TROUPE_TRY(const std::string start, start_of(file));
  IdxFile idx{file, 0, {}};
  auto shape = parse_header(start);
  if (!shape.ok()) return in_file(shape.status(), *file);
  idx.shape = *shape;
  const Shape example = example_of(idx.shape);
  if (wanted.known_rank() && !wanted.accepts(example))
    return in_file(invalid_argument("examples of " + example.text() + ", not of " + wanted.text()),
                   *file);
  idx.header = 4 + 4 * std::uint64_t(idx.shape.rank());
  const auto bytes = std::uint64_t(idx.shape.elements());
  TROUPE_TRY(idx.file, unpacked(file, std::min(kMostUnpacked, idx.header + bytes)));
  if (idx.file->size() != idx.header + bytes)
    return in_file(data_loss("an IDX file of shape " + idx.shape.text() + " with " +
                             std::to_string(idx.file->size() - idx.header) + " bytes of data"),
                   *file);
  return idx;
}

Component component_of(const PartialShape& example) {
  if (!example.known_rank()) return {DType::invalid, {}};
  if (example.rank() == 0) return {DType::i64, PartialShape::scalar()};
  if (example.rank() != 2) return {DType::u8, example};
  return {DType::f32, {example.dim(0), example.dim(1), 1}};
}

Signature signature_of(const std::vector<IdxFile>& files) {
  Signature signature;
  for (const IdxFile& file : files) signature.push_back(component_of(example_of(file.shape)));
  return signature;
}

class IdxSource final : public Source {
 public:
  explicit IdxSource(std::vector<IdxFile> files)
      : Source(signature_of(files)), files_(std::move(files)) {}
  std::optional<std::uint64_t> count() const override {
    return std::uint64_t(files_[0].shape.dim(0));
  }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    std::string bytes;
    for (std::size_t c = 0; c < files_.size(); ++c) {
      const std::int64_t size = files_[c].example();
      bytes.resize(std::size_t(n * size));
      TROUPE_TRY(files_[c].file->read_at(files_[c].header + first * std::uint64_t(size), bytes));
      Tensor& rows = out[c];
      if (rows.dtype() == DType::f32)
        to_floats(bytes, rows.mutable_data<float>() + row * size);
      else if (rows.dtype() == DType::i64)
        to_labels(bytes, rows.mutable_data<std::int64_t>() + row * size);
      else
        std::copy(bytes.begin(), bytes.end(), rows.mutable_data<char>() + row * size);
    }
    return ok_status();
  }

 private:
  std::vector<IdxFile> files_;
};

Expected<Signature> signature_of_idx(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(stage.takes(1, 64));
  Signature all;
  for (std::size_t i = 0; i < stage.arguments.size(); ++i) {
    TROUPE_TRY(const PartialShape shape, stage.shape(i));
    all.push_back(component_of(shape));
  }
  return all;
}

Expected<StagePtr> open_idx(const StageText& stage, Signature, Stages, StageOpening& opening) {
  std::vector<IdxFile> files;
  for (std::size_t i = 0; i < stage.arguments.size(); ++i) {
    TROUPE_TRY(DataFilePtr file, opening.next_file());
    TROUPE_TRY(const PartialShape wanted, stage.shape(i));
    TROUPE_TRY(IdxFile idx, open_idx(file, wanted));
    if (!files.empty() && idx.shape.dim(0) != files[0].shape.dim(0))
      return in_file(invalid_argument("components differ in length: " + files[0].shape.text() +
                                      " and " + idx.shape.text()),
                     *file);
    files.push_back(std::move(idx));
  }
  return source_stage(std::make_unique<IdxSource>(std::move(files)));
}

}  // namespace

StageKind idx_source() { return {"idx", 0, signature_of_idx, open_idx}; }

}  // namespace troupe
