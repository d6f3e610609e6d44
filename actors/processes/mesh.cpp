#include "actors/processes/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

// What a master may ask for. Each thread and device costs memory before it computes anything.
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::size_t kMostDevices = 16;
constexpr std::uint32_t kMostTasks = 1u << 20;
constexpr std::size_t kMostMembers = 4096;
constexpr std::size_t kMostClaims = kMostMembers;

Status check_welcome(const Welcome& welcome) {
  if (welcome.process == 0) return invalid_argument("the master gave this process its own number");
  if (welcome.threads > kMostThreads)
    return invalid_argument(
        fmt::format("{} threads for a device, {} are the most", welcome.threads, kMostThreads));
  if (welcome.devices.size() > kMostDevices || number(welcome.task) > kMostTasks)
    return invalid_argument(fmt::format("{} devices for task {}, {} for task {} are the most",
                                        welcome.devices.size(), number(welcome.task), kMostDevices,
                                        kMostTasks));
  return ok_status();
}

}  // namespace

void Mesh::up(PeerId peer, const Join& join, Outputs& out) {
  if (peer == master_) connected_ = true;
  if (over_ || peer == master_) return;
  for (auto& [process, link] : links_)
    if (link.peer == peer) {
      link.up = true;
      return say_ready(out);
    }
  if (join.process == 0 || join.process == self_) {
    out.push_back(Close{peer, invalid_argument("only members of the job connect here")});
    return;
  }
  if (claims_.size() >= kMostClaims) {
    out.push_back(Close{claims_.front().peer, resource_exhausted("too many claim to be members")});
    claims_.pop_front();
  }
  claims_.push_back({peer, join});
  settle_claims(out);
}

void Mesh::settle_claims(Outputs& out) {
  std::erase_if(claims_, [&](const Claim& claim) {
    const ProcessId process = claim.join.process;
    auto member = members_.find(process);
    if (process <= self_ || member == members_.end() || links_.contains(process) ||
        member->second.incarnation != claim.join.incarnation)
      return false;
    links_[process] = {claim.peer, true};
    out.push_back(Admit{claim.peer, process});
    return true;
  });
  say_ready(out);
}

void Mesh::down(PeerId peer, const Status& why, Outputs& out) {
  if (peer == master_) connected_ = false;
  if (over_) return;
  if (peer == master_) {
    if (self_ != 0) return end(unavailable("the master is lost: " + why.message()), out);
    // Refused for a reason that trying again does not change, or not reached: a master that ends
    // (cancelled) has not looked at who was about to join.
    const bool refused = why.code() != Code::unavailable && why.code() != Code::deadline_exceeded &&
                         why.code() != Code::cancelled;
    return end(refused ? Status(why.code(), "the master refused this worker: " + why.message())
                       : unavailable("this worker cannot join its master: " + why.message()),
               out);
  }
  std::erase_if(claims_, [&](const Claim& claim) { return claim.peer == peer; });
  auto it = std::find_if(links_.begin(), links_.end(),
                         [&](const auto& link) { return link.second.peer == peer; });
  if (it == links_.end()) return;
  const ProcessId other = it->first;
  links_.erase(it);
  link_broke(other, why, out);
  settle_claims(out);
}

void Mesh::link_broke(ProcessId other, const Status& why, Outputs& out) {
  out.push_back(Report{LinkLost{self_, view_, other, why}});
}

void Mesh::welcome(const Welcome& message, Outputs& out) {
  if (over_) return;
  if (self_ != 0) return give_up(invalid_argument("the master welcomed this process twice"), out);
  if (Status status = check_welcome(message); !status.ok()) return give_up(std::move(status), out);
  self_ = message.process;
  out.push_back(Host{message});
}

void Mesh::hosting(Expected<std::vector<std::string>> devices, Outputs& out) {
  if (over_) return;
  Ready ready;
  ready.process = self_;
  ready.status = devices.status();
  if (devices.ok()) devices_ = ready.devices = *devices;
  out.push_back(Report{ready});
  if (!devices.ok()) return give_up(devices.status(), out);
  say_ready(out);
}

Status Mesh::check(const Members& message) const {
  if (self_ == 0) return invalid_argument("the master named members before this process was one");
  if (message.members.size() > kMostMembers)
    return invalid_argument(
        fmt::format("{} members, {} are the most", message.members.size(), kMostMembers));
  std::set<ProcessId> seen{0};
  std::set<TaskId> tasks;
  bool named = false;
  for (const Member& member : message.members) {
    if (!seen.insert(member.process).second)
      return invalid_argument(fmt::format("process {} is a member twice", member.process));
    if (!tasks.insert(member.task).second)
      return invalid_argument(fmt::format("task {} has two hosts", number(member.task)));
    named |= member.process == self_ && member.incarnation == words_.incarnation;
  }
  if (!named) return invalid_argument("the master does not count this process as a member");
  return ok_status();
}

void Mesh::members(const Members& message, Outputs& out) {
  if (over_ || message.view <= view_) return;
  if (Status status = check(message); !status.ok()) return give_up(std::move(status), out);
  view_ = message.view;
  for (const Member& member : message.members) out.push_back(Place{member.task, member.process});
  std::map<ProcessId, Member> before = std::exchange(members_, {});
  for (const Member& member : message.members)
    if (member.process != self_) members_[member.process] = member;
  std::erase_if(links_, [&](const auto& entry) {
    auto now = members_.find(entry.first);
    if (now != members_.end() && now->second.incarnation == before[entry.first].incarnation)
      return false;
    out.push_back(Close{entry.second.peer, cancelled("it is no member any more")});
    return true;
  });
  for (const auto& [process, member] : members_)
    if (process < self_ && !links_.contains(process)) out.push_back(Connect{member});
  settle_claims(out);
}

void Mesh::connecting(ProcessId process, Expected<PeerId> peer, Outputs& out) {
  if (over_) return;
  if (peer.ok())
    links_[process] = {*peer, false};
  else
    link_broke(process, peer.status(), out);
}

// Once for each view.
void Mesh::say_ready(Outputs& out) {
  if (over_ || devices_.empty() || ready_view_ == view_) return;
  for (const auto& [process, _] : members_)
    if (auto link = links_.find(process); link == links_.end() || !link->second.up) return;
  ready_view_ = view_;
  out.push_back(Report{Ready{self_, devices_, {}, view_}});
}

void Mesh::leave(Outputs& out) { end(ok_status(), out); }

// The master hears why.
void Mesh::give_up(Status why, Outputs& out) {
  if (over_) return;
  out.push_back(Close{master_, why});
  end(std::move(why), out);
}

void Mesh::end(Status status, Outputs& out) {
  if (over_) return;
  over_ = true;
  out.push_back(End{std::move(status)});
}

}  // namespace troupe
