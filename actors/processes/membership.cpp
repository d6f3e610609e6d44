#include "actors/processes/membership.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t kMostWaiting = 256;

// Until one of them is lost, or another job takes its place.
Status all_here() { return unavailable("the job has all its workers"); }

Status check_registered(const Registered& mine, const Registered& theirs) {
  auto differ = [](std::string_view what) {
    return failed_precondition(
        fmt::format("the worker has other {} than the master: both have to be the same program, or "
                    "to register the same",
                    what));
  };
  if (theirs.ops != mine.ops) return differ("ops");
  if (theirs.passes != mine.passes) return differ("passes");
  if (theirs.devices != mine.devices) return differ("types of devices");
  return ok_status();
}

// The devices that a worker says it made. It speaks for its own task only.
Expected<std::vector<DeviceName>> check_devices(TaskId task, const Ready& ready) {
  std::vector<DeviceName> devices;
  for (const std::string& text : ready.devices) {
    TROUPE_TRY(DeviceName name, DeviceName::parse(text));
    if (!name.full() || name.job != "worker" || task_of(name) != task)
      return invalid_argument(
          fmt::format("worker {} has no device '{}'", number(task), name.text()));
    if (std::find(devices.begin(), devices.end(), name) != devices.end())
      return invalid_argument(fmt::format("device '{}' is named twice", name.text()));
    devices.push_back(std::move(name));
  }
  if (devices.empty()) return invalid_argument("a worker has a device");
  return devices;
}

}  // namespace

Status may_connect(const Join& mine, const Join& theirs) {
  if (theirs.version != mine.version)
    return failed_precondition(
        fmt::format("protocol version {} is not spoken, {} is", theirs.version, mine.version));
  if (!mine.job.empty() && !theirs.job.empty() && theirs.job != mine.job)
    return failed_precondition("that is another job");
  return ok_status();
}

// Why nobody has a place here any more. Who is told `unavailable` comes again.
Status Membership::over() const {
  return may_come_back_ ? unavailable("its job ended since it lost a worker")
                        : failed_precondition("the job is over");
}

Status Membership::may_join(const Join& join) const {
  if (phase_ == Phase::failed || phase_ == Phase::leaving || phase_ == Phase::over) return over();
  TROUPE_TRY(may_connect(options_.words, join));
  TROUPE_TRY(check_registered(options_.words.registered, join.registered));
  if (join.process != 0) return invalid_argument("it is the master who gives a worker its number");
  if (phase_ == Phase::running && waiting_.size() >= options_.spares) return all_here();
  for (const auto& [_, member] : members_)
    if (member.join.incarnation == join.incarnation)
      return already_exists("this worker has joined already");
  for (const Waiting& other : waiting_)
    if (other.join.incarnation == join.incarnation)
      return already_exists("this worker waits already");
  if (waiting_.size() >= kMostWaiting) return all_here();
  return ok_status();
}

void Membership::up(PeerId peer, const Join& join, Instant now, Outputs& out) {
  if (Status status = may_join(join); !status.ok()) {
    out.push_back(Close{peer, std::move(status)});
  } else if (starting() && members_.size() < options_.workers) {
    seat({peer, join}, now, out);
  } else {
    waiting_.push_back({peer, join});
  }
}

TaskId Membership::task_for(ProcessId process) const {
  if (options_.tasks.empty()) return TaskId(process - 1);
  return options_.tasks.at(process - 1);
}

ProcessId Membership::free_number() const {
  ProcessId process = 1;
  while (members_.contains(process)) ++process;
  return process;
}

void Membership::seat(Waiting joiner, Instant now, Outputs& out) {
  const ProcessId process = free_number();
  Member& member = members_[process];
  static_cast<Waiting&>(member) = std::move(joiner);
  member.task = task_for(process);
  member.answer_until = now + options_.answer_within;
  out.push_back(Admit{member.peer, process});
  Welcome welcome = options_.welcome;
  welcome.process = process;
  welcome.task = member.task;
  out.push_back(Send{process, std::move(welcome)});
}

std::string Membership::name(ProcessId process) const {
  const Member& member = members_.at(process);
  return fmt::format("{} at {}:{}", number(member.task), member.join.listen_host,
                     member.join.listen_port);
}

void Membership::down(PeerId peer, const Status& why, Instant now, Outputs& out) {
  auto it = std::find_if(members_.begin(), members_.end(),
                         [&](const auto& m) { return m.second.peer == peer; });
  if (it == members_.end()) {  // it was refused, or had no place yet
    std::erase_if(waiting_, [&](const Waiting& w) { return w.peer == peer; });
    return;
  }
  const ProcessId process = it->first;
  if (starting()) lost_while_starting(process, it->second, why, now, out);
  if (phase_ == Phase::running && !it->second.closing) {
    may_come_back_ = true;
    out.push_back(Lost{process, why});
  }
  members_.erase(it);
  std::erase_if(broken_,
                [&](const BrokenLink& b) { return b.low == process || b.high == process; });
  if (starting() && !waiting_.empty()) {
    seat(std::move(waiting_.front()), now, out);
    waiting_.pop_front();
  }
  if (phase_ == Phase::leaving && members_.empty()) {
    phase_ = Phase::over;
    out.push_back(Over{});
  }
}

void Membership::lost_while_starting(ProcessId process, const Member& member, const Status& why,
                                     Instant now, Outputs& out) {
  // The others may have been told of it. They will be told of whoever comes instead.
  phase_ = Phase::joining;
  for (auto& [_, other] : members_) other.connected = false;
  if (member.closing) return;
  std::string text =
      fmt::format("worker {} left while the job started: {}", name(process), why.message());
  if (!member.started_here()) {
    out.push_back(Note{std::move(text)});
    return;
  }
  if (failing_) return;
  // Why a process ends is better said by the process.
  failing_ = Status(why.code(), std::move(text));
  failing_at_ = now + options_.proof_within;
  if (why.code() != Code::unavailable) fail(*failing_, out);
}

// Its number is not free before its peer is down.
void Membership::drop(ProcessId process, Status why, Outputs& out) {
  Member& member = members_.at(process);
  member.closing = true;
  if (starting()) {
    Status named(why.code(), fmt::format("worker {}: {}", name(process), why.message()));
    if (member.started_here())
      fail(std::move(named), out);
    else
      out.push_back(Note{named.text()});
  }
  out.push_back(Close{member.peer, std::move(why)});
}

void Membership::ready(ProcessId from, const Ready& message, Instant now, Outputs& out) {
  auto it = members_.find(from);
  if (!starting() || it == members_.end() || it->second.closing) return;
  Member& member = it->second;
  if (!message.status.ok()) return drop(from, message.status, out);
  if (message.view == 0) {
    if (!member.devices.empty()) return;
    auto devices = check_devices(member.task, message);
    if (!devices.ok()) return drop(from, devices.status(), out);
    member.devices = std::move(devices).value();
  } else if (message.view == view_ && phase_ == Phase::meshing) {
    member.connected = true;
  }
  advance(now, out);
}

void Membership::advance(Instant now, Outputs& out) {
  auto all = [&](auto holds) {
    return members_.size() == options_.workers &&
           std::all_of(members_.begin(), members_.end(),
                       [&](const auto& m) { return !m.second.closing && holds(m.second); });
  };
  if (phase_ == Phase::joining && all([](const Member& m) { return !m.devices.empty(); })) {
    phase_ = Phase::meshing;
    broken_.clear();
    Members message;
    message.view = ++view_;
    for (const auto& [process, member] : members_)
      message.members.push_back({process, member.task, member.join.incarnation,
                                 member.join.listen_host, member.join.listen_port});
    for (auto& [process, member] : members_) {
      member.answer_until = now + options_.answer_within;
      out.push_back(Send{process, message});
    }
  } else if (phase_ == Phase::meshing && all([](const Member& m) { return m.connected; })) {
    phase_ = Phase::running;
    for (const auto& [process, member] : members_)
      out.push_back(Up{process, member.task, name(process), member.devices});
    for (; waiting_.size() > options_.spares; waiting_.pop_back())
      out.push_back(Close{waiting_.back().peer, all_here()});
    out.push_back(Started{});
  }
}

void Membership::link_lost(ProcessId from, const LinkLost& message, Instant now, Outputs& out) {
  if (phase_ != Phase::meshing && phase_ != Phase::running) return;
  if (message.view != view_ || message.other == from) return;
  for (ProcessId end : {from, message.other})
    if (auto it = members_.find(end); it == members_.end() || it->second.closing) return;
  BrokenLink link{std::min(from, message.other), std::max(from, message.other), from, message.why,
                  now + options_.proof_within};
  for (auto known = broken_.begin(); known != broken_.end(); ++known) {
    if (known->low != link.low || known->high != link.high) continue;
    if (known->said_by == from) return;
    // Both ends say so, and so neither is gone.
    link = std::move(*known);
    broken_.erase(known);
    return judge(link, out);
  }
  broken_.push_back(std::move(link));
}

// Nobody is gone: both ends are, and the way between them is not.
void Membership::judge(const BrokenLink& link, Outputs& out) {
  auto low = members_.find(link.low), high = members_.find(link.high);
  if (low == members_.end() || high == members_.end() || low->second.closing ||
      high->second.closing)
    return;
  if (phase_ == Phase::meshing)
    return fail(unavailable(fmt::format("workers {} and {} cannot reach each other: {}",
                                        name(link.low), name(link.high), link.why.message())),
                out);
  if (phase_ != Phase::running) return;
  Status why = unavailable(
      fmt::format("its link to worker {} broke: {}", name(link.low), link.why.message()));
  high->second.closing = true;
  may_come_back_ = true;
  out.push_back(Lost{link.high, why});
  out.push_back(Close{high->second.peer, std::move(why)});
}

void Membership::child_ended(Status how, Instant, Outputs& out) { fail(std::move(how), out); }

void Membership::stop(Instant, Outputs& out) {
  fail(cancelled(fmt::format("stopped when {} of {} workers had joined", members_.size(),
                             options_.workers)),
       out);
}

void Membership::fail(Status why, Outputs& out) {
  if (!starting()) return;
  phase_ = Phase::failed;
  may_come_back_ = why.code() == Code::unavailable;
  out.push_back(Started{std::move(why)});
}

void Membership::leave(Instant now, Outputs& out) {
  if (phase_ == Phase::leaving || phase_ == Phase::over) return;
  // Spares get a number to be told by.
  for (; phase_ == Phase::running && !waiting_.empty(); waiting_.pop_front()) {
    const ProcessId process = free_number();
    static_cast<Waiting&>(members_[process]) = std::move(waiting_.front());
    out.push_back(Admit{members_[process].peer, process});
  }
  phase_ = members_.empty() ? Phase::over : Phase::leaving;
  leave_until_ = now + options_.leave_within;
  for (auto& [process, member] : members_) {
    if (member.closing) continue;
    if (may_come_back_ && !member.started_here()) {
      // The job is not done, and may begin again at the same address: that worker may wait for it.
      member.closing = true;
      out.push_back(Close{member.peer, over()});
    } else {
      out.push_back(Send{process, Leave{}});
    }
  }
  for (const Waiting& late : waiting_) out.push_back(Close{late.peer, over()});
  waiting_.clear();
  if (members_.empty()) out.push_back(Over{});
}

// When the next member is late with its answer. Of a mesh it is the highest number that goes, since
// it is the one that connects: the others wait for it, and are asked again once it is gone.
Instant Membership::answer_until() const {
  Instant until = kNever;
  for (const auto& [_, member] : members_) {
    if (member.closing && phase_ == Phase::meshing) return kNever;
    if (!member.closing && owes_answer(member)) until = std::min(until, member.answer_until);
  }
  return until;
}

bool Membership::owes_answer(const Member& member) const {
  return phase_ == Phase::joining ? member.devices.empty() : !member.connected;
}

void Membership::drop_late(Instant now, Outputs& out) {
  while (starting() && now >= answer_until()) {
    auto late = std::find_if(members_.rbegin(), members_.rend(), [&](const auto& m) {
      return !m.second.closing && owes_answer(m.second) && now >= m.second.answer_until;
    });
    drop(late->first, deadline_exceeded("it did not answer in time"), out);
  }
}

void Membership::tick(Instant now, Outputs& out) {
  drop_late(now, out);
  if (starting() && now >= failing_at_) fail(*failing_, out);
  if (starting() && now >= options_.start_until)
    fail(deadline_exceeded(fmt::format(
             "{} of {} workers joined within {} s", members_.size(), options_.workers,
             std::chrono::duration_cast<std::chrono::seconds>(options_.start_within).count())),
         out);
  while (!broken_.empty() && now >= broken_.front().at) {
    BrokenLink link = std::move(broken_.front());
    broken_.erase(broken_.begin());
    judge(link, out);
  }
  if (phase_ == Phase::leaving && now >= leave_until_) {
    phase_ = Phase::over;
    out.push_back(Over{});
  }
}

Instant Membership::next_wakeup() const {
  Instant wake = kNever;
  if (starting()) wake = std::min({failing_at_, options_.start_until, answer_until()});
  if (!broken_.empty()) wake = std::min(wake, broken_.front().at);
  if (phase_ == Phase::leaving) wake = std::min(wake, leave_until_);
  return wake;
}

}  // namespace troupe
