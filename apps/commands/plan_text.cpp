#include "apps/commands/plan_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "graph/passes/make_plan.hpp"

namespace troupe {
namespace {

using nlohmann::json;

std::string output_text(const NodeDef& node, std::size_t i) {
  return std::string(dtype_name(node.out_types[i])) + node.out_shapes[i].text();
}

// "12  h/MatMul = MatMul(3, 8) -> 9: f32[64,128]", numbers of slots.
std::string node_line(const Plan& plan, std::size_t index) {
  const PlanNode& node = plan.nodes[index];
  const PlanInfo& info = plan.info[index];
  std::string inputs, outputs;
  for (std::uint32_t i = 0; i < node.inputs; ++i)
    inputs += fmt::format("{}{}", i ? ", " : "", plan.input_slots[node.first_input + i]);
  for (std::uint32_t i = 0; i < node.outputs; ++i) {
    outputs +=
        fmt::format("{}{}: {}", i ? ", " : " -> ", node.first_slot + i, output_text(info.def, i));
    if (plan.slots[node.first_slot + i].space == MemorySpace::device) outputs += " (device)";
  }
  std::string line =
      fmt::format("  {:4}  {} = {}({}){}", index, info.name, info.def.op, inputs, outputs);
  if (info.def.op == "_Send" || info.def.op == "_Recv")
    line += fmt::format(" by channel {}", info.channel);
  if (info.replica >= 0) line += fmt::format(" of replica {}", info.replica);
  return line + "\n";
}

json node_json(const Plan& plan, std::size_t index) {
  const PlanNode& node = plan.nodes[index];
  const PlanInfo& info = plan.info[index];
  json out = {{"node", info.name},
              {"op", info.def.op},
              {"inputs", json::array()},
              {"outputs", json::array()}};
  for (std::uint32_t i = 0; i < node.inputs; ++i)
    out["inputs"].push_back(plan.input_slots[node.first_input + i]);
  for (std::uint32_t i = 0; i < node.outputs; ++i)
    out["outputs"].push_back({{"slot", node.first_slot + i}, {"type", output_text(info.def, i)}});
  if (info.replica >= 0) out["replica"] = info.replica;
  return out;
}

}  // namespace

std::string plan_text(const CompiledGraph& compiled) {
  std::string text;
  for (std::size_t p = 0; p < compiled.plans.size(); ++p) {
    const Plan& plan = compiled.plans[p];
    text +=
        fmt::format("partition {} on {}: {} nodes, {} slots, at most {} bytes of tensors\n", p,
                    plan.device, plan.nodes.size(), plan.slots.size(), liveness_bound_bytes(plan));
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) text += node_line(plan, i);
    for (const PlanFeed& feed : plan.feeds)
      text += fmt::format("  feed {} in slot {}\n", feed.feed, feed.slot);
    for (const PlanFetch& fetch : plan.fetches)
      text += fmt::format("  fetch {} from slot {}\n", fetch.fetch, fetch.slot);
  }
  for (const Channel& channel : compiled.channels)
    text += fmt::format("channel {} from partition {} to {}: {} {}{}\n", channel.id, channel.from,
                        channel.to, channel.name, dtype_name(channel.dtype), channel.shape.text());
  return text;
}

json plan_json(const CompiledGraph& compiled) {
  json partitions = json::array(), channels = json::array();
  for (const Plan& plan : compiled.plans) {
    json one = {{"device", plan.device},
                {"slots", plan.slots.size()},
                {"liveness_bound_bytes", liveness_bound_bytes(plan)},
                {"nodes", json::array()},
                {"feeds", json::array()},
                {"fetches", json::array()}};
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) one["nodes"].push_back(node_json(plan, i));
    for (const PlanFeed& feed : plan.feeds)
      one["feeds"].push_back({{"feed", feed.feed}, {"slot", feed.slot}});
    for (const PlanFetch& fetch : plan.fetches)
      one["fetches"].push_back({{"fetch", fetch.fetch}, {"slot", fetch.slot}});
    partitions.push_back(std::move(one));
  }
  for (const Channel& channel : compiled.channels)
    channels.push_back({{"id", channel.id},
                        {"from", channel.from},
                        {"to", channel.to},
                        {"name", channel.name},
                        {"dtype", dtype_name(channel.dtype)},
                        {"shape", channel.shape.text()}});
  return {{"partitions", std::move(partitions)}, {"channels", std::move(channels)}};
}

}  // namespace troupe
