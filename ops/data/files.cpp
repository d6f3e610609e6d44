#include "ops/data/files.hpp"

#include <glob.h>

#include <algorithm>

#include "core/name.hpp"
#include "ops/data/arrays/npy.hpp"
#include "ops/data/images/picture.hpp"
#include "ops/data/stage_text.hpp"

namespace troupe::data {

namespace {

std::string source_text(const char* name, std::vector<std::string> words) {
  return StageText{name, std::move(words)}.text();
}

bool is_pattern(std::string_view path) { return path.find_first_of("*?[") != path.npos; }

const char* packing_word(Packing packing) {
  switch (packing) {
    case Packing::none:
      return "none";
    case Packing::gzip:
      return "gzip";
    case Packing::zlib:
      return "zlib";
    case Packing::detect:
      break;
  }
  return "detect";
}

// What glob() allocates.
struct Matches {
  glob_t found{};
  Matches() = default;
  Matches(const Matches&) = delete;
  Matches& operator=(const Matches&) = delete;
  ~Matches() { ::globfree(&found); }
};

}  // namespace

std::vector<std::string> files(std::string_view pattern) {
  Matches matches;
  const std::string text(pattern);
  throw_if_error(check_path(text));
  // In no order: glob()'s own is that of the locale.
  const int result = ::glob(text.c_str(), GLOB_NOSORT | GLOB_ERR, nullptr, &matches.found);
  if (result == GLOB_NOMATCH) throw Error(not_found("no file matches '" + text + "'"));
  if (result == GLOB_NOSPACE)
    throw Error(resource_exhausted("no memory for the files that match '" + text + "'"));
  if (result != 0)
    throw Error(failed_precondition("cannot read the folders that '" + text + "' is about"));
  std::vector<std::string> paths(matches.found.gl_pathv,
                                 matches.found.gl_pathv + matches.found.gl_pathc);
  std::sort(paths.begin(), paths.end());
  return paths;
}

FileList::FileList(std::string_view pattern)
    : paths(is_pattern(pattern) ? files(pattern) : std::vector{std::string(pattern)}) {}

FixedExamples<1> tf_records(const FileList& files, const RecordOptions& options) {
  const auto source = [&](std::vector<std::string> paths) {
    std::string text = source_text(
        "tf_records", {packing_word(options.packing), std::to_string(options.most_bytes),
                       std::to_string(paths.size())});
    return Examples::of(std::move(text), std::move(paths));
  };
  if (options.at_once == 1 || files.paths.size() < 2) return FixedExamples<1>(source(files.paths));
  std::vector<Examples> each;
  for (const std::string& path : files.paths) each.push_back(source({path}));
  return FixedExamples<1>(interleave(each, {.at_once = options.at_once}));
}

FixedExamples<1> text_lines(const FileList& files) {
  return FixedExamples<1>(
      Examples::of(source_text("text_lines", {std::to_string(files.paths.size())}), files.paths));
}

FixedExamples<1> whole_files(const FileList& files) {
  return FixedExamples<1>(
      Examples::of(source_text("whole_files", {std::to_string(files.paths.size())}), files.paths));
}

FixedExamples<1> fixed_records(const FileList& files, std::int64_t bytes,
                               const FixedRecordOptions& options) {
  std::vector<std::string> words = {std::to_string(bytes), std::to_string(options.header),
                                    std::to_string(options.footer),
                                    std::to_string(files.paths.size())};
  if (options.dtype != DType::u8)
    words.emplace_back(options.dtype == DType::invalid ? "invalid" : dtype_name(options.dtype));
  return FixedExamples<1>(
      Examples::of(source_text("fixed_records", std::move(words)), files.paths));
}

Examples npy(const std::vector<NumpyArray>& arrays) {
  std::vector<std::string> paths;
  for (const NumpyArray& array : arrays) paths.push_back(array.name);
  return Examples::of(source_text("npy", numpy_words(arrays)), std::move(paths));
}

Examples npz(std::string_view path, const std::vector<NumpyArray>& arrays) {
  return Examples::of(source_text("npz", numpy_words(arrays)), {std::string(path)});
}

FixedExamples<2> image_folder(std::string_view folder, const ImageOptions& options) {
  std::vector<std::string> words = image_words(options);
  words.insert(words.begin(), std::string(folder));
  return FixedExamples<2>(Examples::of(source_text("image_folder", std::move(words)), {}));
}

FixedExamples<2> labelled_files(std::string_view folder) {
  return FixedExamples<2>(Examples::of(source_text("labelled_files", {std::string(folder)}), {}));
}

FixedExamples<1> range(std::int64_t count) {
  return FixedExamples<1>(Examples::of(source_text("range", {std::to_string(count)}), {}));
}

}  // namespace troupe::data
