// Shape functions run on whatever the wire brings: every registered op, with attributes and input
// shapes that no client means, is refused or inferred, and never brings the process down.
#include <doctest/doctest.h>

#include <array>
#include <limits>

#include "core/hash.hpp"
#include "graph/import.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

// Half of the graphs are nearly right, so that shape functions are entered past their first check.
struct OddRandom : Random {
  explicit OddRandom(std::uint64_t seed) : Random(seed), tame(seed % 2 == 0) {
    rank = std::array{0, 1, 2, 4}[below(4)];
  }
  bool odd() { return below(tame ? 32 : 2) == 0; }
  bool tame;
  int rank;
};

std::int64_t odd_number(OddRandom& random) {
  if (!random.odd()) return std::int64_t(random.below(3));
  constexpr std::int64_t kOdd[] = {0,
                                   1,
                                   -1,
                                   2,
                                   3,
                                   4,
                                   7,
                                   8,
                                   9,
                                   64,
                                   1 << 20,
                                   std::int64_t{1} << 31,
                                   std::int64_t{1} << 40,
                                   std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()};
  return kOdd[random.below(std::size(kOdd))];
}

PartialShape odd_shape(OddRandom& random) {
  if (random.odd()) return PartialShape::unknown();
  int rank = random.odd() ? int(random.below(kMaxRank + 1)) : random.rank;
  PartialShape shape = PartialShape::unknown_of_rank(rank);
  for (int i = 0; i < shape.rank(); ++i) {
    std::int64_t d = random.odd() ? odd_number(random) : 1 + std::int64_t(random.below(3));
    shape.set_dim(i, d < -1 ? -1 : d);
  }
  return shape;
}

Tensor odd_tensor(OddRandom& random, DType type) {
  Shape shape = random.below(2) ? Shape{} : Shape{std::int64_t(random.below(6))};
  Tensor t = value_or_throw(Tensor::zeros(type, shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    std::int64_t v = odd_number(random);
    if (type == DType::i64) t.mutable_data<std::int64_t>()[i] = v;
    if (type == DType::i32) t.mutable_data<std::int32_t>()[i] = std::int32_t(v);
  }
  return t;
}

DType odd_type(OddRandom& random, const AttrSpec& spec) {
  if (!spec.types.empty() && random.tame) return spec.types[0];
  if (!spec.types.empty() && random.below(8)) return spec.types[random.below(spec.types.size())];
  return random.below(2) ? DType::f32 : DType::i64;
}

Attr odd_attr(OddRandom& random, const AttrSpec& spec) {
  auto list = [&](auto make) {
    std::vector<decltype(make())> out;
    for (std::uint64_t n = random.odd() ? random.below(6) : 2; n-- > 0;) out.push_back(make());
    return Attr(std::move(out));
  };
  auto number = [&] { return odd_number(random); };
  auto text = [&] {
    if (!spec.strings.empty()) return spec.strings[random.below(spec.strings.size())];
    return std::string(random.below(4), char('a' + random.below(26)));
  };
  if (spec.kind == "int") return number();
  if (spec.kind == "float") return double(number());
  if (spec.kind == "bool") return random.below(2) == 0;
  if (spec.kind == "string") return text();
  if (spec.kind == "type") return odd_type(random, spec);
  if (spec.kind == "shape") return odd_shape(random);
  if (spec.kind == "tensor") return odd_tensor(random, DType::i64);
  if (spec.kind == "list(int)") return list(number);
  if (spec.kind == "list(float)") return list([&] { return double(number()); });
  if (spec.kind == "list(string)") return list(text);
  if (spec.kind == "list(type)") return list([&] { return odd_type(random, spec); });
  return list([&] { return odd_shape(random); });
}

// A graph of placeholders, their shapes and constants that feed one node of the op.
GraphDef odd_graph(OddRandom& random, const OpInfo& op) {
  GraphDef graph;
  NodeDef node{.name = "odd", .op = op.def.name};
  for (const AttrSpec& spec : op.attrs)
    if (!spec.fallback || random.odd()) node.attrs[spec.name] = odd_attr(random, spec);
  if (op.attr("N")) node.attrs["N"] = std::int64_t(1 + random.below(3));
  auto add_input = [&](DType type) {
    NodeDef in{.name = "in" + std::to_string(graph.nodes.size())};
    if ((type == DType::i32 || type == DType::i64) && random.below(3) == 0) {  // known in part
      in.op = "Placeholder";
      in.attrs = {{"T", DType::f32}, {"shape", odd_shape(random)}};
      NodeDef list{.name = in.name + "/shape", .op = "Shape"};
      list.attrs = {{"T", DType::f32}, {"out_type", type}};
      list.inputs = {{NodeId(graph.nodes.size()), 0}};
      graph.nodes.push_back(std::move(in));
      node.inputs.push_back({NodeId(graph.nodes.size()), 0});
      graph.nodes.push_back(std::move(list));
      return;
    }
    in.op = type == DType::resource ? "Variable" : random.below(2) ? "Placeholder" : "Const";
    if (type == DType::string && in.op == "Const") in.op = "Placeholder";
    if (type == DType::list) in.op = "ListEmpty";
    if (in.op == "Variable" || in.op == "ListEmpty")
      in.attrs = {{"T", DType::f32}, {"shape", odd_shape(random)}};
    else
      in.attrs = {{"T", type}};
    if (in.op == "Const") in.attrs["value"] = odd_tensor(random, type);
    if (in.op == "Placeholder") in.attrs["shape"] = odd_shape(random);
    node.inputs.push_back({NodeId(graph.nodes.size()), 0});
    graph.nodes.push_back(std::move(in));
  };
  for (const ArgSpec& arg : op.in) {
    std::uint64_t n = 1;
    DType type = arg.dtype;
    if (!arg.type_attr.empty() && node.attrs.contains(arg.type_attr)) {
      if (auto* t = node.attrs[arg.type_attr].get<DType>()) type = *t;
    } else if (!arg.type_attr.empty()) {
      if (auto& fallback = op.attr(arg.type_attr)->fallback)
        if (auto* t = fallback->get<DType>()) type = *t;
    }
    if (arg.kind == ArgSpec::Kind::list) n = std::uint64_t(*node.attrs["N"].get<std::int64_t>());
    if (arg.kind == ArgSpec::Kind::types) {
      node.attrs.erase(arg.type_attr);
      n = random.below(3);
      type = DType::f32;
    }
    for (; n > 0; --n) add_input(type == DType::invalid ? DType::f32 : type);
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

void feed_every_op(std::uint64_t seeds) {
  const OpRegistry& ops = ops::builtin().ops;
  for (const OpInfo* op : ops.all()) {
    int good = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      CAPTURE(op->def.name);
      CAPTURE(seed);
      OddRandom random(hash_text(op->def.name, seed));
      auto imported = import_graph(odd_graph(random, *op), ops);
      if (!imported.ok()) CHECK_FALSE(imported.status().message().empty());
      good += imported.ok();
    }
    if (good == 0) MESSAGE(op->def.name << " was never inferred");
  }
}

TEST_CASE("no op's shape function falls over hostile attributes and shapes") { feed_every_op(200); }

TEST_CASE("[slow] no op's shape function falls over many hostile attributes and shapes") {
  feed_every_op(20'000);
}

}  // namespace
}  // namespace troupe
