#include "tests/protocol/spread_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "devices/cpu/cpu_device.hpp"
#include "graph/node_query.hpp"

namespace troupe::test::loops {
namespace {

const std::string& text_attr(const NodeDef& node, const std::string& name) {
  return *node.attrs.at(name).get<std::string>();
}

// Print, which notes what it is given.
class NotingPrint final : public Kernel {
 public:
  NotingPrint(std::string message, Effects& effects)
      : message_(std::move(message)), effects_(effects) {}
  Status compute(KernelContext& ctx) override {
    effects_["print " + message_].push_back({"Print", ctx.input(0)});
    ctx.set_output(0, ctx.input(0));
    return ok_status();
  }

 private:
  const std::string message_;
  Effects& effects_;
};

std::string text_of(const std::vector<Effect>& effects) {
  std::string text;
  for (const Effect& e : effects) text += " " + e.what + " " + e.value.text();
  return text;
}

bool same_effects(const std::vector<Effect>& a, const std::vector<Effect>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Effect& x, const Effect& y) {
    return x.what == y.what && Tensor::same(x.value, y.value);
  });
}

}  // namespace

Output queue_on(Graph& g, const std::string& device, const std::string& name) {
  return on(g, device, [&] {
    FIFOQueueOptions options;
    options.shapes = {PartialShape::scalar()};
    options.shared_name = name;
    return fifo_queue(g, {DType::f64}, options);
  });
}

Output taken_from(const Output& queue) {
  return dequeue(queue, {DType::f64}, {.shapes = {PartialShape::scalar()}})[0];
}

void check_same(const Outcome& got, const Outcome& expected) {
  REQUIRE(got.fetched.size() == expected.fetched.size());
  for (std::size_t k = 0; k < got.fetched.size(); ++k)
    if (!Tensor::same(got.fetched[k], expected.fetched[k]))
      FAIL_CHECK("value " << k << ": " << got.fetched[k].text() << " instead of "
                          << expected.fetched[k].text());
  const auto none = std::vector<Effect>();
  const auto of = [&](const Effects& effects, const std::string& what) -> const auto& {
    const auto at = effects.find(what);
    return at == effects.end() ? none : at->second;
  };
  Effects all = expected.effects;
  all.insert(got.effects.begin(), got.effects.end());
  for (const auto& [what, unused] : all)
    if (!same_effects(of(got.effects, what), of(expected.effects, what)))
      FAIL_CHECK(what << ":" << text_of(of(got.effects, what)) << " instead of"
                      << text_of(of(expected.effects, what)));
}

struct SpreadStep::Part final : StepOutbox {
  explicit Part(SpreadStep& all) : all(all) {}
  void send(ChannelId channel, const Tag& tag, Tensor tensor, bool dead) override {
    all.send(channel, tag, std::move(tensor), dead);
  }
  const Plan& plan() const { return step->program().plan(); }

  SpreadStep& all;
  InlineLanes lanes;
  std::unique_ptr<StepState> step;
  bool wants = false;
};

SpreadStep::SpreadStep(const GraphDef& graph, const CompileRequest& request, const Devices& devices,
                       Surroundings world)
    : host_(ops::builtin()), world_(std::move(world)) {
  Target target = host_.target();
  for (const std::string& device : devices) {
    devices_.push_back(make_inline_device(*DeviceName::parse(device)));
    target.devices.push_back({devices_.back()->name()});
  }
  compiled_ = value_or_throw(
      compile(graph, request, target, [&](std::string_view stage, const GraphDef& now) {
        if (stage == "distribute") count_crossings(now);
      }));
  for (Plan& plan : compiled_.plans) add(std::move(plan));
  find_kinds();
}

SpreadStep::~SpreadStep() = default;

void SpreadStep::add(Plan plan) {
  const OpTable& table = ops::builtin();
  Device* device = nullptr;
  for (const auto& d : devices_)
    if (d->name().text() == plan.device) device = d.get();
  REQUIRE(device);
  auto program = value_or_throw(LoadedPlan::make(
      std::make_shared<const Plan>(std::move(plan)), *device,
      [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
        if (node.def.op == "Print")
          return std::unique_ptr<Kernel>(new NotingPrint(text_attr(node.def, "message"), effects_));
        return table.kernels.make(node.def, *table.ops.find(node.def.op), "CPU");
      }));
  parts_.push_back(std::make_unique<Part>(*this));
  parts_.back()->step = std::make_unique<StepState>(program);
}

// --- runs ---

Outcome SpreadStep::run(const Choose& choose) {
  Outcome outcome;
  run(choose, std::numeric_limits<std::size_t>::max(), outcome);
  return outcome;
}

void SpreadStep::run_in_part(const Choose& choose, std::size_t actions) {
  Outcome unused;
  run(choose, actions, unused);
}

bool SpreadStep::run(const Choose& choose, std::size_t most_actions, Outcome& outcome) {
  now_ = world_;
  effects_.clear();
  messages_ = most_ = actions_ = 0;
  sent_.assign(compiled_.channels.size(), 0);
  on_way_.assign(compiled_.channels.size(), 0);
  std::vector<bool> over(parts_.size(), false);
  std::vector<std::optional<Tensor>> fetched(compiled_.fetches);
  for (auto& part : parts_) throw_if_error(part->step->start({.run = 7}, *part));
  for (auto& part : parts_) part->wants = true;
  std::vector<Action> actions;
  for (std::size_t left = parts_.size(); left > 0; ++actions_) {
    if (actions_ == most_actions) {
      call_off(over);
      return false;
    }
    actions.clear();
    for (std::uint32_t p = 0; p < parts_.size(); ++p)
      if (!over[p] && parts_[p]->wants) actions.push_back({p});
    for (std::size_t m = 0; m < way_.size(); ++m) actions.push_back({way_[m].to, m});
    for (std::size_t r = 0; r < asked_.size(); ++r)
      if (can_be_answered(asked_[r])) actions.push_back({asked_[r].partition, {}, r});
    REQUIRE_MESSAGE(!actions.empty(), "no partition can go on");
    const Action action = actions[choose(actions)];
    if (action.message) {
      deliver(*action.message, over);
      continue;
    }
    if (action.request) {
      answer(*action.request);
      continue;
    }
    Part& part = *parts_[action.partition];
    BurstResult burst = part.step->run(part.lanes);
    for (StepRequest& request : burst.requests)
      asked_.push_back({action.partition, std::move(request)});
    part.wants = burst.more || part.step->has_arrivals();
    if (!burst.finished) continue;
    over[action.partition] = true;
    --left;
    StepResult result = part.step->result();
    throw_if_error(result.status);
    for (Fetched& f : result.fetches) fetched[f.index] = f.value;
  }
  CHECK(asked_.empty());
  way_.clear();
  for (auto& value : fetched) outcome.fetched.push_back(value.value());
  outcome.effects = std::move(effects_);
  effects_.clear();
  return true;
}

void SpreadStep::call_off(const std::vector<bool>& over) {
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    if (over[p]) continue;
    Part& part = *parts_[p];
    part.step->abort(aborted("once more"));
    while (!part.step->run(part.lanes).finished) {
    }
    CHECK(part.step->result().status.code() == Code::aborted);
  }
  way_.clear();
  asked_.clear();
}

void SpreadStep::send(ChannelId channel, const Tag& tag, Tensor tensor, bool dead) {
  const Channel& c = compiled_.channels[channel];
  ++messages_;
  ++sent_[channel];
  const auto number = std::int64_t(sent_[channel]);
  if (!(tag == (c.loop.empty() ? Tag() : Tag(std::span(&number, 1)))))
    FAIL_CHECK("channel " << c.name << " has a wrong number for its message " << sent_[channel]);
  most_ = std::max(most_, ++on_way_[channel]);
  way_.push_back({c.to, channel, tag, std::move(tensor), dead});
}

void SpreadStep::deliver(std::size_t which, const std::vector<bool>& over) {
  Message m = std::move(way_[which]);
  way_.erase(way_.begin() + std::ptrdiff_t(which));
  --on_way_[m.channel];
  if (over[m.to]) return;  // it needed this no more
  parts_[m.to]->step->deliver(m.channel, m.tag, std::move(m.tensor), m.dead);
  parts_[m.to]->wants = true;
}

// --- what is asked ---

bool SpreadStep::can_be_answered(const Asked& asked) const {
  if (asked.request.external->verb != "dequeue") return true;
  const Plan& plan = parts_[asked.partition]->plan();
  const auto& queue = now_.queues.at(plan.resources[asked.request.resource].name);
  return queue.endless || !queue.elements.empty();
}

void SpreadStep::answer(std::size_t which) {
  const Asked asked = std::move(asked_[which]);
  asked_.erase(asked_.begin() + std::ptrdiff_t(which));
  Part& part = *parts_[asked.partition];
  std::vector<Tensor> out;
  for (const RequestItem& item : asked.request.items) answer(part.plan(), asked.request, item, out);
  part.step->answer(asked.request.id, std::move(out));
  part.wants = true;
}

void SpreadStep::answer(const Plan& plan, const StepRequest& request, const RequestItem& item,
                        std::vector<Tensor>& out) {
  const PlanInfo& info = plan.info[item.node];
  const std::string &name = plan.resources[info.resource].name, &verb = request.external->verb;
  if (verb == "read") {
    out.push_back((request.epoch == 0 ? world_ : now_).variables.at(name));
  } else if (verb == "log") {
    REQUIRE_MESSAGE(info.def.op == "Assign", info.def.op);
    now_.variables.at(name) = item.operands.at(0);
    for (const Tensor& operand : item.operands)
      effects_["variable " + name].push_back({info.def.op, operand});
  } else if (verb == "enqueue") {
    now_.queues.at(name).elements.push_back(item.operands.at(0));
    effects_["queue " + name].push_back({info.name, item.operands.at(0)});
  } else if (verb == "dequeue") {
    out.push_back(take_from(name));
    effects_["queue " + name].push_back({info.name, out.back()});
  } else if (request.external->look) {
    out = request.external->look({.size = std::int64_t(now_.queues.at(name).elements.size())});
  } else {
    FAIL("asked for " << verb);
  }
}

Tensor SpreadStep::take_from(const std::string& name) {
  auto& queue = now_.queues.at(name);
  if (queue.elements.empty())
    return Tensor::scalar(0.25 * double(effects_["queue " + name].size() % 9));
  Tensor first = std::move(queue.elements.front());
  queue.elements.pop_front();
  return first;
}

// --- kinds of messages ---

void SpreadStep::count_crossings(const GraphDef& graph) {
  std::set<std::tuple<NodeId, std::uint32_t, std::string>> ports;
  std::set<std::pair<NodeId, std::string>> controls;
  for (const NodeDef& node : graph.nodes) {
    for (Port in : node.inputs) {
      const NodeDef& from = graph.nodes[in.node];
      if (from.device != node.device && from.out_types[in.index] != DType::resource)
        ports.insert({in.node, in.index, node.device});
    }
    for (NodeId c : node.control)
      if (graph.nodes[c].device != node.device) controls.insert({c, node.device});
  }
  crossing_ports_ = ports.size();
  crossing_controls_ = controls.size();
}

void SpreadStep::find_kinds() {
  kinds_.assign(compiled_.channels.size(), MessageKind::value);
  const auto is = [&](const PlanInfo& info, MessageKind kind) { kinds_[info.channel] = kind; };
  for (const auto& part : parts_) {
    const Plan& plan = part->plan();
    for (std::uint32_t i = 0; i < plan.nodes.size(); ++i)
      if (plan.nodes[i].role == Role::send && plan.nodes[i].inputs == 0)
        is(plan.info[i], MessageKind::order);
  }
  for (const auto& part : parts_) {
    const Plan& plan = part->plan();
    for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
      const PlanNode& node = plan.nodes[i];
      if (node.role == Role::recv && plan.info[i].def.attrs.count(std::string(kLagAttr)) != 0)
        is(plan.info[i], MessageKind::end);
      if (node.role != Role::loop && node.role != Role::loop_next) continue;
      const std::uint32_t from = part->step->program().producer(plan.input_slots[node.first_input]);
      if (plan.nodes[from].role == Role::recv)
        is(plan.info[from], node.role == Role::loop ? MessageKind::first : MessageKind::predicate);
    }
  }
}

std::vector<SpreadStep::Loop> SpreadStep::loops() const {
  // Frames of all partitions, those of one loop as one.
  std::vector<std::size_t> first_frame{0};
  for (const auto& part : parts_)
    first_frame.push_back(first_frame.back() + part->plan().frames.size());
  std::vector<std::size_t> same(first_frame.back());
  std::iota(same.begin(), same.end(), 0);
  const auto of = [&](std::size_t frame) {
    while (same[frame] != frame) frame = same[frame];
    return frame;
  };
  std::vector<std::size_t> sender(compiled_.channels.size()), receiver(sender);
  std::map<std::size_t, std::vector<std::string>> prints;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Plan& plan = parts_[p]->plan();
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      const std::size_t frame = first_frame[p] + plan.nodes[i].frame;
      if (plan.nodes[i].role == Role::send) sender[plan.info[i].channel] = frame;
      if (plan.nodes[i].role == Role::recv) receiver[plan.info[i].channel] = frame;
      if (plan.info[i].def.op == "Print")
        prints[frame].push_back(text_attr(plan.info[i].def, "message"));
    }
  }
  for (const Channel& channel : compiled_.channels)
    if (!channel.loop.empty()) same[of(sender[channel.id])] = of(receiver[channel.id]);
  std::map<std::size_t, Loop> loops;
  for (const Channel& channel : compiled_.channels) {
    if (channel.loop.empty()) {
      CHECK_MESSAGE(sent_[channel.id] == 1, channel.name);
      continue;
    }
    const auto [at, added] = loops.try_emplace(of(sender[channel.id]));
    Loop& loop = at->second;
    if (added) {
      loop.iterations = sent_[channel.id];
      for (std::size_t frame = 0; frame < same.size(); ++frame) {
        if (of(frame) != at->first) continue;
        ++loop.parts;
        const auto& here = prints[frame];
        loop.prints.insert(loop.prints.end(), here.begin(), here.end());
      }
    }
    CHECK_MESSAGE(sent_[channel.id] == loop.iterations, channel.name);
    Traffic& traffic = loop.inside[kinds_[channel.id]];
    ++traffic.channels;
    traffic.messages += sent_[channel.id];
  }
  std::vector<Loop> all;
  for (auto& [frame, loop] : loops) all.push_back(std::move(loop));
  return all;
}

std::map<MessageKind, Traffic> SpreadStep::outside() const {
  std::map<MessageKind, Traffic> all;
  for (const Channel& channel : compiled_.channels) {
    if (!channel.loop.empty()) continue;
    Traffic& traffic = all[kinds_[channel.id]];
    ++traffic.channels;
    traffic.messages += sent_[channel.id];
  }
  return all;
}

// --- what tests do with them ---

SpreadStep spread_over(const Make& make, const Devices& on, const Surroundings& world) {
  Graph g;
  CompileRequest request;
  for (const Output& o : make(g, on)) request.fetches.push_back(*PortName::parse(o.name()));
  Devices devices = on;
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return SpreadStep(g.def(), request, devices, world);
}

Outcome on_one(const Make& make, const Surroundings& world) {
  SpreadStep alone = spread_over(make, kAlone, world);
  REQUIRE(alone.size() == 1);
  return alone.run([](const auto&) { return std::size_t{0}; });
}

SpreadStep::Choose at_random(Random& random) {
  return [&random](const std::vector<SpreadStep::Action>& actions) {
    return random.below(actions.size());
  };
}

void check_orders(SpreadStep& spread, const Outcome& expected, Random& random, int rounds) {
  using Action = SpreadStep::Action;
  for (int round = 0; round < rounds; ++round) {
    if (round % 8 == 1) spread.run_in_part(at_random(random), random.below(spread.actions()));
    check_same(spread.run(at_random(random)), expected);
  }
  // The newest message first; none while a partition can go on; one partition while it can.
  check_same(spread.run(last_where([](const Action& a) { return a.message.has_value(); })),
             expected);
  check_same(spread.run(last_where([](const Action& a) { return a.burst(); })), expected);
  for (std::uint32_t p = 0; p < spread.size(); ++p)
    check_same(spread.run(last_where([p](const Action& a) { return a.partition == p; })), expected);
}

}  // namespace troupe::test::loops
