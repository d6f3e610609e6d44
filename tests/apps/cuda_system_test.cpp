// What a session does with a GPU that fails, is full or is slow: on the fake driver, not on
// hardware.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <thread>

#include "tests/apps/emulated_gpu.hpp"
#include "tests/apps/folder.hpp"
#include "tests/contains.hpp"
#include "tests/same_bits.hpp"

using namespace troupe;
using troupe::test::contains;
using troupe::test::Emulated;
using troupe::test::with_gpu;

namespace {

Tensor numbers(std::int64_t n) {
  Tensor t = value_or_throw(Tensor::make(DType::f32, Shape{n}));
  for (std::int64_t i = 0; i < n; ++i) t.mutable_data<float>()[i] = float(i % 7) / 8;
  return t;
}

// Three kernels in a row.
struct Chain {
  Chain() {
    x = placeholder<float>(g, {-1}, "x");
    y = tanh(sqrt(exp(x)));
  }
  Graph g{1};
  Output x, y;
};

}  // namespace

TEST_CASE("a GPU that fails in a step loses its process, and the error names the nodes") {
  for (int launch = 1; launch <= 3; ++launch) {  // the last one shows when the fetch is copied
    const Emulated emulated("launch_error_at=" + std::to_string(launch));
    Chain chain;
    Session session(chain.g, with_gpu());
    auto step = session.compile({chain.y}, {}, {chain.x});
    const auto failed = step.try_run({numbers(8)});
    REQUIRE_FALSE(failed.ok());
    const std::string text = failed.status().text();
    INFO(text);
    CHECK(failed.status().code() == Code::unavailable);  // a program ends with 75
    CHECK(contains(text, "worker 0 (process "));
    CHECK(contains(text, ") is lost: /job:worker/task:0/cuda:0 has failed: "));
    CHECK(contains(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK(contains(text, "in one of the nodes '"));
    CHECK(contains(text, " to '"));
    CHECK(step.try_run({numbers(8)}).status().code() == Code::unavailable);
  }
}

TEST_CASE("a GPU that fails ends all sessions of its process that use it, and no other") {
  const Emulated emulated("launch_error_at=4");
  Chain one, other, third;
  Output late = log(abs(other.x) + 3.0f);
  Session failing(one.g, with_gpu()), beside(other.g, with_gpu()), on_cpu(third.g, with_gpu(false));
  auto step = failing.compile({one.y}, {}, {one.x});
  auto next = beside.compile({other.y}, {}, {other.x});
  auto unharmed = on_cpu.compile({third.y}, {}, {third.x});
  CHECK(next.try_run({numbers(8)}).ok());  // launches 1 to 3
  CHECK(step.try_run({numbers(8)}).status().code() == Code::unavailable);
  Status failed;
  SUBCASE("in a run") { failed = next.try_run({numbers(8)}).status(); }
  SUBCASE("when a step is loaded, whose kernels are new") {
    failed = beside.try_compile({late}, {}, {other.x}).status();
  }
  CHECK(failed.code() == Code::unavailable);
  CHECK(contains(failed.text(), "cuda:0 has failed: "));
  CHECK(next.try_run({numbers(8)}).status().code() == Code::unavailable);
  CHECK(unharmed.try_run({numbers(8)}).ok());
}

TEST_CASE(
    "the host waits for each kernel of a GPU if it is asked to, and the error names the node") {
  const char* node[] = {"Exp", "Sqrt", "Tanh"};
  Cluster cluster = with_gpu();
  std::optional<test::EnvironmentVariable> asked;
  SUBCASE("as an option of the cluster") { cluster.cuda_sync = true; }
  SUBCASE("by the environment") { asked.emplace("TROUPE_CUDA_SYNC", "1"); }
  SUBCASE("as an option of the cluster, in a process of its own") {
    cluster.cuda_sync = true;
    cluster.workers = 1;
  }
  for (int launch = 1; launch <= 3; ++launch) {
    const Emulated emulated("delay_us=100,launch_error_at=" + std::to_string(launch));
    Chain chain;
    Session session(chain.g, cluster);
    auto step = session.compile({chain.y}, {}, {chain.x});
    const auto failed = step.try_run({numbers(8)});
    REQUIRE_FALSE(failed.ok());
    const std::string text = failed.status().text();
    INFO(text);
    CHECK(failed.status().code() == Code::unavailable);
    CHECK(contains(text, std::string("in node '") + node[launch - 1] + "'"));
    CHECK_FALSE(contains(text, "one of"));
  }
}

TEST_CASE("whether the host waits for a GPU's kernels is 1 or 0") {
  const test::EnvironmentVariable asked("TROUPE_CUDA_SYNC", "yes");
  const Emulated emulated;
  Chain chain;
  std::string text;
  try {
    Session session(chain.g, with_gpu());
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(contains(text, "TROUPE_CUDA_SYNC is 'yes', not 1 or 0"));
}

TEST_CASE("a GPU without memory names what holds the most of it, and serves a smaller step") {
  const Emulated emulated("memory_mb=8");
  Graph g(1);
  constexpr std::int64_t kMega = 1 << 18;  // floats of 1 MiB
  Variable w = variable(g, "w", value_or_throw(Tensor::zeros(DType::f32, {2 * kMega})));
  Output x = placeholder<float>(g, {-1}, "x");
  Output a = exp(x), b = tanh(a);
  Output y = sum(a * b) + sum(w);
  Session session(g, with_gpu());
  session.init();
  auto step = session.compile({y}, {}, {x});
  // Two values of 3 MiB beside the variable are too much, whichever node asks for the second.
  const auto full = step.try_run({numbers(3 * kMega)});
  REQUIRE_FALSE(full.ok());
  const std::string text = full.status().text();
  INFO(text);
  CHECK(full.status().code() == Code::resource_exhausted);
  CHECK(contains(text, "no memory for 3145728 bytes"));
  CHECK(contains(text, "of 7.1 MiB of /job:worker/task:0/cuda:0 are in use"));
  CHECK(contains(text, "the most is held: 3 MiB by '_copy/0/device/_feed/x:0', 2 MiB by 'w"));
  CHECK(contains(text, "in node '"));
  CHECK(step.try_run({numbers(kMega / 8)}).ok());
}

TEST_CASE("what was just copied to a GPU and is copied back waits for the first copy") {
  const Emulated emulated("slow=upload,slow_us=20000,check=1");
  Graph g(1);
  Variable w = variable(g, "w", value_or_throw(Tensor::zeros(DType::f32, {4})));
  Output there = is_variable_initialized(w.handle());
  Session session(g, with_gpu());
  auto step = session.compile({there});
  for (const bool initialised : {false, true}) {
    const Tensor value = step.run(std::vector<Tensor>{})[0];
    const auto byte = *static_cast<const std::uint8_t*>(value.raw());
    CHECK(byte == (initialised ? 1 : 0));
    if (!initialised) session.init();
  }
  CHECK(test::fake_reports().empty());
}

namespace {

// What a queue has passed on, of which a checkpoint was made in between, and the variable that it
// was added to; by the GPU or the CPU.
std::vector<Tensor> passed_through_a_queue(bool gpu) {
  Folder folder;
  Graph g(1);
  Output x = placeholder<float>(g, {4}, "x");
  Output q = fifo_queue(g, {DType::f32}, {.shapes = {{4}}});
  Variable w = variable(g, "w", value_or_throw(Tensor::zeros(DType::f32, {4})));
  Op put = enqueue(q, {x * 2.0f + 1.0f});
  Output taken = dequeue(q, {DType::f32}, {.shapes = {{4}}})[0];
  Op add = assign_add(w.handle(), taken * 3.0f);
  std::vector<Tensor> all;
  const auto part = [&](bool first) {
    Session session(g, with_gpu(gpu));
    if (first)
      session.init();
    else
      session.restore_job(folder.path);
    auto feed = session.compile({}, {put}, {x});
    auto take = session.compile({taken}, {add});
    for (int i = 0; i < 3; ++i) feed.run({numbers(4)});
    for (int i = 0; i < (first ? 1 : 5); ++i) all.push_back(take.run(std::vector<Tensor>{})[0]);
    for (auto& [name, value] : value_or_throw(session.try_variables())) all.push_back(value);
    if (first) session.save_job(folder.path);
    for (const DeviceMemory& device : session.memory())
      if (contains(device.device, "cuda")) CHECK(device.peak > 0);
    all = test::on_heap(all);
  };
  part(true);
  part(false);
  return all;
}

}  // namespace

TEST_CASE("queues, variables and checkpoints have the same bits with a GPU beside the CPU") {
  const std::vector<Tensor> want = passed_through_a_queue(false);
  REQUIRE(want.size() == 8);
  for (const char* fake : {"check=1", "check=1,delay_us=200,seed=4", "memory_mb=4,delay_us=50"}) {
    INFO(fake);
    const Emulated emulated(fake);
    CHECK(test::same_bits(passed_through_a_queue(true), want));
    CHECK(test::fake_reports().empty());
  }
}

namespace {

// The spans of the lines of the GPU, by line and node, in the order of their begin.
std::map<std::string, std::vector<Span>> gpu_lines(const Timeline& timeline) {
  std::map<std::string, std::vector<Span>> lines;
  for (const ProcessTimeline& process : timeline.processes)
    for (const Track& track : process.tracks)
      for (const char* kind : {"kernels on ", "uploads to ", "downloads from "})
        if (track.name.starts_with(kind) && contains(track.name, "cuda:0")) {
          auto& spans = lines[kind] = track.spans;
          std::stable_sort(spans.begin(), spans.end(),
                           [](auto& s, auto& t) { return s.begin_ns < t.begin_ns; });
        }
  return lines;
}

const Span* find(const std::vector<Span>& spans, std::string_view name) {
  const auto at = std::find_if(spans.begin(), spans.end(),
                               [&](const Span& span) { return contains(span.name, name); });
  return at == spans.end() ? nullptr : &*at;
}

std::int64_t length(const Span* span) { return span ? span->end_ns - span->begin_ns : 0; }

Timeline traced(const std::string& fake) {
  const Emulated emulated(fake);
  Chain chain;
  Session session(chain.g, with_gpu());
  auto step = session.compile({chain.y}, {}, {chain.x});
  step.run({numbers(1000)});
  throw_if_error(session.try_start_trace());
  step.run({numbers(1000)});
  return value_or_throw(session.try_stop_trace());
}

}  // namespace

TEST_CASE("a trace shows when a GPU did the work: the slow kernel, the slow copy") {
  constexpr std::int64_t kSlow = 50'000'000;
  const Timeline timeline = traced("slow=Elementwise_Sqrt,slow_us=60000");
  const auto lines = gpu_lines(timeline);
  REQUIRE(lines.size() == 3);
  const auto& kernels = lines.at("kernels on ");
  const Span *first = find(kernels, "Exp"), *slow = find(kernels, "Sqrt"),
             *last = find(kernels, "Tanh");
  REQUIRE((first && slow && last));
  CHECK(length(slow) >= kSlow);
  CHECK(first->end_ns <= slow->begin_ns);
  CHECK(slow->end_ns <= last->begin_ns);
  CHECK(first->run != 0);
  CHECK(first->run == last->run);
  REQUIRE(lines.at("uploads to ").size() == 1);
  REQUIRE(lines.at("downloads from ").size() == 1);
  const Span& up = lines.at("uploads to ")[0];
  const Span& down = lines.at("downloads from ")[0];
  // Each line's clock is set to the host's by itself, to within less than the slow kernel takes.
  CHECK(up.end_ns <= slow->end_ns);
  CHECK(slow->begin_ns <= down.begin_ns);
  for (const auto& [line, spans] : lines)
    for (const Span& span : spans) {
      CHECK(timeline.begin_ns <= span.begin_ns);
      CHECK(span.begin_ns <= span.end_ns);
      CHECK(span.end_ns <= timeline.end_ns);
    }
  const auto copies = gpu_lines(traced("slow=download,slow_us=60000"));
  CHECK(length(find(copies.at("downloads from "), "")) >= kSlow);
}

TEST_CASE("what a resource answers is uploaded by the name of the node that asked") {
  const Emulated emulated;
  Graph g(1);
  Variable w = variable(g, "w", value_or_throw(Tensor::zeros(DType::f32, {4})));
  Output there = is_variable_initialized(w.handle());
  Session session(g, with_gpu());
  auto step = session.compile({there});
  throw_if_error(session.try_start_trace());
  step.run(std::vector<Tensor>{});
  const auto lines = gpu_lines(value_or_throw(session.try_stop_trace()));
  REQUIRE(lines.contains("uploads to "));
  for (const Span& span : lines.at("uploads to "))
    CHECK_MESSAGE(contains(span.name, "IsVariableInitialized"), span.name);
}

TEST_CASE("nothing of a GPU is timed while no trace is recorded") {
  const Emulated emulated;
  Chain chain;
  Session session(chain.g, with_gpu());
  auto step = session.compile({chain.y}, {}, {chain.x});
  const std::size_t before = test::count_in_fake_cuda("timed");
  for (int i = 0; i < 3; ++i) step.run({numbers(10)});
  CHECK(test::count_in_fake_cuda("timed") == before);
  throw_if_error(session.try_start_trace());
  step.run({numbers(10)});
  CHECK(test::count_in_fake_cuda("timed") > before);
  CHECK(session.try_stop_trace().ok());
  const std::size_t after = test::count_in_fake_cuda("timed");
  step.run({numbers(10)});
  CHECK(test::count_in_fake_cuda("timed") == after);
}

// A step is over when its work on the device is, so at most one of each thread of the client is
// under way, beside the update of the variables by the one before.
TEST_CASE("a GPU is given at most one step ahead by each thread of the client") {
  const Emulated emulated("delay_us=200,seed=5");
  Graph g(1);
  Variable w = variable(g, "w", value_or_throw(Tensor::zeros(DType::f32, {16})));
  Output y = tanh(sqrt(exp(w + 1.0f)));
  Op update = assign_add(w.handle(), y);
  Session session(g, with_gpu());
  session.init();
  auto step = session.compile({}, {update});
  step.run(std::vector<Tensor>{});
  test::count_in_fake_cuda("most_queued");
  step.run(std::vector<Tensor>{});
  const std::size_t of_one = test::count_in_fake_cuda("most_queued");
  for (int i = 0; i < 30; ++i) step.run(std::vector<Tensor>{});
  const std::size_t of_many = test::count_in_fake_cuda("most_queued");
  INFO(of_one << " of one step, " << of_many << " of many");
  constexpr std::size_t kStep =
      2 * 6;  // kernels of a step and of its update, with an event for each
  CHECK(of_many <= 2 * kStep);
}
