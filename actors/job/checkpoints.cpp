#include "actors/job/checkpoints.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr double kLeastSeconds = 0.25;  // between tries that nobody asked for

}  // namespace

Checkpoints::Checkpoints(Policy policy, FileSystem& files)
    : policy_(std::move(policy)), files_(files) {}

void Checkpoints::begin(std::int64_t step, std::string path, Instant now) {
  newest_ = std::move(path);
  good_step_ = tried_step_ = step;
  tried_at_ = now;
}

bool Checkpoints::due(std::int64_t step, Instant now) const {
  if (!wanted()) return false;
  if (policy_.steps > 0) return step - tried_step_ >= policy_.steps;
  const double since = std::chrono::duration<double>(now - tried_at_).count();
  if (policy_.seconds > 0) return since >= policy_.seconds;
  const double took = std::chrono::duration<double>(took_).count();
  return policy_.share > 0 && since >= std::max(kLeastSeconds, took / policy_.share);
}

void Checkpoints::begin_try(std::int64_t step, Instant now) {
  tried_step_ = step;
  tried_at_ = now;
}

std::function<Expected<CheckpointInfo>()> Checkpoints::writing(CheckpointData data) const {
  return [policy = policy_, &files = files_, data = std::move(data)] {
    return write_checkpoint(policy.directory, data, {.keep = std::size_t(policy.keep)}, files);
  };
}

Status Checkpoints::end_try(std::int64_t step, const Expected<CheckpointInfo>& written,
                            Instant now) {
  took_ = now - tried_at_;
  last_ = written.status();
  if (!written.ok()) {
    ++failures_;
    return last_;
  }
  newest_ = written->path;
  good_step_ = step;
  return ok_status();
}

Status Checkpoints::write(std::int64_t step, const CheckpointData& data, Instant now) {
  begin_try(step, now);
  return end_try(step, writing(data)(), now);
}

}  // namespace troupe
