// Sources of examples in files of common formats. docs/input.md describes them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ops/data/decoding.hpp"
#include "ops/data/examples.hpp"

namespace troupe::data {

// The files that match a pattern (*, ?, [...], as in a shell), in ascending order of their bytes.
// The search happens in this call; the graph has the names. Throws Error, not_found if none match.
std::vector<std::string> files(std::string_view pattern);

// A list of paths, used as given; or one path; or the files that match one pattern.
struct FileList {
  FileList(const char* pattern) : FileList(std::string_view(pattern)) {}
  FileList(const std::string& pattern) : FileList(std::string_view(pattern)) {}
  FileList(std::string_view pattern);
  FileList(std::vector<std::string> paths) : paths(std::move(paths)) {}
  FileList(std::initializer_list<std::string> paths) : paths(paths) {}
  std::vector<std::string> paths;
};

// How records are compressed; `detect` looks at each file.
enum class Packing { detect, none, gzip, zlib };

struct RecordOptions {
  Packing packing = Packing::detect;
  std::int64_t most_bytes = std::int64_t{256} << 20;  // limit of a record; longer ones are errors
  // Number of files read in turn, one record of each; 1: one file after the other.
  std::int64_t at_once = 1;
};
// The records of TFRecord files, string []. Checksums are verified. Each record is an element; see
// Examples::parse_example.
FixedExamples<1> tf_records(const FileList& files, const RecordOptions& options = {});

// The lines of text files, plain or gzipped, string [], without line ends, file after file.
FixedExamples<1> text_lines(const FileList& files);
// Whole files, string []; gzipped files are unpacked. Random access.
FixedExamples<1> whole_files(const FileList& files);

struct FixedRecordOptions {
  std::int64_t header = 0, footer = 0;  // bytes to ignore at the ends of each file
  // What the bytes are: numbers, little-endian, of a dtype that divides the record.
  DType dtype = DType::u8;
};
// Records of `bytes` bytes each, u8 [bytes] or [bytes / size] of another dtype, file after file.
// Random access; gzipped files are unpacked in memory.
FixedExamples<1> fixed_records(const FileList& files, std::int64_t bytes,
                               const FixedRecordOptions& options = {});

// An array of an NPY or NPZ file. Its rows along dimension 0 are the examples.
struct NumpyArray {
  std::string name;  // NPY: the file; NPZ: the array, without ".npy"
  DType dtype = DType::f32;
  // The shape of an example, for an array [n, ...shape]. Another shape in the file is an error.
  PartialShape shape = PartialShape::scalar();
};
// Example i is row i of each array; all must have the same number of rows. Arrays in Fortran order
// and compressed arrays are read into memory; others are read as needed.
Examples npy(const std::vector<NumpyArray>& arrays);
Examples npz(std::string_view path, const std::vector<NumpyArray>& arrays);

// The PNG and JPEG files of the folders in `folder`, and their labels, i64 []: the index of the
// folder in ascending order of the names. The options give the size of the pictures.
FixedExamples<2> image_folder(std::string_view folder, const ImageOptions& options);
// Like image_folder(), but with files of any kind, unchanged, string []. Skips names that begin
// with a dot.
FixedExamples<2> labelled_files(std::string_view folder);

// The numbers 0 to count - 1, i64 []; count -1: endless.
FixedExamples<1> range(std::int64_t count = -1);
// Applies a graph function to each of these numbers:
//   data::generate(g, 1000, [&](Output i) { return cast<float>(i) * 0.5f; })
template <class F>
auto generate(GraphBuilder& g, std::int64_t count, F&& f, const MapOptions& options = {},
              Site site = Site::here()) {
  return range(count).map(g, std::forward<F>(f), options, std::move(site));
}

}  // namespace troupe::data
