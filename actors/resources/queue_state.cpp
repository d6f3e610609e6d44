#include "actors/resources/queue_state.hpp"

#include <algorithm>
#include <map>

#include "core/hash.hpp"

namespace troupe {
namespace {

std::uint64_t hash_key(std::uint64_t h, const WriteKey& key) {
  h = hash_combine(hash_combine(h, key.node), key.replica);
  for (std::int64_t i : key.iterations) h = hash_combine(h, std::uint64_t(i));
  return h;
}

}  // namespace

QueueState::QueueState(QueueSpec spec)
    : spec_(std::move(spec)), draws_(hash_text(spec_.name, spec_.seed)) {
  TROUPE_CHECK(spec_.check().ok(), "the specification was checked");
}

Status QueueState::compatible(const QueueSpec& other) const {
  if (spec_ == other) return ok_status();
  return invalid_argument(spec_.text() + " is shared by a node that declares " + other.text());
}

std::int64_t QueueTypes::AttemptLog::entering() const {
  std::int64_t n = 0;
  for (const auto& [key, entered] : enqueues)
    n += std::count_if(entered.begin(), entered.end(),
                       [](const Enqueued& e) { return !e.consumed; });
  return n;
}

std::int64_t QueueTypes::AttemptLog::leased() const {
  std::int64_t n = 0;
  for (const auto& [key, taken] : dequeues)
    n += std::count_if(taken.elements.begin(), taken.elements.end(),
                       [](ElementId id) { return id != 0; });
  return n;
}

// Replicas do not wait for each other: what one puts in before its own close enters, although
// another one has closed the queue by then.
bool QueueTypes::AttemptLog::closed_to(std::uint32_t replica) const {
  return closed_for_all || std::any_of(closes.begin(), closes.end(),
                                       [&](const WriteKey& key) { return key.replica == replica; });
}

// ------------------------------------------------------------------ requests

bool QueueState::refuse(const Request& request, Outputs& out) const {
  if (!over(request.attempt.id, request.attempt.run)) return false;
  out.push_back(
      Reply{request.id, aborted("attempt " + request.attempt.id.text() + " is over"), {}, false});
  return true;
}

void QueueState::hear(const AttemptInfo& attempt, Outputs& out) {
  raise_min_live(attempt.min_live);
  learn(attempt.snapshot, out);
  AttemptId& from = session_from_[attempt.run.session];
  const AttemptId said{attempt.id.view, attempt.session_from};
  // A staged attempt that was over when this one began is not decided, and never will be.
  if (staged_ && staged_->record.run.session == attempt.run.session && staged_->attempt < said)
    drop_staged();
  if (said <= from) return;
  from = said;
  end_attempts(out);
}

bool QueueState::over(const AttemptId& attempt, const RunId& run) const {
  auto from = session_from_.find(run.session);
  return live_.over(attempt) || (from != session_from_.end() && attempt < from->second);
}

void QueueState::raise_min_live(CommitNumber min_live) {
  min_live_ = std::max(min_live_, min_live);
  forget_views();
}

// Drops views that can no longer be read.
void QueueState::forget_views() {
  for (auto view = views_.begin(); view != views_.end();) {
    const auto next = std::next(view);
    if (next != views_.end() && !live_.may_read(std::max(view->first, min_live_), next->first))
      views_.erase(view);
    view = next;
  }
}

void QueueState::enqueue(Request request, QueueElement element, Outputs& out) {
  if (Status s = check_element(spec_, element); !s.ok()) {
    out.push_back(Reply{request.id, s, {}, false});
    return;
  }
  Waiter waiter;
  waiter.elements.push_back(std::move(element));
  submit(Side::enqueue, std::move(request), std::move(waiter), out);
}

void QueueState::enqueue_many(Request request, const QueueElement& batch, Outputs& out) {
  Waiter waiter;
  auto take_apart = [&]() -> Status {
    TROUPE_TRY(waiter.elements, elements_of(spec_, batch));
    for (const QueueElement& element : waiter.elements) TROUPE_TRY(check_element(spec_, element));
    return ok_status();
  };
  if (Status s = take_apart(); !s.ok()) {
    out.push_back(Reply{request.id, s, {}, false});
    return;
  }
  submit(Side::enqueue, std::move(request), std::move(waiter), out);
}

void QueueState::dequeue(Request request, Outputs& out) {
  submit(Side::dequeue, std::move(request), {}, out);
}

void QueueState::dequeue_many(Request request, std::int64_t n, bool up_to, Outputs& out) {
  Status status = check_batches(spec_);
  if (n < 0) status = invalid_argument("n must be at least 0, not " + std::to_string(n));
  if (n > spec_.capacity)
    status = invalid_argument(std::to_string(n) + " elements are asked of queue '" + spec_.name +
                              "' of capacity " + std::to_string(spec_.capacity));
  if (!status.ok()) {
    out.push_back(Reply{request.id, status, {}, false});
    return;
  }
  Waiter waiter;
  waiter.wanted = {n, true, up_to};
  submit(Side::dequeue, std::move(request), std::move(waiter), out);
}

void QueueState::submit(Side side, Request request, Waiter waiter, Outputs& out) {
  if (refuse(request, out)) return;
  hear(request.attempt, out);
  Waiters& waiting = waiters(side);
  for (Waiter& w : waiting)
    if (!w.close_marker && w.attempt.id == request.attempt.id && w.key == request.key) {
      w.ids.push_back(request.id);  // a repetition
      return;
    }
  const AttemptLog* log = log_of(request.attempt);
  waiter.ids = {request.id};
  waiter.attempt = request.attempt;
  waiter.key = std::move(request.key);
  const bool no_turn = needs_no_turn(side, waiter);
  std::optional<Reply> reply = hopeless(side, waiter);
  if (!reply && side == Side::enqueue && !no_turn &&
      (closed_ || closing_ || (log && log->closed_to(waiter.key.replica))))
    reply = Reply{0, cancelled("queue '" + spec_.name + "' is closed"), {}, false};
  if (!reply && (waiting.empty() || no_turn)) reply = try_op(side, waiter);
  if (reply) {
    reply->id = request.id;
    out.push_back(std::move(*reply));
    try_stage(out);
  } else {
    waiting.push_back(std::move(waiter));
  }
  serve(out);
}

void QueueState::close(Request request, bool cancel_pending, Outputs& out, bool of_replica) {
  if (refuse(request, out)) return;
  hear(request.attempt, out);
  AttemptLog& log = logs_[request.attempt.id];
  log.run = request.attempt.run;
  Status status;
  const auto by_another_node = [&](const WriteKey& key) {
    return key.node != request.key.node || key.replica == request.key.replica;
  };
  if (log.closes.contains(request.key)) {
    // a repetition
  } else if (closed_ || closing_ ||
             std::any_of(log.closes.begin(), log.closes.end(), by_another_node)) {
    status = cancelled("queue '" + spec_.name + "' is already closed");
  } else {
    log.closes.insert(request.key);
    log.closed_for_all |= !of_replica;
    log.cancel_pending = cancel_pending;
  }
  out.push_back(Reply{request.id, status, {}, false});
  try_stage(out);
  serve(out);
}

void QueueState::look(Request request, Look look, Outputs& out) {
  if (refuse(request, out)) return;
  hear(request.attempt, out);
  out.push_back(Reply{request.id, ok_status(), look(view_of(request.attempt)), false});
  serve(out);
}

QueueView QueueState::view_of(const AttemptInfo& attempt) const {
  auto after = views_.upper_bound(attempt.snapshot);
  QueueView view = after == views_.begin() ? QueueView{} : std::prev(after)->second;
  view.capacity = spec_.capacity;
  if (const AttemptLog* log = log_of(attempt)) {
    view.size += log->entering() - log->leased();
    view.closed |= !log->closes.empty();
  }
  return view;
}

void QueueState::remember_view() {
  views_[committed_] = {std::int64_t(elements_.size()), spec_.capacity, closed_ || closing_};
}

// ------------------------------------------------------------------ staging and committing

// A withdrawn attempt leaves its marks for the next attempt, as long as LiveLists keep them.
void QueueState::stage(const StageRequest& request, Outputs& out) {
  raise_min_live(request.min_live);
  Participant::stage(request, out);
  end_attempts(out);
  serve(out);
}

// Elements arrive as devices and networks have it. What waits for another element does so in each
// replica, so the elements of a node begin where its first one did, in the order of replicas.
void QueueState::order_copies(AttemptLog& log) {
  using Node = std::pair<std::uint32_t, std::vector<std::int64_t>>;
  std::map<Node, std::size_t> first;
  const auto place = [&](const WriteKey& key) {
    return std::pair(first.try_emplace(Node(key.node, key.iterations), first.size()).first->second,
                     key.replica);
  };
  for (const auto& [key, entered] : log.enqueues) place(key);
  std::stable_sort(log.enqueues.begin(), log.enqueues.end(),
                   [&](const auto& a, const auto& b) { return place(a.first) < place(b.first); });
}

Expected<std::pair<std::uint64_t, QueueState::AttemptLog>> QueueState::record_of(CommitNumber,
                                                                                 const AttemptId&,
                                                                                 AttemptLog log) {
  order_copies(log);
  std::uint64_t hash = 0;
  for (const auto& [key, entered] : log.enqueues) {
    hash = hash_key(hash, key);
    for (const Enqueued& e : entered) hash = hash_combine(hash, e.consumed);
  }
  for (const auto& [key, taken] : log.dequeues) {
    hash = hash_key(hash, key);
    for (ElementId id : taken.elements) hash = hash_combine(hash, id);
  }
  for (const WriteKey& key : log.closes) hash = hash_key(hash, key);
  return std::pair{hash, std::move(log)};
}

void QueueState::take_contents(Contents contents) {
  leases_.clear();
  elements_.clear();
  for (auto& [id, value] : contents.elements)
    elements_.emplace_hint(elements_.end(), id, std::move(value));
  next_element_ = contents.next_element;
  closed_ = contents.closed;
}

Status QueueState::commit(CommitNumber, const AttemptId&, AttemptLog log, Outputs& out) {
  if (log.contents) take_contents(*std::exchange(log.contents, {}));
  for (const ElementId id : used_by(log)) {
    elements_.erase(id);
    leases_.erase(id);
  }
  // Those that an earlier attempt has marked and this one has not taken.
  std::erase_if(leases_, [&](const auto& entry) { return entry.second.run == log.run; });
  for (auto& [key, entered] : log.enqueues)
    for (Enqueued& e : entered)
      if (!e.consumed) elements_.emplace_hint(elements_.end(), next_element_++, std::move(e.value));
  if (!log.closes.empty()) commit_close(log.cancel_pending, out);
  remember_view();
  raise_min_live(min_live_);
  return ok_status();
}

void QueueState::commit_close(bool cancel_pending, Outputs& out) {
  if (closed_) return;
  if (cancel_pending) {
    for (const Waiter& w : enqueuers_)
      for (std::uint64_t id : w.ids)
        out.push_back(Reply{id, cancelled("queue '" + spec_.name + "' was closed"), {}, false});
    enqueuers_.clear();
    closing_ = false;
  }
  if (enqueuers_.empty()) {
    closed_ = true;
  } else if (!closing_) {
    closing_ = true;
    enqueuers_.emplace_back().close_marker = true;
  }
}

void QueueState::live(const LiveList& list, Outputs& out) {
  if (list.newer_than(live_)) raise_min_live(list.min_live);
  if (!note(list, out)) return;
  forget_views();
  std::erase_if(session_from_, [&](const auto& entry) {
    return entry.second.view < list.view || entry.second.a <= list.next_a;
  });
  end_attempts(out);
  serve(out);
}

// Drops the logs, waiters and marks of attempts that are over.
void QueueState::end_attempts(Outputs& out) {
  drop_over();
  std::erase_if(leases_, [&](const auto& entry) {
    const Lease& lease = entry.second;
    if (staged_ && staged_->record.run == lease.run) return false;
    auto from = session_from_.find(lease.run.session);
    return lease.attempt.view < live_.view || !live_.keeps_marks(lease.run, lease.attempt.a) ||
           (from != session_from_.end() && lease.attempt < from->second);
  });
  for (Waiters* side : {&enqueuers_, &dequeuers_})
    std::erase_if(*side, [&](const Waiter& w) {
      if (w.close_marker || !over(w.attempt.id, w.attempt.run)) return false;
      for (std::uint64_t id : w.ids)
        out.push_back(Reply{id, aborted("attempt " + w.attempt.id.text() + " is over"), {}, false});
      return true;
    });
}

// ------------------------------------------------------------------ waiting

// True if a request was served. One that cannot be served blocks all later ones, except those that
// need no turn.
bool QueueState::serve_side(Side side, Outputs& out) {
  bool served = false, held_up = false;
  Waiters& waiting = waiters(side);
  for (auto w = waiting.begin(); w != waiting.end();) {
    if (w->close_marker) {
      if (held_up) break;
      closed_ = true;
      closing_ = false;
      w = waiting.erase(w);
      served = true;
      continue;
    }
    std::optional<Reply> reply = hopeless(side, *w);
    if (!reply && (!held_up || needs_no_turn(side, *w))) reply = try_op(side, *w);
    if (!reply) {
      held_up = true;
      ++w;
      continue;
    }
    for (std::uint64_t id : w->ids) {
      reply->id = id;
      out.push_back(*reply);
    }
    w = waiting.erase(w);
    served = true;
  }
  return served;
}

void QueueState::serve(Outputs& out) {
  bool again = true, any = false;
  while (again) {
    again = serve_side(Side::enqueue, out);
    again |= serve_side(Side::dequeue, out);
    any |= again;
  }
  if (any) try_stage(out);
  report_blocked(out);
}

void QueueState::report_blocked(Outputs& out) {
  Blocked now;
  for (const Waiters* side : {&enqueuers_, &dequeuers_})
    for (const Waiter& w : *side)
      if (!w.close_marker) now.waiting.push_back(w.attempt.id);
  if (!now.waiting.empty()) {
    for (const auto& [id, lease] : leases_) now.marked.push_back(lease.run);
    for (const auto& [attempt, log] : logs_)
      if (log.entering() > 0) now.marked.push_back(log.run);
    std::sort(now.waiting.begin(), now.waiting.end());
    std::sort(now.marked.begin(), now.marked.end());
    now.waiting.erase(std::unique(now.waiting.begin(), now.waiting.end()), now.waiting.end());
    now.marked.erase(std::unique(now.marked.begin(), now.marked.end()), now.marked.end());
    now.why = plight();
  }
  if (now == reported_) return;
  reported_ = now;
  out.push_back(std::move(now));
}

// Why requests wait, in words. Without counts, which would make each report different.
std::string QueueState::plight() const {
  const auto waits = [](const Waiters& side) {
    return std::any_of(side.begin(), side.end(), [](const Waiter& w) { return !w.close_marker; });
  };
  const bool all_marked = leases_.size() == elements_.size();
  std::string text;
  if (waits(dequeuers_)) {
    text = elements_.empty() ? "is empty"
           : all_marked      ? "has only elements that runs under way have taken"
                             : "has fewer elements than are asked for";
    if (!elements_.empty() && !closed_ && !closing_ && spec_.min_after_dequeue > 0)
      text += " beside the " + std::to_string(spec_.min_after_dequeue) + " that stay";
  }
  if (waits(enqueuers_)) {
    const bool full = std::int64_t(elements_.size()) + reserved() >= spec_.capacity;
    text += (text.empty() ? "" : " and ") + std::string(full ? "is full" : "has too little room") +
            " (capacity " + std::to_string(spec_.capacity) + ")";
  }
  return closing_ ? text + " and is being closed" : text;
}

// ------------------------------------------------------------------ looking at it

std::vector<QueueElement> QueueState::elements() const {
  std::vector<QueueElement> all;
  for (const auto& [id, value] : elements_) all.push_back(value);
  return all;
}

QueueState::Tables QueueState::tables() const {
  Tables t;
  t.logs = logs_.size();
  t.staged = staged_count();
  t.old_views = views_.empty() ? 0 : views_.size() - 1;
  t.waiters = enqueuers_.size() + dequeuers_.size();
  t.leases = leases_.size();
  return t;
}

}  // namespace troupe
