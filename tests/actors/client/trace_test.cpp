// What a session records of its job, in one process and over connections.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// `product` on the first device crosses to `sum` on the second one, where a variable is updated.
struct Program {
  explicit Program(const Place& place)
      : w(variable_on(g, place.second, "w", Tensor::scalar(1.0f))),
        x(placeholder<float>(g, PartialShape::scalar())),
        product(node(g, place.first, "Mul", {x, x}).output()),
        sum(node(g, place.second, "Add", {product, w.value()}).output()),
        update(assign_add(w, product)),
        session(g, place) {
    session->init();
    step = session->compile({sum}, {update}, {x});
  }
  // So many runs, and what was recorded of them.
  Timeline record(int runs) {
    throw_if_error(session->try_start_trace());
    for (int i = 0; i < runs; ++i) step.run({Tensor::scalar(2.0f)});
    return value_or_throw(session->try_stop_trace());
  }
  Timeline record_reads(int runs) {
    throw_if_error(session->try_start_trace());
    for (int i = 0; i < runs; ++i) session->run({w.value()});
    return value_or_throw(session->try_stop_trace());
  }

  Graph g;
  Variable w;
  Output x, product, sum;
  Op update;
  PlacedSession session;
  CompiledStep step;
};

std::multiset<std::string> names(const ProcessTimeline& process, Span::Kind kind) {
  std::multiset<std::string> all;
  for (const Track& track : process.tracks)
    for (const Span& span : track.spans)
      if (span.kind == kind) all.insert(span.name);
  return all;
}
std::multiset<std::string> names(const Timeline& timeline, Span::Kind kind) {
  std::multiset<std::string> all;
  for (const ProcessTimeline& process : timeline.processes) all.merge(names(process, kind));
  return all;
}

}  // namespace

TEST_CASE("a trace holds each run, its nodes and what they waited for, and nothing else") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Program p(place);
    p.step.run({Tensor::scalar(2.0f)});  // is not recorded
    const Timeline timeline = p.record(3);
    const auto nodes = names(timeline, Span::Kind::node);
    CHECK(nodes.count(p.product.graph().node(p.product.node()).name) == 3);
    CHECK(nodes.count(p.sum.graph().node(p.sum.node()).name) == 3);
    CHECK(names(timeline.processes.at(0), Span::Kind::run).count("run") == 3);
    CHECK(names(timeline, Span::Kind::wait).size() >= 3);
    CHECK(names(timeline, Span::Kind::burst).size() >= 3);
    for (const ProcessTimeline& process : timeline.processes) {
      CHECK(process.complete);
      CHECK(process.dropped == 0);
    }
    p.step.run({Tensor::scalar(2.0f)});
    CHECK(names(p.record(1), Span::Kind::run).count("run") == 1);
    CHECK(names(p.record_reads(2), Span::Kind::run).count("read") == 2);
  }
}

TEST_CASE("in one process nothing crosses, and there is one process in the trace") {
  Program p(kPlaces[0]);
  const Timeline timeline = p.record(2);
  CHECK(timeline.processes.size() == 1);
  CHECK(names(timeline, Span::Kind::send).empty());
  CHECK(names(timeline, Span::Kind::receive).empty());
}

// What a thread still does when the client has the last run's answer is not in the trace, so only
// the runs before it are counted.
TEST_CASE("messages and tensors between processes are recorded at both ends") {
  Program p(kPlaces[1]);
  const Timeline timeline = p.record(5);
  REQUIRE(timeline.processes.size() == 3);
  const ProcessTimeline &master = timeline.processes[0], &first = timeline.processes[1],
                        &second = timeline.processes[2];
  CHECK(names(master, Span::Kind::send).count("StartPartition") >= 8);
  CHECK(names(first, Span::Kind::receive).count("StartPartition") >= 4);
  CHECK(names(second, Span::Kind::receive).count("StartPartition") >= 4);
  CHECK(names(master, Span::Kind::receive).count("PartitionDone") >= 8);

  auto tensors = [](const ProcessTimeline& process, Span::Kind kind) {
    std::set<std::uint64_t> all;
    for (const Track& track : process.tracks)
      for (const Span& span : track.spans)
        if (span.kind == kind && span.name == "tensor") all.insert(span.message);
    return all;
  };
  const auto sent = tensors(first, Span::Kind::send);
  const auto received = tensors(second, Span::Kind::receive);
  std::set<std::uint64_t> both;
  std::set_intersection(sent.begin(), sent.end(), received.begin(), received.end(),
                        std::inserter(both, both.end()));
  CHECK(both.size() >= 4);
  CHECK(sent.size() <= 5);
  CHECK(received.size() <= 5);
}

// They read one clock, so the estimate is to be 0, but for the error that it admits.
TEST_CASE("a trace says how far the workers' clocks are apart") {
  Program p(kPlaces[1]);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (bool known = false; !known;) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    const Timeline timeline = p.record(1);
    known = true;
    for (const ProcessTimeline& process : timeline.processes) {
      if (process.process == 0) continue;
      known = known && process.clock;
      if (process.clock) CHECK(std::abs(process.clock->offset_ns) <= process.clock->error_ns);
    }
  }
}

TEST_CASE("a trace begins and ends once, in an open session") {
  Program p(kPlaces[0]);
  CHECK(p.session->try_stop_trace().status().code() == Code::failed_precondition);
  CHECK(p.session->try_start_trace().ok());
  CHECK(p.session->try_start_trace().code() == Code::failed_precondition);
  CHECK(p.session->try_stop_trace().ok());
  p.session->close();
  CHECK(p.session->try_start_trace().code() == Code::failed_precondition);
  CHECK(p.session->try_stop_trace().status().code() == Code::failed_precondition);
}
