#include "actors/master/stage_round.hpp"

#include <algorithm>
#include <iterator>

namespace troupe {

void StageRound::begin(Prepare what, Keys keys, Shards shards, Instant within, Instant now) {
  open_ = true;
  what_ = std::move(what);
  what_.round = ++number_;
  keys_ = std::move(keys);
  asked_ = std::move(shards);
  answered_.clear();
  clock_ = AccumulatingClock(options_.resend_max);
  clock_.look(now);
  within_ = within;
  until_ = now + within;
  resend_after_ = options_.resend_first;
  resend_at_ = now + resend_after_;
}

std::vector<std::pair<TaskId, Prepare>> StageRound::unanswered() const {
  std::vector<std::pair<TaskId, Prepare>> told;
  for (TaskId shard : asked_) {
    if (answered_.count(shard) != 0) continue;
    Prepare& prepare = told.emplace_back(shard, what_).second;
    for (const auto& [resource, n] : keys_)
      if (resource.task == shard && n > 0) prepare.resources.push_back({resource, n});
  }
  return told;
}

bool StageRound::expects(const Staged& message) const {
  return open_ && message.round == what_.round && asked_.count(message.shard) != 0;
}

bool StageRound::again(Instant now) {
  if (!open_ || now < resend_at_) return false;
  resend_after_ = std::min(resend_after_ * 2, options_.resend_max);
  resend_at_ = now + resend_after_;
  return true;
}

std::vector<TaskId> StageRound::late(Instant now) {
  std::vector<TaskId> late;
  if (!open_) return late;
  clock_.look(now);
  until_ = now + within_ - clock_.reading();
  if (now < until_) return late;
  std::set_difference(asked_.begin(), asked_.end(), answered_.begin(), answered_.end(),
                      std::back_inserter(late));
  return late;
}

}  // namespace troupe
