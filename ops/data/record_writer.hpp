// Writes TFRecord files, and the tf.Example messages that most of them hold.
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

// Writes a TFRecord file at `path`. The file appears there, whole, when finish() succeeds; until
// then it is beside it, named `path` + ".part", and the destructor removes it. One user at a time.
class RecordWriter {
 public:
  // invalid_argument for Packing::detect; not_found or failed_precondition where no file can be
  // made. The form that is a constructor throws Error.
  static Expected<RecordWriter> create(const std::string& path, Packing packing = Packing::none);
  explicit RecordWriter(const std::string& path, Packing packing = Packing::none)
      : RecordWriter(value_or_throw(create(path, packing))) {}
  RecordWriter(RecordWriter&&) noexcept;
  RecordWriter& operator=(RecordWriter&&) noexcept;
  ~RecordWriter();

  // Errors are of the file; after one the writer only repeats it.
  Status write(std::string_view record);
  // Once: what is buffered, to the disk. No record can be written after it.
  Status finish();

 private:
  struct State;
  explicit RecordWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A tf.Example message with a feature of each tensor: f32 and f64 as floats, integers and bool as
// int64s, strings as bytes. invalid_argument for another dtype, or a u64 beyond 2^63 - 1.
Expected<std::string> tf_example(const std::vector<std::pair<std::string, Tensor>>& features);

}  // namespace troupe::data
