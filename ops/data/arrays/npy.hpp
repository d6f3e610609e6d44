// Arrays of NumPy: the NPY format
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

// What the header of a file says.
struct NpyHeader {
  // f, i, u, b, c: numbers of `dtype`; S: bytes, U: code points of 32 bits, both strings.
  char kind = 'f';
  DType dtype = DType::invalid;
  std::size_t item = 0;  // bytes of an element
  bool swapped = false;  // big-endian
  bool fortran = false;  // the first index runs fastest
  Shape shape;
  std::uint64_t size = 0;  // bytes of the header
};
inline constexpr std::size_t kMostNpyHeader = std::size_t{1} << 20;
// From the first bytes of a file, as many as it has up to kMostNpyHeader. data_loss for what is no
// NPY file, unimplemented for elements that no tensor has.
Expected<NpyHeader> parse_npy_header(std::string_view start);

// An open array, whose rows along dimension 0 are read where they are wanted. Immutable.
class NpyRows {
 public:
  // An array in Fortran's order is read into memory, 4 GiB at most. Errors name the file:
  // invalid_argument for another dtype or shape of rows than that.
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

// Rows of arrays side by side. invalid_argument where one has more than another.
Expected<std::unique_ptr<const Source>> numpy_source(std::vector<NpyRows> arrays);

// The types of arrays as words of a stage, from word `first` on, and the components they are.
std::vector<std::string> numpy_words(const std::vector<data::NumpyArray>& arrays);
Expected<std::vector<data::NumpyArray>> parse_numpy_words(const StageText& stage,
                                                          std::size_t first);
// StageKind::signature of stages whose arguments are such words.
Expected<Signature> numpy_signature(const StageText& stage, const std::vector<Signature>&);

}  // namespace troupe
