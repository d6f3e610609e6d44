#include "tests/hostile/hostile_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/burst/step_state.hpp"
#include "core/feeds.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "graph/compile.hpp"
#include "graph/gradients.hpp"
#include "tests/graph/allocated.hpp"

namespace troupe::test {
namespace {

constexpr const char* kFile = "hostile.cpp";
constexpr std::uint32_t kNodeLine = 1000;  // inputs are made on lines before it
constexpr std::size_t kLongestText = 8'000;

DeviceName device_name() { return *DeviceName::parse("/job:w/task:0/cpu:0"); }

class NoOutbox final : public StepOutbox {
  void send(ChannelId, const Tag&, Tensor, bool) override {}
};

// The bytes of a value at both of its ends, or those of its strings.
std::uint64_t hash_of(const Tensor& t) {
  std::uint64_t hash = hash_text(t.shape().text());
  if (t.dtype() == DType::string) {
    for (const std::string& s : t.span<std::string>()) hash = hash_combine(hash, hash_text(s));
    return hash;
  }
  constexpr std::size_t kMost = 1 << 14;
  const std::size_t n = t.bytes(), most = std::min(n, kMost);
  if (n == 0) return hash;
  const char* bytes = static_cast<const char*>(t.raw());
  return hash_bytes(bytes + (n - most), most, hash_bytes(bytes, n > most ? most : 0, hash));
}

class Attempt {
 public:
  Attempt(const OpTable& table, const CompileHost& host, Device& device, const HostileCase& drawn)
      : table_(table), host_(host), device_(device), drawn_(drawn), g_(table.ops, 11) {}

  HostileOutcome go() {
    take_largest_block();
    try {
      if (build() && differentiate()) run();
    } catch (const std::exception& e) {
      fault(std::string("an exception escapes: ") + e.what());
    } catch (...) {
      fault("an exception escapes");
    }
    if (const std::uint64_t most = take_largest_block(); most > kHostileMemory)
      fault(fmt::format("takes a block of {} bytes", most));
    return std::move(outcome_);
  }

 private:
  bool fault(std::string what) {
    if (outcome_.fault.empty()) outcome_.fault = std::move(what);
    return false;
  }

  // A refusal must be one of the input's doing, and lead to a line of the program and a node or op.
  bool refuse(const Status& status, HostileEnd end, bool of_a_feed = false) {
    outcome_.end = end;
    const std::string text = status.text();
    outcome_.status = text.substr(0, 400);
    if (status.message().empty()) return fault("an error without a message: " + text);
    if (status.code() == Code::internal) return fault("an internal error: " + text);
    if (text.size() > kLongestText) return fault(fmt::format("an error of {} bytes", text.size()));
    if (of_a_feed) return false;  // which is named; it was made outside of the graph
    if (text.find(std::string(kFile) + ":") == text.npos)
      return fault("an error without a line of the program: " + text);
    return false;
  }
  bool refuse_node(const Status& status, HostileEnd end) {
    refuse(status, end);
    const std::string text = status.report() + status.text();
    for (const NodeDef& node : g_.def().nodes)
      if (text.find(node.name) != text.npos) return false;
    if (text.find(drawn_.op) != text.npos || text.find(adding_ + ":") != text.npos) return false;
    return fault("an error that names no node: " + text);
  }

  Expected<Op> add(std::string op, std::vector<Output> inputs, AttrMap attrs, std::uint32_t line,
                   std::string name = {}) {
    adding_ = op;
    return g_.try_add({.op = std::move(op),
                       .inputs = std::move(inputs),
                       .attrs = std::move(attrs),
                       .name = std::move(name),
                       .site = Site(kFile, line)});
  }

  Expected<Output> input(const HostileInput& in, std::uint32_t line) {
    switch (in.from) {
      case HostileInput::From::constant: {
        TROUPE_TRY(Op op, add("Const", {}, {{"T", in.value.dtype()}, {"value", in.value}}, line));
        return op.output();
      }
      case HostileInput::From::feed: {
        TROUPE_TRY(Op op,
                   add("Placeholder", {}, {{"T", in.value.dtype()}, {"shape", in.declared}}, line));
        request_.feeds.push_back({op.name(), 0, false});
        specs_.push_back({op.name(), in.value.dtype(), in.declared});
        feeds_.push_back(in.value);
        return op.output();
      }
      case HostileInput::From::list: {
        TROUPE_TRY(Op list,
                   add("ListEmpty", {}, {{"T", in.value.dtype()}, {"shape", in.declared}}, line));
        for (const Tensor& t : in.elements) {
          TROUPE_TRY(Op value, add("Const", {}, {{"T", t.dtype()}, {"value", t}}, line));
          TROUPE_TRY(list, add("ListPush", {list.output(), value.output()}, {}, line));
        }
        return list.output();
      }
      default: {
        TROUPE_TRY(Op op, add(in.handle, {}, in.handle_attrs, line));
        return op.output();
      }
    }
  }

  bool build() {
    for (const HostileInput& in : drawn_.inputs) {
      auto made = input(in, std::uint32_t(1 + inputs_.size()));
      if (!made.ok()) return refuse_node(made.status(), HostileEnd::refused);
      inputs_.push_back(*made);
    }
    auto node = add(drawn_.op, inputs_, drawn_.attrs, kNodeLine, "odd");
    if (!node.ok()) return refuse_node(node.status(), HostileEnd::refused);
    for (Output y : node->outputs()) ys_.push_back(y);
    wanted_ = ys_;
    request_.targets.push_back(node->name());
    return true;
  }

  bool differentiate() {
    std::vector<Output> ys, xs;
    for (Output y : ys_)
      if (is_trainable(y.dtype())) ys.push_back(y);
    for (Output x : inputs_)
      if (is_trainable(x.dtype())) xs.push_back(x);
    if (ys.empty() || xs.empty()) return true;
    for (int order = 0; order < drawn_.gradients && !ys.empty(); ++order) {
      // Values that have the shapes, and are as odd as the case.
      auto dxs = gradients(ys, xs, ys);
      if (!dxs.ok()) return refuse_node(dxs.status(), HostileEnd::refused);
      ys.clear();
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const Output dx = (*dxs)[i];
        if (dx.empty()) continue;
        if (dx.dtype() != xs[i].dtype()) return fault("a gradient of another type");
        ys.push_back(dx);
        wanted_.push_back(dx);
      }
    }
    return true;
  }

  bool run() {
    for (Output y : wanted_)
      if (dtype_size(y.dtype()) != 0) {
        fetched_.push_back(y);
        request_.fetches.push_back({g_.node(y.node()).name, int(y.port().index), false});
      }
    if (Status fed = check_feeds(specs_, feeds_); !fed.ok()) {
      refuse(fed, HostileEnd::not_fed, true);
      if (std::none_of(specs_.begin(), specs_.end(), [&](const FeedSpec& spec) {
            return fed.text().find("'" + spec.name + "'") != std::string::npos;
          }))
        return fault("an error that names no feed: " + fed.text());
      return false;
    }
    Target target = host_.target();
    target.devices = {{device_name()}};
    auto compiled = compile(g_.def(), request_, target);
    if (!compiled.ok()) return refuse_node(compiled.status(), HostileEnd::refused);
    if (compiled->plans.size() != 1) return fault("not one plan");
    auto plan = std::make_shared<const Plan>(std::move(compiled->plans[0]));
    auto program = LoadedPlan::make(plan, device_,
                                    [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
                                      TROUPE_TRY(const OpInfo* op, table_.ops.lookup(node.def.op));
                                      return table_.kernels.make(node.def, *op, "CPU");
                                    });
    if (!program.ok()) return refuse_node(program.status(), HostileEnd::refused);
    step_.emplace(*program);
    std::vector<std::uint64_t> before;
    for (const Tensor& feed : feeds_) before.push_back(hash_of(feed));
    for (int times = 0; times < 2; ++times) {
      const bool computed = step(*plan);
      for (std::size_t i = 0; i < feeds_.size(); ++i)
        if (hash_of(feeds_[i]) != before[i]) return fault("a kernel wrote into a feed");
      if (!computed) return false;
    }
    return true;
  }

  bool step(const Plan& plan) {
    std::vector<Tensor> feeds;
    for (const PlanFeed& feed : plan.feeds) feeds.push_back(feeds_[feed.feed]);
    NoOutbox outbox;
    auto memory = std::make_shared<StepMemory>(kHostileMemory);
    if (Status started =
            step_->start({.run = 1, .feeds = std::move(feeds), .memory = memory}, outbox);
        !started.ok())
      return fault("a step does not start: " + started.text());
    InlineLanes lanes;
    BurstResult burst;
    do burst = step_->run(lanes);
    while (burst.more);
    const bool asks = !burst.finished;
    if (asks) {
      step_->abort(cancelled("the step asks a resource"));
      do burst = step_->run(lanes);
      while (burst.more);
      if (!burst.finished) return fault("a step that was called off goes on");
    }
    StepResult result = step_->result();
    outcome_.end = asks ? HostileEnd::asked : HostileEnd::computed;
    if (asks) return false;
    if (!result.status.ok()) return refuse_node(result.status, HostileEnd::failed);
    return check(result.fetches);
  }

  bool check(const std::vector<Fetched>& fetches) {
    if (fetches.size() != fetched_.size())
      return fault(fmt::format("{} values of {}", fetches.size(), fetched_.size()));
    std::vector<std::uint64_t> hashes(fetched_.size());
    for (const Fetched& fetch : fetches) {
      const Output& y = fetched_[fetch.index];
      const Tensor& value = fetch.value;
      if (!value.defined()) return fault(fmt::format("output {} has no value", y.name()));
      if (value.dtype() != y.dtype())
        return fault(fmt::format("{} is {}, not {}", y.name(), dtype_name(value.dtype()),
                                 dtype_name(y.dtype())));
      if (!y.shape().accepts(value.shape()))
        return fault(fmt::format("{} is {}, not {} as inferred", y.name(), value.shape().text(),
                                 y.shape().text()));
      if (std::uint64_t(value.bytes()) > kHostileMemory)
        return fault(fmt::format("{} has {} bytes", y.name(), value.bytes()));
      hashes[fetch.index] = hash_of(value);
    }
    if (!hashes_.empty() && hashes_ != hashes) return fault("a second run has other bits");
    hashes_ = std::move(hashes);
    return true;
  }

  const OpTable& table_;
  const CompileHost& host_;
  Device& device_;
  const HostileCase& drawn_;
  GraphBuilder g_;
  std::vector<Output> inputs_, ys_, wanted_, fetched_;
  CompileRequest request_;
  std::vector<FeedSpec> specs_;
  std::vector<Tensor> feeds_;
  std::optional<StepState> step_;
  std::vector<std::uint64_t> hashes_;  // of the first run
  std::string adding_;                 // the op of the node added last
  HostileOutcome outcome_;
};

}  // namespace

HostileRunner::HostileRunner(const OpTable& table)
    : table_(table), host_(table), device_(make_inline_device(device_name())) {}
HostileRunner::~HostileRunner() = default;

HostileOutcome HostileRunner::run(const HostileCase& drawn) {
  return Attempt(table_, host_, *device_, drawn).go();
}

}  // namespace troupe::test
