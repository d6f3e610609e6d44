// Hostile inputs written by hand: each is answered with a Status that names what was wrong, or with
// a closed connection, and the worker goes on.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <functional>

#include "graph/node_query.hpp"
#include "ops/op.hpp"
#include "serialization/parts.hpp"
#include "tests/actors/support/quiet.hpp"
#include "tests/actors/worker/hostile_job.hpp"
#include "tests/net/raw_client.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

// A graph that is wrong in one place, or a step asked of a good one. The answer is StepLoaded.
struct GraphInput {
  const char* what;
  std::function<void(GraphDef&)> spoil;
  const char* says;
};

NodeDef& node(GraphDef& g, std::string_view op) {
  for (NodeDef& n : g.nodes)
    if (n.op == op) return n;
  FAIL("no node of that op");
  std::abort();
}
NodeDef& last(GraphDef& g) { return g.nodes.back(); }

const std::vector<GraphInput>& graph_inputs() {
  static const std::vector<GraphInput> all = {
      {"an op that is not known", [](auto& g) { last(g).op = "Frobnicate"; }, "Frobnicate"},
      {"an op of the runtime's own", [](auto& g) { last(g).op = "_Send"; }, "_Send"},
      {"a feed's own op", [](auto& g) { last(g).op = "_Feed"; }, "_Feed"},
      {"two nodes of one name", [](auto& g) { g.nodes[1].name = g.nodes[0].name; }, "both named"},
      {"a name with a colon", [](auto& g) { g.nodes[1].name = "a:0"; }, "no node name"},
      {"a name with a caret", [](auto& g) { g.nodes[1].name = "^a"; }, "no node name"},
      {"a name with a zero byte", [](auto& g) { g.nodes[1].name = std::string("a\0b", 3); },
       "node name"},
      {"a name of 100 kB", [](auto& g) { g.nodes[1].name = std::string(100'000, 'a'); }, "name"},
      {"an input from beyond the end", [](auto& g) { node(g, "Mul").inputs[0].node = 4'000'000; },
       "of"},
      {"an input from the last number", [](auto& g) { node(g, "Mul").inputs[0].node = ~0u; }, "of"},
      {"an output beyond the last", [](auto& g) { node(g, "Mul").inputs[0].index = 1; }, "output"},
      {"the last output number", [](auto& g) { node(g, "Mul").inputs[0].index = ~0u; }, "output"},
      {"too few inputs", [](auto& g) { node(g, "Mul").inputs.pop_back(); }, "input"},
      {"too many inputs",
       [](auto& g) {
         node(g, "Mul").inputs.push_back({0, 0});
       },
       "input"},
      {"a million inputs",
       [](auto& g) {
         node(g, "Mul").inputs.assign(1'000'000, Port{0, 0});
       },
       "inputs"},
      {"a node that reads itself",
       [](auto& g) {
         for (NodeId i = 0; i < g.nodes.size(); ++i)
           if (g.nodes[i].op == "Mul") return void(g.nodes[i].inputs[0] = {i, 0});
       },
       "cycle"},
      {"a cycle of control edges",
       [](auto& g) {
         g.nodes[0].control = {1};
         g.nodes[1].control = {0};
       },
       "cycle"},
      {"a control input of itself", [](auto& g) { g.nodes[0].control = {0}; }, "cycle"},
      {"a control input from nowhere", [](auto& g) { g.nodes[0].control = {~0u}; }, "control"},
      {"no value of a constant", [](auto& g) { node(g, "Const").attrs.erase("value"); }, "value"},
      {"a number as a constant's value",
       [](auto& g) { node(g, "Const").attrs["value"] = Attr(std::int64_t{3}); }, "value"},
      {"a constant of another type than it says",
       [](auto& g) { node(g, "Const").attrs["value"] = Attr(Tensor::scalar<std::int64_t>(1)); },
       "Const"},
      {"a constant that is undefined",
       [](auto& g) { node(g, "Const").attrs["value"] = Attr(Tensor{}); }, "value"},
      {"a constant that is text",
       [](auto& g) { node(g, "Const").attrs["value"] = Attr(Tensor::scalar("x")); }, "Const"},
      {"an attribute that the op does not have",
       [](auto& g) { node(g, "Mul").attrs["colour"] = Attr(std::string("red")); }, "colour"},
      {"an attribute of the compiler's own",
       [](auto& g) { node(g, "Mul").attrs["replicas"] = Attr(std::int64_t{-1}); }, "replicas"},
      {"a type that no kernel has",
       [](auto& g) { node(g, "Mul").attrs["T"] = Attr(DType::string); }, "Mul"},
      {"no type at all", [](auto& g) { node(g, "Mul").attrs["T"] = Attr(DType::invalid); }, "Mul"},
      {"a handle's type", [](auto& g) { node(g, "Mul").attrs["T"] = Attr(DType::resource); },
       "Mul"},
      {"a type as text", [](auto& g) { node(g, "Mul").attrs["T"] = Attr(std::string("f32")); },
       "T"},
      {"a variable without a shape", [](auto& g) { node(g, "Variable").attrs.erase("shape"); },
       "shape"},
      {"a variable of a huge shape",
       [](auto& g) {
         node(g, "Variable").attrs["shape"] = Attr(PartialShape(Shape{1, kHuge}));
       },
       ""},
      {"a variable whose size overflows",
       [](auto& g) {
         node(g, "Variable").attrs["shape"] =
             Attr(PartialShape::make({{std::int64_t{1} << 40, std::int64_t{1} << 40}}).value());
       },
       ""},
      {"a variable of text", [](auto& g) { node(g, "Variable").attrs["T"] = Attr(DType::string); },
       ""},
      {"a queue without types", [](auto& g) { node(g, "FIFOQueue").attrs.erase("types"); },
       "types"},
      {"a queue of no types",
       [](auto& g) { node(g, "FIFOQueue").attrs["types"] = Attr(std::vector<DType>{}); }, ""},
      {"a queue of handles",
       [](auto& g) {
         node(g, "FIFOQueue").attrs["types"] = Attr(std::vector<DType>{DType::resource});
       },
       ""},
      {"more shapes than types in a queue",
       [](auto& g) {
         node(g, "FIFOQueue").attrs["shapes"] =
             Attr(std::vector<PartialShape>(5, PartialShape::scalar()));
       },
       ""},
      {"a queue of negative capacity",
       [](auto& g) { node(g, "FIFOQueue").attrs["capacity"] = Attr(std::int64_t{-5}); },
       "capacity"},
      {"a read of a number",
       [](auto& g) {
         node(g, "ReadVariable").inputs[0] = {1, 0};
       },
       ""},
      {"a read of a queue",
       [](auto& g) {
         NodeDef queue;
         queue.name = "another";
         queue.op = "FIFOQueue";
         queue.attrs = {{"types", Attr(std::vector<DType>{DType::f32})}};
         queue.out_types = {DType::resource};
         queue.out_shapes = {PartialShape::scalar()};
         g.nodes.push_back(queue);
         node(g, "ReadVariable").inputs[0] = {NodeId(g.nodes.size() - 1), 0};
       },
       "handle"},
      {"a device that is no name", [](auto& g) { g.nodes[0].device = "/job:"; }, "device"},
      {"a device with a huge index", [](auto& g) { g.nodes[0].device = "/cpu:99999999999999"; },
       ""},
      {"a device of 100 kB", [](auto& g) { g.nodes[0].device = std::string(100'000, '/'); }, ""},
      {"colocated with nobody", [](auto& g) { g.nodes[0].colocate = {"nobody"}; }, "nobody"},
      {"colocated with no name", [](auto& g) { g.nodes[0].colocate = {""}; }, ""},
      {"a replica below none", [](auto& g) { g.nodes[0].replica = -7; }, "replica"},
      {"a site with control characters",
       [](auto& g) {
         g.nodes[0].site = {"a\x1b[31m", 3};
       },
       "site"},
      {"loops", [](auto& g) { last(g).op = "NextIteration"; }, ""},
  };
  return all;
}

struct HostileStep {
  const char* what;
  std::function<void(LoadStep&)> spoil;
  Code code;
  const char* says;
};

DeviceName device_name(const std::string& text) { return DeviceName::parse(text).value(); }

const std::vector<HostileStep>& step_inputs() {
  static const std::vector<HostileStep> all = {
      {"of a session that is not known", [](auto& l) { l.session = 77; }, Code::failed_precondition,
       "graph"},
      {"of another version", [](auto& l) { ++l.version; }, Code::failed_precondition, "version"},
      {"of the last version", [](auto& l) { l.version = ~0ull; }, Code::failed_precondition,
       "version"},
      {"loaded already", [](auto& l) { l.compiled = 2; }, Code::already_exists, "loaded"},
      {"nothing to run",
       [](auto& l) {
         l.request.fetches.clear();
         l.request.targets.clear();
       },
       Code::invalid_argument, "nothing to run"},
      {"a fetch of no node",
       [](auto& l) {
         l.request.fetches = {{"nobody", 0, false}};
       },
       Code::not_found, "nobody"},
      {"a fetch of an output too far", [](auto& l) { l.request.fetches[0].port = 9; },
       Code::invalid_argument, "output"},
      {"a fetch of a control edge",
       [](auto& l) {
         l.request.fetches[0].control = true;
         l.request.fetches[0].port = -1;
       },
       Code::invalid_argument, "control"},
      {"a target of no node", [](auto& l) { l.request.targets = {"nobody"}; }, Code::not_found,
       "nobody"},
      {"an empty target", [](auto& l) { l.request.targets = {""}; }, Code::not_found, "target"},
      {"a feed of no node",
       [](auto& l) {
         l.request.feeds = {{"nobody", 0, false}};
       },
       Code::not_found, "nobody"},
      {"a feed of a handle",
       [](auto& l) {
         l.request.feeds = {{"slope", 0, false}};
       },
       Code::invalid_argument, "handle"},
      {"one port fed twice",
       [](auto& l) {
         l.request.feeds = {{"x", 0, false}, {"x", 0, false}};
       },
       Code::invalid_argument, "more than once"},
      {"fed and fetched", [](auto& l) { l.request.feeds = l.request.fetches; },
       Code::invalid_argument, "fed and fetched"},
      {"no replicas", [](auto& l) { l.request.replicas = 0; }, Code::invalid_argument, "replicas"},
      {"less than no replicas", [](auto& l) { l.request.replicas = -1; }, Code::invalid_argument,
       "replicas"},
      {"as many replicas as there are numbers", [](auto& l) { l.request.replicas = 0x7fffffff; },
       Code::invalid_argument, "replicas"},
      {"no devices", [](auto& l) { l.devices.clear(); }, Code::invalid_argument, "devices"},
      {"one device twice", [](auto& l) { l.devices[1] = l.devices[0]; }, Code::invalid_argument,
       "twice"},
      {"a device that this process does not have",
       [](auto& l) {
         l.devices[0].name = device_name("/job:worker/task:9/device:CPU:0");
         l.soft_placement = false;
       },
       Code::invalid_argument, "device"},
      {"a device of its task that this process did not make",
       [](auto& l) { l.devices[0].name = device_name("/job:worker/task:0/device:CPU:5"); },
       Code::not_found, "no device"},
      {"state that is somewhere else",
       [](auto& l) {
         NodeDef slope;
         slope.op = "Variable", slope.name = "slope";
         l.fixed[resource_key(slope, ops::builtin().ops)] =
             device_name("/job:worker/task:8/device:CPU:0");
       },
       Code::failed_precondition, "task:8"},
  };
  return all;
}

// What is told to a worker that has a graph, where the answer is PartitionDone.
struct StartInput {
  const char* what;
  std::function<void(StartPartition&)> spoil;
  Code code;
  const char* says;
};

const std::vector<StartInput>& start_inputs() {
  static const std::vector<StartInput> all = {
      {"a step that is not loaded", [](auto& m) { m.compiled = 99; }, Code::not_found,
       "not loaded"},
      {"the last step number", [](auto& m) { m.compiled = ~0ull; }, Code::not_found, "not loaded"},
      {"a partition beyond the last", [](auto& m) { m.partition = 77; }, Code::not_found, ""},
      {"the last partition", [](auto& m) { m.partition = ~0u; }, Code::not_found, ""},
      {"elements of a dataset that it does not read", [](auto& m) { m.elements = {{0}}; },
       Code::invalid_argument, "elements"},
      {"no feed", [](auto& m) { m.feeds.clear(); }, Code::invalid_argument, "feeds"},
      {"two feeds", [](auto& m) { m.feeds.push_back(m.feeds[0]); }, Code::invalid_argument,
       "feeds"},
      {"integers",
       [](auto& m) {
         m.feeds[0] = Tensor::of<std::int32_t>({2}, {1, 2});
       },
       Code::invalid_argument, "f32"},
      {"doubles",
       [](auto& m) {
         m.feeds[0] = Tensor::of<double>({2}, {1, 2});
       },
       Code::invalid_argument, "f32"},
      {"text", [](auto& m) { m.feeds[0] = Tensor::scalar("x"); }, Code::invalid_argument, "f32"},
      {"a scalar", [](auto& m) { m.feeds[0] = Tensor::scalar(1.0f); }, Code::invalid_argument,
       "f32"},
      {"a matrix",
       [](auto& m) {
         m.feeds[0] = Tensor::of<float>({1, 1}, {1});
       },
       Code::invalid_argument, "f32"},
  };
  return all;
}

// Tags of tensors on the other worker's data connection; each closes it.
struct TagInput {
  const char* what;
  std::function<void(std::string& tag, std::string& bytes)> spoil;
};

template <class T>
void put(std::string& text, std::size_t at, T value) {
  text.resize(std::max(text.size(), at + sizeof value));
  std::memcpy(&text[at], &value, sizeof value);
}

const std::vector<TagInput>& tag_inputs() {
  static const std::vector<TagInput> all = {
      {"no tag", [](auto& t, auto&) { t.clear(); }},
      {"half a tag", [](auto& t, auto&) { t.resize(20); }},
      {"a byte too few", [](auto& t, auto&) { t.pop_back(); }},
      {"a byte too many", [](auto& t, auto&) { t.push_back('x'); }},
      {"another version", [](auto& t, auto&) { t[0] = 2; }},
      {"a kind that is none", [](auto& t, auto&) { t[1] = 3; }},
      {"a feed from a worker", [](auto& t, auto&) { t[1] = 1; }},
      {"a fetch to a worker", [](auto& t, auto&) { t[1] = 2; }},
      {"no dtype", [](auto& t, auto&) { t[2] = 0; }},
      {"a dtype beyond the last", [](auto& t, auto&) { t[2] = char(200); }},
      {"a handle", [](auto& t, auto&) { t[2] = char(DType::resource); }},
      {"text", [](auto& t, auto&) { t[2] = char(DType::string); }},
      {"doubles", [](auto& t, auto&) { t[2] = char(DType::f64); }},
      {"neither dead nor alive", [](auto& t, auto&) { t[3] = 2; }},
      {"dead, with bytes", [](auto& t, auto&) { t[3] = 1; }},
      {"rank 9", [](auto& t, auto&) { t[4] = 9; }},
      {"rank 255", [](auto& t, auto&) { t[4] = char(255); }},
      {"a rank without its dimensions", [](auto& t, auto&) { t[4] = char(t[4] + 1); }},
      {"255 iteration numbers", [](auto& t, auto&) { t[5] = char(255); }},
      {"flags that nobody knows", [](auto& t, auto&) { t[6] = 1; }},
      {"another partition", [](auto& t, auto&) { put(t, 8, std::uint32_t{77}); }},
      {"the last partition", [](auto& t, auto&) { put(t, 8, ~0u); }},
      {"a channel beyond the last", [](auto& t, auto&) { put(t, 12, std::uint32_t{4000}); }},
      {"the last channel", [](auto& t, auto&) { put(t, 12, ~0u); }},
      {"a step that is not loaded", [](auto& t, auto&) { put(t, 16, std::uint64_t{99}); }},
      {"an attempt far ahead", [](auto& t, auto&) { put(t, 32, std::uint64_t{1} << 40); }},
      {"a negative dimension", [](auto& t, auto&) { put(t, 40, std::int64_t{-1}); }},
      {"a huge dimension", [](auto& t, auto&) { put(t, 40, kHuge); }},
      {"a size that overflows to a small one",
       [](auto& t, auto&) {
         put(t, 40, std::int64_t{1} << 32);
         put(t, 48, std::int64_t{1} << 32);
       }},
      {"more columns than the channel has", [](auto& t, auto&) { put(t, 48, std::int64_t{5}); }},
      {"fewer bytes than the shape wants", [](auto&, auto& b) { b.pop_back(); }},
      {"more bytes than the shape wants", [](auto&, auto& b) { b.push_back('x'); }},
      {"no bytes", [](auto&, auto& b) { b.clear(); }},
  };
  return all;
}

struct WelcomeInput {
  const char* what;
  std::function<void(Welcome&)> spoil;
};

const std::vector<WelcomeInput>& welcome_inputs() {
  static const std::vector<WelcomeInput> all = {
      {"the master's own number", [](auto& w) { w.process = 0; }},
      {"four billion threads", [](auto& w) { w.threads = ~0u; }},
      {"a negative number of threads", [](auto& w) { w.threads = 0x80000000u; }},
      {"the last task", [](auto& w) { w.task = TaskId(~0u); }},
      {"no devices", [](auto& w) { w.devices.clear(); }},
      {"a device that is none", [](auto& w) { w.devices = {"GPU"}; }},
      {"a device without a name", [](auto& w) { w.devices = {""}; }},
      {"a device that ends the name", [](auto& w) { w.devices = {"CPU:0/device:CPU"}; }},
      {"a million devices", [](auto& w) { w.devices.assign(30'000, "CPU"); }},
      {"other kernels", [](auto& w) { w.profile.kernels = "other"; }},
      {"kernels of no text", [](auto& w) { w.profile.kernels = std::string(1000, '\0'); }},
      {"a processor of the future", [](auto& w) { w.profile.isa = 9; }},
      {"the last instruction set", [](auto& w) { w.profile.isa = ~0u; }},
  };
  return all;
}

Status loaded(HostileJob& job, CompiledId id) {
  auto m = job.await([&](const WireMessage& m) {
    auto* loaded = std::get_if<StepLoaded>(&m);
    return loaded && loaded->compiled == id;
  });
  REQUIRE(m);
  return std::get<StepLoaded>(*m).status;
}

void says(const Status& status, std::string_view what) {
  CHECK_MESSAGE(status.text().find(what) != std::string::npos, status.text());
}

}  // namespace

TEST_CASE("hostile graphs by hand are refused by a worker") {
  test::Quiet quiet;
  JobProgram program;
  HostileJob job;
  REQUIRE(job.join(HostileJob::welcome()));
  CompiledId id = 100;
  for (const GraphInput& input : graph_inputs()) {
    INFO(std::string(input.what));
    GraphDef graph = *program.graph;
    input.spoil(graph);
    REQUIRE(job.send(LoadGraph{1, graph.nodes.size(), std::make_shared<const GraphDef>(graph)}));
    LoadStep load = program.steps[1].load;
    load.version = graph.nodes.size();
    load.compiled = ++id;
    REQUIRE(job.send(load));
    Status status = loaded(job, id);
    CHECK(!status.ok());
    says(status, input.says);
    REQUIRE(job.answers());
  }
  MESSAGE("hostile inputs by hand: " << graph_inputs().size());
}

TEST_CASE("hostile steps and starts by hand are refused by a worker") {
  test::Quiet quiet;
  JobProgram program;
  HostileJob job;
  REQUIRE(job.join(HostileJob::welcome()));
  job.load(program);
  CompiledId id = 100;
  for (const HostileStep& input : step_inputs()) {
    INFO(std::string(input.what));
    LoadStep load = program.steps[2].load;
    load.request.fetches.resize(1);
    load.compiled = ++id;
    input.spoil(load);
    REQUIRE(job.send(load));
    Status status = loaded(job, load.compiled);
    CHECK_MESSAGE(status.code() == input.code, status.text());
    says(status, input.says);
  }
  const auto& direct = program.steps[3];
  std::uint64_t a = 100;
  for (const StartInput& input : start_inputs()) {
    INFO(std::string(input.what));
    StartPartition start;
    start.compiled = direct.load.compiled;
    start.attempt.id = {1, ++a};
    start.attempt.snapshot = 1;
    while (direct.tasks[start.partition] != kVictimTask) ++start.partition;
    start.feeds = {Tensor::of<float>({2}, {1, 2})};
    input.spoil(start);
    REQUIRE(job.send(start));
    auto m = job.await([&](const WireMessage& m) {
      auto* done = std::get_if<PartitionDone>(&m);
      return done && done->attempt == start.attempt.id;
    });
    REQUIRE(m);
    const Status& status = std::get<PartitionDone>(*m).status;
    CHECK_MESSAGE(status.code() == input.code, status.text());
    says(status, input.says);
  }
  CHECK(job.answers());
  MESSAGE("hostile inputs by hand: " << step_inputs().size() + start_inputs().size());
}

TEST_CASE("hostile tensor tags by hand close the connection they came on") {
  test::Quiet quiet;
  JobProgram program;
  HostileJob job;
  REQUIRE(job.join(HostileJob::welcome()));
  job.load(program);
  const auto& step = program.steps[2];
  TensorTag tag;
  tag.compiled = step.load.compiled;
  tag.attempt = {1, 5};
  tag.dtype = DType::f32;
  tag.shape = Shape{2, 4};
  REQUIRE(step.graph.channels.size() == 1);
  tag.index = step.graph.channels[0].id;
  tag.partition = step.graph.channels[0].to;
  REQUIRE(step.tasks[step.graph.channels[0].from] == kMemberTask);
  for (const TagInput& input : tag_inputs()) {
    INFO(std::string(input.what));
    REQUIRE(job.member());
    std::string text = tag_text(tag), bytes(32, '\0');
    input.spoil(text, bytes);
    job.member_data().send(tensor_frame(job.next_transfer(true), text, bytes));
    CHECK(job.member_control().closed());
    CHECK(job.answers());
  }
  // A tensor that is right is welcome, once.
  REQUIRE(job.member());
  job.member_data().send(
      tensor_frame(job.next_transfer(true), tag_text(tag), std::string(32, '\0')));
  job.member_data().send(
      tensor_frame(job.next_transfer(true), tag_text(tag), std::string(32, '\0')));
  CHECK(job.member_control().closed());
  CHECK(job.answers());
  MESSAGE("hostile inputs by hand: " << tag_inputs().size() + 1);
}

namespace {

// Tensors that the other worker sends for attempts that the master has not spoken of: 1 MiB each,
// of one channel. They are as a legal job has them, but for their number.
class Flood {
 public:
  Flood(HostileJob& job, const JobProgram::Step& step) : job_(job), bytes_(1 << 20, '\0') {
    tag_.compiled = step.load.compiled;
    tag_.dtype = DType::f32;
    tag_.shape = Shape{std::int64_t(bytes_.size()) / 16, 4};
    tag_.index = step.graph.channels[0].id;
    tag_.partition = step.graph.channels[0].to;
  }
  // From attempt `a` on.
  void begin(std::uint64_t a) { tag_.attempt = {1, a}; }
  // For one attempt after the other, until the worker reads no more. How many it read.
  std::uint64_t run(std::uint64_t most) {
    for (std::uint64_t n = 0; n < most; ++n) {
      std::string frame = tensor_frame(job_.next_transfer(true), tag_text(tag_), bytes_);
      ++tag_.attempt.a;
      std::size_t taken = job_.member_data().offer(frame, std::chrono::milliseconds(300));
      rest_ = frame.substr(taken);
      if (!rest_.empty()) return n;
    }
    return most;
  }
  // What is left of the frame that it stopped at.
  const std::string& rest() const { return rest_; }
  std::uint32_t partition() const { return tag_.partition; }

 private:
  HostileJob& job_;
  TensorTag tag_;
  std::string bytes_, rest_;
};

}  // namespace

TEST_CASE("hostile tensors by hand ahead of their attempts wait with their sender") {
  test::Quiet quiet;
  constexpr std::uint64_t kMost = 256, kAccepted = 64 + 96;  // the latter with sockets' buffers
  JobProgram program;
  HostileJob job;
  REQUIRE(job.join(HostileJob::welcome()));
  job.load(program);
  const auto& step = program.steps[2];
  Flood flood(job, step);
  [[maybe_unused]] const std::uint64_t before = resident_bytes();
  auto bounded = [&] {
#ifndef TROUPE_POISON  // AddressSanitizer keeps the frames, which were freed here
    CHECK(resident_bytes() < before + (kAccepted << 20));
#endif
  };
  flood.begin(10);
  CHECK(flood.run(kMost) < kAccepted);
  bounded();
  CHECK(job.answers());
  CHECK(job.member_control().open());
  // What waits is used by the attempt that begins.
  StartPartition start;
  start.compiled = step.load.compiled;
  start.partition = flood.partition();
  start.attempt.id = {1, 10};
  start.attempt.snapshot = 1;
  REQUIRE(job.send(start));
  auto done =
      job.await([](const WireMessage& m) { return std::holds_alternative<PartitionDone>(m); });
  REQUIRE(done);
  const Status& status = std::get<PartitionDone>(*done).status;
  CHECK_MESSAGE(status.ok(), status.text());
  // And is gone when its attempts are over: the sender may go on.
  REQUIRE(job.send(LiveList{1, 2, 1, 1, 1000, {}}));
  CHECK(job.member_data().send(flood.rest()));
  CHECK(job.answers());
  // A new connection does not open a new account. The old one may not be full yet: a starved worker
  // looks as if it held its sender.
  flood.begin(1000);
  CHECK(flood.run(kMost) < kAccepted);
  CHECK(job.answers());
  const auto until = Line::Clock::now() + kPatience;
  Status why;
  do {
    job.lose_member();
    REQUIRE(job.member());
    flood.run(kMost);
    if (job.member_data().open()) continue;
    while (auto frame = job.member_control().frame())
      if (frame->type == FrameType::bye) why = decode_bye(as_bytes(frame->payload));
    // Nobody's tensors are taken: it came back before it was known to be gone.
  } while (why.code() != Code::resource_exhausted && Line::Clock::now() < until);
  CHECK(why.code() == Code::resource_exhausted);
  says(why, "have not begun");
  bounded();
  CHECK(job.answers());
  MESSAGE("hostile inputs by hand: 2");
}

TEST_CASE("hostile feeds by hand end the connection of their master") {
  test::Quiet quiet;
  const std::pair<const char*, std::function<void(TensorTag&)>> kFeeds[] = {
      {"the same feed of the same attempt", [](TensorTag&) {}},
      {"an attempt far ahead", [](TensorTag& t) { t.attempt.a = std::uint64_t{1} << 33; }},
      {"the last attempt", [](TensorTag& t) { t.attempt.a = ~0ull; }},
      {"a fetch to a worker", [](TensorTag& t) { t.kind = TensorTag::Kind::fetch; }},
      {"a feed without bytes that says it is dead", [](TensorTag& t) { t.dead = true; }},
      {"a shape with more bytes", [](TensorTag& t) { t.shape = Shape{3}; }},
      {"a feed of an attempt that has begun", [](TensorTag& t) { t.attempt.a = 400; }},
  };
  for (const auto& [what, spoil] : kFeeds) {
    const std::string said = what;
    INFO(said);
    HostileJob job;
    REQUIRE(job.join(HostileJob::welcome()));
    StartPartition begun;
    begun.attempt.id = {1, 400};
    REQUIRE(job.send(begun));
    TensorTag tag;
    tag.kind = TensorTag::Kind::feed;
    tag.attempt = {1, 500};
    tag.dtype = DType::f32;
    tag.shape = Shape{2};
    job.data().send(tensor_frame(job.next_transfer(false), tag_text(tag), std::string(8, '\0')));
    CHECK(job.answers());
    spoil(tag);
    job.data().send(tensor_frame(job.next_transfer(false), tag_text(tag), std::string(8, '\0')));
    CHECK(job.control().closed());
    CHECK(!job.ended().ok());
  }
  MESSAGE("hostile inputs by hand: " << std::size(kFeeds));
}

TEST_CASE("hostile parts by hand end the connection of their master") {
  test::Quiet quiet;
  // Three parts.
  const std::vector<std::byte> whole(2 * kMessagePart + 5);
  auto part = [&](std::size_t i) { return message_part(whole, i * kMessagePart); };
  struct PartInput {
    const char* what;
    std::vector<MessagePart> parts;
  };
  MessagePart of_another = part(1), beyond = part(0), wrapped = part(1), empty = part(1);
  of_another.total += 1;
  beyond.total = kMasterMessage + 1;
  wrapped.offset = ~std::uint64_t{0};
  empty.bytes.clear();
  const PartInput kInputs[] = {
      {"not the first", {part(1)}},
      {"the last alone", {part(2)}},
      {"the first again", {part(0), part(0)}},
      {"a gap", {part(0), part(2)}},
      {"the last again", {part(0), part(1), part(1)}},
      {"a part of another message", {part(0), of_another}},
      {"longer than any message", {beyond}},
      {"an offset that wraps round", {part(0), wrapped}},
      {"an empty part", {part(0), empty}},
      {"a whole that is no message", {part(0), part(1), part(2)}},
  };
  for (const PartInput& input : kInputs) {
    INFO(std::string(input.what));
    HostileJob job;
    REQUIRE(job.join(HostileJob::welcome()));
    for (const MessagePart& p : input.parts) job.send(p);
    CHECK(job.control().closed());
    CHECK(!job.ended().ok());
  }
  // A claim of 1 GiB followed by nothing takes no such memory, and other messages come between.
  HostileJob job;
  REQUIRE(job.join(HostileJob::welcome()));
  MessagePart first = part(0);
  first.total = kMasterMessage;
  const std::uint64_t before = resident_bytes();
  REQUIRE(job.send(first));
  CHECK(job.answers());
  CHECK(resident_bytes() < before + (std::uint64_t{64} << 20));
  MESSAGE("hostile inputs by hand: " << std::size(kInputs) + 1);
}

// Its part of the mesh cannot come about any more: the master has to hear of it.
TEST_CASE("a worker that another one refuses says so to its master") {
  test::Quiet quiet;
  Descriptor listener =
      value_or_throw(listen_on(value_or_throw(resolve({"127.0.0.1", 0})).front()));
  HostileJob job;
  Welcome welcome = HostileJob::welcome();
  welcome.process = 2;
  REQUIRE(job.send(welcome));
  REQUIRE(job.await([](const WireMessage& m) { return std::holds_alternative<Ready>(m); }));
  Members members;
  members.view = 1;
  members.members = {{1, TaskId{0}, 1, "127.0.0.1", local_address(listener.get()).port()},
                     {2, TaskId{1}, job.incarnation(), "127.0.0.1", job.port()}};
  REQUIRE(job.send(members));
  pollfd p{listener.get(), POLLIN, 0};
  REQUIRE(::poll(&p, 1, 20'000) == 1);
  Line other(Descriptor(::accept4(p.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)),
             &secret_context());
  REQUIRE(other.frame());
  other.send(FrameType::bye, encode_bye(already_exists("process 2 is connected already")));
  auto said = job.await([](const WireMessage& m) { return std::holds_alternative<LinkLost>(m); });
  REQUIRE(said);
  const LinkLost& lost = std::get<LinkLost>(*said);
  CHECK(lost.process == 2);
  CHECK(lost.other == 1);
  CHECK(lost.view == 1);
  says(lost.why, "connected already");
}

TEST_CASE("a link between two workers that breaks is reported to the master") {
  test::Quiet quiet;
  HostileJob job;
  REQUIRE(job.join(HostileJob::welcome()));
  job.lose_member();
  auto said = job.await([](const WireMessage& m) { return std::holds_alternative<LinkLost>(m); });
  REQUIRE(said);
  CHECK(std::get<LinkLost>(*said).process == kVictim);
  CHECK(std::get<LinkLost>(*said).other == kMember);
  CHECK(job.answers());
}

TEST_CASE("hostile welcomes by hand end a worker in order") {
  test::Quiet quiet;
  for (const WelcomeInput& input : welcome_inputs()) {
    INFO(std::string(input.what));
    HostileJob job;
    Welcome welcome = HostileJob::welcome();
    input.spoil(welcome);
    job.send(welcome);
    CHECK(job.control().closed());
    Status status = job.ended();
    CHECK(!status.ok());
    CHECK(!status.message().empty());
  }
  MESSAGE("hostile inputs by hand: " << welcome_inputs().size());
}
