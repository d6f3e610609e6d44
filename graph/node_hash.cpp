#include "graph/node_hash.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/hash.hpp"

namespace troupe {
namespace {

inline std::uint64_t add_word(std::uint64_t h, const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, 8);
  return std::rotl(h ^ word, 29) * 0x9e3779b97f4a7c15u;
}

// Word by word, and large constants in four chains: each step of one waits for the step before.
std::uint64_t hash_block(const void* data, std::size_t bytes, std::uint64_t h) {
  const char* at = static_cast<const char*>(data);
  if (bytes >= 4096) {
    std::uint64_t a = hash_combine(h, 0), b = hash_combine(h, 1), c = hash_combine(h, 2),
                  d = hash_combine(h, 3);
    for (; bytes >= 32; at += 32, bytes -= 32) {
      a = add_word(a, at);
      b = add_word(b, at + 8);
      c = add_word(c, at + 16);
      d = add_word(d, at + 24);
    }
    for (std::uint64_t chain : {a, b, c, d}) h = hash_combine(h, chain);
  }
  for (; bytes >= 8; at += 8, bytes -= 8) h = add_word(h, at);
  return hash_bytes(at, bytes, h);
}

struct AttrHash {
  std::uint64_t h;

  std::uint64_t of(std::int64_t v) const { return hash_combine(h, std::uint64_t(v)); }
  std::uint64_t of(double v) const { return hash_combine(h, std::bit_cast<std::uint64_t>(v)); }
  std::uint64_t of(bool v) const { return hash_combine(h, v); }
  std::uint64_t of(DType v) const { return hash_combine(h, std::uint64_t(v)); }
  std::uint64_t of(const std::string& v) const { return hash_text(v, h); }
  std::uint64_t of(const PartialShape& v) const {
    return v.known_rank() ? of(v.dims()) : hash_combine(h, ~std::uint64_t{0});
  }
  std::uint64_t of(const Tensor& v) const {
    std::uint64_t out = hash_combine(h, std::uint64_t(v.dtype()));
    if (!v.defined()) return out;
    for (std::int64_t d : v.shape().dims()) out = hash_combine(out, std::uint64_t(d));
    if (v.dtype() != DType::string) return hash_block(v.raw(), v.bytes(), out);
    for (const std::string& s : v.span<std::string>()) out = hash_text(s, mix64(out));
    return out;
  }
  template <class T>
  std::uint64_t of(const std::vector<T>& list) const {
    AttrHash out{hash_combine(h, list.size())};
    for (const T& item : list) out.h = out.of(item);
    return out.h;
  }
};

std::uint64_t hash_of(const NodeDef& node, bool swap, Placing placing) {
  const bool placed = placing == Placing::hashed;
  std::uint64_t h = hash_text(node.op, hash_text(placed ? std::string_view(node.device) : ""));
  auto input = [&](Port in) { h = hash_combine(hash_combine(h, in.node), in.index); };
  if (swap)
    input(node.inputs[1]), input(node.inputs[0]);
  else
    std::for_each(node.inputs.begin(), node.inputs.end(), input);
  for (NodeId c : node.control) h = hash_combine(h, c);
  if (placed)
    for (const std::string& other : node.colocate) h = hash_text(other, mix64(h));
  for (DType type : node.out_types) h = hash_combine(h, std::uint64_t(type));
  for (const auto& [name, attr] : node.attrs)
    h = std::visit([start = hash_text(name, h)](const auto& v) { return AttrHash{start}.of(v); },
                   attr.value());
  return h;
}

}  // namespace

std::uint64_t hash_of_computation(const NodeDef& node, bool swap) {
  return hash_of(node, swap, Placing::hashed);
}

std::uint64_t hash_nodes(std::uint64_t before, const NodeDef& node, Placing placing) {
  return hash_combine(hash_text(node.name, before),
                      hash_combine(hash_of(node, false, placing), std::uint64_t(node.replica)));
}

std::uint64_t hash_functions(std::uint64_t before, const FunctionDef& function, Placing placing) {
  std::uint64_t h = hash_text(function.name, mix64(before));
  for (const NodeDef& node : function.nodes) h = hash_nodes(h, node, placing);
  for (NodeId argument : function.arguments) h = hash_combine(h, argument);
  for (Port result : function.results) h = hash_combine(hash_combine(h, result.node), result.index);
  AttrHash declared{hash_combine(h, function.nodes.size())};
  return AttrHash{declared.of(function.result_types)}.of(function.result_shapes);
}

}  // namespace troupe
