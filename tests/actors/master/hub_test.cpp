// What a hub makes of a member that says something wrong.
#include <doctest/doctest.h>

#include <array>
#include <caf/typed_event_based_actor.hpp>
#include <future>

#include "actors/inline_send.hpp"
#include "actors/runtime/net_hub.hpp"
#include "core/list.hpp"
#include "serialization/lists.hpp"
#include "serialization/strings.hpp"
#include "serialization/wire.hpp"
#include "tests/actors/support/actor_system.hpp"
#include "tests/net/memory_transport.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

Join words(ProcessId process) {
  Join join;
  join.process = process;
  join.job = "hub";
  join.listen_host = "nowhere";
  return join;
}

struct Owner final : HubOwner {
  Status may_connect(const Join& join) const override {
    return join.job == "hub" ? ok_status() : failed_precondition("another job");
  }
  void up(PeerId peer, const Join&) override { ups.push_back(peer); }
  void down(PeerId peer, Status) override { downs.push_back(peer); }
  void message(ProcessId, WireMessage message) override { messages.push_back(std::move(message)); }
  std::vector<WireMessage> messages;
  std::vector<PeerId> ups, downs;
};

// A member that says what the test wants, and hears why it is closed.
struct Stranger final : TransportHandler {
  Status admit(PeerId, const Hello&) override { return ok_status(); }
  void peer_up(PeerId p, const Hello&) override { peer = p; }
  void peer_down(PeerId, Status why) override { closed = std::move(why); }
  void control(PeerId, Buffer bytes) override {
    ++messages;
    heard.push_back(
        value_or_throw(decode({static_cast<const std::byte*>(bytes.data()), bytes.size()})));
  }
  Expected<Buffer> accept_tensor(PeerId, const TensorHeader& header) override {
    return Buffer::allocate(heap_allocator(), header.bytes);
  }
  void tensor(PeerId, const TensorHeader&, Buffer) override { ++tensors; }
  PeerId peer = 0;
  int messages = 0, tensors = 0;
  std::vector<WireMessage> heard;
  Status closed;
};

// The hub of process `self`, connected to a stranger that is process `other`. Process 1 hosts task
// 1, process 2 task 0.
struct Pair {
  explicit Pair(ProcessId other, ProcessId self = 1) : hub(self, owner) {
    hub.place(TaskId{1}, 1);
    hub.place(TaskId{0}, 2);
    transport = network.host("hub", hub);
    hub.use(*transport);
    stranger_transport = network.host("stranger", stranger);
    Hello hello = value_or_throw(encode_join(words(other)));
    value_or_throw(stranger_transport->listen({"stranger", 1}, hello));
    connected = value_or_throw(hub.connect({"stranger", 1}, words(self), other, 0, 1s));
    run();
    REQUIRE(stranger.peer != 0);
  }
  ~Pair() {
    transport->shutdown();
    stranger_transport->shutdown();
  }
  void run() {
    while (network.step() && stranger.closed.ok()) {
    }
  }
  void say(const WireMessage& message) {
    auto bytes = encode(message);
    throw_if_error(
        stranger_transport->send_control(stranger.peer, ByteView(bytes.data(), bytes.size())));
    run();
  }
  void say(const TensorTag& tag, std::span<const std::byte> payload) {
    std::array<std::byte, kMaxTensorTag> bytes;
    std::size_t size = encode_tag(tag, bytes);
    Buffer buffer = value_or_throw(Buffer::allocate(heap_allocator(), payload.size()));
    if (!payload.empty()) std::memcpy(buffer.data(), payload.data(), payload.size());
    throw_if_error(stranger_transport->send_tensor(
        stranger.peer, TensorHeader({bytes.data(), size}, payload.size()), buffer, 0));
    run();
  }

  MemoryNetwork network{1};
  Owner owner;
  NetHub hub;
  Stranger stranger;
  PeerId connected = 0;  // the stranger, to the hub
  std::shared_ptr<Transport> transport, stranger_transport;
};

// A message of several parts.
std::vector<std::byte> long_message() {
  Welcome welcome;
  welcome.devices.push_back(std::string(3 * kMessagePart, 'd'));
  return encode(welcome);
}

TensorTag strings_tag(const Shape& shape) {
  TensorTag tag;
  tag.compiled = 5;
  tag.index = 3;
  tag.dtype = DType::string;
  tag.shape = shape;
  return tag;
}

std::vector<InboundChannel> strings_channel() {
  return {{3, TaskId{0}, 0, DType::string, PartialShape::unknown(), false}};
}

// A transport to nowhere.
struct NoTransport : Transport {
  PeerId name_peer() override { return 1; }
  Status connect(PeerId, const Endpoint&, Hello, std::chrono::milliseconds) override {
    return ok_status();
  }
  Expected<std::uint16_t> listen(const Endpoint&, Hello) override { return std::uint16_t{1}; }
  void allow_silence(PeerId, std::function<bool()>) override {}
  Status send_control(PeerId, std::span<const ByteView>) override { return ok_status(); }
  Status send_bulk(PeerId, std::span<const ByteView>) override { return ok_status(); }
  Status send_tensor(PeerId, const TensorHeader&, Buffer, std::size_t) override {
    return ok_status();
  }
  std::uint64_t queued_bytes(PeerId) const override { return 0; }
  void hold_tensors(PeerId, bool) override {}
  void close(PeerId, Status) override {}
  void shutdown() override {}
};

}  // namespace

TEST_CASE("a hub answers others while it waits for a name to be looked up") {
  // Its connect() waits until the name is known: there is none.
  struct SlowNames final : NoTransport {
    Status connect(PeerId, const Endpoint&, Hello, std::chrono::milliseconds) override {
      looking.set_value();
      answer.get_future().wait();
      return not_found("no such name");
    }
    std::promise<void> looking, answer;
  };
  Owner owner;
  NetHub hub(1, owner);
  SlowNames names;
  hub.use(names);
  auto connecting = std::async(std::launch::async, [&] {
    return hub.connect({"name", 1}, words(1), 2, 0, 1s).status();
  });
  names.looking.get_future().wait();
  const Hello hello = value_or_throw(encode_join(words(3)));
  auto admitted = std::async(std::launch::async, [&] {
    Status status = hub.admit(7, hello);
    hub.peer_up(7, hello);
    hub.peer_down(7, unavailable("gone again"));
    return status;
  });
  const bool answered = admitted.wait_for(20s) == std::future_status::ready;
  CHECK(answered);
  CHECK(hub.send(2, Leave{}).ok());
  names.answer.set_value();
  CHECK(admitted.get().ok());
  CHECK(owner.downs == std::vector<PeerId>{7});
  CHECK(connecting.get().code() == Code::not_found);
  CHECK(hub.send(2, Leave{}).code() == Code::unavailable);
}

TEST_CASE("a hub joins the parts of a message") {
  Pair pair(0);
  auto message = long_message();
  for (std::size_t at = 0; at < message.size(); at += kMessagePart) {
    CHECK(pair.owner.messages.empty());
    pair.say(message_part(message, at));
  }
  REQUIRE(pair.owner.messages.size() == 1);
  CHECK(std::get<Welcome>(pair.owner.messages[0]).devices[0].size() == 3 * kMessagePart);
  CHECK(pair.stranger.closed.ok());
}

TEST_CASE("a hub cuts long messages and says when one is too long") {
  Pair pair(0);
  Ready ready;
  ready.devices.push_back(std::string(kWholeMessage / 2, 'd'));
  CHECK(pair.hub.send(0, ready).ok());
  pair.run();
  CHECK(pair.stranger.messages == 1);
  pair.stranger.messages = 0;
  ready.devices[0].resize(kWholeMessage);
  CHECK(pair.hub.send(0, ready).ok());
  pair.run();
  const int parts = kWholeMessage / kMessagePart + 1;
  CHECK(pair.stranger.messages == parts);
  ready.devices[0].resize(kWorkerMessage + 1);
  CHECK(pair.hub.send(0, ready).code() == Code::resource_exhausted);
  pair.run();
  CHECK(pair.stranger.messages == parts);
  CHECK(pair.stranger.closed.ok());
}

// A graph whose constant takes that many parts.
LoadGraph long_graph(std::size_t parts) {
  GraphDef graph;
  NodeDef& node = graph.nodes.emplace_back();
  node.name = "large";
  node.op = "Const";
  const auto floats = std::int64_t(parts * kMessagePart / sizeof(float));
  node.attrs["value"] = Attr(value_or_throw(Tensor::zeros(DType::f32, Shape{floats})));
  return {1, 1, std::make_shared<const GraphDef>(std::move(graph)), 0};
}

TEST_CASE("a long urgent message need not wait until a graph is handed over") {
  struct SlowBulk final : NoTransport {
    Status send_bulk(PeerId, std::span<const ByteView>) override {
      if (!std::exchange(asked, true)) {
        handing_over.set_value();
        go_on.get_future().wait();
      }
      return ok_status();
    }
    bool asked = false;
    std::promise<void> handing_over, go_on;
  };
  Owner owner;
  NetHub hub(1, owner);
  SlowBulk slow;
  hub.use(slow);
  REQUIRE(hub.connect({"name", 1}, words(1), 2, 0, 1s).ok());
  auto graph = std::async(std::launch::async, [&] { return hub.send(2, long_graph(3)); });
  slow.handing_over.get_future().wait();
  Ready urgent;
  urgent.devices.push_back(std::string(2 * kWholeMessage, 'd'));
  auto sent = std::async(std::launch::async, [&] { return hub.send(2, urgent); });
  CHECK(sent.wait_for(20s) == std::future_status::ready);
  slow.go_on.set_value();
  CHECK(sent.get().ok());
  CHECK(graph.get().ok());
}

TEST_CASE("what is urgent overtakes a graph that is sent in parts") {
  Pair pair(2, 0);  // of the master
  constexpr std::size_t kParts = 64;
  REQUIRE(pair.hub.send(2, long_graph(kParts)).ok());
  LoadStep load;
  load.session = 1;
  REQUIRE(pair.hub.send(2, load).ok());
  while (pair.stranger.heard.size() < 3) REQUIRE(pair.network.step());
  // What needs the graph comes after it, what does not before most of it.
  REQUIRE(pair.hub.send(2, Prepare{}).ok());
  REQUIRE(pair.hub.send(2, LiveList{}).ok());
  REQUIRE(pair.hub.send(2, UnloadStep{}).ok());
  pair.run();
  std::vector<std::string> others;
  std::size_t parts = 0, parts_before_prepare = 0;
  for (const WireMessage& message : pair.stranger.heard) {
    if (std::holds_alternative<MessagePart>(message)) ++parts;
    if (std::holds_alternative<Prepare>(message)) parts_before_prepare = parts;
    if (std::holds_alternative<Prepare>(message)) others.push_back("prepare");
    if (std::holds_alternative<LiveList>(message)) others.push_back("live");
    if (std::holds_alternative<LoadStep>(message)) others.push_back("load");
    if (std::holds_alternative<UnloadStep>(message)) others.push_back("unload");
    if (others.size() >= 3) CHECK(parts == kParts + 1);
  }
  CHECK(others == std::vector<std::string>{"prepare", "live", "load", "unload"});
  CHECK(parts == kParts + 1);
  CHECK(parts_before_prepare < kParts / 2);
}

TEST_CASE("parts of an urgent message may come between those of a graph") {
  Pair pair(0);
  auto urgent = long_message(), graph = encode(WireMessage(long_graph(3)));
  for (std::size_t at = 0; at < std::max(urgent.size(), graph.size()); at += kMessagePart)
    for (const auto& [message, bulk] : {std::pair{&graph, true}, std::pair{&urgent, false}})
      if (at < message->size()) pair.say(message_part(*message, at, bulk));
  CHECK_MESSAGE(pair.stranger.closed.ok(), pair.stranger.closed.text());
  CHECK(pair.owner.messages.size() == 1);
}

namespace {

// What reaches a worker of bulk messages, in order.
struct HeardByWorker {
  void add(WireMessage message) {
    std::lock_guard lock(mutex);
    heard.push_back(std::move(message));
  }
  std::mutex mutex;
  std::vector<WireMessage> heard;
  std::vector<EncodedGraph> graphs;
};

template <class... Heard>
WorkerActor::behavior_type bulk_behavior(HeardByWorker* to, std::tuple<Heard...>*) {
  return {[to](const EncodedGraph& m) {
            std::lock_guard lock(to->mutex);
            to->graphs.push_back(m);
          },
          [to](const Heard& m) { to->add(m); }...,
          [](const Members&) {},
          [](const ExpelProcess&) {},
          [](const Leave&) {},
          [](const StepPrepared&) {},
          [](const StagedAt&) {},
          [](const BlockedAt&) {},
          [](const WishLists&) {},
          [](const TensorArrived&) {},
          [](const Tick&) {}};
}

}  // namespace

// It takes long: heartbeats, and whatever is urgent, would wait for it.
TEST_CASE("a hub leaves it to the worker to decode a graph") {
  Pair pair(0);
  HeardByWorker heard;
  testing::System system;
  const WorkerActor worker = system.make([&](caf::actor_system& s) {
    return WorkerActor(s.spawn([&heard](WorkerActor::pointer) {
      return bulk_behavior(&heard, static_cast<ToActors<Sender::master>*>(nullptr));
    }));
  });
  pair.hub.deliver_to(worker);
  const auto end = [&](void*) {
    pair.hub.deliver_to(WorkerActor{});
    caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
  };
  const std::unique_ptr<void, decltype(end)> ends(&pair, end);
  auto graph = encode(WireMessage(long_graph(3)));
  auto wrong = graph;
  std::fill(wrong.begin() + 64, wrong.end(), std::byte{0xff});
  const auto small = encode(WireMessage(LoadGraph{2, 0, std::make_shared<const GraphDef>(), 0}));
  for (const auto* message : {&graph, &wrong})
    for (std::size_t at = 0; at < message->size(); at += kMessagePart)
      pair.say(message_part(*message, at, true));
  throw_if_error(pair.stranger_transport->send_control(pair.stranger.peer,
                                                       ByteView(small.data(), small.size())));
  pair.say(LoadStep{});
  testing::settle(worker);
  CHECK_MESSAGE(pair.stranger.closed.ok(), pair.stranger.closed.text());
  std::lock_guard lock(heard.mutex);
  REQUIRE(heard.graphs.size() == 3);
  const std::vector<std::byte>* const sent[] = {&graph, &wrong, &small};
  for (std::size_t i = 0; i < heard.graphs.size(); ++i) {
    const std::span<const std::byte> as = heard.graphs[i].bytes;
    CHECK(std::equal(as.begin(), as.end(), sent[i]->begin(), sent[i]->end()));
  }
  REQUIRE(heard.heard.size() == 1);
  CHECK(std::holds_alternative<LoadStep>(heard.heard[0]));
}

TEST_CASE("hostile parts close the member that sent them") {
  auto message = long_message();
  auto closed = [](ProcessId from, std::vector<MessagePart> parts) {
    Pair pair(from);
    for (MessagePart& part : parts) {
      REQUIRE(pair.stranger.closed.ok());
      pair.say(part);
    }
    CHECK(pair.owner.messages.empty());
    return pair.stranger.closed.code();
  };
  MessagePart first = message_part(message, 0), second = message_part(message, kMessagePart);
  CHECK(closed(0, {first, first}) == Code::invalid_argument);
  CHECK(closed(0, {second}) == Code::invalid_argument);
  MessagePart claims = first;
  claims.total = kMasterMessage + 1;
  CHECK(closed(0, {claims}) == Code::resource_exhausted);
  CHECK(closed(2, {first}) == Code::resource_exhausted);  // workers do not talk to each other
  // Never finished: a connection that ends takes them along.
  CHECK(closed(0, {first, second}) == Code::ok);
  // Parts that are no message, and parts of parts.
  std::vector<std::byte> noise(2 * kMessagePart, std::byte{7});
  CHECK(closed(0, {message_part(noise, 0), message_part(noise, kMessagePart)}) ==
        Code::invalid_argument);
  auto nested = encode(MessagePart{1, 0, std::vector<std::byte>(kMessagePart + 1)});
  CHECK(closed(0, {message_part(nested, 0), message_part(nested, kMessagePart)}) ==
        Code::invalid_argument);
}

TEST_CASE("hostile strings close the member that sent them") {
  Tensor t = Tensor::of<std::string>({3}, {"abc", "", "defg"});
  Buffer buffer = encode_strings(t).value();
  auto* data = static_cast<const std::byte*>(buffer.data());
  const std::vector<std::byte> good(data, data + buffer.size());
  auto closed = [](const TensorTag& tag, const std::vector<std::byte>& payload) {
    Pair pair(2);
    pair.hub.expect(5, strings_channel());
    pair.say(tag, payload);
    return pair.stranger.closed.code();
  };
  CHECK(closed(strings_tag({3}), good) == Code::ok);
  std::vector<std::byte> bytes = good;
  bytes[7] = std::byte{0xff};  // the length of the first one
  CHECK(closed(strings_tag({3}), bytes) == Code::invalid_argument);
  CHECK(closed(strings_tag({2}), good) == Code::invalid_argument);
  CHECK(closed(strings_tag({4, 1}), good) == Code::invalid_argument);
  CHECK(closed(strings_tag({std::int64_t{1} << 60}), good) == Code::invalid_argument);
  CHECK(closed(strings_tag({0}), good) == Code::invalid_argument);
  CHECK(closed(strings_tag({0}), {}) == Code::ok);
  TensorTag numbers = strings_tag({3});
  numbers.dtype = DType::i8;
  CHECK(closed(numbers, {good.begin(), good.begin() + 3}) == Code::invalid_argument);
  TensorTag dead = strings_tag({3});
  dead.dead = true;
  CHECK(closed(dead, good) == Code::invalid_argument);
  CHECK(closed(dead, {}) == Code::ok);
}

TEST_CASE("hostile lists close the member that sent them") {
  List elements;
  elements.push(Tensor::scalar(1.5f));
  elements.push(Tensor::of<std::string>({2}, {"a", "bc"}));
  const Buffer buffer = value_or_throw(encode_list(list_tensor(elements)));
  const auto* data = static_cast<const std::byte*>(buffer.data());
  const std::vector<std::byte> good(data, data + buffer.size());
  TensorTag tag = strings_tag({});
  tag.dtype = DType::list;
  // A channel of lists knows the shape of their elements, which are checked where they are used.
  auto closed = [&](const TensorTag& tag, const std::vector<std::byte>& payload, ProcessId self = 1,
                    ProcessId other = 2) {
    Pair pair(other, self);
    pair.hub.expect(5, {{3, TaskId{0}, 0, DType::list, PartialShape{4, 4}, false}});
    pair.say(tag, payload);
    return pair.stranger.closed.code();
  };
  CHECK(closed(tag, good) == Code::ok);
  CHECK(closed(tag, {}) == Code::ok);  // an empty one
  std::vector<std::byte> bytes = good;
  bytes[8] = std::byte{0xff};  // how long the first element is
  CHECK(closed(tag, bytes) == Code::invalid_argument);
  CHECK(closed(tag, {good.begin(), good.end() - 1}) == Code::invalid_argument);
  CHECK(closed(tag, {good.begin(), good.begin() + 40}) == Code::invalid_argument);
  TensorTag other = tag;
  other.shape = {2};
  CHECK(closed(other, good) == Code::invalid_argument);
  other = tag;
  other.dtype = DType::string;
  CHECK(closed(other, good) == Code::invalid_argument);
  other = tag;
  other.kind = TensorTag::Kind::feed;
  CHECK(closed(other, good, 1, 0) == Code::invalid_argument);
  other.kind = TensorTag::Kind::fetch;
  CHECK(closed(other, good, 0, 2) == Code::invalid_argument);
}

TEST_CASE("a hub tells of the end of peers that it told of, and of no others") {
  Pair pair(0);
  Hello hello = value_or_throw(encode_join(words(2)));
  CHECK(pair.owner.ups == std::vector<PeerId>{pair.connected});
  CHECK(pair.hub.admit(100, hello).ok());
  pair.hub.peer_down(100, unavailable("gone"));
  CHECK(pair.owner.downs.empty());
  CHECK(pair.hub.admit(101, hello).ok());
  pair.hub.peer_up(101, hello);
  pair.hub.peer_down(101, unavailable("gone"));
  CHECK(pair.owner.downs == std::vector<PeerId>{101});
  // One that this process connected to, whether it was ever up or not.
  PeerId nowhere = value_or_throw(pair.hub.connect({"nobody", 1}, words(1), ProcessId{3}, 0, 1ms));
  pair.run();
  CHECK(pair.owner.downs == std::vector<PeerId>{101, nowhere});
}

TEST_CASE("a peer is nobody until its hub is told who it is") {
  Pair pair(0);
  Hello hello = value_or_throw(encode_join(words(2)));
  Ready ready;
  ready.process = 2;
  CHECK(pair.hub.admit(100, hello).ok());
  pair.hub.peer_up(100, hello);
  CHECK(pair.hub.send(2, ready).code() == Code::unavailable);
  std::array<std::byte, kMaxTensorTag> bytes;
  std::size_t size = encode_tag(TensorTag{}, bytes);
  CHECK(!pair.hub.accept_tensor(100, TensorHeader({bytes.data(), size}, 1)).ok());
  pair.hub.admit(100, ProcessId{2});
  CHECK(pair.hub.send(2, ready).message() == "peer 100 is not up");  // to the transport, at last
  pair.hub.peer_down(100, unavailable("gone"));
  pair.hub.admit(100, ProcessId{2});  // too late
  CHECK(pair.hub.send(2, ready).message() == "process 2 is not connected");
}

TEST_CASE("a hub connects to the incarnation that was meant, and to its own job") {
  auto refused = [](std::uint64_t wanted, const std::string& job) {
    MemoryNetwork network(1);
    Owner owner;
    NetHub hub(1, owner);
    Stranger stranger;
    auto here = network.host("hub", hub), there = network.host("stranger", stranger);
    hub.use(*here);
    Join join = words(2);
    join.incarnation = 5;
    join.job = job;
    value_or_throw(there->listen({"stranger", 1}, value_or_throw(encode_join(join))));
    value_or_throw(hub.connect({"stranger", 1}, words(1), ProcessId{2}, wanted, 1s));
    while (network.step()) {
    }
    const bool was_refused = owner.ups.empty() && owner.downs.size() == 1;
    CHECK(was_refused == !owner.downs.empty());
    here->shutdown();
    there->shutdown();
    return was_refused;
  };
  CHECK(!refused(5, "hub"));
  CHECK(!refused(0, "hub"));
  CHECK(refused(6, "hub"));
  CHECK(refused(5, "other"));
}

TEST_CASE("a second element without credit closes the member that sent it") {
  Pair pair(2);
  pair.hub.expect(5, strings_channel());
  pair.say(strings_tag({0}), {});
  CHECK(pair.stranger.closed.ok());
  pair.say(strings_tag({0}), {});
  CHECK(pair.stranger.closed.code() == Code::invalid_argument);
}

TEST_CASE("a worker that speaks for another is closed") {
  auto said_for = [](auto message, ProcessId& named) {
    Code codes[2];
    for (ProcessId process : {1u, 2u}) {
      named = process;
      Pair pair(1, 0);
      pair.say(message());
      codes[process - 1] = pair.stranger.closed.code();
    }
    CHECK(codes[0] == Code::ok);
    CHECK(codes[1] == Code::invalid_argument);
  };
  ProcessId named = 0;
  auto task_of = [](ProcessId process) { return TaskId(2 - process); };
  said_for([&] { return Ready{named, {}, {}}; }, named);
  said_for([&] { return LinkLost{named, 1, 3, {}}; }, named);
  said_for([&] { return StepLoaded{3, task_of(named), {}}; }, named);
  said_for([&] { return Staged{1, task_of(named), 2, 3}; }, named);
  said_for([&] { return BlockedReport{1, task_of(named), 1, {}, {}}; }, named);
}

TEST_CASE("a recording is ordered by the master alone, and told to it alone") {
  auto closed = [](ProcessId self, ProcessId from, const WireMessage& message) {
    Pair pair(from, self);
    pair.say(message);
    CHECK(pair.owner.messages.size() == (pair.stranger.closed.ok() ? 1 : 0));
    return pair.stranger.closed.code();
  };
  CHECK(closed(1, 0, RecordTrace{true}) == Code::ok);
  CHECK(closed(1, 2, RecordTrace{true}) == Code::invalid_argument);
  CHECK(closed(0, 1, RecordTrace{true}) == Code::invalid_argument);
  CHECK(closed(0, 1, TraceSpans{{}, 0, true}) == Code::ok);
  CHECK(closed(1, 2, TraceSpans{{}, 0, true}) == Code::invalid_argument);
}

TEST_CASE("a hub that records shows what it sends and receives, in parts too, by one name") {
  Pair pair(0, 1);
  auto trace = std::make_shared<Trace>();
  pair.hub.record(trace);
  pair.say(Leave{});
  trace->enable(true);
  CHECK(pair.hub.send(0, Ready{1, {"/job:worker/task:0/device:CPU:0"}, {}, 3}).ok());
  const WireMessage members = Members{7, {}};
  pair.say(members);
  const std::vector<std::byte> whole = long_message();
  for (std::size_t at = 0; at < whole.size(); at += kMessagePart)
    pair.say(WireMessage(message_part(whole, at)));
  pair.run();
  trace->enable(false);
  const auto tracks = trace->collect().tracks;
  REQUIRE(tracks.size() == 1);
  const std::vector<Span>& spans = tracks[0].spans;
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].name == "Ready");
  CHECK(spans[0].kind == Span::Kind::send);
  CHECK(spans[0].peer == 0);
  CHECK(spans[1].name == "Members");
  CHECK(spans[1].kind == Span::Kind::receive);
  CHECK(spans[1].bytes == encode(members).size());
  CHECK(spans[2].name == "Welcome");
  CHECK(spans[2].bytes == whole.size());
}

// The master repeats START until the attempt's partition is done, however long that takes: feeds
// that came again while the first are under way would be more than their attempt may have.
TEST_CASE("a START that is repeated crosses once, with its feeds") {
  Pair pair(2);
  testing::System system;
  auto alive = std::make_shared<int>();
  auto proxy = system.make(
      [&](caf::actor_system& s) { return spawn_task_proxy(s, pair.hub, TaskId{0}, alive); });
  StartPartition start;
  start.attempt.id = {1, 7};
  start.feeds = {Tensor::make(DType::f32, {1 << 20}).value(), Tensor::scalar(1.0f)};
  auto say = [&](auto message) {
    testing::settle(proxy);
    send_inline(proxy, std::move(message));
    pair.run();
  };
  for (int i = 0; i < 3; ++i) say(start);
  CHECK(pair.stranger.messages == 1);
  CHECK(pair.stranger.tensors == 1);
  start.partition = 1;  // another of the same attempt
  say(start);
  CHECK(pair.stranger.messages == 2);
  CHECK(pair.stranger.tensors == 2);
  start.attempt.id = {1, 8};
  say(start);
  CHECK(pair.stranger.tensors == 3);
  CHECK(pair.stranger.closed.ok());
  say(Leave{});
}

namespace {

// A master that asked the task of process 1 for the two fetches of partition 3 in attempt 5, and
// that of process 2 for those of partition 4.
struct Asked : Pair {
  Asked() : Pair(1, 0) {
    StartPartition start;
    start.attempt.id = {1, 5};
    start.attempt.run = {7, 9};
    start.partition = 3;
    CHECK(hub.ask(TaskId{1}, start, 2));
    CHECK(!hub.ask(TaskId{1}, start, 2));
    start.partition = 4;
    CHECK(hub.ask(TaskId{0}, start, 2));
    start.attempt.id = {1, 6};  // granted a number, so of one partition
    start.partition = 0;
    CHECK(hub.ask(TaskId{0}, start, 0));
  }
  static TensorTag fetch(std::uint32_t index) {
    TensorTag tag;
    tag.kind = TensorTag::Kind::fetch;
    tag.attempt = {1, 5};
    tag.partition = 3;
    tag.index = index;
    tag.dtype = DType::i8;
    tag.shape = {4};
    return tag;
  }
  static PartitionDone done() {
    PartitionDone done;
    done.attempt = {1, 5};
    done.run = {7, 9};
    done.partition = 3;
    done.fetches = {{0, {}}, {1, {}}};
    return done;
  }
  void say_fetch(const TensorTag& tag) { say(tag, std::vector<std::byte>(4)); }
};

template <class What, class Spoil>
void refused_fetch(const char* what, const What& right, Spoil spoil) {
  INFO(std::string(what));
  Asked asked;
  What wrong = right;
  spoil(wrong);
  if constexpr (std::is_same_v<What, TensorTag>)
    asked.say_fetch(wrong);
  else
    asked.say(wrong);
  CHECK(asked.stranger.closed.code() == Code::invalid_argument);
}

}  // namespace

TEST_CASE("hostile fetches by hand close the worker that sent them") {
  const TensorTag fetch = Asked::fetch(0);
  const PartitionDone done = Asked::done();
  refused_fetch("a partition of another run", done, [](auto& m) { m.run.n = 8; });
  refused_fetch("a grant of another worker", GrantReturned{{1, 6}, {7, 9}}, [](auto&) {});
  refused_fetch("an attempt that it was not asked for", fetch, [](auto& t) { t.attempt.a = 6; });
  refused_fetch("an attempt of another view", fetch, [](auto& t) { t.attempt.view = 2; });
  refused_fetch("a partition that nobody was asked for", fetch, [](auto& t) { t.partition = 5; });
  refused_fetch("what another was asked for", fetch, [](auto& t) { t.partition = 4; });
  refused_fetch("more fetches than the step has", fetch, [](auto& t) { t.index = 2; });
  refused_fetch("the last fetch there is", fetch, [](auto& t) { t.index = ~0u; });
  refused_fetch("the end of an attempt that is not", done, [](auto& d) { d.attempt.a = 6; });
  refused_fetch("the end of another's partition", done, [](auto& d) { d.partition = 4; });
  refused_fetch("the end of no partition", done, [](auto& d) { d.partition = ~0u; });
  {
    Asked asked;
    asked.say_fetch(fetch);
    CHECK(asked.stranger.closed.ok());
    asked.say_fetch(fetch);
    CHECK(asked.stranger.closed.code() == Code::invalid_argument);
  }
  {
    Asked asked;  // and once more when the first is with the client
    asked.say_fetch(fetch);
    asked.say_fetch(Asked::fetch(1));
    asked.say(done);
    CHECK(asked.stranger.closed.ok());
    asked.say_fetch(fetch);
    CHECK(asked.stranger.closed.code() == Code::invalid_argument);
  }
  MESSAGE("hostile inputs by hand: 13");
}

TEST_CASE("tensors of an attempt that is over take no memory") {
  Asked asked;
  Hello hello = value_or_throw(encode_join(words(2)));
  CHECK(asked.hub.admit(100, hello).ok());
  asked.hub.peer_up(100, hello);
  asked.hub.admit(100, ProcessId{2});
  TensorTag tag = Asked::fetch(0);
  tag.partition = 4;
  tag.shape = {std::int64_t{1} << 39};
  std::array<std::byte, kMaxTensorTag> bytes;
  std::size_t size = encode_tag(tag, bytes);
  asked.hub.live(LiveList{1, 1, 0, 0, 6, {}});
  auto granted =
      asked.hub.accept_tensor(100, TensorHeader({bytes.data(), size}, std::uint64_t{1} << 39));
  REQUIRE(granted.ok());
  CHECK(granted->size() == 0);
  asked.say_fetch(Asked::fetch(0));
  asked.say(Asked::done());
  CHECK(asked.stranger.closed.ok());
}

TEST_CASE("tensors ahead of their attempt wait with their sender once they are too many") {
  Pair pair(2);
  pair.hub.limit_early(1 << 20);
  pair.hub.expect(5, {{3, TaskId{0}, 0, DType::i8, PartialShape::unknown(), false}});
  const std::vector<std::byte> payload(400 << 10);
  auto queued = [&] { return pair.stranger_transport->queued_bytes(pair.stranger.peer); };
  TensorTag tag = strings_tag({std::int64_t(payload.size())});
  tag.dtype = DType::i8;
  for (std::uint64_t a = 1; a <= 6; ++a) {
    tag.attempt = {1, a};
    pair.say(tag, payload);
  }
  CHECK(pair.stranger.closed.ok());
  CHECK(queued() > 2 * payload.size());
  // Two are over, of the others three are one too many.
  pair.hub.live(LiveList{1, 1, 0, 0, 3, {}});
  pair.run();
  CHECK(queued() > 0);
  pair.hub.live(LiveList{1, 2, 0, 0, 7, {}});
  pair.run();
  CHECK(queued() == 0);
  CHECK(pair.stranger.closed.ok());
}

TEST_CASE("a bool that is none closes the member that sent it") {
  for (std::uint8_t value : {0, 1, 2, 255}) {
    Pair pair(2);
    pair.hub.expect(5, {{3, TaskId{0}, 0, DType::bool_, PartialShape::unknown(), false}});
    TensorTag tag = strings_tag({1});
    tag.dtype = DType::bool_;
    std::byte byte{value};
    pair.say(tag, std::span(&byte, 1));
    CHECK(pair.stranger.closed.code() == (value > 1 ? Code::invalid_argument : Code::ok));
  }
}
