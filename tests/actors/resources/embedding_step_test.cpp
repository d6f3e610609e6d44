// A training step over the rows of large tables: what it sends, stages and holds follows the ids
// that it looks up, not the rows of the tables; and its bits are those of any number of processes.
#include <doctest/doctest.h>

#include <map>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t kColumns = 32;

// Gradient descent, or another rule, over two tables; each replica draws ids of its own.
struct Embeddings {
  Graph g{7};
  Variable a, b;
  Output loss;
  Op train;

  template <class Rule>
  Embeddings(const Rule& rule, std::int64_t rows, std::int64_t ids) {
    a = table("a", rows), b = table("b", rows);
    const auto drawn = [&](const Variable& of) {
      const Output uniform = random_uniform(g, PartialShape{ids}, {.high = float(rows)});
      return gather(of, minimum(cast<std::int64_t>(uniform), constant(g, rows - 1)));
    };
    loss = mean(square(sum(drawn(a) * drawn(b), {.axes = {1}})));
    train = rule.minimize(loss);
  }
  Variable table(const char* name, std::int64_t rows) {
    const Output first = random_uniform(g, {rows, kColumns}, {.low = -0.1f, .high = 0.1f});
    return variable(g, name, first);
  }
};

// A lazy rule, of gradients that are clipped over both tables and all replicas.
struct ClippedFtrl {
  Op minimize(const Output& loss) const {
    return optim::Ftrl{.lr = 0.1, .lazy = true}.apply(
        optim::clip_by_global_norm(optim::gradients(loss), 1e-3));
  }
};

// Of all messages and tensors between processes, in so many steps.
std::uint64_t bytes_sent(Session& session, const CompiledStep& step, int steps) {
  throw_if_error(session.try_start_trace());
  for (int i = 0; i < steps; ++i) step.run(std::vector<Tensor>{});
  const Timeline timeline = value_or_throw(session.try_stop_trace());
  std::uint64_t bytes = 0;
  for (const ProcessTimeline& process : timeline.processes) {
    REQUIRE(process.complete);
    REQUIRE(process.dropped == 0);
    for (const Track& track : process.tracks)
      for (const Span& span : track.spans)
        if (span.kind == Span::Kind::send) bytes += span.bytes;
  }
  return bytes;
}

struct Counted {
  std::uint64_t sent = 0, held = 0;  // by a step; held at most, beyond variables
};

// Ten steps of two replicas: on two workers, of which one has the tables, and in one process.
template <class Rule>
Counted count(const Rule& rule, std::int64_t rows, std::int64_t ids) {
  Counted counted;
  std::uint64_t kept = 0;  // by variables
  for (const Place& place : kPlaces) {
    Embeddings e(rule, rows, ids);
    PlacedSession session(e.g, place);
    session->init();
    const CompiledStep step = session->compile({e.loss}, {e.train}, {}, {.replicas = 2});
    for (int i = 0; i < 5; ++i) step.run(std::vector<Tensor>{});
    kept = 0;
    for (const auto& [name, value] : value_or_throw(session->try_variables()))
      kept += std::uint64_t(value.elements()) * dtype_size(value.dtype());
    if (place.first != place.second) {
      counted.sent = bytes_sent(*session.operator->(), step, 10) / 10;
      continue;
    }
    session->memory(true);
    for (int i = 0; i < 5; ++i) step.run(std::vector<Tensor>{});
    counted.held = session->memory().front().peak - kept;
  }
  return counted;
}

std::map<std::string, std::vector<float>> bits(Session& session) {
  std::map<std::string, std::vector<float>> all;
  for (auto& [name, value] : value_or_throw(session.try_variables()))
    if (value.dtype() == DType::f32)
      all[name].assign(value.template data<float>(),
                       value.template data<float>() + value.elements());
  return all;
}

}  // namespace

TEST_CASE(
    "what a step over embeddings sends and holds follows its ids, not the rows of its tables") {
  const auto check = [](const auto& rule) {
    const Counted small = count(rule, 4'096, 64), large = count(rule, 65'536, 64),
                  more = count(rule, 65'536, 256);
    // Two tables of 65,536 rows have 16 MiB, in blocks of that size; the rows of 64 ids 8 KiB in
    // each and each replica.
    MESSAGE(small.sent, " bytes sent and ", small.held, " held; of 16 times the rows ", large.sent,
            " and ", large.held, "; of 4 times the ids, too, ", more.sent, " and ", more.held);
    CHECK(large.sent <= small.sent + small.sent / 20);
    CHECK(large.held <= small.held + small.held / 20);
    CHECK(more.sent <= 5 * large.sent);
    CHECK(more.held <= 5 * large.held);
    CHECK(more.held >= 2 * large.held);
  };
  check(optim::Sgd{.lr = 0.1});
  check(optim::Ftrl{.lr = 0.1, .lazy = true});
}

TEST_CASE("a step over embeddings has the same bits over threads and processes") {
  const auto check = [](const auto& rule) {
    for (const int replicas : {1, 2}) {
      CAPTURE(replicas);
      std::map<std::string, std::vector<float>> want;
      const auto run = [&](const Cluster& cluster) {
        Embeddings e(rule, 4'000, 64);
        Session session(e.g, cluster);
        session.init();
        const auto first = bits(session);
        const CompiledStep step = session.compile({}, {e.train}, {}, {.replicas = replicas});
        for (int i = 0; i < 5; ++i) step.run(std::vector<Tensor>{});
        const auto got = bits(session);
        CHECK(got != first);
        if (want.empty()) want = got;
        CHECK(got == want);
      };
      for (const int threads : {1, 3}) {
        Cluster cluster;
        cluster.threads = threads;
        run(cluster);
      }
      TcpWorkers workers(2);
      run(workers.cluster());
    }
  };
  check(ClippedFtrl{});
  check(optim::Sgd{.lr = 0.1});
  check(optim::Adam{.lr = 0.1, .lazy = true});
}
