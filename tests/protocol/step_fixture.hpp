// What the tests of StepState share: kernels made of lambdas, an outbox that remembers.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/burst/step_state.hpp"
#include "apps/bench/plan_draft.hpp"
#include "devices/cpu/cpu_device.hpp"

namespace troupe {

using Compute = std::function<Status(KernelContext&)>;

class LambdaKernel final : public Kernel {
 public:
  explicit LambdaKernel(Compute compute) : compute_(std::move(compute)) {}
  Status compute(KernelContext& ctx) override { return compute_(ctx); }

 private:
  Compute compute_;
};

class RecordingOutbox final : public StepOutbox {
 public:
  struct Sent {
    ChannelId channel;
    Tensor tensor;
    bool dead;
  };
  void send(ChannelId channel, const Tag&, Tensor tensor, bool dead) override {
    sent.push_back({channel, std::move(tensor), dead});
  }
  std::vector<Sent> sent;
};

inline DeviceName test_device_name(const std::string& type = "cpu") {
  return *DeviceName::parse("/job:local/task:0/" + type + ":0");
}

// What ops of the library ask for.
namespace asks {
inline const External read{
    .resource = "variable", .verb = "read", .order = External::Order::read, .sees = true};
inline const External log{.resource = "variable",
                          .verb = "log",
                          .order = External::Order::write,
                          .commits = true,
                          .changes = true};
inline const External enqueue{
    .resource = "queue", .verb = "enqueue", .commits = true, .changes = true, .fills = true};
inline const External dequeue{
    .resource = "queue", .verb = "dequeue", .per_replica = true, .commits = true, .changes = true};
inline const External close{
    .resource = "queue", .verb = "close", .commits = true, .changes = true, .fills = true};
inline const External size{.resource = "queue", .verb = "size", .sees = true};
inline const External next{.resource = "dataset", .verb = "next", .per_replica = true};
inline const External save{.resource = "files", .verb = "save", .on_host = true};
}  // namespace asks

// A plan in the making with one lambda per kernel node, and a device to run it on.
struct StepWorld {
  std::unique_ptr<Device> own = make_inline_device(test_device_name());
  Device& device;
  PlanDraft draft;
  std::map<std::string, Compute> kernels;  // by node name
  RecordingOutbox outbox;
  InlineLanes lanes;
  std::unique_ptr<StepState> step;
  CallLimits limits;

  StepWorld() : device(*own) {}
  explicit StepWorld(Device& other) : device(other), draft(other.name().text()) {}

  std::uint32_t kernel(std::string name, std::vector<std::uint32_t> inputs, Compute compute,
                       std::uint16_t outputs = 1, std::vector<std::uint32_t> control = {}) {
    kernels[name] = std::move(compute);
    return draft.add({.name = std::move(name),
                      .inputs = std::move(inputs),
                      .outputs = outputs,
                      .control = std::move(control)});
  }
  std::uint32_t constant(std::string name, float value, std::vector<std::uint32_t> control = {}) {
    return kernel(
        std::move(name), {},
        [value](KernelContext& c) {
          c.set_output(0, Tensor::scalar(value));
          return ok_status();
        },
        1, std::move(control));
  }
  std::uint32_t role(std::string name, Role role, std::vector<std::uint32_t> inputs,
                     std::uint16_t outputs, std::vector<std::uint32_t> control = {}) {
    return draft.add({.name = std::move(name),
                      .role = role,
                      .inputs = std::move(inputs),
                      .outputs = outputs,
                      .control = std::move(control)});
  }
  std::uint32_t external(std::string name, const External& what, std::vector<std::uint32_t> inputs,
                         std::uint16_t outputs, std::vector<std::uint32_t> control = {}) {
    return draft.add({.name = std::move(name),
                      .inputs = std::move(inputs),
                      .outputs = outputs,
                      .control = std::move(control),
                      .external = &what});
  }
  // Sum of its inputs.
  std::uint32_t sum(std::string name, std::vector<std::uint32_t> inputs,
                    std::vector<std::uint32_t> control = {}) {
    return kernel(
        std::move(name), std::move(inputs),
        [](KernelContext& c) {
          float total = 0;
          for (int i = 0; i < c.inputs(); ++i) total += c.input(i).item<float>();
          c.set_output(0, Tensor::scalar(total));
          return ok_status();
        },
        1, std::move(control));
  }

  // What becomes of a plan whose kernels are those of this world.
  Expected<std::shared_ptr<const LoadedPlan>> load(std::shared_ptr<const Plan> plan) {
    return LoadedPlan::make(
        std::move(plan), device, [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
          return std::unique_ptr<Kernel>(new LambdaKernel(kernels.at(node.name)));
        });
  }
  // The same of the plan that was drafted, with a change.
  Code code_of(const std::function<void(Plan&)>& change) {
    auto plan = std::make_shared<Plan>(draft.finish());
    change(*plan);
    return load(plan).status().code();
  }
  std::shared_ptr<const LoadedPlan> make() {
    auto made = std::make_shared<Plan>(draft.finish());
    for (PlanInfo& info : made->info)  // that the test says nothing of
      if (info.external && info.resource == ~0u) {
        info.resource = std::uint32_t(made->resources.size());
        made->resources.push_back({.kind = info.external->resource, .name = info.name});
      }
    auto program = load(made);
    REQUIRE_MESSAGE(program.ok(), program.status().text());
    step = std::make_unique<StepState>(*program, limits);
    return *program;
  }
  void start(std::vector<Tensor> feeds = {}) {
    Status started = step->start({.run = 1, .feeds = std::move(feeds)}, outbox);
    REQUIRE_MESSAGE(started.ok(), started.text());
  }
  BurstResult run() { return step->run(lanes); }
  // Until it ends or waits: again where loops have had their turn, which is a matter of time.
  BurstResult run_on() {
    BurstResult burst;
    do burst = run();
    while (burst.more);
    return burst;
  }
  // Starts and runs a step that needs nothing from outside.
  StepResult run_whole(std::vector<Tensor> feeds = {}) {
    start(std::move(feeds));
    BurstResult burst = run_on();
    REQUIRE(burst.finished);
    CHECK(burst.requests.empty());
    return step->result();
  }
};

}  // namespace troupe
