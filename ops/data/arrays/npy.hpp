// NumPy arrays: the NPY format
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"
#include "ops/data/data_file.hpp"
#include "ops/data/files.hpp"
#include "ops/data/source.hpp"
#include "ops/data/stage_text.hpp"

namespace troupe {

// The header of a file.
struct NpyHeader {
  // f, i, u, b, c: numbers of `dtype`. Strings: S of bytes, U of 32-bit code points.
  char kind = 'f';
  DType dtype = DType::invalid;
  std::size_t item = 0;  // bytes of an element
  bool swapped = false;  // big-endian
  bool fortran = false;  // the first index varies fastest
  Shape shape;
  std::uint64_t size = 0;  // bytes of the header
};
inline constexpr std::size_t kMostNpyHeader = std::size_t{1} << 20;
// Parses the first bytes of a file, up to kMostNpyHeader. data_loss if it is not an NPY file,
// unimplemented for element types that tensors do not support.
Expected<NpyHeader> parse_npy_header(std::string_view start);

// An open array, whose rows along dimension 0 are read as needed. Immutable.
class NpyRows {
 public:
  // An array in Fortran order is read into memory, 4 GiB at most. Errors name the file:
  // invalid_argument if dtype or shape of the rows are not as given.
  static Expected<NpyRows> open(DataFilePtr file, DType dtype, const PartialShape& row);

  std::uint64_t count() const { return std::uint64_t(header_.shape.dim(0)); }
  Component component() const;  // of a row
  Status read(std::uint64_t first, std::int64_t n, Tensor& out, std::int64_t row) const;
  Origin origin(std::uint64_t row) const;

 private:
  NpyRows(DataFilePtr file, const NpyHeader& header) : file_(std::move(file)), header_(header) {}
  std::uint64_t row_elements() const;

  DataFilePtr file_;
  NpyHeader header_;
};

// A source of the rows of several arrays. invalid_argument if their numbers of rows differ.
Expected<std::unique_ptr<const Source>> numpy_source(std::vector<NpyRows> arrays);

// Converts arrays to words of a stage, and back from word `first` on.
std::vector<std::string> numpy_words(const std::vector<data::NumpyArray>& arrays);
Expected<std::vector<data::NumpyArray>> parse_numpy_words(const StageText& stage,
                                                          std::size_t first);
// StageKind::signature for stages with such arguments.
Expected<Signature> numpy_signature(const StageText& stage, const std::vector<Signature>&);

}  // namespace troupe
