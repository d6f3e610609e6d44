#include "serialization/event_graph.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "core/utf8.hpp"

namespace troupe {
namespace {

using protozero::pbf_writer;

constexpr std::size_t kMostConstant = 1024;  // bytes of a constant that are written

// ------------------------------------------------------------------ graphs

// The numbers of tensorflow/core/framework/types.proto.
int type_number(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 1;
    case DType::f64:
      return 2;
    case DType::i32:
      return 3;
    case DType::u8:
      return 4;
    case DType::i16:
      return 5;
    case DType::i8:
      return 6;
    case DType::string:
      return 7;
    case DType::c64:
      return 8;
    case DType::i64:
      return 9;
    case DType::bool_:
      return 10;
    case DType::bf16:
      return 14;
    case DType::u16:
      return 17;
    case DType::c128:
      return 18;
    case DType::f16:
      return 19;
    case DType::resource:
      return 20;
    case DType::list:
      return 21;  // a variant
    case DType::u32:
      return 22;
    case DType::u64:
      return 23;
    case DType::invalid:
      break;
  }
  return 0;
}

void write_shape(pbf_writer& out, std::uint32_t field, const PartialShape& shape) {
  pbf_writer message(out, field);
  if (!shape.known_rank()) message.add_bool(3, true);
  for (const std::int64_t dim : shape.dims()) {
    pbf_writer one(message, 2);
    one.add_int64(1, dim);
  }
}

void write_tensor(pbf_writer& out, std::uint32_t field, const Tensor& tensor) {
  pbf_writer message(out, field);
  if (!tensor.defined()) return;
  message.add_enum(1, type_number(tensor.dtype()));
  write_shape(message, 2, tensor.shape());
  const bool plain = tensor.dtype() != DType::string && dtype_size(tensor.dtype()) > 0;
  if (plain && tensor.space() == MemorySpace::host && tensor.bytes() <= kMostConstant)
    message.add_bytes(4, static_cast<const char*>(tensor.raw()), tensor.bytes());
}

// The value of an attribute, into an AttrValue.
struct AttrWriter {
  pbf_writer& out;

  void operator()(std::int64_t v) { out.add_int64(3, v); }
  void operator()(double v) { out.add_float(4, float(v)); }
  void operator()(bool v) { out.add_bool(5, v); }
  void operator()(const std::string& v) { out.add_bytes(2, v); }
  void operator()(DType v) { out.add_enum(6, type_number(v)); }
  void operator()(const PartialShape& v) { write_shape(out, 7, v); }
  void operator()(const Tensor& v) { write_tensor(out, 8, v); }
  void operator()(const std::vector<std::int64_t>& all) {
    pbf_writer list(out, 1);
    list.add_packed_int64(3, all.begin(), all.end());
  }
  void operator()(const std::vector<double>& all) {
    pbf_writer list(out, 1);
    std::vector<float> floats(all.begin(), all.end());
    list.add_packed_float(4, floats.begin(), floats.end());
  }
  void operator()(const std::vector<std::string>& all) {
    pbf_writer list(out, 1);
    for (const std::string& v : all) list.add_bytes(2, v);
  }
  void operator()(const std::vector<DType>& all) {
    pbf_writer list(out, 1);
    std::vector<std::int32_t> numbers;
    for (const DType v : all) numbers.push_back(type_number(v));
    list.add_packed_enum(6, numbers.begin(), numbers.end());
  }
  void operator()(const std::vector<PartialShape>& all) {
    pbf_writer list(out, 1);
    for (const PartialShape& v : all) write_shape(list, 7, v);
  }
  template <class Other>
  void operator()(const Other&) {}
};

// One entry of a node's map of attributes; `write` fills the AttrValue.
template <class F>
void write_attr(pbf_writer& node, std::string_view name, F&& write) {
  pbf_writer entry(node, 5);
  entry.add_string(1, as_utf8(name));
  pbf_writer value(entry, 2);
  write(value);
}

class NodeWriter {
 public:
  // `nodes`: those that inputs name.
  NodeWriter(const std::vector<NodeDef>& nodes,
             const std::map<std::string, std::string, std::less<>>& devices)
      : nodes_(nodes), devices_(devices) {}

  void write(pbf_writer& out, std::uint32_t field, const NodeDef& node, bool in_function) const {
    pbf_writer message(out, field);
    message.add_string(1, as_utf8(node.name));
    message.add_string(2, as_utf8(node.op));
    for (const Port port : node.inputs) message.add_string(3, input(port, in_function));
    for (const NodeId before : node.control)
      if (before < nodes_.size()) message.add_string(3, "^" + as_utf8(nodes_[before].name));
    if (const std::string& device = device_of(node); !device.empty())
      message.add_string(4, as_utf8(device));
    for (const auto& [name, value] : node.attrs)
      write_attr(message, name, [&value = value](pbf_writer& attr) {
        std::visit(AttrWriter{attr}, value.value());
      });
    if (!node.colocate.empty())
      write_attr(message, "_class", [&](pbf_writer& attr) {
        pbf_writer list(attr, 1);
        for (const std::string& other : node.colocate) list.add_bytes(2, "loc:@" + other);
      });
    if (!node.out_shapes.empty())
      write_attr(message, "_output_shapes",
                 [&](pbf_writer& attr) { AttrWriter{attr}(node.out_shapes); });
  }

 private:
  // In a function an output is named by its argument, too.
  std::string input(Port port, bool in_function) const {
    if (port.node >= nodes_.size()) return "?";
    const std::string name = as_utf8(nodes_[port.node].name);
    if (in_function) return name + ":out:" + std::to_string(port.index);
    return port.index == 0 ? name : name + ":" + std::to_string(port.index);
  }
  const std::string& device_of(const NodeDef& node) const {
    const auto placed = devices_.find(node.name);
    return placed == devices_.end() ? node.device : placed->second;
  }

  const std::vector<NodeDef>& nodes_;
  const std::map<std::string, std::string, std::less<>>& devices_;
};

void write_function(pbf_writer& library, const FunctionDef& function) {
  pbf_writer message(library, 1);
  {
    pbf_writer signature(message, 1);
    signature.add_string(1, as_utf8(function.name));
  }
  static const std::map<std::string, std::string, std::less<>> kNone;
  const NodeWriter writer(function.nodes, kNone);
  for (const NodeDef& node : function.nodes) writer.write(message, 3, node, true);
}

}  // namespace

std::string tensorboard_graph(const GraphDef& graph,
                              const std::map<std::string, std::string, std::less<>>& devices) {
  std::string bytes;
  pbf_writer out(bytes);
  const NodeWriter writer(graph.nodes, devices);
  for (const NodeDef& node : graph.nodes) writer.write(out, 1, node, false);
  {
    pbf_writer versions(out, 4);
    versions.add_int32(1, 27);  // producer: enough for readers that only show the graph
  }
  if (!graph.functions.empty()) {
    pbf_writer library(out, 2);
    for (const FunctionDef& function : graph.functions) write_function(library, function);
  }
  return bytes;
}

// ------------------------------------------------------------------ runs

namespace {

constexpr std::string_view kStepsOn = "steps on ";

// A node's span, in the master's time.
struct NodeSpan {
  const Span* span = nullptr;
  std::int64_t begin_ns = 0, length_ns = 0;
  std::uint32_t thread = 0;
};

// The only device of a process, from the name of the track of its steps; else the process's name.
std::string device_of(const ProcessTimeline& process) {
  std::string found;
  for (const Track& track : process.tracks) {
    if (!track.name.starts_with(kStepsOn)) continue;
    if (!found.empty()) return process.name;
    found = track.name.substr(kStepsOn.size());
  }
  return found.empty() ? process.name : found;
}

std::optional<NodeSpan> placed(const Span& span, std::int64_t moved_ns, std::uint32_t thread) {
  NodeSpan out{&span, 0, 0, thread};
  if (__builtin_add_overflow(span.begin_ns, moved_ns, &out.begin_ns) ||
      __builtin_sub_overflow(span.end_ns, span.begin_ns, &out.length_ns) || out.begin_ns < 0 ||
      out.length_ns < 0)
    return std::nullopt;
  return out;
}

// The program's name of a node that was copied for replicas, of "NAME/replica_1".
std::string_view name_in_program(std::string_view name) {
  constexpr std::string_view kReplica = "/replica_";
  const std::size_t at = name.rfind(kReplica);
  if (at == name.npos || at == 0) return name;
  const std::string_view number = name.substr(at + kReplica.size());
  return !number.empty() && number.find_first_not_of("0123456789") == number.npos
             ? name.substr(0, at)
             : name;
}

void write_node_span(pbf_writer& device, const NodeSpan& node) {
  // In whole microseconds, at least 1: readers take 0 for a node that did not run.
  const std::int64_t end_us = std::max<std::int64_t>(1, (node.length_ns + 500) / 1000);
  pbf_writer out(device, 2);
  out.add_string(1, as_utf8(name_in_program(node.span->name)));
  out.add_int64(2, node.begin_ns / 1000);
  out.add_int64(3, 0);
  out.add_int64(4, end_us);
  out.add_int64(5, end_us);
  out.add_string(8, as_utf8(node.span->name));
  out.add_int64(9, node.begin_ns / 1000);
  out.add_uint32(10, node.thread);
  out.add_int64(13, node.begin_ns);
  out.add_int64(14, 0);
  out.add_int64(15, node.length_ns);
  out.add_int64(16, node.length_ns);
}

using SpansByDevice = std::map<std::string, std::vector<NodeSpan>>;

std::string metadata_of(const SpansByDevice& devices) {
  std::string bytes;
  pbf_writer metadata(bytes);
  pbf_writer stats(metadata, 1);
  for (const auto& [device, spans] : devices) {
    pbf_writer out(stats, 1);
    out.add_string(1, as_utf8(device));
    for (const NodeSpan& span : spans) write_node_span(out, span);
  }
  stats.commit();
  return bytes;
}

}  // namespace

std::vector<RunStats> tensorboard_runs(const Timeline& timeline, std::int64_t wall_offset_ns,
                                       std::string_view wanted) {
  std::map<std::uint64_t, SpansByDevice> runs;
  std::set<std::uint64_t> with_wanted;
  for (const ProcessTimeline& process : timeline.processes) {
    const std::string device = device_of(process);
    std::int64_t moved_ns = 0;
    if (__builtin_sub_overflow(wall_offset_ns, process.clock ? process.clock->offset_ns : 0,
                               &moved_ns))
      continue;
    std::uint32_t thread = 0;
    for (const Track& track : process.tracks) {
      for (const Span& span : track.spans) {
        if (span.kind != Span::Kind::node || span.run == 0) continue;
        if (span.name == wanted) with_wanted.insert(span.run);
        if (const auto node = placed(span, moved_ns, thread))
          runs[span.run][device].push_back(*node);
      }
      ++thread;
    }
  }
  std::vector<RunStats> out;
  for (auto& [run, devices] : runs) {
    if (!wanted.empty() && !with_wanted.contains(run)) continue;
    for (auto& [_, spans] : devices)
      std::stable_sort(spans.begin(), spans.end(), [](const NodeSpan& a, const NodeSpan& b) {
        return a.begin_ns < b.begin_ns;
      });
    out.push_back({run, metadata_of(devices)});
  }
  return out;
}

}  // namespace troupe
