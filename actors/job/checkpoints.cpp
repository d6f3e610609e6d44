#include "actors/job/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <utility>

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

std::function<Checkpoints::Written()> Checkpoints::writing(
    CheckpointDraft draft, std::function<Expected<Contents>()> contents) const {
  const auto shared = std::make_shared<std::optional<CheckpointDraft>>(std::move(draft));
  return [policy = policy_, spare = spare_, shared, contents = std::move(contents)]() -> Written {
    const Instant began = std::chrono::steady_clock::now();
    CommitNumber commit = 0;
    const auto write = [&]() -> Expected<CheckpointInfo> {
      TROUPE_TRY(Contents all, contents());
      commit = all.data.commit;
      if (!policy.nan)
        for (const auto& [name, tensor] : all.data.tensors)
          if (tensor.has_nan()) return out_of_range(fmt::format("variable '{}' has a NaN", name));
      return (*shared)->finish(all.data, std::move(all.shards),
                               {.keep = std::size_t(policy.keep), .spare = spare});
    };
    Written written{resource_exhausted("no memory to write a checkpoint")};
    try {
      written.info = write();
    } catch (const std::bad_alloc&) {
    }
    // What is left of it is gone before anybody hears of it, and begins the next one.
    shared->reset();
    if (written.info.ok()) written.commit = commit;
    written.took = std::chrono::steady_clock::now() - began;
    return written;
  };
}

void Checkpoints::spare(const std::set<std::string>& files) {
  namespace fs = std::filesystem;
  const fs::path here = (fs::absolute(policy_.directory) / "").lexically_normal();
  spare_.clear();
  for (const std::string& file : files) {
    const fs::path checkpoint = fs::path(file).lexically_normal().parent_path();
    if (checkpoint.parent_path() / "" == here) spare_.insert(checkpoint.filename());
  }
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
  auto begun = draft();
  if (!begun.ok()) return end_try(step, {begun.status()});
  return end_try(
      step, writing(*std::move(begun), [&]() -> Expected<Contents> { return Contents{data}; })());
}

}  // namespace troupe
