// Writes TFRecord files, and tf.Example messages, their most common content.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"
#include "ops/data/files.hpp"

namespace troupe::data {

// Writes a TFRecord file. The complete file appears at `path` when finish() succeeds. Until then it
// is named `path` + ".part", and the destructor removes it. One user at a time.
class RecordWriter {
 public:
  // invalid_argument for Packing::detect; not_found or failed_precondition if the file cannot be
  // created, or another writer, of any process, writes it now. The constructor throws Error
  // instead.
  static Expected<RecordWriter> create(const std::string& path, Packing packing = Packing::none);
  explicit RecordWriter(const std::string& path, Packing packing = Packing::none)
      : RecordWriter(value_or_throw(create(path, packing))) {}
  RecordWriter(RecordWriter&&) noexcept;
  RecordWriter& operator=(RecordWriter&&) noexcept;
  ~RecordWriter();

  // Errors are those of the file; later calls repeat the first one.
  Status write(std::string_view record);
  // Writes what is buffered, syncs and renames the file. Once; no record can be written after it.
  Status finish();

 private:
  struct State;
  explicit RecordWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A tf.Example message with one feature per tensor: f32 and f64 as floats, integers and bool as
// int64, strings as bytes. invalid_argument for other dtypes, or a u64 above 2^63 - 1.
Expected<std::string> tf_example(const std::vector<std::pair<std::string, Tensor>>& features);

}  // namespace troupe::data
