// The executor's decisions, without an executor.
#include <algorithm>
#include <random>

#include "actors/resources/variable_store.hpp"
#include "actors/worker/partition_runs.hpp"
#include "tests/protocol/step_fixture.hpp"

using namespace troupe;

namespace {

using Outputs = PartitionRuns::Outputs;

constexpr ResourceId kContainer{TaskId{1}, 0}, kOther{TaskId{1}, 1}, kQueueOfSteps{TaskId{1}, 2};

// A partition: v += in, fetched is v as it was plus in, where `in` arrives on channel 7.
struct Partition {
  StepWorld w;
  std::uint32_t in, before, total, update;
  PartitionSetup setup;
  std::map<AttemptId, int> outboxes;
  std::unique_ptr<PartitionRuns> runs;
  Outputs out;

  Partition() {
    const std::uint32_t v = w.draft.resource({.kind = "variable", .name = "v"});
    in = w.role("in", Role::recv, {}, 1);
    w.draft.info(in).channel = 7;
    before = w.external("before", asks::read, {}, 1);
    w.draft.info(before).resource = v;
    w.draft.info(before).handles = {v};
    total = w.sum("total", {w.draft.out(in), w.draft.out(before)});
    update = w.external("update", asks::log, {w.draft.out(in)}, 0);
    w.draft.info(update).resource = v;
    w.draft.info(update).handles = {v};
    w.draft.fetch(w.draft.out(total));
    setup.resources = {{kContainer, "v", 101}};
  }
  void make() {
    setup.partition = 3;
    setup.program = w.make();
    const Plan& plan = setup.program->plan();
    for (std::uint32_t n = 0; n < plan.nodes.size(); ++n)
      if (plan.info[n].external == &asks::log)
        setup.writes[n] = {std::make_shared<UpdateRule>(), n, 0};
    runs = std::make_unique<PartitionRuns>(setup, [this](const AttemptId& attempt) {
      ++outboxes[attempt];
      return std::make_shared<RecordingOutbox>();
    });
  }

  static PartitionRuns::Start start_of(std::uint64_t a, CommitNumber grant = 0) {
    PartitionRuns::Start start;
    start.attempt.id = {1, a};
    start.attempt.run = {0, a};
    start.grant = grant;
    return start;
  }
  void start(std::uint64_t a, CommitNumber grant = 0) { runs->start(start_of(a, grant), out); }
  void abort(std::uint64_t a) { runs->abort({1, a}, {0, a}, cancelled("by the test"), out); }
  void arrive(std::uint64_t a, float value) {
    runs->arrived({1, a}, {7, {}, Tensor::scalar(value)}, out);
  }
  void over(std::uint64_t below) {
    LiveList list;
    list.view = 1;
    list.sequence = below;
    list.next_a = below;
    runs->live(list);
  }
  // The oldest output of that kind, which leaves the list.
  template <class T>
  std::optional<T> take() {
    for (auto at = out.begin(); at != out.end(); ++at)
      if (auto* found = std::get_if<T>(&*at)) {
        T taken = std::move(*found);
        out.erase(at);
        return taken;
      }
    return {};
  }
  TraceTrack* line() const {
    Trace* trace = active(setup.trace);
    return trace ? &trace->here() : nullptr;
  }
  void lanes() {
    while (auto burst = take<PartitionRuns::Burst>())
      runs->burst_done(burst->attempt, burst->step->run(w.lanes, line()), out);
  }
  // The oldest request of that verb.
  std::optional<ResourceRequest> take(const External& external) {
    for (auto at = out.begin(); at != out.end(); ++at)
      if (auto* ask = std::get_if<PartitionRuns::Ask>(&*at);
          ask && &ask->request.external() == &external) {
        ResourceRequest taken = std::move(ask->request);
        out.erase(at);
        return taken;
      }
    return {};
  }
  void answer(const ResourceRequest& request, Expected<std::vector<Tensor>> values,
              std::vector<std::string> also_seen = {}, bool own = false) {
    ResourceAnswer a{request.attempt.id, request.id, values.status()};
    if (values.ok()) a.values = std::move(values).value();
    a.also_seen = std::move(also_seen);
    a.own = own;
    a.committed = a.status.ok() ? request.commit : 0;
    runs->answered(std::move(a), out);
    lanes();
  }
  void answer_read(const ResourceRequest& request, float value,
                   std::vector<std::string> also_seen = {}) {
    answer(request, std::vector<Tensor>{Tensor::scalar(value)}, std::move(also_seen));
  }
  void answer_log(const ResourceRequest& request) { answer(request, std::vector<Tensor>{}); }
};

}  // namespace

TEST_CASE("an attempt reads, logs and reports what it did, once") {
  Partition p;
  p.make();
  p.start(1);
  p.lanes();
  auto read = p.take(asks::read);
  REQUIRE(read);
  CHECK(read->items.at(0).resource->name == "v");
  p.start(1);  // sent again
  CHECK(p.out.empty());
  p.answer_read(*read, 10);
  CHECK(p.out.empty());  // the tensor is not there
  p.arrive(1, 5);
  p.lanes();
  auto log = p.take(asks::log);
  REQUIRE(log);
  CHECK(log->commit == 0);
  CHECK(log->items.size() == 1);
  CHECK(p.out.empty());
  p.answer_log(*log);
  auto done = p.take<PartitionDone>();
  REQUIRE(done);
  CHECK(p.out.empty());
  CHECK(done->status.ok());
  CHECK(done->partition == 3);
  CHECK(done->fetches.at(0).value.item<float>() == 15);
  CHECK(done->writes == std::vector<ResourceWrites>{{kContainer, 1}});
  CHECK(done->uses.reads == std::vector<std::uint64_t>{101});
  CHECK(done->uses.updates == std::vector<std::uint64_t>{101});
  CHECK(done->fast_committed == 0);
  p.answer_log(*log);  // and what comes late changes nothing
  p.abort(1);
  p.arrive(1, 5);
  CHECK(p.out.empty());
  CHECK(p.runs->tables().attempts == 1);
  p.over(2);
  CHECK(p.runs->tables().empty());
}

TEST_CASE("a tensor that comes before its START waits for it, unless the attempt is over") {
  Partition p;
  p.make();
  p.arrive(2, 5);
  CHECK(p.runs->tables().early == 1);
  p.start(2);
  p.lanes();
  CHECK(p.runs->tables().early == 0);
  p.answer_read(*p.take(asks::read), 10);
  p.answer_log(*p.take(asks::log));
  CHECK(p.take<PartitionDone>()->fetches.at(0).value.item<float>() == 15);

  p.arrive(3, 5);
  p.over(4);
  CHECK(p.runs->tables().empty());
  p.arrive(3, 5);
  p.start(3);
  CHECK(p.out.empty());
  CHECK(p.runs->tables().empty());
}

TEST_CASE("an attempt that is aborted before its START is answered, and never begins") {
  Partition p;
  p.make();
  p.arrive(1, 5);
  p.abort(1);
  auto done = p.take<PartitionDone>();
  REQUIRE(done);
  CHECK(done->status.code() == Code::cancelled);
  p.start(1);
  p.arrive(1, 5);
  CHECK(p.out.empty());
  CHECK(p.outboxes.empty());
}

TEST_CASE("a write with a granted number goes last, when nothing else can fail") {
  Partition p;
  p.make();
  p.start(1, 9);
  p.arrive(1, 5);
  p.lanes();
  CHECK_FALSE(p.take(asks::log));  // the read may still fail
  p.answer_read(*p.take(asks::read), 10);
  auto log = p.take(asks::log);
  REQUIRE(log);
  CHECK(log->commit == 9);
  CHECK(p.out.empty());
  p.abort(1);  // too late: that answer decides
  CHECK(p.out.empty());
  p.answer_log(*log);
  auto done = p.take<PartitionDone>();
  REQUIRE(done);
  CHECK(done->status.ok());
  CHECK(done->fast_committed == 9);
}

TEST_CASE("a granted write that is refused leaves its number unused") {
  Partition p;
  p.make();
  p.start(1, 9);
  p.arrive(1, 5);
  p.lanes();
  p.answer_read(*p.take(asks::read), 10);
  p.answer(*p.take(asks::log), invalid_argument("another shape"));
  auto done = p.take<PartitionDone>();
  REQUIRE(done);
  CHECK(done->status.code() == Code::invalid_argument);
  CHECK(done->fast_committed == 0);
}

TEST_CASE("an attempt that is aborted in time never sends its granted write") {
  Partition p;
  p.make();
  p.start(1, 9);
  p.arrive(1, 5);
  p.lanes();
  auto read = p.take(asks::read);
  p.abort(1);
  p.lanes();
  auto done = p.take<PartitionDone>();
  REQUIRE(done);
  CHECK(done->status.code() == Code::cancelled);
  p.answer_read(*read, 10);
  CHECK(p.out.empty());
}

TEST_CASE("reads of the run's own writes count for the variables of that container alone") {
  Partition p;
  p.w.draft.resource({.kind = "variable", .container = "other", .name = "v"});
  p.setup.resources.push_back({kOther, "v", 202});
  p.make();
  p.start(1);
  p.lanes();
  p.answer_read(*p.take(asks::read), 10, {"v"});
  p.arrive(1, 5);
  p.lanes();
  p.answer_log(*p.take(asks::log));
  CHECK(p.take<PartitionDone>()->uses.reads == std::vector<std::uint64_t>{101, 101});
}

TEST_CASE("an element that the run put into the queue itself is a use of its own kind") {
  for (bool own : {false, true}) {
    Partition p;
    const std::uint32_t q = p.w.draft.resource({.kind = "queue", .name = "q"});
    p.setup.resources.push_back({kQueueOfSteps, "q", 303});
    const std::uint32_t get = p.w.external("get", asks::dequeue, {}, 1);
    p.w.draft.info(get).resource = q;
    p.w.draft.info(get).handles = {q};
    p.w.draft.fetch(p.w.draft.out(get));
    p.make();
    p.start(1);
    p.arrive(1, 5);
    p.lanes();
    p.answer_read(*p.take(asks::read), 10);
    p.answer_log(*p.take(asks::log));
    auto taken = p.take(asks::dequeue);
    REQUIRE(taken);
    p.answer(*taken, std::vector<Tensor>{Tensor::scalar(1.0f)}, {}, own);
    auto done = p.take<PartitionDone>();
    REQUIRE(done);
    CHECK(done->uses.updates == std::vector<std::uint64_t>{303, 101});
    CHECK(done->uses.own_dequeues ==
          (own ? std::vector<std::uint64_t>{303} : std::vector<std::uint64_t>{}));
    CHECK(done->writes == std::vector<ResourceWrites>{{kContainer, 1}, {kQueueOfSteps, 1}});
  }
}

TEST_CASE("what an attempt uses again and again is reported once") {
  Partition p;
  p.make();
  p.start(1);
  p.lanes();
  auto read = p.take(asks::read);
  REQUIRE(read);
  p.answer_read(*read, 10, std::vector<std::string>(5000, "v"));
  p.arrive(1, 5);
  p.lanes();
  auto log = p.take(asks::log);
  REQUIRE(log);
  p.answer_log(*log);
  const auto done = p.take<PartitionDone>();
  REQUIRE(done);
  CHECK(done->uses.reads == std::vector<std::uint64_t>{101});
  CHECK(done->uses.updates == std::vector<std::uint64_t>{101});
}

// Whatever the order of messages, each attempt that was started or aborted is reported exactly
// once, commits at most what it was granted, and leaves nothing behind.
TEST_CASE("every attempt is reported once, under any schedule") {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto below = [&](std::size_t n) { return std::size_t(random() % n); };
    Partition p;
    p.make();
    constexpr std::uint64_t kAttempts = 4;
    // What is on its way to the machine, in no order.
    std::vector<std::function<void()>> messages;
    std::map<std::uint64_t, CommitNumber> grant;
    for (std::uint64_t a = 1; a <= kAttempts; ++a) {
      grant[a] = below(2) ? 100 + a : 0;
      for (std::size_t n = 1 + below(2); n > 0; --n)
        messages.push_back([&p, a, g = grant[a]] { p.start(a, g); });
      for (std::size_t n = below(3); n > 0; --n)
        messages.push_back([&p, a] { p.arrive(a, float(a)); });
      // One whose tensor never comes must be aborted, as the coordinator would.
      messages.push_back([&p, a] { p.abort(a); });
    }
    std::map<std::uint64_t, int> reported, committed;
    while (!messages.empty()) {
      const std::size_t next = below(messages.size());
      auto message = std::move(messages[next]);
      messages.erase(messages.begin() + std::ptrdiff_t(next));
      message();
      while (auto burst = p.take<PartitionRuns::Burst>())
        messages.push_back([&p, burst] {
          p.runs->burst_done(burst->attempt, burst->step->run(p.w.lanes), p.out);
        });
      while (auto read = p.take(asks::read))
        messages.push_back([&p, read, fails = below(8) == 0] {
          if (fails) return p.answer(*read, unavailable("lost"));
          p.answer_read(*read, 1);
        });
      while (auto log = p.take(asks::log)) {
        const std::uint64_t a = log->attempt.id.a;
        CHECK(log->commit == grant[a]);
        messages.push_back([&p, log, fails = below(8) == 0] {
          if (fails) return p.answer(*log, resource_exhausted("full"));
          p.answer_log(*log);
        });
        if (log->commit != 0) CHECK(++committed[a] == 1);
      }
      while (auto done = p.take<PartitionDone>()) {
        CHECK(++reported[done->attempt.a] == 1);
        CHECK(done->status.ok() == !done->fetches.empty());
        if (grant[done->attempt.a] != 0)
          CHECK(done->status.ok() == (done->fast_committed == grant[done->attempt.a]));
      }
      REQUIRE(p.out.empty());
    }
    for (std::uint64_t a = 1; a <= kAttempts; ++a) CHECK(reported[a] == 1);
    p.over(kAttempts + 1);
    CHECK(p.runs->tables().empty());
  }
}

TEST_CASE("an attempt shows how long it took, what it waited for and the nodes of its bursts") {
  Partition p;
  p.setup.trace = std::make_shared<Trace>();
  p.make();
  Trace& trace = *p.setup.trace;
  trace.enable(true);
  p.start(1);
  p.lanes();
  auto read = p.take(asks::read);
  REQUIRE(read);
  p.answer_read(*read, 10);
  p.arrive(1, 5);
  p.lanes();
  auto log = p.take(asks::log);
  REQUIRE(log);
  p.answer_log(*log);
  REQUIRE(p.take<PartitionDone>());
  trace.enable(false);
  p.start(2);  // leaves no trace

  const Track *line = nullptr, *thread = nullptr;
  const Trace::Recording all = trace.collect();
  for (const Track& track : all.tracks)
    (track.name.find("steps on /") == 0 ? line : thread) = &track;
  REQUIRE(line);
  REQUIRE(thread);
  std::string waits;
  for (const Span& span : line->spans) {
    CHECK(span.run == 1);
    CHECK(span.begin_ns <= span.end_ns);
    if (span.kind == Span::Kind::wait) waits += span.name + ", ";
  }
  CHECK(waits == "wait for a resource, wait for a tensor, wait for a resource, ");
  const Span& attempt = line->spans.back();
  CHECK(attempt.kind == Span::Kind::run);
  for (const Span& span : line->spans) {
    CHECK(span.begin_ns >= attempt.begin_ns);
    CHECK(span.end_ns <= attempt.end_ns);
  }
  // A burst ends after its nodes, on the same thread.
  std::vector<std::string> nodes;
  for (const Span& span : thread->spans)
    if (span.kind == Span::Kind::node) nodes.push_back(span.name);
  CHECK(std::count(nodes.begin(), nodes.end(), "total") == 1);
  CHECK(thread->spans.back().kind == Span::Kind::burst);
  CHECK(std::all_of(thread->spans.begin(), thread->spans.end(),
                    [](const Span& span) { return span.run == 1; }));
}

TEST_CASE("a write that carries a granted number is waited for as a commit") {
  Partition p;
  p.setup.trace = std::make_shared<Trace>();
  p.make();
  p.setup.trace->enable(true);
  p.start(1, 9);
  p.arrive(1, 5);
  p.answer_read(*p.take(asks::read), 10);
  auto log = p.take(asks::log);
  REQUIRE(log);
  CHECK(log->commit == 9);
  p.answer_log(*log);
  REQUIRE(p.take<PartitionDone>());
  bool commit = false;
  for (const Track& track : p.setup.trace->collect().tracks)
    for (const Span& span : track.spans) commit = commit || span.name == "wait for the commit";
  CHECK(commit);
}
