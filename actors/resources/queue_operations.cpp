// QueueState: tries one enqueue or dequeue against the elements, marks and reservations.
#include <algorithm>

#include "actors/resources/queue_state.hpp"
#include "core/hash.hpp"

namespace troupe {

const QueueState::AttemptLog* QueueState::log_of(const AttemptInfo& attempt) const {
  return find_log(attempt.id);
}

bool QueueState::marked_by(const Lease& lease, const AttemptInfo& attempt) const {
  return lease.run == attempt.run && lease.attempt.view == attempt.id.view &&
         lease.attempt.a >= attempt.marks_from;
}

std::int64_t QueueState::marks(const AttemptInfo& attempt) const {
  return std::count_if(leases_.begin(), leases_.end(),
                       [&](const auto& entry) { return marked_by(entry.second, attempt); });
}

std::int64_t QueueState::own_marks(const AttemptInfo& attempt) const {
  std::int64_t n = marks(attempt);
  if (const AttemptLog* log = log_of(attempt)) n += log->entering();
  return n;
}

std::int64_t QueueState::reserved() const {
  std::int64_t n = 0;
  for (const auto& [attempt, log] : logs_) n += log.entering();
  if (staged_) n += staged_->record.entering();
  return n;
}

// The committed elements that its dequeues have taken.
std::set<QueueState::ElementId> QueueState::used_by(const AttemptLog& log) const {
  std::set<ElementId> used;
  for (const auto& [key, taken] : log.dequeues)
    for (ElementId id : taken.elements)
      if (id != 0) used.insert(id);
  return used;
}

// True for a request that was answered before, that asks for no elements, or that can get what no
// other run can have (elements marked by an earlier attempt, or its own): it need not wait for
// others.
bool QueueState::needs_no_turn(Side side, const Waiter& request) const {
  const AttemptLog* log = log_of(request.attempt);
  if (side == Side::enqueue)
    return request.elements.empty() ||
           (log && std::any_of(log->enqueues.begin(), log->enqueues.end(),
                               [&](const auto& e) { return e.first == request.key; }));
  if (request.wanted.n == 0) return true;
  const std::int64_t unused = marks(request.attempt);
  if (!log) return unused > 0;
  return log->dequeues.count(request.key) != 0 || log->entering() > 0 || unused > log->leased();
}

// Fails a request if the run's own leases and reservations fill the queue: only its commit could
// make room. Dequeues of a closed queue are excepted, and of one that the run itself has closed.
std::optional<QueueState::Reply> QueueState::hopeless(Side side, const Waiter& request) const {
  const AttemptLog* log = log_of(request.attempt);
  if (side == Side::enqueue) {
    if (needs_no_turn(side, request) ||
        own_marks(request.attempt) + std::int64_t(request.elements.size()) <= spec_.capacity)
      return std::nullopt;
  } else {
    const bool closes = log && !log->closes.empty() && enqueuers_.empty();
    if (closed_ || closes || !log || log->dequeues.count(request.key) != 0 ||
        request.wanted.n <= spec_.capacity - log->leased())
      return std::nullopt;
  }
  return Reply{0,
               failed_precondition("this run alone fills queue '" + spec_.name + "' of capacity " +
                                   std::to_string(spec_.capacity) + " and asks for more"),
               {},
               false};
}

bool QueueState::nothing_can_come(const AttemptInfo& attempt) const {
  const AttemptLog* mine = log_of(attempt);
  if (!closed_ && !(mine && !mine->closes.empty() && enqueuers_.empty())) return false;
  // Elements marked by others may be unmarked again.
  if (marks(attempt) < std::int64_t(leases_.size())) return false;
  return reserved() == (mine ? mine->entering() : 0);
}

std::optional<QueueState::Reply> QueueState::try_op(Side side, const Waiter& request) {
  return side == Side::enqueue ? try_enqueue(request) : try_dequeue(request);
}

std::optional<QueueState::Reply> QueueState::try_enqueue(const Waiter& request) {
  AttemptLog& log = logs_[request.attempt.id];
  log.run = request.attempt.run;
  for (const auto& [key, entered] : log.enqueues)
    if (key == request.key) return Reply{};
  const auto n = std::int64_t(request.elements.size());
  if (n > 0 && std::int64_t(elements_.size()) + reserved() + n > spec_.capacity)
    return std::nullopt;
  std::vector<Enqueued> entered;
  for (const QueueElement& element : request.elements) entered.push_back({element, false});
  log.enqueues.emplace_back(request.key, std::move(entered));
  return Reply{};
}

std::optional<QueueState::Reply> QueueState::try_dequeue(const Waiter& request) {
  AttemptLog& log = logs_[request.attempt.id];
  log.run = request.attempt.run;
  if (auto known = log.dequeues.find(request.key); known != log.dequeues.end())
    return Reply{0, {}, known->second.values, known->second.own};
  std::int64_t n = request.wanted.n;
  if (n == 0) return take({}, request, log, false);
  std::vector<Source> all = sources(request.attempt, log, n);
  const auto there = std::int64_t(all.size());
  if (there - kept(log) < n) {
    if (!nothing_can_come(request.attempt)) return std::nullopt;
    if (!request.wanted.up_to || there == 0)
      return Reply{
          0,
          out_of_range("queue '" + spec_.name +
                       "' is closed and has insufficient elements (requested " + std::to_string(n) +
                       ", current size " + std::to_string(there) + ")"),
          {},
          false};
    n = there;
  }
  put_first(all, std::size_t(n), request.attempt.snapshot);
  // What it could not have from an open queue: if others put elements in before its close commits,
  // it has to see them.
  const bool by_own_close = !log.closes.empty() && !closed_ && !closing_ &&
                            there - spec_.min_after_dequeue < request.wanted.n;
  return take(std::span(all).first(std::size_t(n)), request, log, by_own_close);
}

// The number of elements that must stay in the queue, for others to draw from.
std::int64_t QueueState::kept(const AttemptLog& log) const {
  return closed_ || closing_ || !log.closes.empty() ? 0 : spec_.min_after_dequeue;
}

// First the elements that an earlier attempt of the run has marked, then unmarked ones, then the
// run's own; each oldest first. For a FIFO queue only the first `n`.
std::vector<QueueState::Source> QueueState::sources(const AttemptInfo& attempt, AttemptLog& log,
                                                    std::int64_t n) {
  const std::set<ElementId> used = used_by(log);
  std::vector<Source> all;
  const auto enough = [&] {
    return spec_.order == QueueSpec::Order::fifo && std::int64_t(all.size()) == n;
  };
  for (auto l = leases_.begin(); l != leases_.end() && !enough(); ++l)
    if (marked_by(l->second, attempt) && !used.contains(l->first))
      all.push_back({.id = l->first, .value = &elements_.at(l->first), .mark = &l->second});
  auto lease = leases_.begin();
  for (auto e = elements_.begin(); e != elements_.end() && !enough(); ++e) {
    if (lease != leases_.end() && lease->first == e->first)
      ++lease;
    else
      all.push_back({.id = e->first, .value = &e->second});
  }
  for (auto& [key, entered] : log.enqueues)
    for (Enqueued& e : entered)
      if (!e.consumed && !enough()) all.push_back({.value = &e.value, .own = &e});
  return all;
}

// The lowest rank is taken first. `place`: the source's index.
std::array<std::uint64_t, 3> QueueState::rank(const Source& source, std::uint64_t place,
                                              CommitNumber snapshot) const {
  if (spec_.order == QueueSpec::Order::priority) {
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;  // orders negative numbers first
    return {std::uint64_t(priority_of(*source.value)) ^ kSign, source.own != nullptr,
            source.own ? place : source.id};
  }
  if (source.own) return {2, place, 0};
  const std::uint64_t commit = source.mark ? source.mark->drawn : snapshot;
  const std::uint64_t draw = hash_combine(hash_combine(draws_, commit), source.id);
  return {source.mark ? 0u : 1u, draw, source.id};
}

// Moves the next `n` sources to the front, in order.
void QueueState::put_first(std::vector<Source>& all, std::size_t n, CommitNumber snapshot) const {
  if (spec_.order == QueueSpec::Order::fifo) return;
  std::vector<std::pair<std::array<std::uint64_t, 3>, Source>> ranked;
  ranked.reserve(all.size());
  for (const Source& source : all)
    ranked.emplace_back(rank(source, ranked.size(), snapshot), source);
  std::partial_sort(ranked.begin(), ranked.begin() + std::ptrdiff_t(n), ranked.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < n; ++i) all[i] = ranked[i].second;
}

// Takes nothing if there is no memory for the batch.
QueueState::Reply QueueState::take(std::span<const Source> sources, const Waiter& request,
                                   AttemptLog& log, bool own) {
  Dequeued taken;
  taken.own = own;
  if (request.wanted.batched) {
    std::vector<const QueueElement*> values;
    for (const Source& source : sources) values.push_back(source.value);
    auto batch = batch_of(spec_, values);
    if (!batch.ok()) return Reply{0, batch.status(), {}, false};
    taken.values = std::move(batch).value();
  } else {
    taken.values = *sources.front().value;
  }
  for (const Source& source : sources) {
    taken.elements.push_back(source.id);
    if (source.own) {
      source.own->consumed = taken.own = true;
      continue;
    }
    const CommitNumber drawn = source.mark ? source.mark->drawn : request.attempt.snapshot;
    leases_[source.id] = {request.attempt.run, request.attempt.id, drawn};
  }
  Reply reply{0, {}, taken.values, taken.own};
  log.dequeues.emplace(request.key, std::move(taken));
  return reply;
}

}  // namespace troupe
