// A bounded queue of tuples as transactions see it.
#pragma once

#include <array>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/resources/participant.hpp"
#include "actors/resources/queue_spec.hpp"
#include "actors/resources/resource.hpp"
#include "graph/op_def.hpp"

namespace troupe {

// What a queue is asked, says and keeps.
struct QueueTypes {
  struct Request {
    std::uint64_t id = 0;
    AttemptInfo attempt;
    WriteKey key;
  };
  // How many elements a dequeue takes. `batched`: stacked, as DequeueMany gives them. `up_to`: the
  // last ones of a closed queue may be fewer.
  struct Wanted {
    std::int64_t n = 1;
    bool batched = false, up_to = false;
  };
  using Reply = ResourceReply;  // values: of a dequeue what it took; of a size one i64 scalar
  using Blocked = ResourceBlocked;
  using Output = Resource::Output;
  using Outputs = std::vector<Output>;

  using ElementId = std::uint64_t;  // 0: an element of the run's own
  struct Element {
    ElementId id = 0;
    QueueElement value;
    bool leased = false;
    RunId run;               // of the lease
    AttemptId attempt;       // that took or last confirmed it
    CommitNumber drawn = 0;  // the snapshot of the attempt that took it first
  };
  struct Enqueued {
    QueueElement value;
    bool consumed = false;  // by a dequeue of its own run
  };
  struct Dequeued {
    std::vector<ElementId> elements;
    std::vector<Tensor> values;  // the answer
    bool own = false;            // some are the run's own
  };
  // All that is committed.
  struct Contents {
    ElementId next_element = 1;
    bool closed = false;
    std::vector<std::pair<ElementId, QueueElement>> elements;  // oldest first
  };
  struct AttemptLog {
    RunId run;
    std::vector<std::pair<WriteKey, std::vector<Enqueued>>> enqueues;  // in order of reservation
    std::map<WriteKey, Dequeued> dequeues;
    std::optional<WriteKey> close;
    bool cancel_pending = false;
    std::optional<Contents> contents;  // put in the place of all else
    std::uint32_t keys() const {
      return std::uint32_t(enqueues.size() + dequeues.size() + (close ? 1 : 0));
    }
    std::int64_t entering() const;  // elements that no dequeue of the run has taken
    std::int64_t leased() const;    // elements of others that its dequeues have taken
  };
};

// The machine of one queue.
//
// An Enqueue reserves room now and is visible to other runs when its run commits. A Dequeue marks
// committed elements that no run has marked for its run; they leave at commit and are unmarked if
// the run ends otherwise, so nothing is lost or put back out of order. Which ones is the queue's
// order: the oldest, those that are drawn, or those of the lowest priority. A run's own elements
// come after the committed ones, or where their priority puts them.
//
// A batch enters or leaves as a whole: nothing is reserved or marked for one that waits. So a run
// that is called off has nothing to put back, and one that asks for more than the capacity is
// refused at once.
//
// Back-pressure is a reply not yet given: requests wait in order of arrival on each side, and none
// overtakes another, except those that need no turn (answered before, or owed an element that only
// their run can have). A redo of a run gets the elements its earlier attempt had marked; from a
// queue by priority those or lower ones.
//
// Draws are a function of the seed, the queue's name, the run's snapshot and the element, so that
// neither the order of arrival nor a restart changes them.
//
// Owned by one actor; no clock, no thread. Every input appends to `out` what has to be sent.
// Each operation carries the key that makes it idempotent; `id` is the caller's and comes back
// with the reply. A request of an attempt that is over is answered `aborted`.
class QueueState final
    : public QueueTypes,
      public Participant<QueueTypes::AttemptLog, QueueTypes::AttemptLog, QueueTypes::Output> {
 public:
  // REQUIRES: spec.check().ok().
  explicit QueueState(QueueSpec spec);
  const QueueSpec& spec() const { return spec_; }
  // invalid_argument, naming both, unless `other` describes the same queue.
  Status compatible(const QueueSpec& other) const;

  // invalid_argument for another count of components, dtype or shape; cancelled once closed.
  // failed_precondition when the run's own marks fill the queue.
  void enqueue(Request request, QueueElement element, Outputs& out);
  // The rows of a batch, one after the other. Of no rows it does nothing, also once closed.
  void enqueue_many(Request request, const QueueElement& batch, Outputs& out);
  // out_of_range when closed and nothing can come any more.
  void dequeue(Request request, Outputs& out);
  // invalid_argument for an n below 0 or above the capacity, and for elements that cannot be
  // stacked; resource_exhausted when there is no memory for the batch.
  void dequeue_many(Request request, std::int64_t n, bool up_to, Outputs& out);
  // Takes effect at commit: behind the enqueues that wait then, or, with `cancel_pending`, at once
  // and cancelling them. cancelled when the queue is or is being closed already.
  void close(Request request, bool cancel_pending, Outputs& out);
  // Answers with what `look` makes of what the run finds. A read, not a write key.
  using Look = std::vector<Tensor> (*)(const QueueView&);
  void look(Request request, Look look, Outputs& out);

  void stage(const StageRequest& request, Outputs& out);  // see Participant
  void live(const LiveList& list, Outputs& out);

  bool closed() const { return closed_; }
  // The committed elements, oldest first, marked ones included (checkpoints, tests).
  std::vector<QueueElement> elements() const;

  // Resource's. A close that waits behind enqueues has happened where the state goes on: what waits
  // does not go with it.
  Expected<ResourceState> save() const;
  Status load(const ResourceState& state);
  Expected<ResourceState> record() const;
  Status stage_record(const ResourceState& state, Outputs& out);
  // The same as requests of a run: what it finds, or what the queue is to hold once it commits.
  void save_for(Request request, Outputs& out);
  void load_for(Request request, const Tensor& bytes, Outputs& out);

  // Sizes of what must be empty when nothing runs.
  struct Tables {
    std::size_t logs = 0, leases = 0, waiters = 0, staged = 0, old_views = 0;
    bool empty() const { return logs + leases + waiters + staged + old_views == 0; }
  };
  Tables tables() const;

 private:
  enum class Side : std::uint8_t { enqueue, dequeue };
  struct Waiter {
    std::vector<std::uint64_t> ids;  // a request sent again is answered once for each
    AttemptInfo attempt;
    WriteKey key;
    std::vector<QueueElement> elements;  // of an enqueue
    Wanted wanted;                       // of a dequeue
    bool close_marker = false;           // a committed close behind pending enqueues
  };
  using Waiters = std::list<Waiter>;
  // What a dequeue may take: an element of the queue, marked for its run or nobody's, or its own.
  struct Source {
    Element* committed = nullptr;
    Enqueued* own = nullptr;
    bool marked = false;
    const QueueElement& value() const { return committed ? committed->value : own->value; }
  };

  Waiters& waiters(Side side) { return side == Side::enqueue ? enqueuers_ : dequeuers_; }
  void raise_min_live(CommitNumber min_live);
  void forget_views();
  bool refuse(const Request& request, Outputs& out) const;
  bool over(const AttemptId& attempt, const RunId& run) const;
  bool over(const AttemptId& attempt, const AttemptLog& log) const override {
    return over(attempt, log.run);
  }
  void end_attempts(Outputs& out);
  void hear(const AttemptInfo& attempt, Outputs& out);
  void submit(Side side, Request request, Waiter waiter, Outputs& out);
  std::optional<Reply> try_enqueue(const Waiter& request);
  std::optional<Reply> try_dequeue(const Waiter& request);
  std::optional<Reply> try_op(Side side, const Waiter& request);
  std::optional<Reply> hopeless(Side side, const Waiter& request) const;
  bool needs_no_turn(Side side, const Waiter& request) const;
  std::set<ElementId> used_by(const AttemptLog& log) const;
  std::vector<Source> sources(const AttemptInfo& attempt, AttemptLog& log, std::int64_t n);
  void put_first(std::vector<Source>& all, std::size_t n, CommitNumber snapshot) const;
  std::array<std::uint64_t, 3> rank(const Source& source, std::uint64_t place,
                                    CommitNumber snapshot) const;
  std::int64_t kept(const AttemptLog& log) const;
  Reply take(std::span<const Source> sources, const Waiter& request, AttemptLog& log);
  bool marked_by(const Element& element, const AttemptInfo& attempt) const;
  bool nothing_can_come(const AttemptInfo& attempt) const;
  const AttemptLog* log_of(const AttemptInfo& attempt) const;
  void remember_view();
  QueueView view_of(const AttemptInfo& attempt) const;
  std::int64_t own_marks(const AttemptInfo& attempt) const;
  std::int64_t reserved() const;
  std::string name() const override { return "queue '" + spec_.name + "'"; }
  std::uint32_t keys_of(const AttemptLog& log) const override { return log.keys(); }
  Expected<std::pair<std::uint64_t, AttemptLog>> record_of(CommitNumber s, const AttemptId& attempt,
                                                           AttemptLog log) override;
  Status commit(CommitNumber s, const AttemptId& attempt, AttemptLog log, Outputs& out) override;
  void take_contents(Contents contents);
  Contents contents() const;
  static void write(const Contents& contents, StateWriter& out);
  Expected<Contents> read_contents(StateReader& in) const;
  Expected<AttemptLog> read_log(StateReader& in) const;
  Status fits(const AttemptLog& log) const;
  void commit_close(bool cancel_pending, Outputs& out);
  bool serve_side(Side side, Outputs& out);
  void serve(Outputs& out);
  void report_blocked(Outputs& out);
  std::string plight() const;

  const QueueSpec spec_;
  const std::uint64_t draws_;     // what is drawn by
  std::deque<Element> elements_;  // committed, oldest first
  ElementId next_element_ = 1;
  std::map<CommitNumber, QueueView> views_;  // after each commit a snapshot may still ask for
  CommitNumber min_live_ = 0;
  bool closed_ = false;   // nothing more is accepted
  bool closing_ = false;  // a committed close waits behind pending enqueues
  std::map<std::uint64_t, AttemptId> session_from_;  // what requests said beyond the last LiveList
  Waiters enqueuers_, dequeuers_;                    // in order of arrival
  Blocked reported_;
};

}  // namespace troupe
