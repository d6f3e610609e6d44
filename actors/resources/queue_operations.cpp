// Of the queue: one enqueue or dequeue, tried against the elements, marks and reservations.
#include <algorithm>

#include "actors/resources/queue_state.hpp"

namespace troupe {

const QueueState::AttemptLog* QueueState::log_of(const AttemptInfo& attempt) const {
  return find_log(attempt.id);
}

bool QueueState::marked_by(const Element& element, const AttemptInfo& attempt) const {
  return element.leased && element.run == attempt.run && element.attempt.view == attempt.id.view &&
         element.attempt.a >= attempt.marks_from;
}

std::int64_t QueueState::own_marks(const AttemptInfo& attempt) const {
  std::int64_t n = 0;
  for (const Element& e : elements_) n += marked_by(e, attempt);
  if (const AttemptLog* log = log_of(attempt))
    for (const auto& [key, mine] : log->enqueues) n += !mine.consumed;
  return n;
}

std::int64_t QueueState::reserved() const {
  std::int64_t n = 0;
  for (const auto& [attempt, log] : logs_)
    for (const auto& [key, e] : log.enqueues) n += !e.consumed;
  if (staged_)
    for (const auto& [key, e] : staged_->record.enqueues) n += !e.consumed;
  return n;
}

// Answered before, or owed what no other run can have: a mark of an earlier attempt, an element of
// its own. Waiting behind others for that would be waiting for nothing.
bool QueueState::needs_no_turn(Side side, const Waiter& request) const {
  const AttemptLog* log = log_of(request.attempt);
  if (side == Side::enqueue)
    return log && std::any_of(log->enqueues.begin(), log->enqueues.end(),
                              [&](const auto& e) { return e.first == request.key; });
  std::int64_t unused = 0;
  for (const Element& e : elements_) unused += marked_by(e, request.attempt);
  if (!log) return unused > 0;
  if (log->dequeues.count(request.key) != 0) return true;
  for (const auto& [key, e] : log->enqueues)
    if (!e.consumed) return true;
  for (const auto& [key, taken] : log->dequeues) unused -= taken.element != 0;
  return unused > 0;
}

// Its own leases and reservations fill the queue: nobody can free it but this run's commit.
std::optional<QueueState::Reply> QueueState::hopeless(Side side, const Waiter& request) const {
  if (needs_no_turn(side, request) || own_marks(request.attempt) < spec_.capacity)
    return std::nullopt;
  return Reply{0,
               failed_precondition("this run alone fills queue '" + spec_.name + "' of capacity " +
                                   std::to_string(spec_.capacity) + " and asks for more"),
               {},
               false};
}

bool QueueState::nothing_can_come(const AttemptInfo& attempt) const {
  const AttemptLog* mine = log_of(attempt);
  if (!closed_ && !(mine && mine->close && enqueuers_.empty())) return false;
  for (const Element& e : elements_)
    if (e.leased && !marked_by(e, attempt)) return false;  // may come back
  std::int64_t own = 0;
  if (mine)
    for (const auto& [key, e] : mine->enqueues) own += !e.consumed;
  return reserved() == own;
}

std::optional<QueueState::Reply> QueueState::try_op(Side side, const Waiter& request) {
  return side == Side::enqueue ? try_enqueue(request) : try_dequeue(request);
}

std::optional<QueueState::Reply> QueueState::try_enqueue(const Waiter& request) {
  if (needs_no_turn(Side::enqueue, request)) return Reply{};
  if (std::int64_t(elements_.size()) + reserved() >= spec_.capacity) return std::nullopt;
  AttemptLog& log = logs_[request.attempt.id];
  log.run = request.attempt.run;
  log.enqueues.push_back({request.key, {request.element, false}});
  return Reply{};
}

std::optional<QueueState::Reply> QueueState::try_dequeue(const Waiter& request) {
  AttemptLog& log = logs_[request.attempt.id];
  log.run = request.attempt.run;
  if (auto known = log.dequeues.find(request.key); known != log.dequeues.end())
    return Reply{0, {}, known->second.value, known->second.element == 0};
  auto used = [&](const Element& e) {
    return std::any_of(log.dequeues.begin(), log.dequeues.end(),
                       [&](const auto& taken) { return taken.second.element == e.id; });
  };
  auto take = [&](Element& e) {
    e.leased = true;
    e.run = request.attempt.run;
    e.attempt = request.attempt.id;
    log.dequeues.emplace(request.key, Dequeued{e.id, e.value});
    return Reply{0, {}, e.value, false};
  };
  for (Element& e : elements_)  // a redo gets the elements its run has marked
    if (marked_by(e, request.attempt) && !used(e)) return take(e);
  for (Element& e : elements_)
    if (!e.leased) return take(e);
  for (auto& [key, mine] : log.enqueues)
    if (!mine.consumed) {
      mine.consumed = true;
      log.dequeues.emplace(request.key, Dequeued{0, mine.value});
      return Reply{0, {}, mine.value, true};
    }
  if (!nothing_can_come(request.attempt)) return std::nullopt;
  return Reply{0,
               out_of_range("queue '" + spec_.name +
                            "' is closed and has insufficient elements (requested 1, current "
                            "size 0)"),
               {},
               false};
}

}  // namespace troupe
