#include "serialization/summary_writer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <new>

#include "core/log.hpp"
#include "core/trace.hpp"
#include "serialization/event_graph.hpp"

namespace troupe {

Expected<SummaryWriter> SummaryWriter::open(std::string dir, std::int64_t next_step,
                                            FileSystem& files, EventFile::Clock now) {
  while (dir.size() > 1 && dir.ends_with('/')) dir.pop_back();
  SummaryWriter writer(std::move(dir), files, std::move(now));
  writer.start_ = next_step;
  const Status begun = writer.begin_file();
  if (begun.ok()) return writer;
  if (begun.code() != Code::resource_exhausted && begun.code() != Code::internal)
    return begun.in("while making an event file");
  writer.failed(begun);
  return writer;
}

Status SummaryWriter::begin_file() {
  TROUPE_TRY(file_, EventFile::create(dir_, start_, *files_, now_));
  start_.reset();
  return ok_status();
}

// Returns errors of the caller's arguments; failures of the folder are only counted.
template <class F>
Status SummaryWriter::write(F&& add) {
  if (!ready()) {
    ++lost_;
    return ok_status();
  }
  const Status added = [&]() -> Status {
    try {
      return add(*file_);
    } catch (const std::bad_alloc&) {
      return resource_exhausted("no memory for a summary");
    }
  }();
  if (added.ok() || added.code() == Code::invalid_argument) return added;
  ++lost_;
  failed(added);
  return ok_status();
}

// After a failed write a file may end in a partial record, after which nothing can be read.
void SummaryWriter::failed(const Status& why) {
  file_.reset();
  failed_at_ = now_();
  const bool told = !failure_.ok();
  failure_ = why;
  if (!told)
    TROUPE_LOG(warning, "summaries",
               fmt::format("{}: the program goes on without summaries in '{}'", why.text(), dir_));
}

bool SummaryWriter::ready() {
  if (file_) return true;
  if (std::abs(now_() - failed_at_) < kRetrySeconds) return false;
  if (const Status begun = begin_file(); !begun.ok()) {
    failed(begun);
    return false;
  }
  failure_ = {};
  TROUPE_LOG(warning, "summaries",
             fmt::format("summaries are written to '{}' again; {} were lost", dir_, lost_));
  return true;
}

Status SummaryWriter::add_scalar(std::int64_t step, std::string_view tag, double value) {
  return add_scalars(step, {{std::string(tag), value}});
}

Status SummaryWriter::add_scalars(std::int64_t step, const EventFile::Scalars& values) {
  return write([&](EventFile& file) { return file.add_scalars(step, values); });
}

Status SummaryWriter::add_summary(std::int64_t step, std::string_view summary) {
  return write([&](EventFile& file) { return file.add_summary(step, summary); });
}

void SummaryWriter::add_graph(const GraphDef& graph,
                              const std::map<std::string, std::string, std::less<>>& devices) {
  has_graph_ = true;
  const Status added =
      write([&](EventFile& file) { return file.add_graph(tensorboard_graph(graph, devices)); });
  lost_ += !added.ok();
}

void SummaryWriter::add_timeline(const Timeline& timeline, std::int64_t first_step,
                                 std::string_view node) {
  const auto offset_ns = std::int64_t(now_() * 1e9) - Trace::now_ns();
  std::int64_t step = first_step;
  for (const RunStats& run : tensorboard_runs(timeline, offset_ns, node)) {
    const Status added = write([&](EventFile& file) {
      return file.add_run(step, fmt::format("step {}", step), run.metadata);
    });
    lost_ += !added.ok();
    ++step;
  }
}

void SummaryWriter::flush() {
  if (!file_) return;
  if (const Status flushed = file_->flush(); !flushed.ok()) failed(flushed);
}

}  // namespace troupe
