#include "actors/runtime/arrivals.hpp"

#include <fmt/format.h>

#include "serialization/lists.hpp"
#include "serialization/strings.hpp"

namespace troupe {
namespace {

// How far ahead of the last LiveList an attempt may be: no process lags so far behind, also if it
// was stopped for a while, and nobody's numbers overflow. charge() limits the memory.
constexpr std::uint64_t kAttemptsAhead = std::uint64_t{1} << 32;

// Puts arrived tensors into the message; true if none is missing.
bool complete(WireMessage& message, std::map<std::uint32_t, Tensor>& arrived) {
  bool all = true;
  if (auto* start = std::get_if<StartPartition>(&message)) {
    for (std::uint32_t i = 0; i < start->feeds.size(); ++i)
      all &= start->feeds[i].defined() || arrived.contains(i);
    if (all)
      for (auto& [i, tensor] : arrived)
        if (i < start->feeds.size()) start->feeds[i] = std::move(tensor);
  } else if (auto* done = std::get_if<PartitionDone>(&message)) {
    for (const Fetched& f : done->fetches) all &= f.value.defined() || arrived.contains(f.index);
    if (all)
      for (Fetched& f : done->fetches)
        if (auto it = arrived.find(f.index); it != arrived.end()) f.value = std::move(it->second);
  }
  return all;
}

// Checks that the header is consistent.
Status check_size(const TensorTag& tag, std::uint64_t bytes) {
  if (tag.dead) {
    if (bytes != 0 || tag.kind != TensorTag::Kind::channel)
      return invalid_argument("only channels have dead elements, and those no bytes");
    return ok_status();
  }
  if (tag.dtype == DType::string) return check_strings_size(tag.shape, bytes);
  if (tag.dtype == DType::list) {
    if (tag.kind != TensorTag::Kind::channel)
      return invalid_argument("lists are neither fed nor fetched");
    if (tag.shape.rank() != 0 || (bytes != 0 && bytes < kListEntry))
      return invalid_argument(
          fmt::format("a list{} cannot have {} bytes", tag.shape.text(), bytes));
    return ok_status();
  }
  TROUPE_TRY(std::int64_t size, byte_size(tag.shape, dtype_size(tag.dtype)));
  if (bytes != std::uint64_t(size))
    return invalid_argument(fmt::format("a tensor {}{} has {} bytes, not {}", dtype_name(tag.dtype),
                                        tag.shape.text(), size, bytes));
  return ok_status();
}

}  // namespace

Arrivals::Key Arrivals::key(const TensorTag& tag) const {
  return {tag.attempt, master_ ? 0 : tag.compiled, tag.partition};
}

bool Arrivals::ask(TaskId task, const StartPartition& start, std::uint32_t fetches) {
  Part& part = parts_[{start.attempt.id, 0, start.partition}];
  if (part.begun) return false;
  part.begun = true;
  part.task = task;
  part.run = start.attempt.run;
  part.fetches = fetches;
  return true;
}

void Arrivals::expect(CompiledId compiled, std::vector<InboundChannel> channels) {
  auto& table = expected_[compiled];
  for (InboundChannel& channel : channels) table[channel.channel] = std::move(channel);
}

// Its executors end, with the tensors that wait there.
void Arrivals::forget(CompiledId compiled) {
  expected_.erase(compiled);
  for (auto& [key, part] : parts_)
    if (key.compiled == compiled) discharge(part);
}

void Arrivals::live(const LiveList& list) {
  if (!list.newer_than(live_)) return;
  live_ = list;
  std::erase_if(received_, [&](const auto& r) { return list.over(r.first); });
  for (auto it = parts_.begin(); it != parts_.end();) {
    if (!list.over(it->first.attempt)) {
      ++it;
      continue;
    }
    discharge(it->second);
    it = parts_.erase(it);
  }
}

// Tensors.

Expected<bool> Arrivals::admit(ProcessId from, const TensorTag& tag, std::uint64_t bytes) {
  TROUPE_TRY(check_size(tag, bytes));
  TROUPE_TRY(check(from, tag));
  if (live_.over(tag.attempt)) return false;
  if (tag.kind == TensorTag::Kind::fetch) {
    TROUPE_TRY(admit_fetch(from, tag));
    return true;
  }
  if (tag.kind == TensorTag::Kind::channel) TROUPE_TRY(admit_channel(from, tag));
  Part& part = parts_[key(tag)];
  if (tag.kind == TensorTag::Kind::feed) TROUPE_TRY(admit_feed(part, tag));
  if (!part.begun) TROUPE_TRY(charge(from, part, bytes));
  return true;
}

Status Arrivals::check(ProcessId from, const TensorTag& tag) const {
  if (tag.kind == TensorTag::Kind::feed && (from != 0 || master_))
    return invalid_argument("only the master feeds");
  if (tag.kind == TensorTag::Kind::fetch && !master_)
    return invalid_argument("only the master takes fetches");
  if (tag.attempt.a > live_.next_a + kAttemptsAhead)
    return invalid_argument("a tensor of an attempt that is far ahead");
  return ok_status();
}

Status Arrivals::admit_channel(ProcessId from, const TensorTag& tag) {
  auto step = expected_.find(tag.compiled);
  if (step == expected_.end()) return invalid_argument("a tensor of a step that is not loaded");
  auto channel = step->second.find(tag.index);
  if (channel == step->second.end() || !hosts_.hosts(from, channel->second.from) ||
      channel->second.partition != tag.partition)
    return invalid_argument(fmt::format("no channel {} comes from process {}", tag.index, from));
  // The channel's shape of a list is that of its elements.
  const bool fits = tag.dtype == DType::list || channel->second.shape.accepts(tag.shape);
  if (!tag.dead && (tag.dtype != channel->second.dtype || !fits))
    return invalid_argument(fmt::format(
        "channel {} carries {}{}, not {}{}", tag.index, dtype_name(channel->second.dtype),
        channel->second.shape.text(), dtype_name(tag.dtype), tag.shape.text()));
  // Outside loops a channel has one element.
  if (!channel->second.loops && !received_.emplace(tag.attempt, tag.index).second)
    return invalid_argument(
        fmt::format("channel {} was used twice in attempt {}", tag.index, tag.attempt.text()));
  return ok_status();
}

Status Arrivals::admit_fetch(ProcessId from, const TensorTag& tag) {
  auto part = parts_.find(key(tag));
  if (part == parts_.end() || !hosts_.hosts(from, part->second.task) ||
      tag.index >= part->second.fetches)
    return invalid_argument(
        fmt::format("process {} was not asked for value {} of attempt {} (partition {})", from,
                    tag.index, tag.attempt.text(), tag.partition));
  if (!part->second.admitted.insert(tag.index).second)
    return invalid_argument(
        fmt::format("value {} of attempt {} came twice", tag.index, tag.attempt.text()));
  return ok_status();
}

Status Arrivals::admit_feed(Part& part, const TensorTag& tag) {
  if (part.begun) {
    auto* start = part.message ? std::get_if<StartPartition>(&*part.message) : nullptr;
    if (start == nullptr || tag.index >= start->feeds.size() || start->feeds[tag.index].defined())
      return invalid_argument(
          fmt::format("attempt {} does not wait for feed {}", tag.attempt.text(), tag.index));
  }
  if (!part.admitted.insert(tag.index).second)
    return invalid_argument(
        fmt::format("feed {} of attempt {} came twice", tag.index, tag.attempt.text()));
  return ok_status();
}

std::optional<WireMessage> Arrivals::add(const TensorTag& tag, Tensor tensor) {
  auto it = parts_.find(key(tag));
  if (it == parts_.end()) return std::nullopt;  // the attempt is over
  Part& part = it->second;
  part.tensors[tag.index] = std::move(tensor);
  if (!part.message || !complete(*part.message, part.tensors)) return std::nullopt;
  part.tensors.clear();
  return std::exchange(part.message, std::nullopt);
}

// Messages.

Expected<std::optional<WireMessage>> Arrivals::add(ProcessId from, WireMessage message) {
  Part* part = nullptr;
  if (auto* start = std::get_if<StartPartition>(&message)) {
    part = &parts_[{start->attempt.id, start->compiled, start->partition}];
  } else if (auto* abort = std::get_if<AbortPartition>(&message)) {
    part = &parts_[{abort->attempt, abort->compiled, abort->partition}];
  } else if (auto* done = std::get_if<PartitionDone>(&message)) {
    TROUPE_TRY(part, asked(from, done->attempt, done->run, done->partition));
    if (!part) return std::optional<WireMessage>{};
  } else if (auto* returned = std::get_if<GrantReturned>(&message)) {
    TROUPE_TRY(Part * granted,
               asked(from, returned->attempt, returned->run, 0));  // the only partition
    if (!granted) return std::optional<WireMessage>{};
  }
  if (part == nullptr) return std::optional(std::move(message));
  part->begun = true;
  discharge(*part);
  if (std::holds_alternative<AbortPartition>(message)) return std::optional(std::move(message));
  if (!complete(message, part->tensors)) {
    part->message = std::move(message);
    return std::optional<WireMessage>{};
  }
  part->tensors.clear();
  return std::optional(std::move(message));
}

// The part that the process was asked to run; null if it is over.
Expected<Arrivals::Part*> Arrivals::asked(ProcessId from, const AttemptId& attempt,
                                          const RunId& run, std::uint32_t partition) {
  auto it = parts_.find({attempt, 0, partition});
  if (it != parts_.end() && hosts_.hosts(from, it->second.task) && it->second.run == run)
    return &it->second;
  if (live_.over(attempt)) return nullptr;
  return invalid_argument(fmt::format("process {} was not asked to run partition {} of {}", from,
                                      partition, attempt.text()));
}

// Early tensors.

Status Arrivals::charge(ProcessId from, Part& part, std::uint64_t bytes) {
  std::uint64_t& sum = early_[from];
  if (sum > limit_ && !held_.contains(from))  // it sent too much on an earlier connection
    return resource_exhausted(
        fmt::format("process {} sent {} bytes for attempts that have not begun, {} are the most",
                    from, sum, limit_));
  part.early[from] += bytes + kTensorCost;
  sum += bytes + kTensorCost;
  if (sum > limit_ && held_.insert(from).second) holds_.emplace_back(from, true);
  return ok_status();
}

void Arrivals::discharge(Part& part) {
  for (auto [process, bytes] : std::exchange(part.early, {})) {
    std::uint64_t& sum = early_[process];
    sum -= bytes;
    if (sum <= limit_ && held_.erase(process) > 0) holds_.emplace_back(process, false);
  }
}

}  // namespace troupe
