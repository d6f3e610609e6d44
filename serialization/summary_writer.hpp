// Writes summaries for TensorBoard; failures do not stop the program.
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

// Writes scalars, summaries, graphs and timelines for TensorBoard into a folder:
//
//   SummaryWriter writer = value_or_throw(SummaryWriter::open("logs/run1"));
//   writer.add_graph(g.def());
//   for (std::int64_t step = 1; ...) {
//     ...
//     writer.add_scalar(step, "loss", loss);
//     writer.add_summary(step, value_or_throw(merged.try_run({}))[0].item<std::string>());
//   }
//
// Each call writes immediately. Once the folder is open, failed writes are not errors of the
// program: their data is lost and counted, one warning is logged, and the first call after ten
// seconds begins another file. A Job with JobOptions::logdir has one of these. One thread.
class SummaryWriter {
 public:
  static constexpr double kRetrySeconds = 10;

  // Creates the folder and an event file in it. `next_step` is the next step of the program:
  // readers drop what earlier programs wrote of it and of later steps, so that a program resumed
  // from a checkpoint shows each step once. Errors: those of FileSystem for an unusable path. A
  // full or failing disk is not an error here: it counts as a failure of the first write.
  static Expected<SummaryWriter> open(std::string dir, std::int64_t next_step = 0,
                                      FileSystem& files = disk(),
                                      EventFile::Clock now = wall_seconds);

  // A value, stored as f32. invalid_argument for a tag that is empty or not UTF-8.
  Status add_scalar(std::int64_t step, std::string_view tag, double value);
  Status add_scalars(std::int64_t step, const EventFile::Scalars& values);
  // A serialized Summary, the result of a summary op (ops/summary/summary.hpp). invalid_argument
  // for other bytes.
  Status add_summary(std::int64_t step, std::string_view summary);
  // The current graph; `devices` as in tensorboard_graph(). Readers show the last one.
  void add_graph(const GraphDef& graph,
                 const std::map<std::string, std::string, std::less<>>& devices = {});
  // The execution of nodes in each run of the timeline, as run metadata "step N", beginning with
  // `first_step`. With `node`, only runs in which that node ran are steps.
  void add_timeline(const Timeline& timeline, std::int64_t first_step, std::string_view node = {});
  // Makes everything written durable. ~Job calls it, too.
  void flush();

  // The number of lost writes (scalars, summaries, graphs, runs), and the cause of the last
  // failure; ok if writing works again.
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
  std::unique_ptr<EventFile> file_;    // null: writing failed
  std::optional<std::int64_t> start_;  // next_step, until a file has it
  bool has_graph_ = false;
  double failed_at_ = 0;
  std::int64_t lost_ = 0;
  Status failure_;
};

}  // namespace troupe
