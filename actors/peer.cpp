#include "actors/peer.hpp"

#include <fmt/format.h>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/inline_send.hpp"
#include "core/log.hpp"
#include "serialization/strings.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

// Attempts that a peer may send for before this process heard of them.
constexpr std::uint64_t kAttemptsAhead = 4096;

// Bytes of a tensor on a data connection.
std::uint64_t payload_bytes(const Tensor& tensor) {
  return tensor.dtype() == DType::string ? encoded_strings_size(tensor) : tensor.bytes();
}

// The tensor that a payload is. invalid_argument when its bytes mean none.
Expected<Tensor> from_payload(const TensorTag& tag, Buffer bytes, std::uint64_t size) {
  std::span payload(static_cast<const std::byte*>(bytes.data()), size);
  if (tag.dtype == DType::string) return decode_strings(tag.shape, payload);
  if (tag.dtype == DType::bool_ &&
      std::any_of(payload.begin(), payload.end(), [](std::byte b) { return b > std::byte{1}; }))
    return invalid_argument("a bool of a tensor is neither 0 nor 1");
  return Tensor(tag.dtype, tag.shape, std::move(bytes));
}

// Which tensors of one message stay in it: small ones, as long as they are few.
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

// Puts arrived tensors into their places; true when none is missing.
bool complete(WireMessage& message, std::map<std::uint32_t, Tensor>& arrived) {
  bool all = true;
  if (auto* start = std::get_if<StartStep>(&message)) {
    for (std::uint32_t i = 0; i < start->feeds.size(); ++i)
      all &= start->feeds[i].defined() || arrived.contains(i);
    if (all)
      for (auto& [i, tensor] : arrived)
        if (i < start->feeds.size()) start->feeds[i] = std::move(tensor);
  } else if (auto* done = std::get_if<PartitionDone>(&message)) {
    for (const Fetched& f : done->fetches) all &= f.value.defined() || arrived.contains(f.index);
    if (all)
      for (Fetched& f : done->fetches)
        if (auto it = arrived.find(f.index); it != arrived.end()) f.value = std::move(it->second);
  }
  return all;
}

}  // namespace

// Peers.

std::optional<ProcessId> NetHub::process_of(PeerId peer) const {
  std::lock_guard lock(mutex_);
  auto it = processes_.find(peer);
  if (it == processes_.end()) return std::nullopt;
  return it->second;
}

Status NetHub::connect(const Endpoint& to, const Join& self, ProcessId process,
                       std::chrono::milliseconds within) {
  TROUPE_TRY(Hello words, encode_join(self));
  std::lock_guard naming(naming_);
  TROUPE_TRY(PeerId peer, transport_->connect(to, std::move(words), within));
  std::lock_guard lock(mutex_);
  processes_[peer] = process;
  peers_[process] = peer;
  return ok_status();
}

Status NetHub::admit(PeerId peer, const Hello& hello) {
  { std::lock_guard naming(naming_); }
  if (process_of(peer)) return ok_status();  // this process connected to it
  TROUPE_TRY(Join join, decode_join(hello));
  TROUPE_TRY(ProcessId process, owner_.admit(peer, join));
  std::lock_guard lock(mutex_);
  processes_[peer] = process;
  joins_[peer] = std::move(join);
  return ok_status();
}

// Of two that claim one number the first to come up has it; until then neither keeps the other out,
// as one of them may never go on.
void NetHub::peer_up(PeerId peer, const Hello&) {
  auto process = process_of(peer);
  if (!process) return;
  Join join;
  {
    std::unique_lock lock(mutex_);
    if (auto it = joins_.find(peer); it != joins_.end()) {
      if (peers_.contains(*process)) {
        processes_.erase(peer);
        joins_.erase(it);
        lock.unlock();
        return refuse(peer,
                      already_exists(fmt::format("process {} is connected already", *process)));
      }
      join = std::move(it->second);
      joins_.erase(it);
      peers_[*process] = peer;
    }
  }
  owner_.up(*process, join);
}

void NetHub::peer_down(PeerId peer, Status why) {
  { std::lock_guard naming(naming_); }
  joiners_.erase(peer);
  auto process = process_of(peer);
  if (!process) return;
  bool was_up = false;
  {
    std::lock_guard lock(mutex_);
    processes_.erase(peer);
    was_up = joins_.erase(peer) == 0;
    if (auto it = peers_.find(*process); it != peers_.end() && it->second == peer) peers_.erase(it);
  }
  if (was_up)
    owner_.down(*process, std::move(why));
  else
    owner_.withdrawn(*process);
}

bool NetHub::connected(ProcessId process) const {
  std::lock_guard lock(mutex_);
  return peers_.contains(process);
}

void NetHub::close(ProcessId process, Status why) {
  PeerId peer = 0;
  {
    std::lock_guard lock(mutex_);
    if (auto it = peers_.find(process); it != peers_.end()) peer = it->second;
  }
  if (peer != 0) transport_->close(peer, std::move(why));
}

void NetHub::refuse(PeerId peer, Status why) {
  TROUPE_LOG(warning, "hub", why.text());
  transport_->close(peer, std::move(why));
}

// Messages.

Status NetHub::send(ProcessId to, const WireMessage& message) {
  PeerId peer = 0;
  {
    std::lock_guard lock(mutex_);
    if (auto it = peers_.find(to); it != peers_.end()) peer = it->second;
  }
  if (peer == 0) return unavailable(fmt::format("process {} is not connected", to));
  std::uint64_t limit = self_ == 0 ? kMasterMessage : kWorkerMessage;
  std::uint64_t size = tensor_bytes(message);
  std::vector<std::byte> bytes;
  if (size <= limit) {
    bytes = encode(message);
    size = bytes.size();
  }
  if (size > limit)
    return resource_exhausted(
        fmt::format("a message of {} bytes to another process, {} are the most", size, limit));
  if (bytes.size() > kMessagePart) return send_parts(peer, bytes);
  return transport_->send_control(peer, ByteView(bytes.data(), bytes.size()));
}

Status NetHub::send_parts(PeerId peer, std::span<const std::byte> message) {
  std::lock_guard lock(sending_parts_);
  for (std::size_t offset = 0; offset < message.size(); offset += kMessagePart) {
    auto part = encode(message_part(message, offset));
    TROUPE_TRY(transport_->send_control(peer, ByteView(part.data(), part.size())));
  }
  return ok_status();
}

void NetHub::control(PeerId peer, Buffer bytes) {
  auto from = process_of(peer);
  if (!from) return;
  auto message = decode({static_cast<const std::byte*>(bytes.data()), bytes.size()});
  if (!message.ok()) return refuse(peer, message.status());
  if (auto* part = std::get_if<MessagePart>(&*message)) {
    // Workers have nothing to say to each other on control connections.
    std::uint64_t limit = *from == 0 ? kMasterMessage : self_ == 0 ? kWorkerMessage : 0;
    auto whole = joiners_[peer].take(*part, limit);
    if (!whole.ok()) return refuse(peer, whole.status());
    if (!whole->has_value()) return;
    message = decode(**whole);
    if (!message.ok()) return refuse(peer, message.status());
  }
  if (!may_send(*from, *message))
    return refuse(peer, invalid_argument(fmt::format("process {} may not send that", *from)));
  dispatch(*from, std::move(message).value());
}

bool NetHub::may_send(ProcessId from, const WireMessage& message) const {
  if (std::holds_alternative<MessagePart>(message)) return false;  // parts of a part
  bool from_master = from == 0;
  bool to_master = self_ == 0;
  bool master_speaks =
      std::holds_alternative<Welcome>(message) || std::holds_alternative<Members>(message) ||
      std::holds_alternative<LoadGraph>(message) || std::holds_alternative<LoadStep>(message) ||
      std::holds_alternative<UnloadStep>(message) || std::holds_alternative<StartStep>(message) ||
      std::holds_alternative<AbortPartition>(message) || std::holds_alternative<Prepare>(message) ||
      std::holds_alternative<LiveList>(message) || std::holds_alternative<Leave>(message);
  return master_speaks ? from_master : to_master;
}

void NetHub::deliver_to(WorkerActor worker) {
  std::lock_guard lock(mutex_);
  std::swap(worker_, worker);  // the argument, which dies without the lock, takes the old one along
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
  std::map<std::uint32_t, Tensor> none;
  if (!complete(message, none)) {
    PartialKey key;
    if (auto* start = std::get_if<StartStep>(&message))
      key = {TensorTag::Kind::feed, start->attempt.id, start->partition};
    else if (auto* done = std::get_if<PartitionDone>(&message))
      key = {TensorTag::Kind::fetch, done->attempt, done->partition};
    std::unique_lock lock(mutex_);
    Partial& partial = partial_[key];
    partial.message = std::move(message);
    if (!complete(*partial.message, partial.tensors)) return;
    message = std::move(*partial.message);
    partial_.erase(key);
  }
  std::visit(
      [&](auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, Welcome> || std::is_same_v<M, Ready> ||
                      std::is_same_v<M, Members> || std::is_same_v<M, Leave>) {
          owner_.message(from, std::move(m));
        } else if constexpr (std::is_same_v<M, PartitionDone> || std::is_same_v<M, Staged> ||
                             std::is_same_v<M, BlockedReport> || std::is_same_v<M, StepLoaded>) {
          if (CoordinatorActor to = coordinator()) deliver(to, std::move(m));
        } else if constexpr (!std::is_same_v<M, MessagePart>) {
          if (WorkerActor to = worker()) deliver(to, std::move(m));
        }
      },
      message);
}

// What a step is made of is short work; graphs and steps to load are not.
template <class Actor, class Message>
void NetHub::deliver(const Actor& to, Message message) {
  constexpr bool loads = std::is_same_v<Message, LoadGraph> || std::is_same_v<Message, LoadStep> ||
                         std::is_same_v<Message, UnloadStep> || std::is_same_v<Message, StepLoaded>;
  if (inline_ && !loads)
    send_inline(to, std::move(message));
  else
    caf::anon_send(to, std::move(message));
}

// Tensors.

void NetHub::send_tensor(ProcessId to, const TensorTag& tag, Tensor tensor) {
  PeerId peer = 0;
  {
    std::lock_guard lock(mutex_);
    if (auto it = peers_.find(to); it != peers_.end()) peer = it->second;
  }
  if (peer == 0) return;
  std::array<std::byte, kMaxTensorTag> bytes;
  std::size_t size = encode_tag(tag, bytes);
  Buffer payload = tensor.buffer();
  std::size_t offset = tensor.offset();
  if (!tag.dead && tensor.dtype() == DType::string) {
    auto encoded = encode_strings(tensor);
    // The receiver waits for this tensor: its attempt must not hang.
    if (!encoded.ok())
      return transport_->close(peer, encoded.status().in("while strings were sent"));
    payload = std::move(encoded).value();
    offset = 0;
  }
  std::uint64_t payload_size = tag.dead ? 0 : payload_bytes(tensor);
  Status status = transport_->send_tensor(peer, TensorHeader({bytes.data(), size}, payload_size),
                                          std::move(payload), offset);
  if (!status.ok()) TROUPE_LOG(debug, "hub", status.text());
}

void NetHub::expect(CompiledId compiled, std::vector<InboundChannel> channels) {
  std::lock_guard lock(mutex_);
  auto& table = expected_[compiled];
  for (InboundChannel& channel : channels) table[channel.channel] = std::move(channel);
}

void NetHub::forget(CompiledId compiled) {
  std::lock_guard lock(mutex_);
  expected_.erase(compiled);
}

void NetHub::live(const LiveList& list) {
  std::lock_guard lock(mutex_);
  if (!list.newer_than(live_)) return;
  live_ = list;
  std::erase_if(received_, [&](const auto& r) { return list.over(r.first); });
  std::erase_if(partial_, [&](const auto& p) { return list.over(std::get<AttemptId>(p.first)); });
}

// What a peer claims about a tensor, before any of its bytes is read.
Status NetHub::check_tensor(ProcessId from, const TensorTag& tag, std::uint64_t bytes) {
  if (tag.dead) {
    if (bytes != 0 || tag.kind != TensorTag::Kind::channel)
      return invalid_argument("only channels have dead elements, and those no bytes");
  } else if (tag.dtype == DType::string) {
    TROUPE_TRY(check_strings_size(tag.shape, bytes));
  } else {
    TROUPE_TRY(std::int64_t size, byte_size(tag.shape, dtype_size(tag.dtype)));
    if (bytes != std::uint64_t(size))
      return invalid_argument(fmt::format("a tensor {}{} has {} bytes, not {}",
                                          dtype_name(tag.dtype), tag.shape.text(), size, bytes));
  }
  if (tag.kind == TensorTag::Kind::feed && from != 0)
    return invalid_argument("only the master feeds");
  if (tag.kind == TensorTag::Kind::fetch && self_ != 0)
    return invalid_argument("only the master takes fetches");
  if (tag.attempt.a > live_.next_a + kAttemptsAhead)
    return invalid_argument("a tensor of an attempt that is far ahead");
  if (tag.kind != TensorTag::Kind::channel) {
    // Each waits for its message once.
    auto partial = partial_.find({tag.kind, tag.attempt, tag.partition});
    if (partial != partial_.end() && partial->second.tensors.contains(tag.index))
      return invalid_argument(
          fmt::format("value {} of attempt {} came twice", tag.index, tag.attempt.text()));
    return ok_status();
  }
  auto step = expected_.find(tag.compiled);
  if (step == expected_.end())
    return live_.over(tag.attempt) ? ok_status()
                                   : invalid_argument("a tensor of a step that is not loaded");
  auto channel = step->second.find(tag.index);
  if (channel == step->second.end() || channel->second.from != from ||
      channel->second.partition != tag.partition)
    return invalid_argument(fmt::format("no channel {} comes from process {}", tag.index, from));
  if (!tag.dead &&
      (tag.dtype != channel->second.dtype || !channel->second.shape.accepts(tag.shape)))
    return invalid_argument(fmt::format(
        "channel {} carries {}{}, not {}{}", tag.index, dtype_name(channel->second.dtype),
        channel->second.shape.text(), dtype_name(tag.dtype), tag.shape.text()));
  // One element a channel outside loops: that is its credit.
  if (!channel->second.loops && !received_.emplace(tag.attempt, tag.index).second)
    return invalid_argument(
        fmt::format("channel {} was used twice in attempt {}", tag.index, tag.attempt.text()));
  return ok_status();
}

Expected<Buffer> NetHub::accept_tensor(PeerId peer, const TensorHeader& header) {
  auto from = process_of(peer);
  if (!from) return failed_precondition("the peer is not a member");
  TROUPE_TRY(TensorTag tag, decode_tag(header.tag()));
  {
    std::lock_guard lock(mutex_);
    TROUPE_TRY(check_tensor(*from, tag, header.bytes));
  }
  return pool_.take(header.bytes);
}

void NetHub::tensor(PeerId peer, const TensorHeader& header, Buffer bytes) {
  auto from = process_of(peer);
  auto tag = decode_tag(header.tag());
  if (!from || !tag.ok()) return;
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
    if (WorkerActor to = worker()) deliver(to, std::move(arrived));
    return;
  }
  std::optional<WireMessage> ready;
  {
    std::lock_guard lock(mutex_);
    if (live_.over(tag->attempt)) return;
    PartialKey key{tag->kind, tag->attempt, tag->partition};
    Partial& partial = partial_[key];
    partial.tensors[tag->index] = std::move(tensor);
    if (!partial.message || !complete(*partial.message, partial.tensors)) return;
    ready = std::move(partial.message);
    partial_.erase(key);
  }
  dispatch(*from, std::move(*ready));
}

// Proxies.

namespace {

struct ProxyState {
  static constexpr const char* name = kProxy;
  NetHub* hub = nullptr;
  ProcessId process = 0;
  std::shared_ptr<void> alive;
  std::map<std::uint64_t, Status> refused;  // graphs that could not be sent, by session
  std::set<std::pair<AttemptId, std::uint32_t>> started;  // with their partitions
};

// An error: the message is longer than any that can be sent, and somebody is to be told.
Status try_forward(const ProxyState& s, const WireMessage& message) {
  Status status = s.hub->send(s.process, message);
  if (status.ok() || status.code() == Code::resource_exhausted) return status;
  // A process that is down swallows what is for it; its loss is told to the master by itself.
  TROUPE_LOG(debug, "proxy", status.text());
  return ok_status();
}

// For messages that nobody waits for.
void forward(const ProxyState& s, const WireMessage& message) {
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

ProcessActor::behavior_type process_proxy(ProcessActor::stateful_pointer<ProxyState> self,
                                          NetHub* hub, ProcessId process,
                                          std::shared_ptr<void> alive) {
  self->state = {hub, process, std::move(alive)};
  return {
      [self](const LoadGraph& m) {
        self->state.refused.erase(m.session);
        if (Status status = try_forward(self->state, m); !status.ok())
          self->state.refused[m.session] = status.in("while the graph was sent");
      },
      [self](const LoadStep& m) {
        auto& s = self->state;
        auto refused = s.refused.find(m.session);
        Status status = refused == s.refused.end() ? try_forward(s, m) : refused->second;
        if (!status.ok()) s.hub->answer(s.process, StepLoaded{m.compiled, s.process, status});
      },
      [self](const UnloadStep& m) { forward(self->state, m); },
      [self](StartStep& m) {
        // The transport loses nothing as long as the peer is up: what the master repeats, since it
        // has no answer yet, is under way or being worked on.
        if (!self->state.started.emplace(m.attempt.id, m.partition).second) return;
        Inline inlined;
        for (std::uint32_t i = 0; i < m.feeds.size(); ++i) {
          if (inlined.keeps(m.feeds[i])) continue;
          TensorTag tag = large_tag(TensorTag::Kind::feed, m.compiled, m.partition, m.attempt.id, i,
                                    m.feeds[i]);
          self->state.hub->send_tensor(self->state.process, tag,
                                       std::exchange(m.feeds[i], Tensor{}));
        }
        Status status = try_forward(self->state, m);
        if (status.ok()) return;
        PartitionDone done;
        done.attempt = m.attempt.id;
        done.run = m.attempt.run;
        done.partition = m.partition;
        done.status = status.in("while feeds were sent");
        self->state.hub->answer(self->state.process, std::move(done));
      },
      [self](const AbortPartition& m) { forward(self->state, m); },
      [self](const Prepare& m) { forward(self->state, m); },
      [self](const LiveList& m) {
        std::erase_if(self->state.started, [&](const auto& s) { return m.over(s.first); });
        self->state.hub->live(m);
        forward(self->state, m);
      },
      [self](const Members& m) { forward(self->state, m); },
      [self](const Leave& m) {
        forward(self->state, m);
        self->quit();
      },
  };
}

CoordinatorActor::behavior_type master_proxy(CoordinatorActor::stateful_pointer<ProxyState> self,
                                             NetHub* hub, std::shared_ptr<void> alive) {
  self->state = {hub, 0, std::move(alive)};
  return {
      [self](PartitionDone& m) {
        Inline inlined;
        for (Fetched& f : m.fetches) {
          if (inlined.keeps(f.value)) continue;
          TensorTag tag =
              large_tag(TensorTag::Kind::fetch, 0, m.partition, m.attempt, f.index, f.value);
          self->state.hub->send_tensor(0, tag, std::exchange(f.value, Tensor{}));
        }
        Status status = try_forward(self->state, m);
        if (status.ok()) return;
        m.status = status.in("while fetches were sent");
        m.fetches.clear();
        forward(self->state, m);
      },
      [self](const Staged& m) { forward(self->state, m); },
      [self](const BlockedReport& m) { forward(self->state, m); },
      [self](const StepLoaded& m) { forward(self->state, m); },
  };
}

}  // namespace

ProcessActor spawn_process_proxy(caf::actor_system& system, NetHub& hub, ProcessId process,
                                 std::shared_ptr<void> alive) {
  return system.spawn(process_proxy, &hub, process, std::move(alive));
}

CoordinatorActor spawn_master_proxy(caf::actor_system& system, NetHub& hub,
                                    std::shared_ptr<void> alive) {
  return system.spawn(master_proxy, &hub, std::move(alive));
}

}  // namespace troupe
