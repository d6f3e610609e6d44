// QueueState: saving and loading its contents and its staged record.
#include <algorithm>
#include <set>

#include "actors/resources/queue_state.hpp"
#include "core/hash.hpp"

namespace troupe {
namespace {

constexpr const char* kQueueContents = "queue";
constexpr const char* kQueueRecord = "queue record";

}  // namespace

QueueState::Contents QueueState::contents() const {
  Contents all{next_element_, closed_ || closing_, {}};
  all.elements.assign(elements_.begin(), elements_.end());
  return all;
}

void QueueState::write(const Contents& contents, StateWriter& out) {
  out.number(contents.next_element);
  out.number(contents.closed);
  out.number(contents.elements.size());
  for (const auto& [id, value] : contents.elements) {
    out.number(id);
    out.tensors(value);
  }
}

Expected<QueueState::Contents> QueueState::read_contents(StateReader& in) const {
  Contents all;
  all.next_element = in.number();
  all.closed = in.flag();
  ElementId last = 0;
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    const ElementId id = in.number();
    if (id <= last || id >= all.next_element) in.refuse("elements that are out of order");
    last = id;
    all.elements.emplace_back(id, in.tensors());
    if (in.ok()) TROUPE_TRY(check_element(spec_, all.elements.back().second));
  }
  if (all.next_element == 0) in.refuse("elements that are counted from 0");
  if (std::int64_t(all.elements.size()) > spec_.capacity)
    return invalid_argument("queue '" + spec_.name + "' of capacity " +
                            std::to_string(spec_.capacity) + " cannot hold " +
                            std::to_string(all.elements.size()) + " elements");
  return all;
}

Expected<ResourceState> QueueState::save() const {
  StateWriter out;
  out.text(kQueueContents);
  out.number(committed_);
  write(contents(), out);
  return out.take();
}

Status QueueState::load(const ResourceState& state) {
  TROUPE_TRY(untouched());
  StateReader in(state);
  in.expect(kQueueContents);
  const CommitNumber committed = in.number();
  TROUPE_TRY(Contents all, read_contents(in));
  TROUPE_TRY(in.end());
  take_contents(std::move(all));
  committed_ = committed;
  views_.clear();
  remember_view();
  return ok_status();
}

// Omits the values of dequeued elements: the reader has the elements, too.
Expected<ResourceState> QueueState::record() const {
  if (!staged_) return nothing_staged();
  const AttemptLog& log = staged_->record;
  StateWriter out;
  out.text(kQueueRecord);
  out.staged({staged_->s, staged_->attempt, staged_->hash});
  out.run(log.run);
  out.number(log.enqueues.size());
  for (const auto& [key, entered] : log.enqueues) {
    out.key(key);
    out.number(entered.size());
    for (const Enqueued& e : entered) {
      out.number(e.consumed);
      out.tensors(e.value);
    }
  }
  out.number(log.dequeues.size());
  for (const auto& [key, taken] : log.dequeues) {
    out.key(key);
    out.number(taken.elements.size());
    for (ElementId id : taken.elements) out.number(id);
  }
  out.number(log.closes.size());
  for (const WriteKey& key : log.closes) out.key(key);
  out.number(log.cancel_pending);
  out.number(log.contents.has_value());
  if (log.contents) write(*log.contents, out);
  return out.take();
}

Expected<QueueState::AttemptLog> QueueState::read_log(StateReader& in) const {
  AttemptLog log;
  log.run = in.run();
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    log.enqueues.emplace_back(in.key(), std::vector<Enqueued>());
    for (std::uint64_t each = in.count(); each > 0 && in.ok(); --each) {
      const bool consumed = in.flag();
      Enqueued e{in.tensors(), consumed};
      if (in.ok()) TROUPE_TRY(check_element(spec_, e.value));
      log.enqueues.back().second.push_back(std::move(e));
    }
  }
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    WriteKey key = in.key();
    Dequeued taken;
    for (std::uint64_t each = in.count(); each > 0 && in.ok(); --each)
      taken.elements.push_back(in.number());
    if (!log.dequeues.emplace(std::move(key), std::move(taken)).second)
      in.refuse("a key that is there twice");
  }
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n)
    if (!log.closes.insert(in.key()).second) in.refuse("a key that is there twice");
  log.cancel_pending = in.flag();
  if (in.flag()) {
    TROUPE_TRY(log.contents, read_contents(in));
  }
  TROUPE_TRY(in.end());
  return log;
}

// Checks the log against the contents: it takes existing elements and leaves no more than fit.
Status QueueState::fits(const AttemptLog& log) const {
  std::int64_t own = 0;
  for (const auto& [key, entered] : log.enqueues)
    own += std::count_if(entered.begin(), entered.end(), [](const auto& e) { return e.consumed; });
  std::set<ElementId> taken;
  for (const auto& [key, dequeued] : log.dequeues)
    for (ElementId id : dequeued.elements) {
      if (id == 0) {
        --own;
        continue;
      }
      if (!elements_.contains(id) || !taken.insert(id).second)
        return invalid_argument("a record takes element " + std::to_string(id) + ", which queue '" +
                                spec_.name + "' does not have");
    }
  if (own != 0)
    return invalid_argument("a record does not take as many elements of its own as it says");
  if (log.contents ? !log.enqueues.empty() || !log.dequeues.empty() || !untouched().ok()
                   : std::int64_t(elements_.size()) + log.entering() > spec_.capacity)
    return invalid_argument("a record leaves more than queue '" + spec_.name + "' can hold");
  return ok_status();
}

Status QueueState::stage_record(const ResourceState& state, Outputs& out) {
  StateReader in(state);
  in.expect(kQueueRecord);
  const StagedHeader header = in.staged();
  TROUPE_TRY(AttemptLog log, read_log(in));
  TROUPE_TRY(const bool is_new, make_way(header.s, header.attempt, out));
  if (!is_new) return ok_status();
  TROUPE_TRY(fits(log));
  staged_ = Staged{header.s, header.attempt, header.hash, std::move(log)};
  return ok_status();
}

void QueueState::save_for(Request request, Outputs& out) {
  if (refuse(request, out)) return;
  hear(request.attempt, out);
  Reply reply{request.id, {}, {}, false};
  auto state = save();
  auto bytes = state.ok() ? state_tensor(*state) : Expected<Tensor>(state.status());
  reply.status = bytes.status();
  if (bytes.ok()) reply.values.push_back(std::move(bytes).value());
  out.push_back(std::move(reply));
  serve(out);
}

void QueueState::load_for(Request request, const Tensor& bytes, Outputs& out) {
  if (refuse(request, out)) return;
  hear(request.attempt, out);
  auto prepare = [&]() -> Status {
    TROUPE_TRY(const ResourceState state, state_of(bytes));
    StateReader in(state);
    in.expect(kQueueContents);
    (void)in.number();  // its commit number
    AttemptLog log;
    log.run = request.attempt.run;
    TROUPE_TRY(log.contents, read_contents(in));
    TROUPE_TRY(in.end());
    const std::uint64_t hash = hash_text(spec_.name, log.contents->next_element);
    return load_at_commit(request.attempt.id, hash, std::move(log));
  };
  out.push_back(Reply{request.id, prepare(), {}, false});
  try_stage(out);
  serve(out);
}

}  // namespace troupe
