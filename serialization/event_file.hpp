// Event files for TensorBoard: records of TensorFlow's Event (event.proto), each with scalars, a
// summary, a graph or the metadata of a run, and the number of a step.
//
//   DIR/events.out.tfevents.SECONDS.HOST.PROCESS.N
//
// A folder may have several: readers read them in the order of their names, as one stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "serialization/file.hpp"
#include "serialization/tf_record.hpp"

namespace troupe {

// Checks that bytes are a serialized Summary, with UTF-8 where readers require it. Otherwise
// invalid_argument: a bad record in a file would stop a reader there.
Status check_summary(std::string_view summary);

// Seconds since 1970.
double wall_seconds();

// Writes one event file. Each event is one record, written with one call: a killed program loses no
// event that it added; a crash of the machine loses only those since the last flush(). One thread.
class EventFile {
 public:
  using Clock = std::function<double()>;

  // A new file in `dir`, which is created if missing. Its name sorts after those of existing event
  // files, whatever the clock says. With `next_step`, readers drop earlier events of that step and
  // later ones: for a job that resumes there. Errors: those of FileSystem; no file is left behind.
  static Expected<std::unique_ptr<EventFile>> create(const std::string& dir,
                                                     std::optional<std::int64_t> next_step = {},
                                                     FileSystem& files = disk(),
                                                     Clock now = wall_seconds);

  // The add functions write nothing and return invalid_argument for what readers would not accept:
  // tags that are empty or not UTF-8, bytes that check_summary refuses, events of 2 GiB or more.
  //
  // One event with these values (f32), under their tags.
  using Scalars = std::vector<std::pair<std::string, double>>;
  Status add_scalars(std::int64_t step, const Scalars& values);
  Status add_summary(std::int64_t step, std::string_view summary);
  Status add_graph(std::string_view graph);
  // The metadata of a run, under a name that is unique in this folder: "step 100".
  Status add_run(std::int64_t step, std::string_view tag, std::string_view metadata);
  // Makes all added events durable.
  Status flush() { return file_->sync(); }

  const std::string& path() const { return path_; }

 private:
  EventFile(std::unique_ptr<WritableFile> file, std::string path, Clock now)
      : file_(std::move(file)), path_(std::move(path)), now_(std::move(now)), records_(*file_) {}
  Status begin(std::optional<std::int64_t> next_step);
  Status write(std::string event);

  std::unique_ptr<WritableFile> file_;
  std::string path_;
  Clock now_;
  TfRecordWriter records_;
};

}  // namespace troupe
