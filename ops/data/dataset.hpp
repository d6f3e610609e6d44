// What a worker needs to serve a Dataset node: its pipeline, given a way to read files.
#pragma once

#include <string>
#include <string_view>

#include "troupe/core/function_ref.hpp"
#include "troupe/graph/graph.hpp"
#include "troupe/ops/data/pipeline.hpp"

namespace troupe {

// The whole content of a file; not_found when there is none.
using ReadFile = FunctionRef<Expected<std::string>(const std::string& path)>;

// The pipeline that the Dataset node `def` describes. A file that is not there is looked for with
// ".gz" appended; compressed content is recognised by its first bytes. Errors name the file.
Expected<Pipeline> open_dataset(const NodeDef& def, ReadFile read_file);

// An IDX file (the format of the MNIST files): magic, dimensions, elements, all big-endian. u8
// only; data_loss for a file that is truncated, longer than it says, or of another kind.
Expected<Tensor> parse_idx(std::string_view content);

// gzip content as it was before; data_loss when it is damaged or something follows it,
// resource_exhausted beyond `limit`.
Expected<std::string> gunzip(std::string_view content, std::size_t limit = std::size_t{4} << 30);

}  // namespace troupe
