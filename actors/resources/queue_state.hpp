// A bounded FIFO of tuples as transactions see it.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/resources/participant.hpp"
#include "actors/resources/resource.hpp"
#include "graph/op_def.hpp"

namespace troupe {

struct QueueSpec {
  std::string name;
  std::int64_t capacity = 0;         // >= 1
  std::vector<DType> dtypes;         // of the components of an element
  std::vector<PartialShape> shapes;  // empty, or one a component
};

// What a queue is asked, says and keeps.
struct QueueTypes {
  struct Request {
    std::uint64_t id = 0;
    AttemptInfo attempt;
    WriteKey key;
  };
  using Reply = ResourceReply;  // values: of a dequeue its element; of a size one i64 scalar
  using Blocked = ResourceBlocked;
  using Output = Resource::Output;
  using Outputs = std::vector<Output>;

  using ElementId = std::uint64_t;  // 0: an element of the run's own
  struct Element {
    ElementId id = 0;
    std::vector<Tensor> value;
    bool leased = false;
    RunId run;          // of the lease
    AttemptId attempt;  // that took or last confirmed it
  };
  struct Enqueued {
    std::vector<Tensor> value;
    bool consumed = false;  // by a dequeue of its own run
  };
  struct Dequeued {
    ElementId element = 0;
    std::vector<Tensor> value;
  };
  // All that is committed.
  struct Contents {
    ElementId next_element = 1;
    bool closed = false;
    std::vector<std::pair<ElementId, std::vector<Tensor>>> elements;  // oldest first
  };
  struct AttemptLog {
    RunId run;
    std::vector<std::pair<WriteKey, Enqueued>> enqueues;  // in order of reservation
    std::map<WriteKey, Dequeued> dequeues;
    std::optional<WriteKey> close;
    bool cancel_pending = false;
    std::optional<Contents> contents;  // put in the place of all else
    std::uint32_t keys() const {
      return std::uint32_t(enqueues.size() + dequeues.size() + (close ? 1 : 0));
    }
  };
};

// The machine of one queue.
//
// An Enqueue reserves room now and is visible to other runs when its run commits. A Dequeue marks
// the oldest unmarked committed element for its run; the element leaves at commit and is unmarked
// if the run ends otherwise, so nothing is lost or put back out of order. A run's own dequeues see
// its own enqueues after the committed elements. Back-pressure is a reply not yet given: requests
// wait in order of arrival on each side, and none overtakes another, except those that need no turn
// (answered before, or owed an element that only their run can have). A redo of a run gets the
// elements its earlier attempt had marked.
//
// Owned by one actor; no clock, no thread. Every input appends to `out` what has to be sent.
// Each operation carries the key that makes it idempotent; `id` is the caller's and comes back
// with the reply. A request of an attempt that is over is answered `aborted`.
class QueueState final
    : public QueueTypes,
      public Participant<QueueTypes::AttemptLog, QueueTypes::AttemptLog, QueueTypes::Output> {
 public:
  // invalid_argument for a capacity below 1, no components, or shapes of another count.
  static Status check(const QueueSpec& spec);
  // REQUIRES: check(spec).ok().
  explicit QueueState(QueueSpec spec);
  const QueueSpec& spec() const { return spec_; }
  // invalid_argument, naming both, unless `other` describes the same queue.
  Status compatible(const QueueSpec& other) const;

  // invalid_argument for another count of components, dtype or shape; cancelled once closed.
  // failed_precondition when the run's own marks fill the queue.
  void enqueue(Request request, std::vector<Tensor> element, Outputs& out);
  // out_of_range when closed and nothing can come any more.
  void dequeue(Request request, Outputs& out);
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
  std::vector<std::vector<Tensor>> elements() const;

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
    std::vector<Tensor> element;
    bool close_marker = false;  // a committed close behind pending enqueues
  };
  using Waiters = std::list<Waiter>;

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
  void submit(Side side, Request request, std::vector<Tensor> element, Outputs& out);
  std::optional<Reply> try_enqueue(const Waiter& request);
  std::optional<Reply> try_dequeue(const Waiter& request);
  std::optional<Reply> try_op(Side side, const Waiter& request);
  std::optional<Reply> hopeless(Side side, const Waiter& request) const;
  bool needs_no_turn(Side side, const Waiter& request) const;
  bool marked_by(const Element& element, const AttemptInfo& attempt) const;
  bool nothing_can_come(const AttemptInfo& attempt) const;
  const AttemptLog* log_of(const AttemptInfo& attempt) const;
  void remember_view();
  QueueView view_of(const AttemptInfo& attempt) const;
  std::int64_t own_marks(const AttemptInfo& attempt) const;
  std::int64_t reserved() const;
  Status check_element(const std::vector<Tensor>& element) const;
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
