#include "actors/supervision/supervision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {
namespace {

double seconds(Instant time) { return std::chrono::duration<double>(time).count(); }

// Whether it is an order to the incarnation to end.
bool ends(const Supervision::Output& output, const std::string& child, std::uint64_t incarnation) {
  const auto is_it = [&](const auto* order) {
    return order != nullptr && order->child == child && order->incarnation == incarnation;
  };
  return is_it(std::get_if<Supervision::Stop>(&output)) ||
         is_it(std::get_if<Supervision::Kill>(&output));
}

}  // namespace

const char* name_of(Restart restart) {
  switch (restart) {
    case Restart::permanent:
      return "permanent";
    case Restart::transient:
      return "transient";
    case Restart::temporary:
      break;
  }
  return "temporary";
}

Status SupervisorSpec::check(const std::vector<ChildSpec>& children) const {
  const auto bad = [](std::string text) { return invalid_argument(std::move(text)); };
  if (intensity < 0) return bad(fmt::format("intensity is {}, and is at least 0", intensity));
  if (period <= Instant(0)) return bad("period is longer than 0");
  if (first_pause < Instant(0) || longest_pause < first_pause)
    return bad("the pauses before restarts are 0 <= first_pause <= longest_pause");
  std::set<std::string> ids;
  for (const ChildSpec& child : children) {
    if (child.id.empty()) return bad("a child has an id that is not empty");
    if (!ids.insert(child.id).second)
      return bad(fmt::format("two children have the id '{}'", child.id));
    if (child.shutdown.within < Instant(0))
      return bad(fmt::format("child '{}': the time of its shutdown is at least 0", child.id));
    if (child.significant && child.restart == Restart::permanent)
      return bad(fmt::format(
          "child '{}' is permanent, so it is always started again and cannot be significant",
          child.id));
  }
  return ok_status();
}

Supervision::Supervision(SupervisorSpec spec, std::vector<ChildSpec> children, std::uint64_t seed)
    : spec_(spec),
      random_(seed),
      budget_({.restarts = std::size_t(spec.intensity),
               .window = spec.period,
               .first_delay = Instant(0),
               .max_delay = Instant(0)},
              seed) {
  for (ChildSpec& child : children) children_.emplace_back(std::move(child), pauses(), random_());
}

RestartBudget::Options Supervision::pauses() const {
  return {.restarts = SIZE_MAX,
          .window = spec_.period,
          .first_delay = spec_.first_pause,
          .max_delay = spec_.longest_pause};
}

// ------------------------------------------------------------------ inputs

void Supervision::begin(Instant now, Outputs& out) {
  if (phase_ != Phase::idle) return;
  phase_ = Phase::starting;
  advance(now, out);
}

void Supervision::started(const std::string& child, std::uint64_t incarnation, Instant now,
                          Outputs& out) {
  Entry* entry = find(child, incarnation);
  if (entry == nullptr || entry->state != State::starting) return;
  enter(*entry, State::running, now);
  advance(now, out);
}

void Supervision::ended(const std::string& child, std::uint64_t incarnation, ChildExit exit,
                        Instant now, Outputs& out) {
  Entry* entry = find(child, incarnation);
  if (entry == nullptr || !entry->alive()) return;
  // Given while its Start, which failed, had not been carried out.
  std::erase_if(out, [&](const Output& each) { return ends(each, child, incarnation); });
  const bool expected = entry->must_stop;
  entry->must_stop = false;
  if (!expected) entry->last_exit = exit.how;
  if (ending()) {
    enter(*entry, State::ended, now);
  } else if (expected) {
    enter(*entry, entry->wanted ? State::waiting : State::ended, now);
    entry->at = now;
  } else if (phase_ == Phase::starting && entry->state == State::starting && !exit.normal) {
    enter(*entry, State::ended, now);
    end(unavailable(fmt::format("child '{}' {} before it was started", child, exit.how)));
  } else if (entry->spec.restart == Restart::permanent ||
             (entry->spec.restart == Restart::transient && !exit.normal)) {
    restart_for(*entry, now);
  } else {
    enter(*entry, State::ended, now);
    not_again(*entry);
  }
  advance(now, out);
}

Status Supervision::add(ChildSpec spec, Instant now, Outputs& out) {
  if (ending()) return failed_precondition("the supervisor ends");
  if (find(spec.id) != nullptr)
    return already_exists(fmt::format("there is a child '{}'", spec.id));
  TROUPE_TRY(spec_.check({spec}));
  children_.emplace_back(std::move(spec), pauses(), random_());
  if (phase_ != Phase::idle) advance(now, out);
  return ok_status();
}

Status Supervision::stop_child(const std::string& child, Instant now, Outputs& out) {
  Entry* entry = find(child);
  if (entry == nullptr) return not_found(fmt::format("there is no child '{}'", child));
  entry->wanted = false;
  if (entry->alive())
    entry->must_stop = true;
  else
    enter(*entry, State::ended, now);
  if (phase_ != Phase::idle) advance(now, out);
  return ok_status();
}

Status Supervision::restart_child(const std::string& child, Instant now, Outputs& out) {
  Entry* entry = find(child);
  if (entry == nullptr) return not_found(fmt::format("there is no child '{}'", child));
  if (ending()) return failed_precondition("the supervisor ends");
  entry->wanted = true;
  if (entry->alive()) {
    entry->must_stop = true;
  } else {
    enter(*entry, State::waiting, now);
    entry->at = now;
  }
  if (phase_ != Phase::idle) advance(now, out);
  return ok_status();
}

void Supervision::progressed() {
  budget_.progressed();
  for (Entry& entry : children_) entry.pauses.progressed();
}

void Supervision::stop(Instant now, Outputs& out) {
  if (ending()) return;
  end(ok_status());
  advance(now, out);
}

void Supervision::kill_all(Instant now, Outputs& out) {
  hurry_ = true;
  if (!ending()) end(ok_status());
  for (std::size_t k = children_.size(); k-- > 0;) {
    Entry& entry = children_[k];
    if (!entry.alive() || entry.state == State::killed) continue;
    enter(entry, State::killed, now);
    out.push_back(Kill{entry.spec.id, entry.incarnation});
  }
  advance(now, out);
}

void Supervision::tick(Instant now, Outputs& out) {
  if (phase_ != Phase::idle) advance(now, out);
}

// ------------------------------------------------------------------ decisions

// It ended, and is to run again.
void Supervision::restart_for(Entry& entry, Instant now) {
  if (!budget_.died(now)) {
    enter(entry, State::ended, now);
    return end(
        unavailable(spec_.intensity == 0
                        ? fmt::format("child '{}' {}, and no restart is allowed", entry.spec.id,
                                      entry.last_exit)
                        : fmt::format("child '{}' {}, after {} restart{} within {:g} s",
                                      entry.spec.id, entry.last_exit, spec_.intensity,
                                      spec_.intensity == 1 ? "" : "s", seconds(spec_.period))));
  }
  ++entry.restarts;
  enter(entry, State::waiting, now);
  entry.at = now + entry.pauses.died(now).value_or(Instant(0));
  if (spec_.strategy == Strategy::one_for_one) return;
  bool after = spec_.strategy == Strategy::one_for_all;
  for (Entry& other : children_) {
    if (&other == &entry) {
      after = true;
      continue;
    }
    if (!after || !other.alive()) continue;
    other.must_stop = true;
    if (other.spec.restart == Restart::temporary) other.wanted = false;
  }
}

// It ended by itself, and is not started again.
void Supervision::not_again(Entry& entry) {
  entry.wanted = false;
  if (!entry.spec.significant || spec_.auto_shutdown == AutoShutdown::never) return;
  const bool left = std::any_of(children_.begin(), children_.end(), [](const Entry& other) {
    return other.spec.significant && other.state != State::ended;
  });
  if (spec_.auto_shutdown == AutoShutdown::any_significant || !left) end(ok_status());
}

void Supervision::end(Status why) {
  phase_ = Phase::ending;
  why_ = std::move(why);
  for (Entry& entry : children_) {
    entry.wanted = false;
    entry.must_stop = entry.alive();
    if (!entry.alive()) entry.state = State::ended;
  }
}

bool Supervision::may_start(std::size_t k) const {
  if (phase_ != Phase::starting && spec_.strategy == Strategy::one_for_one) return true;
  return std::all_of(children_.begin(), children_.begin() + std::ptrdiff_t(k), [](const Entry& e) {
    return !e.wanted || e.state == State::running || e.state == State::ended;
  });
}

// One child at a time, the last first: asks it, and kills it at its time. False: there is none.
bool Supervision::stop_next(Instant now, Outputs& out) {
  auto last = std::find_if(children_.rbegin(), children_.rend(), [](const Entry& e) {
    return e.state == State::stopping || e.state == State::killed;
  });
  if (last == children_.rend())
    last = std::find_if(children_.rbegin(), children_.rend(),
                        [](const Entry& e) { return e.alive() && e.must_stop; });
  if (last == children_.rend()) return false;
  const bool asked = last->state == State::stopping || last->state == State::killed;
  const Instant within = hurry_ ? Instant(0) : last->spec.shutdown.within;
  if (!asked && within > Instant(0)) {
    enter(*last, State::stopping, now);
    last->at = within >= kNever - now ? kNever : now + within;
    out.push_back(Stop{last->spec.id, last->incarnation});
  } else if (!asked || (last->state == State::stopping && last->at <= now)) {
    enter(*last, State::killed, now);
    out.push_back(Kill{last->spec.id, last->incarnation});
  }
  return true;
}

void Supervision::advance(Instant now, Outputs& out) {
  if (phase_ == Phase::over || stop_next(now, out)) return;
  if (phase_ == Phase::ending) {
    phase_ = Phase::over;
    out.push_back(Over{why_});
    return;
  }
  bool all = true;
  for (std::size_t k = 0; k < children_.size(); ++k) {
    Entry& entry = children_[k];
    if (!entry.wanted) continue;
    if ((entry.state == State::idle || (entry.state == State::waiting && entry.at <= now)) &&
        may_start(k)) {
      enter(entry, State::starting, now);
      out.push_back(Start{entry.spec.id, ++entry.incarnation});
    }
    all = all && entry.state == State::running;
  }
  if (all && phase_ == Phase::starting) phase_ = Phase::running;
}

Instant Supervision::next_wakeup() const {
  Instant next = kNever;
  bool stops = false;
  for (const Entry& entry : children_) {
    stops |= entry.alive() && entry.must_stop;
    if (entry.state == State::stopping) next = std::min(next, entry.at);
  }
  if (stops || ending()) return next;
  for (std::size_t k = 0; k < children_.size(); ++k)
    if (children_[k].wanted && children_[k].state == State::waiting && may_start(k))
      next = std::min(next, children_[k].at);
  return next;
}

// ------------------------------------------------------------------ children

Supervision::Entry* Supervision::find(const std::string& child) {
  const auto it = std::find_if(children_.begin(), children_.end(),
                               [&](const Entry& e) { return e.spec.id == child; });
  return it == children_.end() ? nullptr : &*it;
}

Supervision::Entry* Supervision::find(const std::string& child, std::uint64_t incarnation) {
  Entry* entry = find(child);
  return entry != nullptr && entry->incarnation == incarnation ? entry : nullptr;
}

void Supervision::enter(Entry& entry, State state, Instant now) {
  entry.state = state;
  entry.since = now;
}

std::vector<Supervision::Child> Supervision::children() const {
  return {children_.begin(), children_.end()};
}

}  // namespace troupe
