// Event files, which TensorBoard shows: records of TensorFlow's Event (event.proto), each a number,
// a summary, a graph or what a run did, under the number of a step.
//
//   DIR/events.out.tfevents.SECONDS.HOST.PROCESS.N
//
// A folder may hold several: readers go through them in the order of their names, as one stream.
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

// A serialized Summary, or what else has tags and is UTF-8 where readers want that.
// invalid_argument: it is none. One of them in a file would keep a reader from all behind it.
Status check_summary(std::string_view summary);

// Seconds since 1970.
double wall_seconds();

// Writes one event file. Each event is one record and reaches the file with one write, so that a
// program that is killed loses no event that it has added, and a crash of the machine only those
// since flush(). One thread.
class EventFile {
 public:
  using Clock = std::function<double()>;

  // A new file in `dir`, which is made if it is not there. Its name sorts behind those of all event
  // files that are there, whatever the clock says. With `next_step`, readers forget all that they
  // have read of that step and later ones: a job goes on here. Errors: those of FileSystem; no file
  // is left behind.
  static Expected<std::unique_ptr<EventFile>> create(const std::string& dir,
                                                     std::optional<std::int64_t> next_step = {},
                                                     FileSystem& files = disk(),
                                                     Clock now = wall_seconds);

  // What follows is invalid_argument, and nothing is written, for what readers would not take: tags
  // that are empty or no UTF-8, bytes that check_summary refuses, events of more than 2 GiB.
  //
  // One event with these numbers (f32), under their tags.
  using Scalars = std::vector<std::pair<std::string, double>>;
  Status add_scalars(std::int64_t step, const Scalars& values);
  Status add_summary(std::int64_t step, std::string_view summary);
  Status add_graph(std::string_view graph);
  // What a run did, under a name that no other has in this folder: "step 100".
  Status add_run(std::int64_t step, std::string_view tag, std::string_view metadata);
  // All that was added outlasts a crash of the machine.
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
