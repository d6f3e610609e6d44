#include "actors/processes/gathering.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::vector<TraceSpans> in_messages(Trace::Recording recording) {
  std::vector<TraceSpans> messages(1);
  std::size_t room = kSpansInMessage;
  for (Track& track : recording.tracks) {
    for (std::size_t at = 0; at < track.spans.size();) {
      if (room == 0) {
        messages.emplace_back();
        room = kSpansInMessage;
      }
      const std::size_t n = std::min(room, track.spans.size() - at);
      auto first = std::make_move_iterator(track.spans.begin() + std::ptrdiff_t(at));
      messages.back().tracks.push_back({track.name, {first, first + std::ptrdiff_t(n)}});
      at += n;
      room -= n;
    }
  }
  messages.back().dropped = recording.dropped;
  messages.back().last = true;
  return messages;
}

void Gathering::ask(ProcessId process, std::string name,
                    std::optional<ClockOffset::Estimate> clock) {
  timelines_[process] = {process, std::move(name), clock, {}, 0, false};
  waiting_[process] = 0;
}

void Gathering::take(ProcessId from, TraceSpans message) {
  auto asked = waiting_.find(from);
  if (asked == waiting_.end()) return;
  ProcessTimeline& timeline = timelines_.at(from);
  timeline.dropped += message.dropped;
  for (Track& track : message.tracks) {
    const std::size_t room = kMostSpans - asked->second;
    if (track.spans.size() > room) {
      timeline.dropped += track.spans.size() - room;
      track.spans.resize(room);
    }
    if (track.spans.empty()) continue;
    asked->second += track.spans.size();
    auto known = std::find_if(timeline.tracks.begin(), timeline.tracks.end(),
                              [&](const Track& t) { return t.name == track.name; });
    if (known == timeline.tracks.end() && timeline.tracks.size() == kMostTracks) {
      timeline.dropped += track.spans.size();
    } else if (known == timeline.tracks.end()) {
      timeline.tracks.push_back(std::move(track));
    } else {
      std::move(track.spans.begin(), track.spans.end(), std::back_inserter(known->spans));
    }
  }
  if (!message.last) return;
  timeline.complete = true;
  waiting_.erase(asked);
}

std::vector<ProcessTimeline> Gathering::result() {
  std::vector<ProcessTimeline> all;
  for (auto& [_, timeline] : std::exchange(timelines_, {})) all.push_back(std::move(timeline));
  waiting_.clear();
  return all;
}

}  // namespace troupe
