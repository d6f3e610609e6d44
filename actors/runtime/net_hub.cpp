#include "actors/runtime/net_hub.hpp"

#include <fmt/format.h>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/inline_send.hpp"
#include "actors/spawn.hpp"
#include "core/log.hpp"
#include "serialization/lists.hpp"
#include "serialization/strings.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

// The bytes of a tensor on a data connection. Lists are neither fed nor fetched.
std::uint64_t payload_bytes(const Tensor& tensor) {
  return tensor.dtype() == DType::string ? encoded_strings_size(tensor) : tensor.bytes();
}

// What goes on a data connection.
struct Payload {
  Buffer bytes;
  std::size_t offset = 0;
  std::uint64_t size = 0;
};

Expected<Payload> to_payload(const Tensor& tensor) {
  if (tensor.dtype() != DType::string && tensor.dtype() != DType::list)
    return Payload{tensor.buffer(), tensor.offset(), tensor.bytes()};
  TROUPE_TRY(Buffer bytes,
             tensor.dtype() == DType::list ? encode_list(tensor) : encode_strings(tensor));
  const std::uint64_t size = bytes.size();
  return Payload{std::move(bytes), 0, size};
}

// The tensor in a payload. invalid_argument if its bytes are not valid.
Expected<Tensor> from_payload(const TensorTag& tag, Buffer bytes, std::uint64_t size) {
  std::span payload(static_cast<const std::byte*>(bytes.data()), size);
  if (tag.dtype == DType::string) return decode_strings(tag.shape, payload);
  if (tag.dtype == DType::list) return decode_list(payload);
  if (tag.dtype == DType::bool_ &&
      std::any_of(payload.begin(), payload.end(), [](std::byte b) { return b > std::byte{1}; }))
    return invalid_argument("a bool of a tensor is neither 0 nor 1");
  return Tensor(tag.dtype, tag.shape, std::move(bytes));
}

bool of_attempt(const WireMessage& message) {
  return std::holds_alternative<StartPartition>(message) ||
         std::holds_alternative<AbortPartition>(message) ||
         std::holds_alternative<PartitionDone>(message) ||
         std::holds_alternative<GrantReturned>(message);
}

Sender sender_of(const WireMessage& message) {
  return std::visit([]<class M>(const M&) { return MessageRules<M>::kSender; }, message);
}

// The name of a message in timelines: its type.
template <class T>
std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}
std::string_view kind_of(const WireMessage& message) {
  return std::visit([]<class M>(const M&) { return type_name<M>(); }, message);
}
// Both ends identify a message by a hash of its first bytes and its size. Equal hashes are matched
// in order.
SpanLabel message_label(Span::Kind kind, ProcessId peer, std::string_view name,
                        std::span<const std::byte> bytes) {
  constexpr std::size_t kHashed = 1024;
  return {.kind = kind,
          .name = name,
          .peer = peer,
          .message = hash_bytes(bytes.data(), std::min(bytes.size(), kHashed), bytes.size()),
          .bytes = bytes.size()};
}
SpanLabel tensor_label(Span::Kind kind, ProcessId peer, TensorTag::Kind what, ByteView tag,
                       std::uint64_t bytes) {
  constexpr std::string_view kNames[] = {"tensor", "feed", "fetch"};
  return {.kind = kind,
          .name = kNames[std::size_t(what)],
          .peer = peer,
          .message = hash_bytes(tag.data(), tag.size()),
          .bytes = bytes};
}

// Decides which tensors stay in a message: small ones, up to a total size.
class Inline {
 public:
  bool keeps(const Tensor& tensor) {
    if (!tensor.defined()) return true;
    std::uint64_t bytes = payload_bytes(tensor);
    if (bytes > kInlineTensor || used_ + bytes > kInlineTensors) return false;
    used_ += bytes;
    return true;
  }

 private:
  std::uint64_t used_ = 0;
};

}  // namespace

// Peers.

std::optional<ProcessId> NetHub::process_of(PeerId peer) const {
  std::lock_guard lock(mutex_);
  auto it = processes_.find(peer);
  if (it == processes_.end()) return std::nullopt;
  return it->second;
}

PeerId NetHub::peer_of(ProcessId process) const {
  std::lock_guard lock(mutex_);
  auto it = peers_.find(process);
  return it == peers_.end() ? 0 : it->second;
}

std::optional<ProcessId> NetHub::host_of(TaskId task) const {
  std::lock_guard lock(mutex_);
  return hosts_.process_of(task);
}

std::vector<TaskId> NetHub::tasks_of(ProcessId process) const {
  std::lock_guard lock(mutex_);
  return hosts_.tasks_of(process);
}

void NetHub::place(TaskId task, ProcessId process) {
  std::lock_guard lock(mutex_);
  hosts_.place(task, process);
}

Expected<PeerId> NetHub::connect(const Endpoint& to, const Join& self, ProcessId process,
                                 std::uint64_t incarnation, std::chrono::milliseconds within) {
  TROUPE_TRY(Hello words, encode_join(self));
  const PeerId peer = transport_->name_peer();
  {
    std::lock_guard lock(mutex_);
    processes_[peer] = process;
    peers_[process] = peer;
    connecting_[peer] = incarnation;
  }
  Status status = transport_->connect(peer, to, std::move(words), within);
  if (status.ok()) return peer;
  std::lock_guard lock(mutex_);
  processes_.erase(peer);
  connecting_.erase(peer);
  if (auto it = peers_.find(process); it != peers_.end() && it->second == peer) peers_.erase(it);
  return status;
}

Status NetHub::admit(PeerId peer, const Hello& hello) {
  TROUPE_TRY(Join join, decode_join(hello));
  TROUPE_TRY(owner_.may_connect(join));
  std::lock_guard lock(mutex_);
  auto wanted = connecting_.find(peer);
  if (wanted != connecting_.end() && wanted->second != 0 && wanted->second != join.incarnation)
    return failed_precondition("another process than the one that was meant listens there");
  return ok_status();
}

void NetHub::peer_up(PeerId peer, const Hello& hello) {
  auto join = decode_join(hello);
  if (!join.ok()) return refuse(peer, join.status());
  {
    std::lock_guard lock(mutex_);
    if (!connecting_.contains(peer)) nobody_.insert(peer);
  }
  owner_.up(peer, *join);
}

void NetHub::admit(PeerId peer, ProcessId process) {
  std::lock_guard lock(mutex_);
  if (nobody_.erase(peer) == 0) return;
  processes_[peer] = process;
  peers_[process] = peer;
}

void NetHub::peer_down(PeerId peer, Status why) {
  joiners_.erase(peer);
  bool known = false;
  {
    std::lock_guard lock(mutex_);
    known = nobody_.erase(peer) + connecting_.erase(peer) + processes_.count(peer) > 0;
    if (auto named = processes_.find(peer); named != processes_.end()) {
      const ProcessId process = named->second;
      processes_.erase(named);
      clocks_.erase(peer);
      if (auto it = peers_.find(process); it != peers_.end() && it->second == peer) {
        peers_.erase(it);
        arrivals_.disconnected(process);
      }
    }
  }
  if (known) owner_.down(peer, std::move(why));
}

void NetHub::close_peer(PeerId peer, Status why) { transport_->close(peer, std::move(why)); }

void NetHub::close(ProcessId process, Status why) {
  if (PeerId peer = peer_of(process); peer != 0) transport_->close(peer, std::move(why));
}

void NetHub::close(TaskId task, Status why) {
  if (auto process = host_of(task)) close(*process, std::move(why));
}

void NetHub::allow_silence(ProcessId process, std::function<bool()> stopped) {
  if (PeerId peer = peer_of(process); peer != 0)
    transport_->allow_silence(peer, std::move(stopped));
}

void NetHub::refuse(PeerId peer, Status why) {
  TROUPE_LOG(warning, "hub", why.text());
  transport_->close(peer, std::move(why));
}

// Messages.

Status NetHub::send(ProcessId to, const WireMessage& message) {
  ScopedSpan span(active(trace_));
  const PeerId peer = peer_of(to);
  if (peer == 0) return unavailable(fmt::format("process {} is not connected", to));
  std::uint64_t limit = is_master_ ? kMasterMessage : kWorkerMessage;
  std::uint64_t size = tensor_bytes(message);
  std::vector<std::byte> bytes;
  if (size <= limit) {
    bytes = encode(message);
    size = bytes.size();
  }
  if (size > limit)
    return resource_exhausted(
        fmt::format("a message of {} bytes to another process, {} are the most", size, limit));
  if (span) span.label = message_label(Span::Kind::send, to, kind_of(message), bytes);
  const bool bulk = is_bulk(message);
  if (bytes.size() > (bulk ? kMessagePart : kWholeMessage)) return send_parts(peer, bytes, bulk);
  const ByteView whole(bytes.data(), bytes.size());
  return bulk ? transport_->send_bulk(peer, whole) : transport_->send_control(peer, whole);
}

Status NetHub::send(TaskId to, const WireMessage& message) {
  if (auto process = host_of(to)) return send(*process, message);
  return unavailable(fmt::format("no process hosts task {}", number(to)));
}

// Also for a task without a host: the answer must be delivered.
void NetHub::answer(TaskId from, WireMessage message) {
  dispatch(host_of(from).value_or(0), std::move(message));
}

Status NetHub::send_parts(PeerId peer, std::span<const std::byte> message, bool bulk) {
  std::lock_guard lock(bulk ? sending_bulk_ : sending_parts_);
  for (std::size_t offset = 0; offset < message.size(); offset += kMessagePart) {
    const auto bytes = encode(message_part(message, offset, bulk));
    const ByteView part(bytes.data(), bytes.size());
    TROUPE_TRY(bulk ? transport_->send_bulk(peer, part) : transport_->send_control(peer, part));
  }
  return ok_status();
}

void NetHub::control(PeerId peer, Buffer bytes) {
  ScopedSpan span(active(trace_));
  auto from = process_of(peer);
  if (!from) return refuse(peer, invalid_argument("who is no member yet has nothing to say"));
  const std::span<const std::byte> read(static_cast<const std::byte*>(bytes.data()), bytes.size());
  const auto pass_on = [&](const WorkerActor& to, auto held, std::span<const std::byte> graph) {
    if (span) span.label = message_label(Span::Kind::receive, *from, type_name<LoadGraph>(), graph);
    auto holds = std::make_shared<decltype(held)>(std::move(held));
    caf::anon_send(to, EncodedGraph{std::move(holds), graph});
  };
  if (const auto to = reader_of_graph(*from, read)) return pass_on(to, std::move(bytes), read);
  auto message = decode(read);
  if (!message.ok()) return refuse(peer, message.status());
  if (auto* part = std::get_if<MessagePart>(&*message)) {
    // Workers send each other no control messages.
    std::uint64_t limit = *from == 0 ? kMasterMessage : is_master_ ? kWorkerMessage : 0;
    Joiners& joiners = joiners_[peer];
    auto whole = (part->bulk ? joiners.bulk : joiners.others).take(*part, limit);
    if (!whole.ok()) return refuse(peer, whole.status());
    if (!whole->has_value()) return;
    const std::span<const std::byte> joined(**whole);
    if (const auto to = reader_of_graph(*from, joined))
      return pass_on(to, std::move(**whole), joined);
    message = decode(**whole);
    if (!message.ok()) return refuse(peer, message.status());
    if (span) span.label = message_label(Span::Kind::receive, *from, kind_of(*message), **whole);
  } else if (span) {
    span.label = message_label(Span::Kind::receive, *from, kind_of(*message), read);
  }
  if (!may_send(*from, *message) || !speaks_for_itself(*from, *message))
    return refuse(peer, invalid_argument(fmt::format("process {} may not send that", *from)));
  if (!of_attempt(*message)) return dispatch(*from, std::move(message).value());
  Expected<std::optional<WireMessage>> ready = std::optional<WireMessage>{};
  {
    std::lock_guard lock(mutex_);
    ready = arrivals_.add(*from, std::move(message).value());
    hold_tensors();
  }
  if (!ready.ok()) return refuse(peer, ready.status());
  if (ready->has_value()) dispatch(*from, std::move(**ready));
}

// The worker here, if they are a graph for it.
WorkerActor NetHub::reader_of_graph(ProcessId from, std::span<const std::byte> bytes) const {
  return from == 0 && !is_master_ && begins_as<LoadGraph>(bytes) ? worker() : WorkerActor();
}

bool NetHub::may_send(ProcessId from, const WireMessage& message) const {
  if (std::holds_alternative<MessagePart>(message)) return false;  // parts of a part
  const Sender sender = sender_of(message);
  return (sender != Sender::worker && from == 0) || (sender != Sender::master && is_master_);
}

// Whether a process or task named in a worker's message is itself, or a task that it hosts.
bool NetHub::speaks_for_itself(ProcessId from, const WireMessage& message) const {
  return std::visit(
      [&]<class M>(const M& m) {
        if constexpr (requires { MessageRules<M>::speaker(m); }) {
          const auto speaker = MessageRules<M>::speaker(m);
          if constexpr (std::is_same_v<decltype(speaker), const TaskId>)
            return host_of(speaker) == from;
          else
            return speaker == from;
        } else {
          return true;
        }
      },
      message);
}

void NetHub::deliver_to(WorkerActor worker) {
  std::lock_guard lock(mutex_);
  std::swap(worker_, worker);  // the old actor is released after the lock
}

void NetHub::deliver_to(CoordinatorActor coordinator) {
  std::lock_guard lock(mutex_);
  std::swap(coordinator_, coordinator);
}

WorkerActor NetHub::worker() const {
  std::lock_guard lock(mutex_);
  return worker_;
}

CoordinatorActor NetHub::coordinator() const {
  std::lock_guard lock(mutex_);
  return coordinator_;
}

void NetHub::dispatch(ProcessId from, WireMessage message) {
  std::visit(
      [&]<class M>(M& m) {
        using Rules = MessageRules<M>;
        if constexpr (Rules::kReceiver == Receiver::membership)
          owner_.message(from, std::move(m));
        else if constexpr (Rules::kReceiver == Receiver::actor && Rules::kSender == Sender::master)
          deliver(worker(), std::move(m), Rules::kShortWork);
        else if constexpr (Rules::kReceiver == Receiver::actor)
          deliver(coordinator(), std::move(m), Rules::kShortWork);
      },
      message);
}

template <class Actor, class Message>
void NetHub::deliver(const Actor& to, Message message, bool short_work) {
  if (!to) return;
  if (inline_ && short_work)
    send_inline(to, std::move(message));
  else
    caf::anon_send(to, std::move(message));
}

// Tensors.

void NetHub::send_tensor(TaskId to, const TensorTag& tag, Tensor tensor) {
  if (auto process = host_of(to)) send_tensor(*process, tag, std::move(tensor));
}

void NetHub::send_tensor(ProcessId to, const TensorTag& tag, Tensor tensor) {
  ScopedSpan span(active(trace_));
  const PeerId peer = peer_of(to);
  if (peer == 0) return;
  std::array<std::byte, kMaxTensorTag> bytes;
  std::size_t size = encode_tag(tag, bytes);
  Payload payload{tensor.buffer(), tensor.offset(), 0};
  if (!tag.dead) {
    auto made = to_payload(tensor);
    // The receiver waits for this tensor: its attempt must not hang, so the connection ends.
    if (!made.ok()) return transport_->close(peer, made.status().in("while a tensor was sent"));
    payload = std::move(made).value();
  }
  if (span)
    span.label = tensor_label(Span::Kind::send, to, tag.kind, {bytes.data(), size}, payload.size);
  Status status = transport_->send_tensor(peer, TensorHeader({bytes.data(), size}, payload.size),
                                          std::move(payload.bytes), payload.offset);
  if (!status.ok()) TROUPE_LOG(debug, "hub", status.text());
}

void NetHub::expect(CompiledId compiled, std::vector<InboundChannel> channels) {
  std::lock_guard lock(mutex_);
  arrivals_.expect(compiled, std::move(channels));
}

void NetHub::forget(CompiledId compiled) {
  std::lock_guard lock(mutex_);
  arrivals_.forget(compiled);
  hold_tensors();
}

void NetHub::live(const LiveList& list) {
  std::lock_guard lock(mutex_);
  arrivals_.live(list);
  hold_tensors();
}

bool NetHub::ask(TaskId task, const StartPartition& start, std::uint32_t fetches) {
  std::lock_guard lock(mutex_);
  return arrivals_.ask(task, start, fetches);
}

void NetHub::limit_early(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  arrivals_.limit_early(bytes);
}

// REQUIRES: mutex_ is held, so that changes for one process stay in order.
void NetHub::hold_tensors() {
  for (auto [process, hold] : arrivals_.take_holds())
    if (auto it = peers_.find(process); it != peers_.end())
      transport_->hold_tensors(it->second, hold);
}

Expected<Buffer> NetHub::accept_tensor(PeerId peer, const TensorHeader& header) {
  auto from = process_of(peer);
  if (!from) return failed_precondition("the peer is not a member");
  TROUPE_TRY(TensorTag tag, decode_tag(header.tag()));
  bool wanted = false;
  {
    std::lock_guard lock(mutex_);
    TROUPE_TRY(wanted, arrivals_.admit(*from, tag, header.bytes));
    hold_tensors();
  }
  if (!wanted) return Buffer{};
  return pool_.take(header.bytes);
}

void NetHub::tensor(PeerId peer, const TensorHeader& header, Buffer bytes) {
  ScopedSpan span(active(trace_));
  auto from = process_of(peer);
  auto tag = decode_tag(header.tag());
  if (!from || !tag.ok()) return;
  if (span)
    span.label = tensor_label(Span::Kind::receive, *from, tag->kind, header.tag(), header.bytes);
  Tensor tensor;
  if (!tag->dead) {
    auto read = from_payload(*tag, std::move(bytes), header.bytes);
    if (!read.ok()) return refuse(peer, read.status());
    tensor = std::move(read).value();
  }
  if (tag->kind == TensorTag::Kind::channel) {
    TensorArrived arrived;
    arrived.compiled = tag->compiled;
    arrived.partition = tag->partition;
    arrived.attempt = tag->attempt;
    arrived.channel = tag->index;
    arrived.tag = Tag(tag->iterations);
    arrived.tensor = std::move(tensor);
    arrived.dead = tag->dead;
    deliver(worker(), std::move(arrived), true);
    return;
  }
  std::optional<WireMessage> ready;
  {
    std::lock_guard lock(mutex_);
    ready = arrivals_.add(*tag, std::move(tensor));
  }
  if (ready) dispatch(*from, std::move(*ready));
}

// Clocks.

void NetHub::clock(PeerId peer, const ClockOffset& offset) {
  std::lock_guard lock(mutex_);
  if (processes_.contains(peer)) clocks_[peer] = offset;
}

std::optional<ClockOffset::Estimate> NetHub::clock_of(ProcessId process) const {
  std::lock_guard lock(mutex_);
  auto peer = peers_.find(process);
  if (peer == peers_.end()) return std::nullopt;
  auto clock = clocks_.find(peer->second);
  return clock == clocks_.end() ? std::nullopt : clock->second.at(Trace::now_ns());
}

// Proxies.

namespace {

struct ProxyState {
  static constexpr const char* name = "proxy";
  static constexpr InlineWork kInline = InlineWork::short_work;
  NetHub* hub = nullptr;
  std::shared_ptr<void> alive;
};
struct TaskProxyState : ProxyState {
  TaskId task{};
  std::map<std::uint64_t, Status> refused;      // graphs that could not be sent, by session
  std::map<CompiledId, std::uint32_t> fetches;  // number of fetches, by step
};
struct MasterProxyState : ProxyState {};

// The destination of a proxy's messages.
TaskId receiver(const TaskProxyState& s) { return s.task; }
ProcessId receiver(const MasterProxyState&) { return 0; }

// An error means that the message is too long, and must be reported.
template <class State>
Status try_forward(const State& s, const WireMessage& message) {
  Status status = s.hub->send(receiver(s), message);
  if (status.ok() || status.code() == Code::resource_exhausted) return status;
  // Messages for a process that is down are dropped; the master learns of its loss separately.
  TROUPE_LOG(debug, "proxy", status.text());
  return ok_status();
}

// For messages without an answer.
template <class State>
void forward(const State& s, const WireMessage& message) {
  if (Status status = try_forward(s, message); !status.ok())
    TROUPE_LOG(error, "proxy", status.text());
}

TensorTag large_tag(TensorTag::Kind kind, CompiledId compiled, std::uint32_t partition,
                    const AttemptId& attempt, std::uint32_t index, const Tensor& tensor) {
  TensorTag tag;
  tag.kind = kind;
  tag.compiled = compiled;
  tag.partition = partition;
  tag.attempt = attempt;
  tag.index = index;
  tag.dtype = tensor.dtype();
  tag.shape = tensor.shape();
  return tag;
}

template <class T, class... Some>
constexpr bool is_one_of = (std::is_same_v<T, Some> || ...);

// The types of a tuple, except some.
template <class... Some, class... All>
auto without(std::tuple<All...>) -> decltype(std::tuple_cat(
    std::conditional_t<is_one_of<All, Some...>, std::tuple<>, std::tuple<All>>{}...));

// A proxy's behavior: its own handlers, and for each other message one that forwards it.
template <class Actor, class... Others, class Self, class... Handlers>
typename Actor::behavior_type behavior_of(std::tuple<Others...>*, Self self, Handlers... own) {
  return {std::move(own)..., [self](const Others& m) { forward(self->state, m); }...};
}

ProcessActor::behavior_type task_proxy(ProcessActor::stateful_pointer<TaskProxyState> self,
                                       NetHub* hub, TaskId task, std::shared_ptr<void> alive) {
  self->state.hub = hub;
  self->state.alive = std::move(alive);
  self->state.task = task;
  using Others =
      decltype(without<LoadGraph, ForgetGraph, LoadStep, UnloadStep, StartPartition, LiveList>(
          ToActors<Sender::master>{}));
  return behavior_of<ProcessActor>(
      static_cast<Others*>(nullptr), self,
      [self](const LoadGraph& m) {
        if (m.from > 0 && self->state.refused.contains(m.session))
          return;  // an earlier part is missing
        self->state.refused.erase(m.session);
        if (Status status = try_forward(self->state, m); !status.ok())
          self->state.refused[m.session] = status.in("while the graph was sent");
      },
      [self](const LoadStep& m) {
        auto& s = self->state;
        s.fetches[m.compiled] = std::uint32_t(m.request.fetches.size());
        auto refused = s.refused.find(m.session);
        Status status = refused == s.refused.end() ? try_forward(s, m) : refused->second;
        if (!status.ok()) s.hub->answer(s.task, StepLoaded{m.compiled, s.task, status});
      },
      [self](const ForgetGraph& m) {
        self->state.refused.erase(m.session);
        forward(self->state, m);
      },
      [self](const UnloadStep& m) {
        self->state.fetches.erase(m.compiled);
        forward(self->state, m);
      },
      [self](StartPartition& m) {
        auto& s = self->state;
        // The transport loses nothing while the peer is up: a repetition for lack of an answer is
        // already under way or being worked on.
        if (!s.hub->ask(s.task, m, s.fetches[m.compiled])) return;
        Inline inlined;
        for (std::uint32_t i = 0; i < m.feeds.size(); ++i) {
          if (inlined.keeps(m.feeds[i])) continue;
          TensorTag tag = large_tag(TensorTag::Kind::feed, m.compiled, m.partition, m.attempt.id, i,
                                    m.feeds[i]);
          s.hub->send_tensor(s.task, tag, std::exchange(m.feeds[i], Tensor{}));
        }
        Status status = try_forward(self->state, m);
        if (status.ok()) return;
        s.hub->answer(s.task, PartitionDone::failed(m.attempt.id, m.attempt.run, m.partition,
                                                    status.in("while feeds were sent")));
      },
      [self](const LiveList& m) {
        self->state.hub->live(m);
        forward(self->state, m);
      },
      [self](const Members& m) { forward(self->state, m); },
      [self](const ExpelProcess& m) { self->state.hub->close(self->state.task, m.why); },
      [self](const Leave& m) {
        forward(self->state, m);
        self->quit();
      });
}

CoordinatorActor::behavior_type master_proxy(
    CoordinatorActor::stateful_pointer<MasterProxyState> self, NetHub* hub,
    std::shared_ptr<void> alive) {
  self->state.hub = hub;
  self->state.alive = std::move(alive);
  using Others = decltype(without<PartitionDone>(ToActors<Sender::worker>{}));
  return behavior_of<CoordinatorActor>(
      static_cast<Others*>(nullptr), self, [self](PartitionDone& m) {
        Inline inlined;
        for (Fetched& f : m.fetches) {
          if (inlined.keeps(f.value)) continue;
          TensorTag tag =
              large_tag(TensorTag::Kind::fetch, 0, m.partition, m.attempt, f.index, f.value);
          self->state.hub->send_tensor(ProcessId{0}, tag, std::exchange(f.value, Tensor{}));
        }
        Status status = try_forward(self->state, m);
        if (status.ok()) return;
        m.status = status.in("while fetches were sent");
        m.fetches.clear();
        forward(self->state, m);
      });
}

}  // namespace

ProcessActor spawn_task_proxy(caf::actor_system& system, NetHub& hub, TaskId task,
                              std::shared_ptr<void> alive) {
  return spawn_actor<ProcessActor>(system, ProxyState::name, task_proxy, &hub, task,
                                   std::move(alive));
}

CoordinatorActor spawn_master_proxy(caf::actor_system& system, NetHub& hub,
                                    std::shared_ptr<void> alive) {
  return spawn_actor<CoordinatorActor>(system, ProxyState::name, master_proxy, &hub,
                                       std::move(alive));
}

}  // namespace troupe
