#include "serialization/schema/message.capnp.h"
#include "troupe/serialization/detail/capnp.hpp"
#include "troupe/serialization/detail/graph.hpp"
#include "troupe/serialization/detail/values.hpp"
#include "troupe/serialization/wire.hpp"

namespace troupe {
namespace {

using detail::text;
using detail::write;
using detail::write_numbers;
using detail::write_texts;

void write_profile(schema::NumericProfile::Builder out, const NumericProfile& p) {
  out.setIsa(p.isa);
  out.setKernels(text(p.kernels));
  out.setL1(p.l1);
  out.setL2(p.l2);
  out.setL3(p.l3);
}

void write_resources(capnp::List<schema::ResourceWrites>::Builder out,
                     const std::vector<ResourceWrites>& writes) {
  for (unsigned i = 0; i < out.size(); ++i) {
    out[i].setProcess(writes[i].resource.process);
    out[i].setIndex(writes[i].resource.index);
    out[i].setKeys(writes[i].keys);
    out[i].setOutside(writes[i].outside);
  }
}

void write_uses(schema::Uses::Builder out, const Uses& u) {
  write_numbers(out.initReads(unsigned(u.reads.size())), u.reads);
  write_numbers(out.initUpdates(unsigned(u.updates.size())), u.updates);
  write_numbers(out.initOwnDequeues(unsigned(u.own_dequeues.size())), u.own_dequeues);
  write_numbers(out.initEnqueues(unsigned(u.enqueues.size())), u.enqueues);
}

void write_attempt(schema::AttemptInfo::Builder out, const AttemptInfo& a) {
  write(out.initId(), a.id);
  write(out.initRun(), a.run);
  out.setSnapshot(a.snapshot);
  out.setMarksFrom(a.marks_from);
  out.setMinLive(a.min_live);
  out.setSessionFrom(a.session_from);
}

std::vector<std::string> texts_of(const std::vector<PortName>& ports) {
  std::vector<std::string> out;
  for (const PortName& port : ports) out.push_back(port.text());
  return out;
}

// One function per message. An ok status stays absent, which costs nothing.
struct Writer {
  schema::Message::Builder root;

  void operator()(const Welcome& m) {
    auto out = root.initWelcome();
    out.setProcess(m.process);
    out.setTask(m.task);
    out.setThreads(m.threads);
    write_profile(out.initProfile(), m.profile);
    write_texts(out.initDevices(unsigned(m.devices.size())), m.devices);
  }
  void operator()(const Ready& m) {
    auto out = root.initReady();
    out.setProcess(m.process);
    write_texts(out.initDevices(unsigned(m.devices.size())), m.devices);
    if (!m.status.ok()) write(out.initStatus(), m.status);
    out.setView(m.view);
  }
  void operator()(const LinkLost& m) {
    auto out = root.initLinkLost();
    out.setProcess(m.process);
    out.setView(m.view);
    out.setOther(m.other);
    if (!m.why.ok()) write(out.initWhy(), m.why);
  }
  void operator()(const Members& m) {
    auto out = root.initMembers();
    out.setView(m.view);
    auto members = out.initMembers(unsigned(m.members.size()));
    for (unsigned i = 0; i < members.size(); ++i) {
      members[i].setProcess(m.members[i].process);
      members[i].setIncarnation(m.members[i].incarnation);
      members[i].setHost(text(m.members[i].host));
      members[i].setPort(m.members[i].port);
    }
  }
  void operator()(const LoadGraph& m) {
    TROUPE_CHECK(m.graph, "LoadGraph carries a graph");
    auto out = root.initLoadGraph();
    out.setFrom(m.from);
    out.setSession(m.session);
    out.setVersion(m.version);
    write(out.initGraph(), *m.graph);
  }
  void operator()(const LoadStep& m) {
    TROUPE_CHECK(m.devices.size() == m.processes.size(), "each device has a process");
    auto out = root.initLoadStep();
    out.setCompiled(m.compiled);
    out.setSession(m.session);
    out.setVersion(m.version);
    auto texts = [](auto list, const std::vector<std::string>& v) { write_texts(list, v); };
    texts(out.initFeeds(unsigned(m.request.feeds.size())), texts_of(m.request.feeds));
    texts(out.initFetches(unsigned(m.request.fetches.size())), texts_of(m.request.fetches));
    texts(out.initTargets(unsigned(m.request.targets.size())), m.request.targets);
    out.setReplicas(m.request.replicas);
    auto devices = out.initDevices(unsigned(m.devices.size()));
    for (unsigned i = 0; i < devices.size(); ++i) {
      devices[i].setName(text(m.devices[i].name.text()));
      devices[i].setSpace(std::uint8_t(m.devices[i].space));
      devices[i].setProcess(m.processes[i]);
    }
    auto fixed = out.initFixed(unsigned(m.fixed.size()));
    unsigned n = 0;
    for (const auto& [node, device] : m.fixed) {
      fixed[n].setNode(text(node));
      fixed[n++].setDevice(text(device.text()));
    }
    out.setSoftPlacement(m.soft_placement);
    texts(out.initDisabledPasses(unsigned(m.disabled_passes.size())), m.disabled_passes);
  }
  void operator()(const StepLoaded& m) {
    auto out = root.initStepLoaded();
    out.setCompiled(m.compiled);
    out.setProcess(m.process);
    if (!m.status.ok()) write(out.initStatus(), m.status);
  }
  void operator()(const UnloadStep& m) { root.initUnloadStep().setCompiled(m.compiled); }
  void operator()(const DropContainers& m) {
    write_texts(root.initDropContainers().initContainers(unsigned(m.containers.size())),
                m.containers);
  }
  void operator()(const StartPartition& m) {
    auto out = root.initStartPartition();
    out.setCompiled(m.compiled);
    out.setPartition(m.partition);
    write_attempt(out.initAttempt(), m.attempt);
    out.setRandomIndex(m.random_index);
    out.setGrant(m.grant);
    auto feeds = out.initFeeds(unsigned(m.feeds.size()));
    for (unsigned i = 0; i < feeds.size(); ++i) write(feeds[i], m.feeds[i]);
    auto elements = out.initElements(unsigned(m.elements.size()));
    for (unsigned i = 0; i < elements.size(); ++i)
      write_numbers(elements.init(i, unsigned(m.elements[i].size())), m.elements[i]);
  }
  void operator()(const AbortPartition& m) {
    auto out = root.initAbortPartition();
    out.setCompiled(m.compiled);
    out.setPartition(m.partition);
    write(out.initAttempt(), m.attempt);
    write(out.initRun(), m.run);
    if (!m.cause.ok()) write(out.initCause(), m.cause);
  }
  void operator()(const PartitionDone& m) {
    auto out = root.initPartitionDone();
    write(out.initAttempt(), m.attempt);
    write(out.initRun(), m.run);
    out.setPartition(m.partition);
    if (!m.status.ok()) write(out.initStatus(), m.status);
    auto fetches = out.initFetches(unsigned(m.fetches.size()));
    for (unsigned i = 0; i < fetches.size(); ++i) {
      fetches[i].setIndex(m.fetches[i].index);
      write(fetches[i].initValue(), m.fetches[i].value);
    }
    write_resources(out.initWrites(unsigned(m.writes.size())), m.writes);
    write_uses(out.initUses(), m.uses);
    out.setFastCommitted(m.fast_committed);
  }
  void operator()(const Prepare& m) {
    auto out = root.initPrepare();
    out.setView(m.view);
    out.setS(m.s);
    write(out.initAttempt(), m.attempt);
    write(out.initRun(), m.run);
    write_resources(out.initResources(unsigned(m.resources.size())), m.resources);
    out.setMinLive(m.min_live);
    out.setRound(m.round);
    out.setOrder(std::uint8_t(m.order));
  }
  void operator()(const Staged& m) {
    auto out = root.initStaged();
    out.setView(m.view);
    out.setShard(m.shard);
    out.setS(m.s);
    out.setHash(m.hash);
    out.setRound(m.round);
    if (!m.status.ok()) write(out.initStatus(), m.status);
  }
  void operator()(const RevokeGrant& m) {
    auto out = root.initRevokeGrant();
    out.setCompiled(m.compiled);
    out.setPartition(m.partition);
    write(out.initAttempt(), m.attempt);
    write(out.initRun(), m.run);
  }
  void operator()(const GrantReturned& m) {
    auto out = root.initGrantReturned();
    write(out.initAttempt(), m.attempt);
    write(out.initRun(), m.run);
  }
  void operator()(const LiveList& m) {
    auto out = root.initLiveList();
    out.setView(m.view);
    out.setSequence(m.sequence);
    out.setDecided(m.decided);
    out.setMinLive(m.min_live);
    out.setNextA(m.next_a);
    auto live = out.initLive(unsigned(m.live.size()));
    for (unsigned i = 0; i < live.size(); ++i) {
      live[i].setA(m.live[i].a);
      write(live[i].initRun(), m.live[i].run);
      live[i].setMarksFrom(m.live[i].marks_from);
    }
  }
  void operator()(const BlockedReport& m) {
    auto out = root.initBlockedReport();
    out.setView(m.view);
    out.setShard(m.shard);
    out.setSequence(m.sequence);
    auto waiting = out.initWaiting(unsigned(m.waiting.size()));
    for (unsigned i = 0; i < waiting.size(); ++i) write(waiting[i], m.waiting[i]);
    auto marked = out.initMarked(unsigned(m.marked.size()));
    for (unsigned i = 0; i < marked.size(); ++i) write(marked[i], m.marked[i]);
  }
  void operator()(const Leave& m) {
    auto out = root.initLeave();
    if (!m.why.ok()) write(out.initWhy(), m.why);
  }
  void operator()(const MessagePart& m) {
    auto out = root.initPart();
    out.setTotal(m.total);
    out.setOffset(m.offset);
    out.setBytes({reinterpret_cast<const kj::byte*>(m.bytes.data()), m.bytes.size()});
  }
};

}  // namespace

std::vector<std::byte> encode(const WireMessage& message) {
  return detail::build<schema::Message>(
      [&](schema::Message::Builder root) { std::visit(Writer{root}, message); });
}

Expected<std::string> encode_join(const Join& join) {
  auto bytes = detail::build<schema::Join>([&](schema::Join::Builder out) {
    out.setVersion(join.version);
    out.setProcess(join.process);
    out.setIncarnation(join.incarnation);
    out.setJob(text(join.job));
    out.setListenHost(text(join.listen_host));
    out.setListenPort(join.listen_port);
    out.setCpus(join.cpus);
    write_profile(out.initProfile(), join.profile);
    auto registered = out.initRegistered();
    registered.setOps(join.registered.ops);
    registered.setPasses(join.registered.passes);
    registered.setDevices(join.registered.devices);
  });
  if (bytes.size() > kMaxJoin)
    return invalid_argument("the name of the job, the host or the kernels is too long to join");
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace troupe
