#include "actors/peer.hpp"

#include <fmt/format.h>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "core/log.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

// Attempts that a peer may send for before this process heard of them.
constexpr std::uint64_t kAttemptsAhead = 4096;

bool large(const Tensor& tensor) {
  return tensor.defined() && tensor.dtype() != DType::string && tensor.bytes() > kInlineTensor;
}

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

// ---- peers
// ----------------------------------------------------------------------------------------

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
  peers_[process] = peer;
  joins_[peer] = std::move(join);
  return ok_status();
}

void NetHub::peer_up(PeerId peer, const Hello&) {
  auto process = process_of(peer);
  if (!process) return;
  Join join;
  {
    std::lock_guard lock(mutex_);
    if (auto it = joins_.find(peer); it != joins_.end()) join = it->second;
  }
  owner_.up(*process, join);
}

void NetHub::peer_down(PeerId peer, Status why) {
  { std::lock_guard naming(naming_); }
  auto process = process_of(peer);
  if (!process) return;
  {
    std::lock_guard lock(mutex_);
    processes_.erase(peer);
    joins_.erase(peer);
    if (auto it = peers_.find(*process); it != peers_.end() && it->second == peer) peers_.erase(it);
  }
  owner_.down(*process, std::move(why));
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

// ---- messages
// -------------------------------------------------------------------------------------

Status NetHub::send(ProcessId to, const WireMessage& message) {
  PeerId peer = 0;
  {
    std::lock_guard lock(mutex_);
    if (auto it = peers_.find(to); it != peers_.end()) peer = it->second;
  }
  if (peer == 0) return unavailable(fmt::format("process {} is not connected", to));
  auto bytes = encode(message);
  return transport_->send_control(peer, ByteView(bytes.data(), bytes.size()));
}

void NetHub::control(PeerId peer, Buffer bytes) {
  auto from = process_of(peer);
  if (!from) return;
  auto message = decode({static_cast<const std::byte*>(bytes.data()), bytes.size()});
  if (!message.ok()) return refuse(peer, message.status());
  bool from_master = *from == 0;
  bool to_master = self_ == 0;
  bool master_speaks =
      std::holds_alternative<Welcome>(*message) || std::holds_alternative<Members>(*message) ||
      std::holds_alternative<LoadGraph>(*message) || std::holds_alternative<LoadStep>(*message) ||
      std::holds_alternative<UnloadStep>(*message) || std::holds_alternative<StartStep>(*message) ||
      std::holds_alternative<AbortPartition>(*message) ||
      std::holds_alternative<Prepare>(*message) || std::holds_alternative<LiveList>(*message) ||
      std::holds_alternative<Leave>(*message);
  if (master_speaks ? !from_master : !to_master)
    return refuse(peer, invalid_argument(fmt::format("process {} may not send that", *from)));
  dispatch(*from, std::move(message).value());
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
          caf::anon_send(coordinator_, std::move(m));
        } else {
          if (worker_) caf::anon_send(worker_, std::move(m));
        }
      },
      message);
}

// ---- tensors
// --------------------------------------------------------------------------------------

void NetHub::send_tensor(ProcessId to, const TensorTag& tag, Tensor tensor) {
  PeerId peer = 0;
  {
    std::lock_guard lock(mutex_);
    if (auto it = peers_.find(to); it != peers_.end()) peer = it->second;
  }
  if (peer == 0) return;
  std::array<std::byte, kMaxTensorTag> bytes;
  std::size_t size = encode_tag(tag, bytes);
  std::uint64_t payload = tag.dead ? 0 : tensor.bytes();
  Status status = transport_->send_tensor(peer, TensorHeader({bytes.data(), size}, payload),
                                          tensor.buffer(), tensor.offset());
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
  if (tag.dtype == DType::string || tag.dtype == DType::resource)
    return invalid_argument("a tensor of that type does not cross processes");
  TROUPE_TRY(std::int64_t size, byte_size(tag.shape, dtype_size(tag.dtype)));
  if (bytes != (tag.dead ? 0 : std::uint64_t(size)))
    return invalid_argument(fmt::format("a tensor {}{} has {} bytes, not {}", dtype_name(tag.dtype),
                                        tag.shape.text(), size, bytes));
  if (tag.kind == TensorTag::Kind::feed)
    return from == 0 ? ok_status() : invalid_argument("only the master feeds");
  if (tag.kind == TensorTag::Kind::fetch)
    return self_ == 0 ? ok_status() : invalid_argument("only the master takes fetches");
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
  if (tag.attempt.a > live_.next_a + kAttemptsAhead)
    return invalid_argument("a tensor of an attempt that is far ahead");
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
  if (!tag->dead) tensor = Tensor(tag->dtype, tag->shape, std::move(bytes));
  if (tag->kind == TensorTag::Kind::channel) {
    TensorArrived arrived;
    arrived.compiled = tag->compiled;
    arrived.partition = tag->partition;
    arrived.attempt = tag->attempt;
    arrived.channel = tag->index;
    arrived.tag = Tag(tag->iterations);
    arrived.tensor = std::move(tensor);
    arrived.dead = tag->dead;
    if (worker_) caf::anon_send(worker_, std::move(arrived));
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

// ---- proxies
// --------------------------------------------------------------------------------------

namespace {

struct ProxyState {
  NetHub* hub = nullptr;
  ProcessId process = 0;
  std::shared_ptr<void> alive;
};

void forward(const ProxyState& s, const WireMessage& message) {
  // A process that is down swallows what is for it; its loss is told to the master by itself.
  if (Status status = s.hub->send(s.process, message); !status.ok())
    TROUPE_LOG(debug, "proxy", status.text());
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
      [self](const LoadGraph& m) { forward(self->state, m); },
      [self](const LoadStep& m) { forward(self->state, m); },
      [self](const UnloadStep& m) { forward(self->state, m); },
      [self](StartStep& m) {
        for (std::uint32_t i = 0; i < m.feeds.size(); ++i) {
          if (!large(m.feeds[i])) continue;
          TensorTag tag = large_tag(TensorTag::Kind::feed, m.compiled, m.partition, m.attempt.id, i,
                                    m.feeds[i]);
          self->state.hub->send_tensor(self->state.process, tag,
                                       std::exchange(m.feeds[i], Tensor{}));
        }
        forward(self->state, m);
      },
      [self](const AbortPartition& m) { forward(self->state, m); },
      [self](const Prepare& m) { forward(self->state, m); },
      [self](const LiveList& m) {
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
        for (Fetched& f : m.fetches) {
          if (!large(f.value)) continue;
          TensorTag tag =
              large_tag(TensorTag::Kind::fetch, 0, m.partition, m.attempt, f.index, f.value);
          self->state.hub->send_tensor(0, tag, std::exchange(f.value, Tensor{}));
        }
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
