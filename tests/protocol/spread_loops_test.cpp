// Loops over several devices: whatever order their messages come in, they compute what they compute
// on one. Partitions run here one burst at a time, on one thread, as a seed says.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "tests/protocol/loop_examples.hpp"
#include "troupe/actors/burst/step_state.hpp"
#include "troupe/core/hash.hpp"
#include "troupe/devices/cpu/cpu_device.hpp"
#include "troupe/ops/compile_host.hpp"

using namespace troupe;
using namespace troupe::test::loops;

namespace {

struct Message {
  std::uint32_t to = 0;
  ChannelId channel = 0;
  Tag tag;
  Tensor tensor;
  bool dead = false;
};

// All partitions of one step, and what is on its way between them.
class Partitions {
 public:
  Partitions(const GraphDef& graph, const CompileRequest& request, const Devices& devices)
      : host_(ops::builtin()) {
    Target target = host_.target();
    for (const std::string& device : devices) {
      devices_.push_back(make_inline_device(*DeviceName::parse(device)));
      target.devices.push_back({devices_.back()->name()});
    }
    compiled_ = value_or_throw(compile(graph, request, target));
    for (Plan& plan : compiled_.plans) add(std::move(plan));
  }

  std::vector<Tensor> run(Random& random) {
    std::vector<bool> over(parts_.size(), false);
    std::vector<std::optional<Tensor>> fetched(compiled_.fetches);
    messages_ = 0;
    for (auto& part : parts_) throw_if_error(part->step->start({.run = 7}, *part));
    for (auto& part : parts_) part->wants = true;
    for (std::size_t left = parts_.size(); left > 0;) {
      std::vector<std::uint32_t> able;
      for (std::uint32_t p = 0; p < parts_.size(); ++p)
        if (!over[p] && parts_[p]->wants) able.push_back(p);
      const std::size_t choices = able.size() + way_.size();
      REQUIRE_MESSAGE(choices > 0, "no partition can go on");
      std::size_t choice = random.below(choices);
      if (choice >= able.size()) {
        deliver(choice - able.size(), over);
        continue;
      }
      Part& part = *parts_[able[choice]];
      BurstResult burst = part.step->run(lanes_);
      CHECK(burst.requests.empty());
      part.wants = burst.more || part.step->has_arrivals();
      if (!burst.finished) continue;
      over[able[choice]] = true;
      --left;
      StepResult result = part.step->result();
      throw_if_error(result.status);
      for (Fetched& f : result.fetches) fetched[f.index] = f.value;
    }
    way_.clear();
    std::vector<Tensor> out;
    for (auto& value : fetched) out.push_back(value.value());
    return out;
  }

  std::size_t size() const { return parts_.size(); }
  std::size_t messages() const { return messages_; }
  const CompiledGraph& compiled() const { return compiled_; }

 private:
  struct Part final : StepOutbox {
    Part(Partitions& all) : all(all) {}
    void send(ChannelId channel, const Tag& tag, Tensor tensor, bool dead) override {
      const Channel& c = all.compiled_.channels[channel];
      all.way_.push_back({c.to, channel, tag, std::move(tensor), dead});
      ++all.messages_;
      // No part is further ahead of another than the window says.
      if (tag.depth() == 0) return;
      std::size_t& most = all.most_under_way_[channel];
      std::size_t now = 0;
      for (const Message& m : all.way_) now += m.channel == channel;
      most = std::max(most, now);
      CHECK(most <= kWidest);
    }
    Partitions& all;
    std::unique_ptr<StepState> step;
    bool wants = false;
  };

  void add(Plan plan) {
    const OpTable& table = ops::builtin();
    Device* device = nullptr;
    for (const auto& d : devices_)
      if (d->name().text() == plan.device) device = d.get();
    REQUIRE(device);
    auto program = value_or_throw(
        LoadedPlan::make(std::make_shared<const Plan>(std::move(plan)), *device,
                         [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
                           return table.kernels.make(node.def, *table.ops.find(node.def.op), "CPU");
                         }));
    parts_.push_back(std::make_unique<Part>(*this));
    parts_.back()->step = std::make_unique<StepState>(program);
  }

  void deliver(std::size_t which, const std::vector<bool>& over) {
    Message m = std::move(way_[which]);
    way_[which] = std::move(way_.back());
    way_.pop_back();
    if (over[m.to]) return;  // it needed this no more
    parts_[m.to]->step->deliver(m.channel, m.tag, std::move(m.tensor), m.dead);
    parts_[m.to]->wants = true;
  }

  static constexpr std::size_t kWidest = 11;
  CompileHost host_;
  std::vector<std::unique_ptr<Device>> devices_;
  CompiledGraph compiled_;
  InlineLanes lanes_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Message> way_;
  std::map<ChannelId, std::size_t> most_under_way_;
  std::size_t messages_ = 0;
};

const Devices kOne{"/job:local/task:0/cpu:0", "/job:local/task:0/cpu:0", "/job:local/task:0/cpu:0"};
const Devices kThree{"/job:local/task:0/cpu:0", "/job:local/task:0/cpu:1",
                     "/job:local/task:1/cpu:0"};

Partitions partitions_of(const Make& make, const Devices& on) {
  Graph g;
  CompileRequest request;
  for (const Output& o : make(g, on)) request.fetches.push_back(*PortName::parse(o.name()));
  Devices devices = on;
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return Partitions(g.def(), request, devices);
}

}  // namespace

TEST_CASE("a loop over several devices computes what it computes on one, in any order") {
  const auto seed = std::uint64_t(std::random_device{}());
  INFO("seed " << seed);
  Random random(seed);
  for (const LoopExample& example : loop_examples()) {
    CAPTURE(example.name);
    Partitions alone = partitions_of(example.make, kOne);
    REQUIRE(alone.size() == 1);
    const std::vector<Tensor> expected = alone.run(random);
    Partitions spread = partitions_of(example.make, kThree);
    CHECK(spread.size() >= 2);
    for (int round = 0; round < 100; ++round) {
      const std::vector<Tensor> got = spread.run(random);
      REQUIRE(got.size() == expected.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        CAPTURE(k);
        CHECK_MESSAGE(same_bits(got[k], expected[k]), got[k].text()
                                                          << " instead of " << expected[k].text());
      }
    }
  }
}

TEST_CASE("an iteration over two devices sends its values, a predicate and that it is over") {
  Random random(1);
  Partitions spread = partitions_of(
      [](Graph& g, const Devices& d) {
        return alternating(g, {d[0], d[1]}, 10);
      },
      kThree);
  REQUIRE(spread.size() == 2);
  spread.run(random);
  // 25 iterations of x there, its sine back, the predicate and the end; before the loop the first
  // values and predicate.
  CHECK(spread.messages() <= 25 * 4 + 3);
  CHECK(spread.messages() >= 25 * 3);
}
