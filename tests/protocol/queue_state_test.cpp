#include "actors/resources/queue_state.hpp"

#include <doctest/doctest.h>

using namespace troupe;

namespace {

struct QueueFixture {
  explicit QueueFixture(QueueSpec spec = {"q", 2, {DType::i64}, {}}) : queue(std::move(spec)) {}
  QueueState queue;
  QueueState::Outputs out;
  std::uint64_t next_id = 1, sequence = 1;
  std::uint32_t next_node = 1;
  CommitNumber decided = 0;
  std::vector<LiveAttempt> alive;

  static AttemptInfo attempt(std::uint64_t a) { return {{1, a}, {1, a}, 0, a, 0, 0}; }
  QueueState::Request request(const AttemptInfo& a) { return {next_id++, a, {next_node++, 0, {}}}; }
  std::uint64_t enqueue(const AttemptInfo& a, std::int64_t x) {
    auto r = request(a);
    queue.enqueue(r, {Tensor::scalar<std::int64_t>(x)}, out);
    return r.id;
  }
  std::uint64_t dequeue(const AttemptInfo& a) {
    auto r = request(a);
    queue.dequeue(r, out);
    return r.id;
  }
  std::uint64_t close(const AttemptInfo& a, bool cancel = false) {
    auto r = request(a);
    queue.close(r, cancel, out);
    return r.id;
  }
  const QueueState::Reply* reply(std::uint64_t id) {
    for (auto& o : out)
      if (auto* r = std::get_if<QueueState::Reply>(&o); r && r->id == id) return r;
    return nullptr;
  }
  bool waits(std::uint64_t id) { return reply(id) == nullptr; }
  Code code(std::uint64_t id) {
    REQUIRE(reply(id) != nullptr);
    return reply(id)->status.code();
  }
  std::int64_t value(std::uint64_t id) {
    REQUIRE(reply(id) != nullptr);
    REQUIRE(reply(id)->status.ok());
    return reply(id)->values[0].item<std::int64_t>();
  }
  void commit(const AttemptInfo& a, std::uint32_t keys, std::uint64_t next_a = 100) {
    queue.stage({decided + 1, a.id, keys, 0}, out);
    ++decided;
    live(next_a);
  }
  // Every attempt below is over.
  void live(std::uint64_t next_a = 100) {
    queue.live({1, sequence++, decided, 0, next_a, alive}, out);
  }
  void fill(std::initializer_list<std::int64_t> elements) {
    auto a = attempt(decided + 1);
    for (std::int64_t x : elements) enqueue(a, x);
    commit(a, std::uint32_t(elements.size()), decided + 2);
  }
  QueueState::Blocked last_blocked() {
    QueueState::Blocked last;
    for (auto& o : out)
      if (auto* b = std::get_if<QueueState::Blocked>(&o)) last = *b;
    return last;
  }
};
struct LongQueueFixture : QueueFixture {
  LongQueueFixture() : QueueFixture({"q", 10, {DType::i64}, {PartialShape::scalar()}}) {}
};
// Attempts above 100 are not yet started as far as the lists of this fixture say.
AttemptInfo newer(std::uint64_t a) { return QueueFixture::attempt(100 + a); }

}  // namespace

TEST_CASE_FIXTURE(QueueFixture, "a dequeue waits for the next committed enqueue") {
  auto wanted = dequeue(newer(1));
  CHECK(waits(wanted));
  CHECK(last_blocked().waiting.size() == 1);
  enqueue(newer(2), 7);
  CHECK(waits(wanted));  // not committed yet
  queue.stage({1, newer(2).id, 1, 0}, out);
  CHECK(waits(wanted));  // not decided yet
  decided = 1;
  live();
  CHECK(value(wanted) == 7);
  CHECK(last_blocked().waiting.empty());
}

TEST_CASE_FIXTURE(QueueFixture, "an enqueue waits for room, which a commit frees") {
  fill({1, 2});
  auto a = newer(1), b = newer(2);
  auto extra = enqueue(b, 3);
  CHECK(waits(extra));
  CHECK(value(dequeue(a)) == 1);
  CHECK(waits(extra));  // the element may yet come back
  commit(a, 1);
  CHECK(code(extra) == Code::ok);
}

TEST_CASE_FIXTURE(QueueFixture, "an element of an aborted run goes back to its place") {
  fill({1, 2});
  auto a = attempt(5);
  CHECK(value(dequeue(a)) == 1);
  auto b = newer(1);
  CHECK(value(dequeue(b)) == 2);
  live();  // a is over
  auto c = newer(2);
  CHECK(value(dequeue(c)) == 1);
  CHECK(queue.elements().size() == 2);
  CHECK(queue.tables().leases == 2);
}

TEST_CASE_FIXTURE(QueueFixture, "a waiter of an aborted run is answered and forgotten") {
  auto a = attempt(5);
  auto wanted = dequeue(a);
  live();
  CHECK(code(wanted) == Code::aborted);
  CHECK(code(dequeue(a)) == Code::aborted);
  CHECK(queue.tables().empty());
}

TEST_CASE_FIXTURE(QueueFixture, "nobody overtakes on one side") {
  fill({1, 2});
  auto a = newer(1), b = newer(2), c = newer(3);
  dequeue(a);
  dequeue(a);
  auto first = dequeue(b), second = dequeue(c);
  live();  // a stays: it is above the list
  CHECK(waits(first));
  LiveList list{1, 50, decided, 0, 102, {}};  // now a is over
  queue.live(list, out);
  CHECK(value(first) == 1);
  CHECK(value(second) == 2);
}

TEST_CASE_FIXTURE(QueueFixture, "a run sees its own elements after the committed ones") {
  fill({1});
  auto a = newer(1);
  enqueue(a, 9);
  auto one = dequeue(a), two = dequeue(a);
  CHECK(value(one) == 1);
  CHECK_FALSE(reply(one)->own);
  CHECK(value(two) == 9);
  CHECK(reply(two)->own);
  commit(a, 3);
  CHECK(queue.elements().empty());
}

TEST_CASE_FIXTURE(LongQueueFixture,
                  "what replicas put in is in their order, whichever came first") {
  auto a = newer(1);
  const auto put = [&](std::uint32_t node, std::uint32_t replica, std::int64_t x) {
    queue.enqueue({next_id++, a, {node, replica, {}}}, {Tensor::scalar<std::int64_t>(x)}, out);
  };
  put(7, 2, 12), put(7, 0, 10), put(3, 0, 20), put(7, 1, 11), put(3, 2, 22), put(3, 1, 21);
  commit(a, 6);
  auto b = newer(2);
  for (std::int64_t x : {10, 11, 12, 20, 21, 22}) CHECK(value(dequeue(b)) == x);
}

TEST_CASE_FIXTURE(LongQueueFixture, "what a run gets since it has closed the queue is its own") {
  fill({1});
  auto a = newer(1);
  close(a);
  auto r = request(a);
  queue.dequeue_many(r, 5, true, out);
  REQUIRE(reply(r.id) != nullptr);
  REQUIRE(reply(r.id)->status.ok());
  CHECK(reply(r.id)->own);  // an element that enters before it commits is not among them
  auto b = newer(2);
  auto first = dequeue(b);
  CHECK(waits(first));
  CHECK_FALSE(reply(enqueue(b, 2))->own);
}

TEST_CASE_FIXTURE(LongQueueFixture, "a run that closes a full queue takes all that is in it") {
  fill({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  auto a = newer(1);
  close(a);
  auto first = request(a), rest = request(a), more = request(a);
  queue.dequeue_many(first, 6, true, out);
  queue.dequeue_many(rest, 6, true, out);
  queue.dequeue_many(more, 6, true, out);
  REQUIRE(code(first.id) == Code::ok);
  REQUIRE(code(rest.id) == Code::ok);
  CHECK(reply(rest.id)->values[0].dim(0) == 4);
  CHECK(code(more.id) == Code::out_of_range);
  CHECK(code(dequeue(a)) == Code::out_of_range);
  commit(a, 3);
  CHECK(queue.closed());
  CHECK(queue.elements().empty());
}

TEST_CASE_FIXTURE(QueueFixture, "replicas of one node close the queue together") {
  auto a = newer(1);
  std::vector<std::uint64_t> ids;
  const auto closes = [&](std::uint32_t node, std::uint32_t replica) {
    ids.push_back(next_id++);
    queue.close({ids.back(), a, {node, replica, {}}}, false, out);
    return code(ids.back());
  };
  CHECK(closes(7, 1) == Code::ok);
  CHECK(closes(7, 0) == Code::ok);
  CHECK(closes(8, 0) == Code::cancelled);  // another node
  commit(a, 2);
  CHECK(queue.closed());
  a = newer(2);
  CHECK(closes(7, 0) == Code::cancelled);
}

TEST_CASE_FIXTURE(LongQueueFixture, "each replica may put elements in until it closes the queue") {
  auto a = newer(1);
  const auto put = [&](std::uint32_t node, std::uint32_t replica) {
    const std::uint64_t id = next_id++;
    queue.enqueue({id, a, {node, replica, {}}}, {Tensor::scalar<std::int64_t>(replica)}, out);
    return code(id);
  };
  const auto closes = [&](std::uint32_t replica, std::vector<std::int64_t> iterations) {
    const std::uint64_t id = next_id++;
    queue.close({id, a, {7, replica, std::move(iterations)}}, false, out, true);
    return code(id);
  };
  CHECK(put(3, 0) == Code::ok);
  CHECK(closes(0, {1}) == Code::ok);
  CHECK(closes(0, {2}) == Code::cancelled);
  CHECK(put(4, 0) == Code::cancelled);
  CHECK(put(3, 1) == Code::ok);
  CHECK(closes(1, {2}) == Code::ok);
  CHECK(put(4, 1) == Code::cancelled);
  commit(a, 4);
  CHECK(queue.closed());
  CHECK(queue.elements().size() == 2);
}

TEST_CASE_FIXTURE(LongQueueFixture, "a close for all replicas lets none of them put elements in") {
  auto a = newer(1);
  CHECK(code(close(a)) == Code::ok);
  const std::uint64_t id = next_id++;
  queue.enqueue({id, a, {3, 1, {}}}, {Tensor::scalar<std::int64_t>(1)}, out);
  CHECK(code(id) == Code::cancelled);
}

TEST_CASE_FIXTURE(QueueFixture, "a run does not wait behind others for its own element") {
  auto a = newer(1), b = newer(2);
  auto other = dequeue(a);
  enqueue(b, 4);
  auto own = dequeue(b);
  CHECK(waits(other));
  CHECK(value(own) == 4);
}

TEST_CASE_FIXTURE(QueueFixture, "a run that alone fills the queue and asks for more fails") {
  auto a = newer(1);
  enqueue(a, 1);
  enqueue(a, 2);
  CHECK(code(enqueue(a, 3)) == Code::failed_precondition);
  QueueFixture other;
  other.fill({1, 2});
  auto b = newer(1);
  other.dequeue(b);
  other.dequeue(b);
  CHECK(other.code(other.dequeue(b)) == Code::failed_precondition);
  // Also when others wait for the room it holds.
  QueueFixture third;
  third.fill({1, 2});
  third.dequeue(b);
  third.dequeue(b);
  CHECK(third.waits(third.dequeue(newer(2))));
  CHECK(third.code(third.dequeue(b)) == Code::failed_precondition);
}

TEST_CASE_FIXTURE(QueueFixture, "a redo gets the same elements, before anybody else") {
  fill({1, 2});
  auto a = attempt(5);
  CHECK(value(dequeue(a)) == 1);
  AttemptInfo again{{1, 101}, a.run, 0, 5, 0, 0};
  LiveList list{1, 50, decided, 0, 102, {{101, a.run, 5}}};
  queue.live(list, out);
  CHECK(value(dequeue(newer(3))) == 2);
  CHECK(waits(dequeue(newer(4))));
  CHECK(value(dequeue(again)) == 1);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a client in order finds the elements in order, also after a cancel") {
  fill({1, 2});
  AttemptInfo first{{1, 50}, {9, 0}, 1, 50, 0, 50}, second{{1, 51}, {9, 1}, 1, 51, 0, 51};
  auto cancelled = dequeue(first), waiter = enqueue(first, 5);
  CHECK(value(cancelled) == 1);
  CHECK(waits(waiter));
  // Nothing has told the queue that the first is over, but the second one's start.
  CHECK(value(dequeue(second)) == 1);
  CHECK(code(waiter) == Code::aborted);
  CHECK(code(dequeue(first)) == Code::aborted);
}

TEST_CASE_FIXTURE(QueueFixture, "a repeated operation gets the same answer") {
  fill({1, 2});
  auto r = request(newer(1));
  queue.dequeue(r, out);
  r.id = next_id++;
  queue.dequeue(r, out);
  CHECK(value(r.id) == 1);
  CHECK(queue.tables().leases == 1);
  auto e = request(newer(2));
  queue.enqueue(e, {Tensor::scalar<std::int64_t>(3)}, out);
  e.id = next_id++;
  queue.enqueue(e, {Tensor::scalar<std::int64_t>(3)}, out);
  CHECK(waits(e.id));
  commit(newer(1), 1);
  CHECK(code(e.id) == Code::ok);
}

TEST_CASE_FIXTURE(QueueFixture, "a closed queue is emptied, then out of range") {
  fill({1});
  auto a = newer(1);
  CHECK(code(close(a)) == Code::ok);
  auto late = newer(5);
  CHECK_FALSE(queue.closed());  // not committed
  commit(a, 1);
  CHECK(queue.closed());
  CHECK(code(enqueue(late, 2)) == Code::cancelled);
  auto b = newer(2), c = newer(3);
  CHECK(value(dequeue(b)) == 1);
  auto last = dequeue(c);
  CHECK(waits(last));  // the element may come back
  commit(b, 1);
  CHECK(code(last) == Code::out_of_range);
  CHECK(reply(last)->status.message().find(
            "is closed and has insufficient elements (requested 1, current size 0)") !=
        std::string::npos);
  auto twice = close(newer(6));
  CHECK(code(twice) == Code::cancelled);
  CHECK(reply(twice)->status.message().find("already closed") != std::string::npos);
}

TEST_CASE_FIXTURE(QueueFixture, "a close waits behind the enqueues that wait") {
  fill({1, 2});
  auto pending = enqueue(newer(1), 3);
  commit(
      [&] {
        auto a = newer(2);
        close(a);
        return a;
      }(),
      1);
  CHECK_FALSE(queue.closed());
  CHECK(code(enqueue(newer(3), 4)) == Code::cancelled);
  CHECK(code(close(newer(4))) == Code::cancelled);
  auto b = newer(5);
  dequeue(b);
  commit(b, 1);
  CHECK(code(pending) == Code::ok);
  CHECK(queue.closed());
  commit(newer(1), 1);
  CHECK(value(dequeue(newer(6))) == 2);
  CHECK(value(dequeue(newer(7))) == 3);
}

TEST_CASE_FIXTURE(QueueFixture, "a close that cancels fails the enqueues that wait") {
  fill({1, 2});
  auto pending = enqueue(newer(1), 3);
  auto a = newer(2);
  close(a, true);
  CHECK(waits(pending));
  commit(a, 1);
  CHECK(code(pending) == Code::cancelled);
  CHECK(queue.closed());
}

TEST_CASE_FIXTURE(QueueFixture, "an aborted close closes nothing") {
  auto a = attempt(5);
  close(a);
  live();
  CHECK_FALSE(queue.closed());
  CHECK(code(enqueue(newer(1), 1)) == Code::ok);
}

TEST_CASE_FIXTURE(QueueFixture, "the size is that of the snapshot and the run's own operations") {
  alive = {{101, {1, 101}, 101, 0}, {102, {1, 102}, 102, 1}};
  fill({1});
  fill({2});
  auto size = [&](AttemptInfo a, CommitNumber snapshot) {
    a.snapshot = snapshot;
    auto r = request(a);
    queue.look(
        r,
        [](const QueueView& found) -> std::vector<Tensor> {
          return {Tensor::scalar<std::int64_t>(found.size)};
        },
        out);
    return value(r.id);
  };
  CHECK(size(newer(1), 0) == 0);
  CHECK(size(newer(1), 1) == 1);
  CHECK(size(newer(1), 2) == 2);
  dequeue(newer(2));
  CHECK(size(newer(2), 2) == 1);
  CHECK(size(newer(1), 2) == 2);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a queue is closed as of the snapshot, and for the run that closes it") {
  auto closed = [&](AttemptInfo a, CommitNumber snapshot) {
    a.snapshot = snapshot;
    auto r = request(a);
    queue.look(
        r,
        [](const QueueView& found) -> std::vector<Tensor> {
          return {Tensor::scalar<std::int64_t>(found.closed)};
        },
        out);
    return value(r.id) == 1;
  };
  fill({1});
  auto a = newer(1);
  close(a);
  CHECK(closed(a, 1));
  CHECK_FALSE(closed(newer(2), 1));
  commit(a, 1);
  CHECK_FALSE(closed(newer(2), 1));
  CHECK(closed(newer(3), 2));
}

TEST_CASE("elements and sharers must fit the queue's description") {
  CHECK(QueueSpec{"q", 0, {DType::f32}, {}}.check().code() == Code::invalid_argument);
  CHECK(QueueSpec{"q", 1, {}, {}}.check().code() == Code::invalid_argument);
  CHECK(QueueSpec{"q", 1, {DType::f32}, {PartialShape{1}, PartialShape{2}}}.check().code() ==
        Code::invalid_argument);
  QueueState queue({"q", 1, {DType::f32, DType::i64}, {PartialShape{2}, PartialShape{}}});
  CHECK(queue.compatible(queue.spec()).ok());
  CHECK(queue.compatible({"q", 2, {DType::f32, DType::i64}, {}}).code() == Code::invalid_argument);
  QueueState::Outputs out;
  AttemptInfo a = QueueFixture::attempt(1);
  Tensor good = Tensor::of<float>(Shape{2}, {1.f, 2.f});
  queue.enqueue({1, a, {1, 0, {}}}, {good}, out);
  queue.enqueue({2, a, {1, 0, {}}}, {good, good}, out);
  queue.enqueue({3, a, {1, 0, {}}}, {Tensor::scalar(1.f), Tensor::scalar<std::int64_t>(1)}, out);
  for (auto& o : out)
    if (auto* r = std::get_if<QueueState::Reply>(&o))
      CHECK(r->status.code() == Code::invalid_argument);
  CHECK(out.size() == 3);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "what was staged and is withdrawn gives its elements and its room back") {
  fill({1, 2});
  auto a = newer(1);
  dequeue(a);
  queue.stage({2, a.id, 1, 0}, out);
  queue.stage({2, a.id, 1, 0, StageOrder::withdraw}, out);
  CHECK(queue.tables().staged == 0);
  queue.live({1, sequence++, 1, 0, 102, {}}, out);  // it is over
  CHECK(queue.tables().leases == 0);
  auto b = newer(2);
  CHECK(value(dequeue(b)) == 1);
  enqueue(b, 3);
  queue.stage({2, b.id, 1, 0}, out);  // the number is another attempt's now
  queue.live({1, sequence++, 2, 0, 103, {}}, out);
  REQUIRE(queue.elements().size() == 1);
  CHECK(queue.elements()[0][0].item<std::int64_t>() == 2);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "the next run of a session finds the element of one that was called off") {
  fill({1, 2});
  auto a = newer(1);
  CHECK(value(dequeue(a)) == 1);
  queue.stage({2, a.id, 1, 0}, out);
  auto b = newer(2);  // said by the master before the queue hears that the number was taken back
  b.run.session = a.run.session;
  b.snapshot = 1;
  b.session_from = b.id.a;
  CHECK(value(dequeue(b)) == 1);
  CHECK(queue.tables().staged == 0);
}

TEST_CASE_FIXTURE(QueueFixture,
                  "a run that waits keeps the size that it may ask for, not all since") {
  const LiveAttempt waits{2, {1, 2}, 2, 1};  // started after commit 1
  fill({7});
  for (int i = 0; i < 50; ++i) {
    AttemptInfo a = attempt(3 + std::uint64_t(i));
    a.snapshot = decided;
    i % 2 ? enqueue(a, i) : dequeue(a);
    queue.stage({decided + 1, a.id, 1, 1}, out);
    ++decided;
    queue.live({1, sequence++, decided, 1, a.id.a + 1, {waits}}, out);
    CHECK(queue.tables().old_views == 1);
  }
  AttemptInfo waiting = attempt(2);
  waiting.snapshot = 1;
  const auto size = request(waiting);
  queue.look(
      size, [](const QueueView& view) { return std::vector<Tensor>{Tensor::scalar(view.size)}; },
      out);
  CHECK(value(size.id) == 1);
  queue.live({1, sequence++, decided, decided, 100, {}}, out);
  CHECK(queue.tables().empty());
}
