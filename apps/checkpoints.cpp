#include "apps/checkpoints.hpp"

namespace troupe {

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
  return policy_.seconds > 0 &&
         std::chrono::duration<double>(now - tried_at_).count() >= policy_.seconds;
}

Status Checkpoints::write(std::int64_t step, const CheckpointData& data, Instant now) {
  tried_step_ = step;
  tried_at_ = now;
  auto written =
      write_checkpoint(policy_.directory, data, {.keep = std::size_t(policy_.keep)}, files_);
  last_ = written.status();
  if (!written.ok()) {
    ++failures_;
    return last_;
  }
  newest_ = written->path;
  good_step_ = step;
  return ok_status();
}

}  // namespace troupe
