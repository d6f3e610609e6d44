#include "serialization/schema/message.capnp.h"
#include "troupe/serialization/detail/capnp.hpp"
#include "troupe/serialization/detail/graph.hpp"
#include "troupe/serialization/detail/values.hpp"
#include "troupe/serialization/wire.hpp"

namespace troupe {
namespace {

using detail::read;
using detail::read_numbers;
using detail::read_texts;
using detail::text;
using Kind = schema::Message::Which;
using Result = Expected<WireMessage>;

NumericProfile read_profile(schema::NumericProfile::Reader in) {
  return {in.getIsa(), text(in.getKernels()), in.getL1(), in.getL2(), in.getL3()};
}

std::vector<ResourceWrites> read_resources(capnp::List<schema::ResourceWrites>::Reader in) {
  std::vector<ResourceWrites> out;
  out.reserve(in.size());
  for (auto item : in)
    out.push_back({{item.getProcess(), item.getIndex()}, item.getKeys(), item.getOutside()});
  return out;
}

Uses read_uses(schema::Uses::Reader in) {
  return {read_numbers(in.getReads()), read_numbers(in.getUpdates()),
          read_numbers(in.getOwnDequeues()), read_numbers(in.getEnqueues())};
}

AttemptInfo read_attempt(schema::AttemptInfo::Reader in) {
  AttemptInfo out;
  out.id = read(in.getId());
  out.run = read(in.getRun());
  out.snapshot = in.getSnapshot();
  out.marks_from = in.getMarksFrom();
  out.min_live = in.getMinLive();
  out.session_from = in.getSessionFrom();
  return out;
}

Expected<std::vector<PortName>> read_ports(capnp::List<capnp::Text>::Reader in) {
  std::vector<PortName> out;
  for (auto item : in) {
    TROUPE_TRY(PortName port, PortName::parse(text(item)));
    out.push_back(std::move(port));
  }
  return out;
}

Result read_message(schema::Welcome::Reader in) {
  return Welcome{in.getProcess(), in.getTask(), in.getThreads(), read_profile(in.getProfile()),
                 read_texts(in.getDevices())};
}

Result read_message(schema::Ready::Reader in) {
  Ready m{in.getProcess(), read_texts(in.getDevices()), {}, in.getView()};
  TROUPE_TRY(read(in.getStatus(), m.status));
  return m;
}

Result read_message(schema::LinkLost::Reader in) {
  LinkLost m{in.getProcess(), in.getView(), in.getOther(), {}};
  TROUPE_TRY(read(in.getWhy(), m.why));
  return m;
}

Result read_message(schema::Members::Reader in) {
  Members m;
  m.view = in.getView();
  for (auto item : in.getMembers())
    m.members.push_back(
        {item.getProcess(), item.getIncarnation(), text(item.getHost()), item.getPort()});
  return m;
}

Result read_message(schema::LoadGraph::Reader in) {
  TROUPE_TRY(GraphDef graph, read(in.getGraph()));
  if (in.getVersion() < in.getFrom() || in.getVersion() - in.getFrom() != graph.nodes.size())
    return invalid_argument("a graph that grows from " + std::to_string(in.getFrom()) + " to " +
                            std::to_string(in.getVersion()) + " nodes by " +
                            std::to_string(graph.nodes.size()));
  return LoadGraph{in.getSession(), in.getVersion(),
                   std::make_shared<const GraphDef>(std::move(graph)), in.getFrom()};
}

Status read_devices(capnp::List<schema::Device>::Reader in, LoadStep& m) {
  for (auto item : in) {
    TROUPE_TRY(DeviceName name, DeviceName::parse(text(item.getName())));
    if (!name.full()) return invalid_argument("'" + name.text() + "' is no full device name");
    if (item.getSpace() > std::uint8_t(MemorySpace::device))
      return invalid_argument("unknown memory space " + std::to_string(item.getSpace()));
    m.devices.push_back({std::move(name), MemorySpace(item.getSpace())});
    m.processes.push_back(item.getProcess());
  }
  return ok_status();
}

Result read_message(schema::LoadStep::Reader in) {
  LoadStep m;
  m.compiled = in.getCompiled();
  m.session = in.getSession();
  m.version = in.getVersion();
  TROUPE_TRY(m.request.feeds, read_ports(in.getFeeds()));
  TROUPE_TRY(m.request.fetches, read_ports(in.getFetches()));
  m.request.targets = read_texts(in.getTargets());
  m.request.replicas = in.getReplicas();
  TROUPE_TRY(read_devices(in.getDevices(), m));
  for (auto item : in.getFixed()) {
    TROUPE_TRY(DeviceName device, DeviceName::parse(text(item.getDevice())));
    std::string node = text(item.getNode());
    if (!m.fixed.emplace(node, std::move(device)).second)
      return invalid_argument("node '" + node + "' is placed twice");
  }
  m.soft_placement = in.getSoftPlacement();
  m.disabled_passes = read_texts(in.getDisabledPasses());
  return m;
}

Result read_message(schema::StepLoaded::Reader in) {
  StepLoaded m{in.getCompiled(), in.getProcess(), {}};
  TROUPE_TRY(read(in.getStatus(), m.status));
  return m;
}

Result read_message(schema::UnloadStep::Reader in) { return UnloadStep{in.getCompiled()}; }

Result read_message(schema::DropContainers::Reader in) {
  return DropContainers{read_texts(in.getContainers())};
}

Result read_message(schema::StartPartition::Reader in) {
  StartPartition m;
  m.compiled = in.getCompiled();
  m.partition = in.getPartition();
  m.attempt = read_attempt(in.getAttempt());
  m.random_index = in.getRandomIndex();
  m.grant = in.getGrant();
  for (auto item : in.getFeeds()) {
    TROUPE_TRY(Tensor t, read(item));
    m.feeds.push_back(std::move(t));
  }
  for (auto item : in.getElements()) m.elements.push_back(read_numbers(item));
  return m;
}

Result read_message(schema::AbortPartition::Reader in) {
  AbortPartition m;
  m.compiled = in.getCompiled();
  m.partition = in.getPartition();
  m.attempt = read(in.getAttempt());
  m.run = read(in.getRun());
  TROUPE_TRY(read(in.getCause(), m.cause));
  return m;
}

Result read_message(schema::PartitionDone::Reader in) {
  PartitionDone m;
  m.attempt = read(in.getAttempt());
  m.run = read(in.getRun());
  m.partition = in.getPartition();
  TROUPE_TRY(read(in.getStatus(), m.status));
  for (auto item : in.getFetches()) {
    TROUPE_TRY(Tensor value, read(item.getValue()));
    m.fetches.push_back({item.getIndex(), std::move(value)});
  }
  m.writes = read_resources(in.getWrites());
  m.uses = read_uses(in.getUses());
  m.fast_committed = in.getFastCommitted();
  return m;
}

Result read_message(schema::Prepare::Reader in) {
  Prepare m;
  m.view = in.getView();
  m.s = in.getS();
  m.attempt = read(in.getAttempt());
  m.run = read(in.getRun());
  m.resources = read_resources(in.getResources());
  m.min_live = in.getMinLive();
  m.round = in.getRound();
  if (in.getOrder() > std::uint8_t(StageOrder::apply))
    return invalid_argument("PREPARE of an order " + std::to_string(in.getOrder()));
  m.order = StageOrder(in.getOrder());
  return m;
}

Result read_message(schema::Staged::Reader in) {
  Staged m{in.getView(), in.getShard(), in.getS(), in.getHash(), in.getRound(), {}};
  TROUPE_TRY(read(in.getStatus(), m.status));
  return m;
}

Result read_message(schema::RevokeGrant::Reader in) {
  return RevokeGrant{in.getCompiled(), in.getPartition(), read(in.getAttempt()), read(in.getRun())};
}

Result read_message(schema::GrantReturned::Reader in) {
  return GrantReturned{read(in.getAttempt()), read(in.getRun())};
}

Result read_message(schema::LiveList::Reader in) {
  LiveList m;
  m.view = in.getView();
  m.sequence = in.getSequence();
  m.decided = in.getDecided();
  m.min_live = in.getMinLive();
  m.next_a = in.getNextA();
  for (auto item : in.getLive()) {
    if (!m.live.empty() && m.live.back().a >= item.getA())
      return invalid_argument("live attempts out of order");
    m.live.push_back({item.getA(), read(item.getRun()), item.getMarksFrom()});
  }
  return m;
}

Result read_message(schema::BlockedReport::Reader in) {
  BlockedReport m;
  m.view = in.getView();
  m.shard = in.getShard();
  m.sequence = in.getSequence();
  for (auto item : in.getWaiting()) m.waiting.push_back(read(item));
  for (auto item : in.getMarked()) m.marked.push_back(read(item));
  return m;
}

Result read_message(schema::Leave::Reader in) {
  Leave m;
  TROUPE_TRY(read(in.getWhy(), m.why));
  return m;
}

Result read_message(schema::Part::Reader in) {
  MessagePart m{in.getTotal(), in.getOffset(), {}};
  auto bytes = in.getBytes();
  auto* from = reinterpret_cast<const std::byte*>(bytes.begin());
  m.bytes.assign(from, from + bytes.size());
  return m;
}

Result read_any(schema::Message::Reader in) {
  switch (in.which()) {
    case Kind::NONE:
      return invalid_argument("an empty message");
    case Kind::WELCOME:
      return read_message(in.getWelcome());
    case Kind::READY:
      return read_message(in.getReady());
    case Kind::MEMBERS:
      return read_message(in.getMembers());
    case Kind::LOAD_GRAPH:
      return read_message(in.getLoadGraph());
    case Kind::LOAD_STEP:
      return read_message(in.getLoadStep());
    case Kind::STEP_LOADED:
      return read_message(in.getStepLoaded());
    case Kind::UNLOAD_STEP:
      return read_message(in.getUnloadStep());
    case Kind::START_PARTITION:
      return read_message(in.getStartPartition());
    case Kind::ABORT_PARTITION:
      return read_message(in.getAbortPartition());
    case Kind::PARTITION_DONE:
      return read_message(in.getPartitionDone());
    case Kind::PREPARE:
      return read_message(in.getPrepare());
    case Kind::STAGED:
      return read_message(in.getStaged());
    case Kind::LIVE_LIST:
      return read_message(in.getLiveList());
    case Kind::BLOCKED_REPORT:
      return read_message(in.getBlockedReport());
    case Kind::LEAVE:
      return read_message(in.getLeave());
    case Kind::PART:
      return read_message(in.getPart());
    case Kind::DROP_CONTAINERS:
      return read_message(in.getDropContainers());
    case Kind::REVOKE_GRANT:
      return read_message(in.getRevokeGrant());
    case Kind::GRANT_RETURNED:
      return read_message(in.getGrantReturned());
    case Kind::LINK_LOST:
      return read_message(in.getLinkLost());
  }
  return invalid_argument("message of unknown kind " + std::to_string(int(in.which())));
}

}  // namespace

Result decode(std::span<const std::byte> bytes) {
  return detail::parse<schema::Message>(bytes, read_any);
}

Expected<Join> decode_join(std::string_view bytes) {
  if (bytes.size() > kMaxJoin) return invalid_argument("a hello that is too long");
  return detail::parse<schema::Join>(
      std::as_bytes(std::span(bytes)), [](schema::Join::Reader in) -> Expected<Join> {
        return Join{in.getVersion(),
                    in.getProcess(),
                    in.getIncarnation(),
                    text(in.getJob()),
                    text(in.getListenHost()),
                    in.getListenPort(),
                    in.getCpus(),
                    read_profile(in.getProfile()),
                    {in.getRegistered().getOps(), in.getRegistered().getPasses(),
                     in.getRegistered().getDevices()}};
      });
}

}  // namespace troupe
