// Random values of everything that crosses a process, and their equality.
#pragma once

#include <concepts>
#include <cstring>
#include <limits>
#include <tuple>

#include "core/hash.hpp"
#include "serialization/join.hpp"
#include "serialization/messages.hpp"
#include "serialization/tensor_tag.hpp"

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
    return Status::from_parts(Code(1 + below(13)), text(40), site(), texts());
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
    g.functions = list([&] { return function(); }, 3);
    return g;
  }
  FunctionDef function() {
    FunctionDef f;
    f.name = word();
    f.nodes = list([&] { return node(); }, 4);
    f.arguments = list([&] { return u32(); }, 4);
    f.results = list([&] { return Port{u32(), u32()}; }, 4);
    f.result_types = list([&] { return dtype(); }, 4);
    f.result_shapes = list([&] { return partial_shape(); }, 4);
    f.site = site();
    return f;
  }
  DeviceName device() {
    return {"worker", int(below(100)), flag() ? "CPU" : "FAKE", int(below(9))};
  }
  PortName port() { return {word(), int(below(5)), false}; }
  Join join() {
    Join m{u32(), u32(), u64(), text(), text(), std::uint16_t(u64()), u32(), {}, {}};
    set(m.profile);
    m.registered = {u64(), u64(), u64()};
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

  // Any value of a field, or of all fields of a struct.
  void set(bool& out) { out = flag(); }
  template <std::integral T>
  void set(T& out) {
    out = T(u64());
  }
  template <class T>
  requires std::is_enum_v<T>
  void set(T& out) { out = T(below(2)); }
  void set(std::string& out) { out = text(); }
  void set(std::byte& out) { out = std::byte(below(256)); }
  void set(Status& out) { out = status(); }
  void set(Tensor& out) { out = tensor(); }
  void set(DeviceName& out) { out = device(); }
  void set(PortName& out) { out = port(); }
  void set(std::shared_ptr<const GraphDef>& out) {
    out = std::make_shared<const GraphDef>(graph());
  }
  template <class T>
  void set(std::vector<T>& out) {
    out.resize(below(5));
    for (T& item : out) set(item);
  }
  template <class K, class T>
  void set(std::map<K, T>& out) {
    for (std::uint64_t n = below(4); n > 0; --n) {
      K key;
      set(key);
      set(out[key]);
    }
  }
  template <class T>
  requires requires(T& t) { Fields<T>::of(t); }
  void set(T& out) { set_all(Fields<T>::of(out)); }
  template <class Tuple>
  void set_all(const Tuple& fields) {
    std::apply([this](auto&... field) { (this->set(field), ...); }, fields);
  }
  // What the checks of some messages want.
  template <class M>
  void settle(M&) {}
  void settle(LoadGraph& m) { m.version = (m.from >>= 1) + m.graph->nodes.size(); }
  void settle(TraceSpans& m) {
    for (Track& track : m.tracks)
      for (Span& span : track.spans)
        if (span.begin_ns > span.end_ns) std::swap(span.begin_ns, span.end_ns);
  }
  void settle(LiveList& m) {
    for (std::size_t i = 0; i < m.live.size(); ++i) m.live[i].a = 3 * i + below(3);
  }

  static constexpr std::size_t kKinds = kMessages;
  template <std::size_t number = 0>
  WireMessage message(std::size_t kind) {
    if constexpr (number + 1 < kKinds)
      if (kind != number) return message<number + 1>(kind);
    typename MessageAt<number>::Type m;
    set_all(MessageAt<number>::fields(m));
    settle(m);
    return m;
  }
};

// The fields of the structs that have no == of their own.
template <class T>
requires requires(const T& t) { Fields<T>::of(t); }
auto fields(const T& m) { return Fields<T>::of(m); }
template <Crosses M>
auto fields(const M& m) {
  return MessageRules<M>::fields(m);
}
inline auto fields(const Port& m) { return std::tie(m.node, m.index); }
inline auto fields(const NodeDef& m) {
  return std::tie(m.name, m.op, m.inputs, m.control, m.attrs, m.device, m.colocate, m.replica,
                  m.site, m.out_types, m.out_shapes);
}
inline auto fields(const FunctionDef& m) {
  return std::tie(m.name, m.nodes, m.arguments, m.results, m.result_types, m.result_shapes, m.site);
}
inline auto fields(const GraphDef& m) { return std::tie(m.nodes, m.seed, m.functions); }
inline auto fields(const Join& m) {
  return std::tie(m.version, m.process, m.incarnation, m.job, m.listen_host, m.listen_port, m.cpus,
                  m.profile, m.registered);
}
inline auto fields(const TensorTag& m) {
  return std::tie(m.kind, m.compiled, m.partition, m.attempt, m.index, m.iterations, m.dtype,
                  m.shape, m.dead);
}

inline bool same(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || Tensor::same(a, b));
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b);
template <class T>
bool same(const std::shared_ptr<T>& a, const std::shared_ptr<T>& b);
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
template <class T>
bool same(const std::shared_ptr<T>& a, const std::shared_ptr<T>& b) {
  return same(*a, *b);
}
inline bool same(const WireMessage& a, const WireMessage& b) {
  return a.index() == b.index() &&
         std::visit([&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); },
                    a);
}

}  // namespace troupe::testing
