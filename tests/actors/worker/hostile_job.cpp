#include "tests/actors/worker/hostile_job.hpp"

#include "actors/net/crc32c.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "ops/evaluate.hpp"
#include "ops/optim/optim.hpp"
#include "serialization/wire.hpp"
#include "tests/actors/support/nodes.hpp"

namespace troupe::testing {
using namespace troupe::test;
namespace {

constexpr std::uint64_t kMemberIncarnation = 1;

// Where workers find the master that the test plays: one socket for all lives.
struct MasterSocket {
  Descriptor fd = value_or_throw(listen_on(value_or_throw(resolve({"127.0.0.1", 0})).front()));
  std::uint16_t port = local_address(fd.get()).port();
};
MasterSocket& master_socket() {
  static MasterSocket socket;
  return socket;
}

Descriptor accept_one() {
  pollfd p{master_socket().fd.get(), POLLIN, 0};
  REQUIRE_MESSAGE(::poll(&p, 1, 20'000) == 1, "the worker does not connect");
  Descriptor fd(::accept4(p.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  REQUIRE(fd);
  return fd;
}

std::string text_of_token(const Token& token) { return std::string(text_view(token)); }

std::string greeting_text(const Join& join, const Token& token = {}) {
  return encode(Greeting{1u << 20, 1u << 20, false, token, encode_join(join).value()});
}

std::string port_text(const Output& o, const Graph& g) {
  return PortName{g.node(o.node()).name, int(o.port().index), false}.text();
}

}  // namespace

const TlsContext& secret_context() {
  static auto context = TlsContext::make(Security::shared_secret(kSecret)).value();
  return *context;
}

// ---- the program -----------------------------------------------------------------------------

JobProgram::JobProgram() {
  Graph g(7);
  Variable slope = variable_on(g, kTask0, "slope", Tensor::of<float>({4}, {0, 1, 2, 3}));
  Variable offset = variable_on(g, kTask1, "offset", Tensor::of<float>({4}, {1, 1, 1, 1}));
  Output queue = queue_on(g, kTask0), taken = take_from(queue);
  Op put = enqueue(queue, {constant(g, 3.0f)});
  Output x, rows;
  {
    auto there = g.with_device(kTask1);
    x = placeholder<float>(g, {-1, 4}, "x") * 2.0f;
    rows = list_push(list_unstack(x), offset.value());
  }
  Output noise = random_standard_normal(g, {8, 4});
  Output error = noise * slope.value() + offset.value();
  Output loss = mean(error * error);
  Op train = optim::Sgd{.lr = 0.1}.minimize(loss);
  Output product, direct, stacked;
  {
    auto here = g.with_device(kTask0);
    stacked = list_stack(rows, DType::f32);
    product = x * slope.value();
    direct = mean(placeholder<float>(g, {-1}, "y") * 3.0f);
  }
  graph = g.snapshot();
  std::vector<std::string> init;
  for (NodeId node : g.initializers()) init.push_back(g.node(node).name);
  add_step({}, init, {}, 1);
  add_step({port_text(loss, g)}, {train.name()}, {}, 2);
  add_step({port_text(product, g)}, {}, {"x"}, 1);
  add_step({port_text(direct, g)}, {}, {"y"}, 1);
  add_step({}, {put.name()}, {}, 1);
  add_step({port_text(taken, g)}, {}, {}, 1);
  add_step({port_text(stacked, g)}, {}, {"x"}, 1);
}

void JobProgram::add_step(const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets,
                          const std::vector<std::string>& feeds, int replicas) {
  Step step;
  LoadStep& load = step.load;
  load.compiled = steps.size() + 1;
  load.session = 1;
  load.version = graph->nodes.size();
  for (const std::string& port : fetches)
    load.request.fetches.push_back(PortName::parse(port).value());
  for (const std::string& port : feeds) load.request.feeds.push_back(PortName::parse(port).value());
  load.request.targets = targets;
  load.request.replicas = replicas;
  for (const char* task : {kTask0, kTask1})
    load.devices.push_back(
        {DeviceName::parse(std::string(task) + "/device:CPU:0").value(), MemorySpace::host});
  // As workers compile it.
  KernelIndex kernels = ops::builtin().kernels.index();
  auto fold = make_inline_device(DeviceName::parse("/job:fold/task:0/cpu:0").value());
  Target target;
  target.devices = load.devices;
  target.ops = &ops::builtin().ops;
  target.kernels = &kernels;
  target.evaluate = [&](const NodeDef& node, const std::vector<Tensor>& inputs) {
    return evaluate(ops::builtin(), node, inputs, *fold);
  };
  step.graph = value_or_throw(compile(*graph, load.request, target));
  for (const Plan& plan : step.graph.plans) step.tasks.push_back(task_of(plan.device));
  steps.push_back(std::move(step));
}

// ---- bytes -----------------------------------------------------------------------------------

std::string message_text(const WireMessage& message) {
  auto bytes = encode(message);
  return std::string(text_view(bytes));
}

std::string tag_text(const TensorTag& tag) {
  std::array<std::byte, kMaxTensorTag> bytes;
  std::size_t size = encode_tag(tag, bytes);
  return std::string(text_view(std::span(bytes).first(size)));
}

std::string tensor_frame(std::uint64_t transfer, std::string_view tag, std::string_view bytes) {
  DataFrameHeader header;
  header.trailer = true;
  header.tag_length = std::uint16_t(tag.size());
  header.transfer = transfer;
  header.total = header.length = std::uint32_t(bytes.size());
  std::string out(kDataHeader, '\0');
  out += tag;
  encode(header, {reinterpret_cast<std::byte*>(out.data()), out.size()});
  out += bytes;
  std::byte crc[kTrailer];
  store_le(crc32c(as_bytes(bytes)), crc);
  return out + std::string(text_view(crc));
}

// ---- one life --------------------------------------------------------------------------------

std::optional<FrameType> introduce(std::uint16_t port, const Join& join,
                                   std::unique_ptr<Line>& control, std::unique_ptr<Line>& data) {
  control = std::make_unique<Line>(port, &secret_context());
  control->send(FrameType::hello, greeting_text(join));
  auto answer = control->frame();
  if (answer && answer->type == FrameType::welcome) {
    Token token = decode_greeting(as_bytes(answer->payload)).value().token;
    data = std::make_unique<Line>(port, nullptr);
    data->send(FrameType::attach, text_of_token(token));
    answer = control->frame();
  }
  return answer ? std::optional(answer->type) : std::nullopt;
}

HostileJob::HostileJob(std::chrono::milliseconds silence, pid_t parent) {
  WorkerProcessOptions options;
  options.silence = silence;
  options.parent = parent;
  options.master = {"127.0.0.1", master_socket().port};
  options.secret = kSecret;
  worker_ = std::async(std::launch::async, [options] { return run_worker(options); });
  accept();
}

void HostileJob::accept() {
  control_ = std::make_unique<Line>(accept_one(), &secret_context());
  auto hello = control_->frame();
  REQUIRE((hello && hello->type == FrameType::hello));
  join_ = decode_join(decode_greeting(as_bytes(hello->payload)).value().hello).value();
  Token token;
  token.fill(std::byte{7});
  REQUIRE(control_->send(FrameType::welcome, greeting_text(Join{}, token)));
  data_ = std::make_unique<Line>(accept_one(), nullptr);
  auto attach = data_->frame();
  REQUIRE((attach && attach->type == FrameType::attach && attach->payload == text_of_token(token)));
  REQUIRE(control_->send(FrameType::ready, {}));
}

HostileJob::~HostileJob() {
  if (worker_.valid()) (void)ended();
}

Status HostileJob::ended() {
  control_.reset();
  data_.reset();
  member_control_.reset();
  member_data_.reset();
  REQUIRE_MESSAGE(worker_.wait_for(kPatience) == std::future_status::ready,
                  "the worker does not end");
  return worker_.get();
}

Welcome HostileJob::welcome() {
  Welcome welcome;
  welcome.process = kVictim;
  welcome.threads = 1;
  welcome.profile = numeric_profile();
  welcome.devices = {"CPU"};
  return welcome;
}

bool HostileJob::send(const WireMessage& message) {
  return control_->send(FrameType::message, message_text(message));
}

std::optional<WireMessage> HostileJob::await(const std::function<bool(const WireMessage&)>& fits) {
  // In all: heartbeats come as long as the worker lives.
  for (auto until = Line::Clock::now() + kPatience; auto frame = control_->frame(until);) {
    if (frame->type == FrameType::bye) goodbye_ = decode_bye(as_bytes(frame->payload)).text();
    if (frame->type != FrameType::message) continue;
    auto message = decode(std::as_bytes(std::span(frame->payload)));
    REQUIRE_MESSAGE(message.ok(), message.status().text());
    if (fits(*message)) return std::move(message).value();
  }
  return std::nullopt;
}

bool HostileJob::join(const Welcome& welcome) {
  auto ready = [&] {
    auto m = await([](const WireMessage& m) { return std::holds_alternative<Ready>(m); });
    return m && std::get<Ready>(*m).status.ok();
  };
  if (!send(welcome) || !ready()) return false;
  if (!member()) return false;
  Members members;
  members.view = 1;
  members.members = {{kVictim, kVictimTask, join_.incarnation, "127.0.0.1", join_.listen_port},
                     {kMember, kMemberTask, kMemberIncarnation, "127.0.0.1", 1}};
  return send(members) && ready();
}

bool HostileJob::member() {
  if (member_control_ && member_control_->open() && member_data_->open()) return true;
  member_sent_ = 0;
  Join join;
  join.process = kMember;
  join.incarnation = kMemberIncarnation;
  // Refused while the one before is not forgotten, which all threads of the worker have a part in.
  std::optional<FrameType> answer = FrameType::bye;
  for (auto until = Line::Clock::now() + kPatience;
       answer == FrameType::bye && Line::Clock::now() < until;)
    answer = introduce(join_.listen_port, join, member_control_, member_data_);
  return answer == FrameType::ready;
}

void HostileJob::load(const JobProgram& program) {
  REQUIRE(send(program.load_graph()));
  for (const auto& step : program.steps) {
    REQUIRE(send(step.load));
    auto loaded = await([](const WireMessage& m) { return std::holds_alternative<StepLoaded>(m); });
    REQUIRE(loaded);
    const Status& status = std::get<StepLoaded>(*loaded).status;
    REQUIRE_MESSAGE(status.ok(), status.text());
  }
  const auto& init = program.steps.front();
  for (std::uint32_t p = 0; p < init.tasks.size(); ++p) {
    if (init.tasks[p] != kVictimTask) continue;
    StartPartition start;
    start.compiled = init.load.compiled;
    start.partition = p;
    start.attempt.id = {1, 1};
    start.attempt.run = {1, 1};
    REQUIRE(send(start));
    auto done =
        await([](const WireMessage& m) { return std::holds_alternative<PartitionDone>(m); });
    REQUIRE(done);
    auto& result = std::get<PartitionDone>(*done);
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    REQUIRE(send(Prepare{1, 1, {1, 1}, {1, 1}, result.writes, 0, 1}));
    REQUIRE(await([](const WireMessage& m) { return std::holds_alternative<Staged>(m); }));
  }
  REQUIRE(send(LiveList{1, 1, 1, 1, 2, {}}));
}

bool HostileJob::answers() {
  StartPartition question;
  question.compiled = ~std::uint64_t{0} - ++questions_;
  question.partition = std::uint32_t(questions_);
  question.attempt.id = {1, question.compiled};
  if (!send(question)) return false;
  auto answer = await([&](const WireMessage& m) {
    auto* done = std::get_if<PartitionDone>(&m);
    return done && done->attempt == question.attempt.id && done->partition == question.partition;
  });
  if (answer) CHECK(std::get<PartitionDone>(*answer).status.code() == Code::not_found);
  return answer.has_value();
}

}  // namespace troupe::testing
