// Sources of examples in files of general formats. docs/input.md describes them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ops/data/decoding.hpp"
#include "ops/data/examples.hpp"

namespace troupe::data {

// The files that match a pattern (*, ?, [...], as of a shell), in ascending order of their bytes.
// Looked for here and now: the graph holds the names. Throws Error, not_found when there is none.
std::vector<std::string> files(std::string_view pattern);

// Paths as they are, in that order; or one path, or the files that match one pattern.
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
  std::int64_t most_bytes = std::int64_t{256} << 20;  // of a record; a longer one is an error
  // Files that are read in turn, a record of each; 1: one file after the other.
  std::int64_t at_once = 1;
};
// The records of TFRecord files, string []. Checksums are verified. Each record is an element; see
// Examples::parse_example.
FixedExamples<1> tf_records(const FileList& files, const RecordOptions& options = {});

// The lines of text files, string [], without what ends them, file after file; packed by gzip or
// not.
FixedExamples<1> text_lines(const FileList& files);
// Files as they are, string []; unpacked where gzip has packed them. Random access.
FixedExamples<1> whole_files(const FileList& files);

struct FixedRecordOptions {
  std::int64_t header = 0, footer = 0;  // bytes at the ends of each file that are no records
};
// Records of `bytes` bytes each, u8 [bytes], file after file. Random access; files that gzip has
// packed are unpacked in memory.
FixedExamples<1> fixed_records(const FileList& files, std::int64_t bytes,
                               const FixedRecordOptions& options = {});

// An array of an NPY or NPZ file. Rows of dimension 0 are examples.
struct NumpyArray {
  std::string name;  // the file; of an NPZ file the array, without ".npy"
  DType dtype = DType::f32;
  // Of an example: an array [n, ...shape]. An array with another one is an error.
  PartialShape shape = PartialShape::scalar();
};
// Row i of each array; all have as many. Arrays in Fortran's order, and packed ones, are read into
// memory; others are read where they are wanted.
Examples npy(const std::vector<NumpyArray>& arrays);
Examples npz(std::string_view path, const std::vector<NumpyArray>& arrays);

// The PNG and JPEG files of the folders in `folder`, and their labels i64 []: the number of the
// folder, in ascending order of the names. Pictures have the size that the options say.
FixedExamples<2> image_folder(std::string_view folder, const ImageOptions& options);
// The same files as they are, string [], and their labels. Any kind of files, but for names that
// begin with a dot.
FixedExamples<2> labelled_files(std::string_view folder);

// The numbers 0 to count - 1, i64 []; -1: without end.
FixedExamples<1> range(std::int64_t count = -1);
// What a graph function makes of each of these numbers:
//   data::generate(g, 1000, [&](Output i) { return cast<float>(i) * 0.5f; })
template <class F>
auto generate(GraphBuilder& g, std::int64_t count, F&& f, const MapOptions& options = {},
              Site site = Site::here()) {
  return range(count).map(g, std::forward<F>(f), options, std::move(site));
}

}  // namespace troupe::data
