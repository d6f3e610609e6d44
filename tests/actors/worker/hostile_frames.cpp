#include "tests/actors/worker/hostile_frames.hpp"

#include <algorithm>
#include <set>

#include "actors/net/crc32c.hpp"
#include "core/list.hpp"
#include "serialization/lists.hpp"
#include "serialization/parts.hpp"
#include "serialization/wire.hpp"

namespace troupe::testing {
namespace {

// Names are resolved, so that no other may be sent: a test talks to its own machine only.
bool stays_here(const WireMessage& message) {
  auto* members = std::get_if<Members>(&message);
  return !members || std::all_of(members->members.begin(), members->members.end(),
                                 [](const Member& m) { return m.host == "127.0.0.1"; });
}
bool ends_worker(const WireMessage& message) {
  return std::holds_alternative<Welcome>(message) || std::holds_alternative<Leave>(message) ||
         std::holds_alternative<Members>(message);
}
bool from_master(const WireMessage& m) {
  return std::holds_alternative<LoadGraph>(m) || std::holds_alternative<LoadStep>(m) ||
         std::holds_alternative<UnloadStep>(m) || std::holds_alternative<ForgetGraph>(m) ||
         std::holds_alternative<StartPartition>(m) || std::holds_alternative<AbortPartition>(m) ||
         std::holds_alternative<Prepare>(m) || std::holds_alternative<RevokeGrant>(m) ||
         std::holds_alternative<LiveList>(m) || std::holds_alternative<DropContainers>(m) ||
         std::holds_alternative<AskWaits>(m) || std::holds_alternative<RecordTrace>(m);
}

void repair(std::string& frame) {
  auto* head = reinterpret_cast<std::byte*>(frame.data());
  if (frame.size() >= kControlHeader) store_le(crc32c({head, 12}), head + 12);
}

// What waits for more bytes is no answer to wait for: as many as `frame` promises follow, and more.
std::string with_all_it_promises(std::string frame) {
  if (frame.size() < kControlHeader) frame.resize(kControlHeader, 'x');
  auto header = decode_control_header(as_bytes(frame).first<kControlHeader>());
  if (header.ok() && header->length <= TransportLimits{}.control_bytes)
    frame.resize(std::max(frame.size(), kControlHeader + header->length + kTrailer), 'x');
  return frame + std::string(kControlHeader, 'x') + frame_text(FrameType::attach, "late");
}

}  // namespace

std::uint64_t HostileFrames::odd() {
  constexpr std::uint64_t kOdd[] = {0,          1,          2,          3,          7,
                                    255,        256,        65535,      1u << 20,   0x7fffffff,
                                    0x80000000, 0xffffffff, 1ull << 32, 1ull << 40, ~0ull >> 1,
                                    1ull << 63, ~0ull - 1,  ~0ull};
  return one_in(4) ? random_() : kOdd[random_.below(std::size(kOdd))];
}

std::vector<std::uint64_t> HostileFrames::resources_of(const JobProgram& program) {
  std::set<std::uint64_t> ids{7};
  for (const auto& step : program.steps)
    for (std::size_t p = 0; p < step.graph.plans.size(); ++p) {
      const Plan& plan = step.graph.plans[p];
      for (const ResourceRef& ref : plan.resources)
        if (step.tasks[p] == kVictimTask)
          ids.insert(resource_hash(
              plan.device, {ref.kind, ref.container, ref.kind == "variable" ? "" : ref.name}));
    }
  REQUIRE(ids.size() == 3);  // a container and a queue
  return {ids.begin(), ids.end()};
}

AttemptInfo HostileFrames::attempt() {
  AttemptInfo info;
  info.id = {1, one_in(3) ? 2 + random_.below(attempts_) : attempts_++};
  info.run = {1, info.id.a};
  info.snapshot = random_.below(commits_ + 1);
  info.min_live = random_.below(info.snapshot + 1);
  info.marks_from = info.id.a;
  info.session_from = one_in(2) ? 0 : info.id.a;
  maybe(info.id.view, 40);
  maybe(info.id.a, 40);
  maybe(info.run.session);
  maybe(info.run.n);
  maybe(info.snapshot, 20);
  maybe(info.marks_from);
  maybe(info.min_live, 20);
  maybe(info.session_from);
  return info;
}

Tensor HostileFrames::feed() {
  if (one_in(8)) return values_.tensor();
  std::int64_t n = std::int64_t(random_.below(6));
  return value_or_throw(Tensor::zeros(DType::f32, one_in(2) ? Shape{n, 4} : Shape{n}));
}

void HostileFrames::spoil(NodeDef& node) {
  switch (random_.below(12)) {
    case 0:
      node.name = one_in(2) ? std::string() : values_.text();
      break;
    case 1:
      node.op = program_.graph->nodes[random_.below(program_.graph->nodes.size())].op;
      break;
    case 2:
      if (!node.inputs.empty()) {
        Port& in = node.inputs[random_.below(node.inputs.size())];
        one_in(2) ? maybe(in.node, 1) : maybe(in.index, 1);
      } else {
        node.inputs.push_back({std::uint32_t(random_.below(20)), 0});
      }
      break;
    case 3:
      if (!node.inputs.empty()) node.inputs.pop_back();
      break;
    case 4:
      node.control.push_back(std::uint32_t(one_in(2) ? odd() : random_.below(40)));
      break;
    case 5:
      if (!node.attrs.empty()) node.attrs.erase(node.attrs.begin());
      break;
    case 6:
      for (auto& [name, attr] : node.attrs)
        if (one_in(2)) attr = values_.attr();
      break;
    case 7:
      node.device = one_in(2) ? values_.text() : "/job:worker/task:1";
      break;
    case 8:
      node.colocate = {one_in(2) ? values_.text() : node.name};
      break;
    case 9:
      node.out_types = {values_.dtype()};
      break;
    case 10:
      node.out_shapes.assign(random_.below(3), values_.partial_shape());
      break;
    default:
      maybe(node.replica, 1);
      break;
  }
}

GraphDef HostileFrames::graph() {
  GraphDef graph = one_in(6) ? values_.graph() : *program_.graph;
  if (graph.nodes.empty()) return graph;
  for (std::uint64_t n = random_.below(3); n > 0; --n)
    spoil(graph.nodes[random_.below(graph.nodes.size())]);
  if (one_in(8)) graph.nodes.resize(1 + random_.below(graph.nodes.size()));
  if (one_in(8))
    std::swap(graph.nodes[random_.below(graph.nodes.size())],
              graph.nodes[random_.below(graph.nodes.size())]);
  return graph;
}

LoadStep HostileFrames::load_step() {
  LoadStep load = program_.steps[random_.below(program_.steps.size())].load;
  if (one_in(2)) load.compiled += 10 + random_.below(10);
  maybe(load.compiled, 30);
  load.session = 1 + random_.below(2);
  maybe(load.session, 30);
  if (one_in(20)) load.version = odd();
  const auto& nodes = program_.graph->nodes;
  auto name = [&] { return one_in(4) ? values_.text() : nodes[random_.below(nodes.size())].name; };
  if (one_in(8)) load.request.targets.push_back(name());
  if (one_in(8)) load.request.fetches.push_back({name(), int(random_.below(3)), false});
  if (one_in(8)) load.request.feeds.push_back({name(), int(random_.below(3)), false});
  if (one_in(8)) load.request.replicas = std::int32_t(random_.below(6)) - 1;
  maybe(load.request.replicas, 20);
  if (one_in(12)) load.devices[random_.below(2)].name = values_.device();
  if (one_in(12)) load.devices[random_.below(2)].space = MemorySpace::device;
  if (one_in(12)) std::swap(load.devices[0], load.devices[1]);
  if (one_in(12)) load.devices[random_.below(2)].name.task = int(odd() & 0x7fffffff);
  if (one_in(20)) load.devices.clear();
  if (one_in(20))
    load.devices.push_back(load.devices.empty() ? TargetDevice{values_.device(), {}}
                                                : load.devices.front());
  if (one_in(8)) load.fixed[name()] = values_.device();
  if (one_in(8)) load.soft_placement = false;
  if (one_in(8)) load.disabled_passes = {"fold", "cse", values_.text()};
  return load;
}

WireMessage HostileFrames::plausible() {
  const auto& step = program_.steps[random_.below(program_.steps.size())];
  std::uint32_t p = std::uint32_t(random_.below(step.tasks.size()));
  switch (random_.below(20)) {
    case 0: {
      LoadGraph load = program_.load_graph();
      load.session = one_in(4) ? 1 : 2;
      GraphDef changed = graph();
      load.version = changed.nodes.size();
      maybe(load.session, 30);
      if (one_in(4)) {  // to go on from nodes that may not be there
        load.from = one_in(2) ? program_.graph->nodes.size() : random_() >> 20;
        load.version += load.from;
      }
      load.graph = std::make_shared<const GraphDef>(std::move(changed));
      return load;
    }
    case 1:
      return load_step();
    case 2: {
      UnloadStep unload{one_in(8) ? step.load.compiled : 10 + random_.below(18)};
      maybe(unload.compiled, 20);
      return unload;
    }
    case 3:
    case 4: {
      AbortPartition abort{step.load.compiled, p, {}, {}, {}};
      AttemptInfo info = attempt();
      abort.attempt = info.id;
      abort.run = info.run;
      abort.cause = one_in(4) ? Status{} : aborted("for no reason");
      maybe(abort.partition);
      return abort;
    }
    case 5:
    case 6:
    case 7: {
      AttemptInfo info = attempt();
      Prepare prepare{1, one_in(3) ? commits_ : ++commits_, info.id, info.run, {}, info.min_live};
      prepare.round = one_in(3) ? rounds_ : ++rounds_;
      prepare.order = StageOrder(one_in(3) ? random_.below(3) : 0);
      for (std::uint64_t n = random_.below(3); n > 0; --n)
        prepare.resources.push_back({{kVictimTask, resources_[random_.below(resources_.size())]},
                                     std::uint32_t(random_.below(3))});
      if (!prepare.resources.empty()) {
        maybe(prepare.resources[0].resource.hash);
        if (one_in(30)) prepare.resources[0].resource.task = TaskId(odd());
        maybe(prepare.resources[0].keys);
      }
      maybe(prepare.view, 20);
      maybe(prepare.s, 60);
      maybe(prepare.round, 60);
      maybe(prepare.min_live, 20);
      return prepare;
    }
    case 8:
    case 9: {
      LiveList list{1,         ++lists_, random_.below(commits_ + 2), random_.below(commits_ + 2),
                    attempts_, {}};
      for (std::uint64_t a = attempts_ > 9 ? attempts_ - 8 : 1; a < attempts_; ++a)
        if (one_in(2)) list.live.push_back({a, {1, a}, a});
      maybe(list.view, 40);
      maybe(list.sequence, 100);
      maybe(list.decided, 60);
      maybe(list.min_live, 60);
      maybe(list.next_a, 60);
      return list;
    }
    default: {
      StartPartition start;
      start.compiled = one_in(4) ? 10 + random_.below(18) : step.load.compiled;
      start.partition = p;
      start.attempt = attempt();
      if (one_in(6)) start.grant = one_in(2) ? ++commits_ : odd();
      start.random_index = random_.below(3);
      std::size_t feeds = JobProgram::feeds(step, p) + (one_in(12) ? random_.below(3) : 0);
      for (std::size_t i = 0; i < feeds; ++i) start.feeds.push_back(feed());
      if (one_in(12)) start.elements.resize(random_.below(3), {odd(), odd()});
      maybe(start.compiled, 30);
      maybe(start.partition, 30);
      maybe(start.random_index);
      return start;
    }
  }
}

// Flips bits, overwrites words with telling values, cuts, extends, repeats.
void HostileFrames::change(std::string& bytes) {
  for (std::uint64_t n = 1 + random_.below(3); n > 0 && !bytes.empty(); --n) {
    std::size_t at = random_.below(bytes.size());
    switch (random_.below(6)) {
      case 0:
        bytes[at] = char(bytes[at] ^ (1 << random_.below(8)));
        break;
      case 1:
        bytes[at] = char(random_());
        break;
      case 2: {
        std::uint64_t word = odd();
        std::size_t size = std::min<std::size_t>(one_in(2) ? 4 : 8, bytes.size() - at);
        std::memcpy(&bytes[at], &word, size);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.resize(bytes.size() + random_.below(16));
        break;
      default: {  // splice
        std::size_t from = random_.below(bytes.size());
        std::size_t size = std::min<std::size_t>(random_.below(64), bytes.size() - from);
        bytes.replace(at, std::min(size, bytes.size() - at), bytes.substr(from, size));
        break;
      }
    }
  }
}

std::string HostileFrames::good() {
  std::string good;
  do good = message_text(plausible());  // some have names that are none
  while (!decode(std::as_bytes(std::span(good))).ok());
  return good;
}

// A graph with a large constant; or no more than the first part of it, with a claim of 1 GiB.
std::string HostileFrames::in_parts() {
  LoadGraph load = program_.load_graph();
  GraphDef large = *load.graph;
  NodeDef& node = large.nodes[random_.below(large.nodes.size())];
  auto floats = std::int64_t(kMessagePart / 4 + random_.below(kMessagePart / 3));
  node.attrs["value"] = Attr(value_or_throw(Tensor::zeros(DType::f32, Shape{floats})));
  load.session = 2;
  load.graph = std::make_shared<const GraphDef>(std::move(large));
  const auto whole = encode(WireMessage(load));
  unfinished_ = one_in(8);
  std::string frames;
  for (std::size_t offset = 0; offset < whole.size(); offset += kMessagePart) {
    MessagePart part = message_part(whole, offset, true);
    if (unfinished_) part.total = kMasterMessage;
    frames += frame_text(FrameType::message, message_text(part));
    if (unfinished_) break;
    for (std::uint64_t n = random_.below(3); n > 0; --n)
      frames += frame_text(FrameType::message, good());
  }
  return frames;
}

// Out of order, of wrong or of giant totals, of no message at all.
std::string HostileFrames::wrong_parts() {
  const std::vector<std::byte> noise(2 * kMessagePart + 1 + random_.below(kMessagePart),
                                     std::byte(random_()));
  auto text = [](const MessagePart& part) {
    return frame_text(FrameType::message, message_text(part));
  };
  MessagePart first = message_part(noise, 0), second = message_part(noise, kMessagePart);
  switch (random_.below(9)) {
    case 0:
      return text(second);
    case 1:
      first.total = kMasterMessage + 1 + random_() / 2;
      return text(first);
    case 2:
      first.total = random_.below(kMessagePart + 1);
      return text(first);
    case 3:
      first.bytes.resize(random_.below(kMessagePart));
      return text(first);
    case 4:
      first.bytes.push_back({});
      return text(first);
    case 5:
      return text(first) + text(first);
    case 6:
      second.offset = odd() | 1;
      return text(first) + text(second);
    case 7:
      second.total += 1 + random_.below(1000);
      return text(first) + text(second);
    default:
      return text(first) + text(second) + text(message_part(noise, 2 * kMessagePart));
  }
}

std::string HostileFrames::message() {
  if (!unfinished_ && one_in(400)) return in_parts();
  const std::string good = this->good();
  if (!one_in(3)) return frame_text(FrameType::message, good);
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::string changed = good;
    change(changed);
    auto decoded = decode(std::as_bytes(std::span(changed)));
    if (decoded.ok() && from_master(*decoded)) return frame_text(FrameType::message, changed);
  }
  return frame_text(FrameType::message, good);
}

std::string HostileFrames::refused() {
  if (one_in(8)) return wrong_parts();
  for (;;) {
    std::string payload =
        message_text(one_in(2) ? plausible() : values_.message(random_.below(Values::kKinds)));
    if (one_in(8)) payload = message_text(MessagePart{odd(), odd(), {std::byte{7}, std::byte{8}}});
    if (one_in(2)) change(payload);
    std::string frame = frame_text(FrameType::message, payload);
    bool whole = random_.below(3) != 0;
    if (!whole) {
      change(frame);
      if (one_in(2)) repair(frame);
      return with_all_it_promises(std::move(frame));
    }
    auto decoded = decode(std::as_bytes(std::span(payload)));
    if (decoded.ok() && (from_master(*decoded) || ends_worker(*decoded) || !stays_here(*decoded)))
      continue;
    return frame;
  }
}

// The bytes of a list, which are sometimes none.
std::string HostileFrames::list() {
  List elements;
  for (std::uint64_t n = random_.below(5); n > 0; --n)
    elements.push(one_in(6)   ? Tensor(DType::f32, Shape{1 + std::int64_t(random_.below(99))}, {})
                  : one_in(6) ? list_tensor({})
                              : values_.tensor());
  const Buffer bytes = value_or_throw(encode_list(list_tensor(std::move(elements))));
  std::string text(static_cast<const char*>(bytes.data()), bytes.size());
  if (one_in(3)) change(text);
  return text;
}

std::string HostileFrames::tensor(std::uint64_t transfer, bool of_member) {
  TensorTag tag;
  const auto& step = program_.steps[1 + random_.below(program_.steps.size() - 1)];
  tag.kind = of_member ? TensorTag::Kind::channel : TensorTag::Kind::feed;
  tag.compiled = step.load.compiled;
  tag.attempt = {1, one_in(2) ? attempts_ : 2 + random_.below(attempts_ + 2)};
  tag.dtype = DType::f32;
  tag.shape = Shape{std::int64_t(random_.below(5)), 4};
  for (const Channel& channel : step.graph.channels) {
    if (!of_member || step.tasks[channel.from] != kMemberTask || one_in(3)) continue;
    tag.index = channel.id;
    tag.partition = channel.to;
    tag.dtype = channel.dtype;
    if (channel.shape.fully_known()) tag.shape = channel.shape.shape();
    if (tag.dtype == DType::list && !one_in(10)) tag.shape = Shape{};
  }
  if (one_in(10)) tag.dead = true;
  if (one_in(20)) tag = values_.tag();
  if (one_in(20)) tag.iterations = {std::int64_t(odd())};
  maybe(tag.compiled, 30);
  maybe(tag.partition, 30);
  maybe(tag.attempt.view, 30);
  maybe(tag.attempt.a, 30);
  maybe(tag.index, 30);
  std::string text = tag_text(tag);
  if (one_in(20)) change(text);
  text.resize(std::min<std::size_t>(text.size(), kMaxTensorTag));
  auto bytes = byte_size(tag.shape, dtype_size(tag.dtype));
  std::size_t size = tag.dead || !bytes.ok() ? 0 : std::size_t(*bytes) & 0xfff;
  if (one_in(20)) size = random_.below(200);
  std::string payload(size, '\x3f');
  if (tag.dtype == DType::list && !tag.dead && !one_in(10)) payload = list();
  std::string frame = tensor_frame(one_in(40) ? odd() : transfer, text, payload);
  if (!one_in(15)) return frame;
  change(frame);
  if (one_in(2) && frame.size() > kDataHeader) {  // so that what is behind is reached
    auto* head = reinterpret_cast<std::byte*>(frame.data());
    std::size_t room = std::min<std::size_t>(load_le<std::uint16_t>(head + 6),
                                             std::min(kMaxTensorTag, frame.size() - kDataHeader));
    store_le(crc32c({head + kDataHeader, room}, crc32c({head, 36})), head + 36);
  }
  return frame;
}

std::string HostileFrames::stranger() {
  Join join;
  join.process = ProcessId(random_.below(4));
  maybe(join.version);
  std::string hello = encode_join(one_in(3) ? values_.join() : join).value();
  if (one_in(2)) change(hello);
  std::string frame =
      one_in(4)
          ? frame_text(FrameType::attach, std::string(kTokenSize, 't'))
          : frame_text(FrameType::hello, encode(Greeting{1u << 20, 1u << 20, false, {}, hello}));
  if (one_in(6)) frame = frame_text(FrameType(random_.below(9)), hello);
  if (one_in(6)) frame = "\x16\x03\x01" + frame;
  if (one_in(10)) frame = tensor_frame(0, "tag", "bytes");
  change(frame);
  if (one_in(2)) repair(frame);
  // What waits for more bytes is no answer to wait for: those bytes follow.
  return frame + std::string(8192, 'x');
}

Welcome HostileFrames::welcome() {
  Welcome welcome = HostileJob::welcome();
  switch (random_.below(6)) {
    case 0:
      welcome.threads = std::uint32_t(odd());
      break;
    case 1:
      welcome.devices = values_.texts();
      break;
    case 2:
      welcome.devices.assign(random_.below(4), one_in(2) ? "CPU" : "FAKE");
      break;
    case 3:
      welcome.task = TaskId(odd());
      break;
    case 4:
      welcome.profile.isa = std::uint32_t(odd());
      break;
    default:
      welcome.process = std::uint32_t(odd());
      break;
  }
  return welcome;
}

}  // namespace troupe::testing
