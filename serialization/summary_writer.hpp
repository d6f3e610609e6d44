// Summaries of a program that goes on without them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.hpp"
#include "core/timeline.hpp"
#include "graph/graph.hpp"
#include "serialization/event_file.hpp"

namespace troupe {

// Writes what TensorBoard shows into a folder:
//
//   SummaryWriter writer = value_or_throw(SummaryWriter::open("logs/run1"));
//   writer.add_graph(g.def());
//   for (std::int64_t step = 1; ...) {
//     ...
//     writer.add_scalar(step, "loss", loss);
//     writer.add_summary(step, value_or_throw(merged.try_run({}))[0].item<std::string>());
//   }
//
// Each call writes at once. Once the folder is open nothing that goes wrong with it is an error of
// the program: what cannot be written is lost and counted, a warning says so once, and ten seconds
// later the next call begins another file. A Job with JobOptions::logdir has one of these. One
// thread.
class SummaryWriter {
 public:
  static constexpr double kRetrySeconds = 10;

  // Makes the folder and an event file in it. `next_step` is the first step that is to come:
  // readers drop what earlier programs wrote there of it and of later ones, so that a program that
  // goes on from a checkpoint shows each step once. Errors: those of FileSystem for a path that no
  // time would mend. A disk that is full or fails is none: it is as if the first write had failed.
  static Expected<SummaryWriter> open(std::string dir, std::int64_t next_step = 0,
                                      FileSystem& files = disk(),
                                      EventFile::Clock now = wall_seconds);

  // A number, kept as f32. invalid_argument for a tag that is empty or no UTF-8.
  Status add_scalar(std::int64_t step, std::string_view tag, double value);
  Status add_scalars(std::int64_t step, const EventFile::Scalars& values);
  // A serialized Summary: what the summary ops give (ops/summary/summary.hpp). invalid_argument for
  // bytes that are none.
  Status add_summary(std::int64_t step, std::string_view summary);
  // The graph as it is now; devices as in tensorboard_graph(). Readers show the last one.
  void add_graph(const GraphDef& graph,
                 const std::map<std::string, std::string, std::less<>>& devices = {});
  // What nodes did in each run of the timeline, as run metadata "step N": the first run was that of
  // `first_step`. With `node`, only runs in which that node ran are steps.
  void add_timeline(const Timeline& timeline, std::int64_t first_step, std::string_view node = {});
  // All that was added outlasts a crash of the machine. Called by ~Job, too.
  void flush();

  // What could not be written: numbers, summaries, graphs, runs. And why the last of these could
  // not, ok if the file is in order again.
  std::int64_t lost() const { return lost_; }
  const Status& failure() const { return failure_; }
  bool has_graph() const { return has_graph_; }  // add_graph was called
  const std::string& dir() const { return dir_; }

 private:
  SummaryWriter(std::string dir, FileSystem& files, EventFile::Clock now)
      : dir_(std::move(dir)), files_(&files), now_(std::move(now)) {}
  template <class F>
  Status write(F&& add);
  Status begin_file();
  bool ready();
  void failed(const Status& why);

  std::string dir_;
  FileSystem* files_;
  EventFile::Clock now_;
  std::unique_ptr<EventFile> file_;    // null: it failed
  std::optional<std::int64_t> start_;  // what no file says yet
  bool has_graph_ = false;
  double failed_at_ = 0;
  std::int64_t lost_ = 0;
  Status failure_;
};

}  // namespace troupe
