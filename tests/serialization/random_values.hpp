// Random values of everything that crosses a process, and their equality.
#pragma once

#include <cstring>
#include <limits>
#include <tuple>

#include "troupe/core/hash.hpp"
#include "troupe/serialization/messages.hpp"

namespace troupe::testing {

struct Values {
  Random random;

  std::uint64_t u64() { return random() >> random.below(64); }
  std::uint32_t u32() { return std::uint32_t(u64()); }
  std::uint64_t below(std::uint64_t n) { return random.below(n); }
  bool flag() { return below(2) == 1; }
  std::string text(std::size_t most = 12) {
    std::string out(below(most + 1), ' ');
    for (char& c : out) c = char(below(256));
    return out;
  }
  std::string word() { return "w" + std::to_string(below(1000)); }
  template <class F>
  auto list(F&& f, std::size_t most = 4) {
    std::vector<std::decay_t<decltype(f())>> out(below(most + 1));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = f();
    return out;
  }
  std::vector<std::uint64_t> numbers() {
    return list([&] { return u64(); });
  }
  std::vector<std::string> texts() {
    return list([&] { return text(); });
  }
  DType dtype() { return DType(1 + below(16)); }  // with elements
  Shape shape() {
    Shape s;
    for (std::uint64_t rank = below(4); rank > 0; --rank) s.append(std::int64_t(below(4)));
    return s;
  }
  PartialShape partial_shape() {
    if (below(4) == 0) return PartialShape::unknown();
    PartialShape s(shape());
    for (int i = 0; i < s.rank(); ++i)
      if (flag()) s.set_dim(i, PartialShape::kUnknown);
    return s;
  }
  Tensor tensor() {
    if (below(8) == 0) return Tensor{};
    Tensor t = Tensor::make(dtype(), shape()).value();
    if (t.dtype() == DType::string) {
      for (std::int64_t i = 0; i < t.elements(); ++i) t.mutable_data<std::string>()[i] = text(40);
      return t;
    }
    auto* bytes = static_cast<std::uint8_t*>(t.mutable_raw());
    for (std::size_t i = 0; i < t.bytes(); ++i)
      bytes[i] = std::uint8_t(below(t.dtype() == DType::bool_ ? 2 : 256));
    return t;
  }
  Attr attr() {
    switch (below(12)) {
      case 0:
        return Attr(std::int64_t(u64()));
      case 1:
        return Attr(flag() ? std::numeric_limits<double>::quiet_NaN() : random.uniform());
      case 2:
        return Attr(flag());
      case 3:
        return Attr(text());
      case 4:
        return Attr(DType(below(18)));
      case 5:
        return Attr(partial_shape());
      case 6:
        return Attr(tensor());
      case 7:
        return Attr(list([&] { return std::int64_t(u64()); }));
      case 8:
        return Attr(list([&] { return -random.uniform(); }));
      case 9:
        return Attr(texts());
      case 10:
        return Attr(list([&] { return dtype(); }));
      default:
        return Attr(list([&] { return partial_shape(); }));
    }
  }
  Site site() { return flag() ? Site{text(), 1 + std::uint32_t(below(1000))} : Site{}; }
  Status status() {
    if (flag()) return ok_status();
    return Status::from_parts(Code(1 + below(13)), text(40), site(), texts(), flag() ? u64() : 0);
  }
  AttemptId attempt() { return {u64(), u64()}; }
  RunId run() { return {u64(), u64()}; }
  NodeDef node() {
    NodeDef n;
    n.name = word();
    n.op = word();
    n.inputs = list([&] { return Port{u32(), u32()}; });
    n.control = list([&] { return u32(); });
    for (std::uint64_t i = below(5); i > 0; --i) n.attrs.emplace(word(), attr());
    n.device = text();
    n.colocate = texts();
    n.replica = std::int32_t(below(5)) - 1;
    n.site = site();
    n.out_types = list([&] { return DType(below(18)); });
    n.out_shapes = list([&] { return partial_shape(); });
    return n;
  }
  GraphDef graph() {
    GraphDef g;
    g.nodes = list([&] { return node(); }, 8);
    g.seed = u64();
    return g;
  }
  NumericProfile profile() {
    return {u32(), text(), std::int64_t(u64()), std::int64_t(u64()), std::int64_t(u64())};
  }
  ResourceWrites writes() { return {{u32(), u32()}, u32(), flag()}; }
  DeviceName device() {
    return {"worker", int(below(100)), flag() ? "CPU" : "FAKE", int(below(9))};
  }
  PortName port() { return {word(), int(below(5)), false}; }
  Join join() {
    return {u32(),  u32(),     u64(),
            text(), text(),    std::uint16_t(u64()),
            u32(),  profile(), {u64(), u64(), u64()}};
  }
  LoadStep load_step() {
    LoadStep m;
    m.compiled = u64();
    m.session = u64();
    m.version = u64();
    m.request.feeds = list([&] { return port(); });
    m.request.fetches = list([&] { return port(); });
    m.request.targets = texts();
    m.request.replicas = std::int32_t(u32());
    m.devices = list([&] { return TargetDevice{device(), MemorySpace(below(2))}; });
    for (std::size_t i = 0; i < m.devices.size(); ++i) m.processes.push_back(u32());
    for (std::uint64_t i = below(4); i > 0; --i) m.fixed.emplace(text(), device());
    m.soft_placement = flag();
    m.disabled_passes = texts();
    return m;
  }
  LiveList live_list() {
    LiveList m{u64(), u64(), u64(), u64(), u64(), {}};
    std::uint64_t a = below(10);
    for (std::uint64_t i = below(4); i > 0; --i, a += 1 + below(5))
      m.live.push_back({a, run(), u64()});
    return m;
  }
  TensorTag tag() {
    TensorTag t;
    t.kind = TensorTag::Kind(below(3));
    t.compiled = u64();
    t.partition = u32();
    t.attempt = attempt();
    t.index = u32();
    t.iterations = list([&] { return std::int64_t(random()); }, 8);
    t.dead = flag();
    t.dtype = t.dead && flag() ? DType::invalid : dtype();
    t.shape = below(8) ? shape() : Shape{1, 2, 3, 4, 5, 6, 7, 8};
    return t;
  }

  static constexpr std::size_t kKinds = std::variant_size_v<WireMessage>;
  WireMessage message(std::size_t kind) {
    switch (kind) {
      case 0:
        return Welcome{u32(), u32(), u32(), profile(), texts()};
      case 1:
        return Ready{u32(), texts(), status(), u64()};
      case 2:
        return Members{u64(), list([&] {
                         return Member{u32(), u64(), text(), std::uint16_t(u64())};
                       })};
      case 3: {
        auto nodes = std::make_shared<const GraphDef>(graph());
        const std::uint64_t from = u64() >> 1;
        return LoadGraph{u64(), from + nodes->nodes.size(), nodes, from};
      }
      case 4:
        return load_step();
      case 5:
        return StepLoaded{u64(), u32(), status()};
      case 6:
        return UnloadStep{u64()};
      case 7:
        return StartPartition{u64(),
                              u32(),
                              {attempt(), run(), u64(), u64(), u64(), u64()},
                              u64(),
                              u64(),
                              list([&] { return tensor(); }),
                              list([&] { return numbers(); })};
      case 8:
        return AbortPartition{u64(), u32(), attempt(), run(), status()};
      case 9:
        return PartitionDone{attempt(),
                             run(),
                             u32(),
                             status(),
                             list([&] {
                               return Fetched{u32(), tensor()};
                             }),
                             list([&] { return writes(); }),
                             Uses{numbers(), numbers(), numbers(), numbers()},
                             u64()};
      case 10:
        return Prepare{u64(), u64(), attempt(),           run(), list([&] { return writes(); }),
                       u64(), u64(), StageOrder(below(3))};
      case 11:
        return Staged{u64(), u32(), u64(), u64(), u64(), status()};
      case 12:
        return live_list();
      case 13:
        return BlockedReport{u64(), u32(), u64(), list([&] { return attempt(); }),
                             list([&] { return run(); })};
      case 14:
        return Leave{status()};
      case 15:
        return DropContainers{texts()};
      case 16:
        return RevokeGrant{u64(), u32(), attempt(), run()};
      case 17:
        return GrantReturned{attempt(), run()};
      case 18:
        return LinkLost{u32(), u64(), u32(), status()};
      default:
        return MessagePart{u64(), u64(), list([&] { return std::byte(below(256)); }, 40)};
    }
  }
};

// The fields of the structs that have no == of their own.
inline auto fields(const Welcome& m) {
  return std::tie(m.process, m.task, m.threads, m.profile, m.devices);
}
inline auto fields(const Ready& m) { return std::tie(m.process, m.devices, m.status, m.view); }
inline auto fields(const Member& m) { return std::tie(m.process, m.incarnation, m.host, m.port); }
inline auto fields(const Members& m) { return std::tie(m.view, m.members); }
inline auto fields(const Port& m) { return std::tie(m.node, m.index); }
inline auto fields(const NodeDef& m) {
  return std::tie(m.name, m.op, m.inputs, m.control, m.attrs, m.device, m.colocate, m.replica,
                  m.site, m.out_types, m.out_shapes);
}
inline auto fields(const GraphDef& m) { return std::tie(m.nodes, m.seed); }
inline auto fields(const CompileRequest& m) {
  return std::tie(m.feeds, m.fetches, m.targets, m.replicas);
}
inline auto fields(const TargetDevice& m) { return std::tie(m.name, m.space); }
inline auto fields(const LoadStep& m) {
  return std::tie(m.compiled, m.session, m.version, m.request, m.devices, m.processes, m.fixed,
                  m.soft_placement, m.disabled_passes);
}
inline auto fields(const StepLoaded& m) { return std::tie(m.compiled, m.process, m.status); }
inline auto fields(const UnloadStep& m) { return std::tie(m.compiled); }
inline auto fields(const DropContainers& m) { return std::tie(m.containers); }
inline auto fields(const AttemptInfo& m) {
  return std::tie(m.id, m.run, m.snapshot, m.marks_from, m.min_live, m.session_from);
}
inline auto fields(const StartPartition& m) {
  return std::tie(m.compiled, m.partition, m.attempt, m.random_index, m.grant, m.feeds, m.elements);
}
inline auto fields(const AbortPartition& m) {
  return std::tie(m.compiled, m.partition, m.attempt, m.run, m.cause);
}
inline auto fields(const Fetched& m) { return std::tie(m.index, m.value); }
inline auto fields(const Uses& m) {
  return std::tie(m.reads, m.updates, m.own_dequeues, m.enqueues);
}
inline auto fields(const PartitionDone& m) {
  return std::tie(m.attempt, m.run, m.partition, m.status, m.fetches, m.writes, m.uses,
                  m.fast_committed);
}
inline auto fields(const Prepare& m) {
  return std::tie(m.view, m.s, m.attempt, m.run, m.resources, m.min_live, m.round, m.order);
}
inline auto fields(const Staged& m) {
  return std::tie(m.view, m.shard, m.s, m.hash, m.round, m.status);
}
inline auto fields(const RevokeGrant& m) {
  return std::tie(m.compiled, m.partition, m.attempt, m.run);
}
inline auto fields(const GrantReturned& m) { return std::tie(m.attempt, m.run); }
inline auto fields(const LiveAttempt& m) { return std::tie(m.a, m.run, m.marks_from); }
inline auto fields(const LiveList& m) {
  return std::tie(m.view, m.sequence, m.decided, m.min_live, m.next_a, m.live);
}
inline auto fields(const BlockedReport& m) {
  return std::tie(m.view, m.shard, m.sequence, m.waiting, m.marked);
}
inline auto fields(const LinkLost& m) { return std::tie(m.process, m.view, m.other, m.why); }
inline auto fields(const Leave& m) { return std::tie(m.why); }
inline auto fields(const MessagePart& m) { return std::tie(m.total, m.offset, m.bytes); }
inline auto fields(const Join& m) {
  return std::tie(m.version, m.process, m.incarnation, m.job, m.listen_host, m.listen_port, m.cpus,
                  m.profile, m.registered);
}
inline auto fields(const TensorTag& m) {
  return std::tie(m.kind, m.compiled, m.partition, m.attempt, m.index, m.iterations, m.dtype,
                  m.shape, m.dead);
}
inline auto fields(const LoadGraph& m) { return std::tie(m.session, m.version, *m.graph, m.from); }

inline bool same(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || Tensor::same(a, b));
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b);
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (requires { fields(a); })
    return std::apply(
        [&](const auto&... x) {
          return std::apply([&](const auto&... y) { return (same(x, y) && ...); }, fields(b));
        },
        fields(a));
  else
    return a == b;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}
inline bool same(const WireMessage& a, const WireMessage& b) {
  return a.index() == b.index() &&
         std::visit([&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); },
                    a);
}

}  // namespace troupe::testing
