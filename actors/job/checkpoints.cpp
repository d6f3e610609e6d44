#include "actors/job/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

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
  const double took = std::chrono::duration<double>(last_took_).count();
  return policy_.share > 0 && since >= std::max(kLeastSeconds, took / policy_.share);
}

void Checkpoints::begin_try(std::int64_t step, Instant now, Instant::duration took) {
  tried_step_ = step;
  tried_at_ = now;
  took_ = took;
}

std::function<Checkpoints::Written()> Checkpoints::writing(CheckpointData data) const {
  return [policy = policy_, &files = files_, data = std::move(data)]() -> Written {
    const Instant began = std::chrono::steady_clock::now();
    const auto took = [&] { return std::chrono::steady_clock::now() - began; };
    if (!policy.nan)
      for (const auto& [name, tensor] : data.tensors)
        if (tensor.has_nan())
          return {out_of_range(fmt::format("variable '{}' has a NaN", name)), took()};
    try {
      auto info =
          write_checkpoint(policy.directory, data, {.keep = std::size_t(policy.keep)}, files);
      return {std::move(info), took()};
    } catch (const std::bad_alloc&) {
      return {resource_exhausted("no memory to write a checkpoint"), took()};
    }
  };
}

Status Checkpoints::end_try(std::int64_t step, const Written& written) {
  last_took_ = took_ + written.took;
  last_ = written.info.status();
  if (!last_.ok()) {
    ++failures_;
    return last_;
  }
  newest_ = written.info->path;
  good_step_ = step;
  return ok_status();
}

Status Checkpoints::write(std::int64_t step, const CheckpointData& data, Instant now) {
  begin_try(step, now);
  return end_try(step, writing(data)());
}

}  // namespace troupe
