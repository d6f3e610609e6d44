// A kind of queue of the program's own: last in, first out. Of runs that use one at the same time
// the first to commit wins, and the others are done again.
#include <map>
#include <memory>
#include <vector>

#include <troupe/actors/resources/prompt_resource.hpp>
#include <troupe/ops/api/node.hpp>
#include <troupe/ops/op.hpp>

#include "extension.hpp"

using namespace troupe;

namespace {

using Values = std::vector<Tensor>;

// What an attempt found, with its own operations; and what these were answered.
struct Log {
  Values values;
  std::map<WriteKey, Values> answers;
};

class Stack final : public PromptResource<Log, Values> {
 public:
  void live(const LiveList& list, Outputs& out) override {
    PromptResource::live(list, out);
    for (auto version = versions_.begin(); version != versions_.end();) {
      const auto next = std::next(version);
      if (next != versions_.end() && !live_.may_read(version->first, next->first))
        versions_.erase(version);
      version = next;
    }
  }

 private:
  Expected<Values> perform(ResourceRequest& request) override {
    const AttemptInfo& attempt = request.attempt;
    auto [log, fresh] = logs_.try_emplace(attempt.id);
    if (fresh) log->second.values = std::prev(versions_.upper_bound(attempt.snapshot))->second;
    auto [values, answers] = std::tie(log->second.values, log->second.answers);
    auto& item = request.items.front();
    if (auto known = answers.find(item.key); known != answers.end()) return known->second;
    Values answer;
    if (request.external().verb == "push") {
      values.push_back(item.operands.at(0));
    } else {
      if (values.empty()) return out_of_range("the stack is empty");
      answer.push_back(values.back());
      values.pop_back();
    }
    return answers[item.key] = answer;
  }

  std::string name() const override { return "stack"; }
  std::uint32_t keys_of(const Log& log) const override { return std::uint32_t(log.answers.size()); }
  Expected<std::pair<std::uint64_t, Values>> record_of(CommitNumber, const AttemptId&,
                                                       Log log) override {
    return std::pair{std::uint64_t(log.values.size()), std::move(log.values)};
  }
  Status commit(CommitNumber s, const AttemptId&, Values values, Outputs&) override {
    versions_[s] = std::move(values);
    return {};
  }

  // To be saved with its job: the newest values, which are what a record is, too.
  Expected<Values> whole() const override { return versions_.rbegin()->second; }
  Status write_record(const Values& values, StateWriter& out) const override {
    out.tensors(values);
    return {};
  }
  Expected<Values> read_record(StateReader& in) const override {
    Values values = in.tensors();
    for (const Tensor& value : values)
      if (value.dtype() != DType::f32 || value.rank() != 0) in.refuse("no f32 scalar of a stack");
    return values;
  }

  std::map<CommitNumber, Values> versions_{{0, {}}};
};

Status handle_shape(InferenceContext& c) {
  c.set(0, PartialShape::scalar());
  return ok_status();
}

void add(OpTable& table) {
  table.add({.name = "Stack",
             .out = {"handle: resource"},
             .attrs = {"container: string = ", "shared_name: string = "},
             .shape = handle_shape,
             .no_gradient = "a handle",
             .stateful = true,
             .role = Role::handle,
             .external = {.resource = "stack"},
             .doc = "A handle on a stack of f32 scalars."});
  table.add(
      {.name = "StackPush",
       .in = {"handle: resource", "value: f32"},
       .shape = no_outputs,
       .no_gradient = "no outputs",
       .host = {"value"},
       .stateful = true,
       .role = Role::external,
       .external =
           {.resource = "stack", .verb = "push", .commits = true, .sees = true, .changes = true},
       .doc = "Puts a value on top."});
  table.add(
      {.name = "StackPop",
       .in = {"handle: resource"},
       .out = {"value: f32"},
       .shape = scalar_shape,
       .no_gradient = "the value comes from outside of the run",
       .host = {"value"},
       .stateful = true,
       .role = Role::external,
       .external =
           {.resource = "stack", .verb = "pop", .commits = true, .sees = true, .changes = true},
       .doc = "Takes the value on top; out_of_range when there is none."});
}

}  // namespace

namespace outside {

void register_stack() {
  throw_if_error(add_resource_kind({.name = "stack", .make = [](const ResourceRef&) {
                                      return Expected<std::unique_ptr<Resource>>(
                                          std::make_unique<Stack>());
                                    }}));
  throw_if_error(ops::extend(add));
}

Output stack(GraphBuilder& g, Site site) { return g.add({.op = "Stack", .site = site}).output(0); }
Op push(Output stack, Output value, Site site) {
  return add_node({.op = "StackPush", .inputs = {stack, value}, .site = site});
}
Output pop(Output stack, Site site) {
  return add_node({.op = "StackPop", .inputs = {stack}, .site = site}).output(0);
}

}  // namespace outside
