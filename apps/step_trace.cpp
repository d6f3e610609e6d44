#include "apps/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/held_signal.hpp"
#include "core/log.hpp"
#include "serialization/chrome_trace.hpp"

namespace troupe {
namespace {

Status cannot_write(const std::string& path, int error) {
  std::string text = fmt::format("cannot write the trace '{}': {}", path, std::strerror(error));
  if (error == ENOENT) return not_found(std::move(text));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return resource_exhausted(std::move(text));
  return failed_precondition(std::move(text));
}

}  // namespace

Status StepTrace::open() {
  if (path_.empty()) return ok_status();
  file_.reset(std::fopen(path_.c_str(), "we"));
  wanted_ = true;
  return file_ ? ok_status() : cannot_write(path_, errno);
}

void StepTrace::before_step(Session& session, std::int64_t made, std::int64_t all) {
  if (!wanted_) return;
  if (!recording_ && made >= std::clamp<std::int64_t>(all - steps_, 0, kWarmSteps)) {
    made_before_ = made;
    written_ = session.try_start_trace();
    recording_ = wanted_ = written_.ok();
    if (!recording_) file_.reset();
  } else if (recording_ && ++recorded_ == steps_) {
    stop(session);
  }
}

void StepTrace::finish(Session& session) {
  if (!wanted_) return;
  if (recording_) ++recorded_;
  stop(session);
}

void StepTrace::stop(Session& session) {
  Timeline timeline;
  if (recording_) {
    auto recorded = session.try_stop_trace();
    written_ = recorded.status();
    if (recorded.ok()) timeline = std::move(recorded).value();
    if (recorded.ok() && tell_) tell_(timeline, made_before_);
  }
  recording_ = wanted_ = false;
  try {
    if (written_.ok() && file_) written_ = write(timeline);
  } catch (const std::bad_alloc&) {
    written_ = resource_exhausted("no memory for the trace '" + path_ + "'");
  }
  file_.reset();
  if (!written_.ok()) TROUPE_LOG(warning, "train", written_.text());
}

// Errors of the disk may come as late as with the last byte.
Status StepTrace::write(const Timeline& timeline) {
  for (const ProcessTimeline& process : timeline.processes) {
    if (!process.complete)
      TROUPE_LOG(warning, "train", fmt::format("the trace lacks a part of {}", process.name));
    if (process.dropped > 0)
      TROUPE_LOG(warning, "train",
                 fmt::format("the trace lacks the {} oldest spans of {}: fewer steps fit",
                             process.dropped, process.name));
  }
  const std::string text = chrome_trace(timeline);
  const HeldSignal unread(SIGPIPE), limit(SIGXFSZ);
  const std::size_t wrote = std::fwrite(text.data(), 1, text.size(), file_.get());
  const int error = errno;
  const bool closed = std::fclose(file_.release()) == 0;
  if (wrote == text.size() && closed) return ok_status();
  return cannot_write(path_, wrote < text.size() ? error : errno);
}

}  // namespace troupe
