// Input of replicas on several processes: each process reads the examples of its replicas itself.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "ops/data/data.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

constexpr int kReplicas = 4;

std::string write_records(const TemporaryDir& dir, std::int64_t width) {
  std::string path = dir.path() + "/records-" + std::to_string(width);
  data::RecordWriter writer(path);
  for (std::int64_t i = 0; i < 30; ++i)
    throw_if_error(writer.write(value_or_throw(data::tf_example(
        {{"id", Tensor::scalar(i)},
         {"values",
          Tensor::of<float>(Shape{width}, std::vector<float>(std::size_t(width), 0.1f))}}))));
  throw_if_error(writer.finish());
  return path;
}

// A step whose gradient is one number, however wide its examples are.
struct Training {
  Graph g{11};
  Variable v;
  Output loss;
  Op train;

  Training(const std::string& path, std::int64_t width) {
    const auto [id, values] =
        data::tf_records(path)
            .parse_example(
                {{.name = "id", .dtype = DType::i64}, {.name = "values", .shape = {width}}})
            .shuffle(7, 3)
            .repeat()
            .map(g,
                 [](Output of, Output x) {
                   const Output drawn = random_uniform(x.graph(), PartialShape::scalar());
                   return std::tuple{of, x * (cast<float>(of) + drawn)};
                 },
                 {.parallel = 2})
            .batch(3)
            .prefetch(2)
            .outputs<2>(g);
    v = variable(g, "v", Tensor::scalar(1.0f));
    loss = mean(square(sum(values, {.axes = {1}}) * v.value() - cast<float>(id)));
    train = optim::Momentum{.lr = 1e-9, .momentum = 0.9}.minimize(loss);
  }
};

struct Job {
  Training training;
  std::optional<TcpWorkers> workers;
  std::optional<Session> session;
  CompiledStep step;

  Job(const std::string& path, std::int64_t width, int processes) : training(path, width) {
    session.emplace(training.g,
                    processes == 1 ? one_thread() : workers.emplace(processes).cluster());
    step = session->compile({training.loss}, {training.train}, {}, {.replicas = kReplicas});
  }
  std::vector<float> run(int steps) {
    std::vector<float> losses;
    for (int i = 0; i < steps; ++i)
      losses.push_back(step.run(std::vector<Tensor>{})[0].item<float>());
    return losses;
  }
};

// Of tensors between processes, in so many steps.
std::uint64_t tensor_bytes_sent(Job& job, int steps) {
  throw_if_error(job.session->try_start_trace());
  job.run(steps);
  const Timeline timeline = value_or_throw(job.session->try_stop_trace());
  std::uint64_t bytes = 0;
  for (const ProcessTimeline& process : timeline.processes) {
    REQUIRE(process.complete);
    REQUIRE(process.dropped == 0);
    for (const Track& track : process.tracks)
      for (const Span& span : track.spans)
        if (span.kind == Span::Kind::send && span.name == "tensor") bytes += span.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("parameters stay in a run that one replica is to leave out") {
  for (bool swapped : {false, true}) {
    Graph g;
    const std::vector<float> rows =
        swapped ? std::vector<float>{1, 2, 8, -4} : std::vector<float>{1, 2, -4, 8};
    const Output x = data::tensors({Tensor::of<float>({4}, rows)}).outputs<1>(g)[0];
    const Variable w = variable(g, "w", 0.f);
    optim::Gradients gradients = optim::gradients(w * x);
    gradients.when = x > 0;
    const Op train = optim::Sgd{.lr = 1}.apply(gradients);
    Session s(g, one_thread());
    s.init();
    auto step = s.compile({}, {train}, {}, {.replicas = 2});
    step.run();
    CHECK(s.run({w})[0].item<float>() == -1.5f);
    step.run();
    CHECK(s.run({w})[0].item<float>() == -1.5f);
  }
}

TEST_CASE("replicas on several processes send no bytes of examples to each other") {
  const TemporaryDir dir;
  std::vector<std::uint64_t> sent;
  for (const std::int64_t width : {16, 4096}) {
    Job job(write_records(dir, width), width, kReplicas);
    job.session->init();
    job.run(2);
    sent.push_back(tensor_bytes_sent(job, 5));
  }
  // A parameter and its gradient are sent, 196,608 bytes of wide examples would be, too.
  CHECK(sent[0] > 0);
  CHECK(sent[1] == sent[0]);
}

TEST_CASE("replicas read the same examples on any number of processes, also of a resumed job") {
  const TemporaryDir dir;
  const std::string path = write_records(dir, 16);
  std::vector<float> losses;
  JobState saved;
  for (const int processes : {4, 1, 2}) {
    CAPTURE(processes);
    Job job(path, 16, processes);
    job.session->init();
    std::vector<float> got = job.run(4);  // the second pass over the records
    if (losses.empty()) saved = value_or_throw(job.session->try_state());
    for (const float loss : job.run(4)) got.push_back(loss);
    if (losses.empty()) losses = got;
    CHECK(got == losses);
  }
  REQUIRE(saved.datasets.size() == 1);
  CHECK(saved.datasets[0].next == 4 * kReplicas);
  CHECK(losses[0] != losses[4]);
  for (const int processes : {1, 3}) {
    CAPTURE(processes);
    Job job(path, 16, processes);
    job.session->restore(saved.variables, saved.committed, saved.datasets);
    CHECK(job.run(4) == std::vector<float>(losses.begin() + 4, losses.end()));
  }
}

TEST_CASE("replicas take what a failed run left, on the processes of those that take it") {
  std::vector<std::vector<float>> all;
  for (const int processes : {1, 2}) {
    Graph g;
    const Output x = data::range(40)
                         .shuffle(40, 2)
                         .map(g, [](Output i) { return cast<float>(i); })
                         .outputs<1>(g)[0];
    const Output fine = placeholder<bool>(g, PartialShape::scalar());
    const Op checked = assert_(fine, {.message = "not fine"});
    std::optional<TcpWorkers> workers;
    Session session(g, processes == 1 ? one_thread() : workers.emplace(processes).cluster());
    auto two = session.compile({x * 1.0f}, {checked}, {fine}, {.replicas = 2});
    auto one = session.compile({x}, {}, {}, {.replicas = 1});
    std::vector<float>& got = all.emplace_back();
    for (int i = 0; i < 5; ++i) {
      got.push_back(two.run({Tensor::scalar(true)})[0].item<float>());
      CHECK_FALSE(two.try_run({Tensor::scalar(false)}).ok());
      got.push_back(one.run(std::vector<Tensor>{})[0].item<float>());
    }
  }
  CHECK(all[0] == all[1]);
}
