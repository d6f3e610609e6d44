#include "graph/control/state/detail/body_threading.hpp"

#include <algorithm>

#include "graph/control/functions/node_copies.hpp"
#include "graph/control/lowering/deadness.hpp"
#include "graph/control/state/detail/state_nodes.hpp"
#include "graph/control/state/detail/writes_before.hpp"
#include "graph/control/state/state_ops.hpp"

namespace troupe::detail {
namespace {

class BodyThreading {
 public:
  // `out`: has the name of the function to make; run() adds what it needs and passes.
  BodyThreading(StateThreading& all, const FunctionDef& f, const std::vector<std::string>& bound,
                const StateInLoop& in, ThreadedFunction& out)
      : all_(all),
        ops_(all.ops()),
        f_(f),
        in_(in),
        keys_(all.users.keys_of(f, bound)),
        dead_(maybe_dead_nodes(f.nodes, ops_)),
        before_(f.nodes),
        out_(f.nodes),
        threaded_(out) {
    out_.reserve_names();
    made_.name = out.name;
    made_.site = f.site;
  }

  Expected<FunctionDef> run() {
    take_state();
    for (NodeId id = 0; id < f_.nodes.size(); ++id) TROUPE_TRY(thread(id));
    list_arguments();
    list_results();
    made_.nodes = out_.take();
    return std::move(made_);
  }

 private:
  struct Version {
    Port value, flag;
    bool old = false;  // may be the value passed in
  };

  // --- state as arguments ---

  NodeId argument(const std::string& name, DType dtype, PartialShape shape) {
    NodeDef node;
    node.name = "state/" + name;
    node.op = kArgumentOp;
    node.attrs = {{"T", dtype}, {"shape", shape}};
    node.site = f_.site;
    node.out_types = {dtype};
    node.out_shapes = {std::move(shape)};
    return out_.append(std::move(node));
  }

  void take_state() {
    for (const std::string& key : in_.state.written) {
      const NodeDef& handle = all_.handles.at(key);
      values_.push_back(argument("value", dtype_of_variable(handle), handle.out_shapes[0]));
      versions_[key].push_back({{values_.back(), 0}, {}, true});
    }
    for (const std::string& key : in_.state.flagged) {
      flags_.push_back(argument("written", DType::bool_, PartialShape::scalar()));
      versions_[key][0].flag = {flags_.back(), 0};
    }
    if (in_.ran) flags_.push_back(argument("ran", DType::bool_, PartialShape::scalar()));
    for (const std::string& item : in_.state.read) {
      const NodeDef& like = all_.users.reader(item);
      read_.push_back(argument("read", like.out_types[0], like.out_shapes[0]));
      items_.emplace(item, Port{read_.back(), 0});
    }
  }

  void list_arguments() {
    std::vector<NodeId> own;
    for (NodeId id : f_.arguments) own.push_back(out_.node(id));
    const bool loop = in_.place != StatePlace::call;
    const auto behind = own.begin() + std::ptrdiff_t(loop ? in_.variables : own.size());
    std::vector<NodeId>& all = made_.arguments;
    all.assign(own.begin(), behind);
    all.insert(all.end(), values_.begin(), values_.end());
    all.insert(all.end(), flags_.begin(), flags_.end());
    all.insert(all.end(), behind, own.end());
    all.insert(all.end(), read_.begin(), read_.end());
  }

  // --- state as results ---

  void list_results() {
    for (Port result : f_.results) made_.results.push_back(out_.port(result));
    made_.result_types = f_.result_types;
    made_.result_shapes = f_.result_shapes;
    if (in_.place == StatePlace::condition) return;
    auto give = [&](Port port, const PartialShape& shape) {
      made_.results.push_back(port);
      made_.result_types.push_back(out_.dtype(port));
      made_.result_shapes.push_back(shape);
    };
    for (const std::string& key : in_.state.written) {
      const Version& last = versions_[key].back();
      if (last.old) threaded_.passes.insert(key);
      give(last.value, all_.handles.at(key).out_shapes[0]);
    }
    for (const std::string& key : in_.state.flagged)
      give(versions_[key].back().flag, PartialShape::scalar());
    if (in_.ran) give(yes(), PartialShape::scalar());
  }

  Port yes() {
    if (yes_ == kNoNode)
      yes_ = out_.append(scalar_constant("state/yes", Tensor::scalar(true), f_.site));
    return {yes_, 0};
  }

  // --- nodes ---

  Status thread(NodeId id) {
    const NodeDef& node = f_.nodes[id];
    const OpInfo& op = op_of(node, ops_);
    before_.visit(id);
    const std::string item = all_.users.item_of(node, keys_);
    if (!item.empty()) return read(id, item);
    const VariableUses uses = all_.users.of(node, keys_);
    if (!uses.writes.empty() && dead_[id])
      return in_node(unimplemented("it changes state in a loop, on one side of a Switch; use cond "
                                   "there"),
                     node);
    if (all_.users.takes_element(node)) return take(id, *uses.writes.begin());
    if (op.is(External::Order::write) && !uses.writes.empty()) return write(id, op, uses);
    if (uses.writes.empty() && uses.reads.empty()) {
      out_.replace(id, out_.moved(id));
      return ok_status();
    }
    return call(id, uses);
  }

  Status read(NodeId id, const std::string& item) {
    Port value;
    if (const auto at = versions_.find(item); at != versions_.end()) {
      const Version& seen = at->second[before_.before(id, item)];
      value = seen.value;
      if (seen.old) threaded_.needs.insert(item);
    } else {
      value = items_.at(item);
      threaded_.needs.insert(item);
    }
    NodeDef node = out_.moved(id);
    node.op = "Identity";
    node.device.clear(), node.colocate.clear();  // which placed it with the variable
    node.inputs = {value};
    node.attrs = {{"T", node.out_types[0]}};
    out_.replace(id, std::move(node));
    return ok_status();
  }

  // Replaces a write by its rule on values, under the write's name.
  Status write(NodeId id, const OpInfo& op, const VariableUses& uses) {
    NodeDef node = out_.moved(id);
    const OpInfo* rule = ops_.find(rule_on_values(node.op));
    if (!rule)
      return in_node(unimplemented(node.op + " in a loop: its rule is for variables alone"), node);
    const NodeDef& from = f_.nodes[id];
    std::vector<std::string> keys;  // by handle
    std::vector<Port> inputs;
    for (std::size_t i = 0; i < from.inputs.size(); ++i) {
      const std::string& key = keys_[from.inputs[i].node];
      const bool taken = std::any_of(rule->in.begin(), rule->in.end(),
                                     [&](const ArgSpec& arg) { return arg.name == op.in[i].name; });
      if (!key.empty()) keys.push_back(key);
      if (!taken) continue;
      const Version* now = key.empty() ? nullptr : &versions_.at(key).back();
      if (now && now->old) threaded_.needs.insert(key);
      inputs.push_back(now ? now->value : node.inputs[i]);
    }
    node.op = rule->def.name;
    node.device.clear(), node.colocate.clear();
    node.inputs = std::move(inputs);
    node.attrs.erase("replicas");
    for (const std::string& key : keys) {
      const NodeDef& handle = all_.handles.at(key);
      node.out_types.push_back(dtype_of_variable(handle));
      node.out_shapes.push_back(handle.out_shapes[0]);
    }
    if (rule->attr("shape")) node.attrs.insert_or_assign("shape", Attr(node.out_shapes[0]));
    const NodeId made = out_.replace(id, std::move(node));
    for (const std::string& key : uses.writes) before_.write(id, key);
    for (std::uint32_t k = 0; k < keys.size(); ++k) change(keys[k], {{made, k}, {}, false});
    return ok_status();
  }

  // Replaces a NextElement by one that takes the count of elements, and counts.
  Status take(NodeId id, const std::string& dataset) {
    const Port taken = versions_.at(dataset).back().value;
    NodeDef node = out_.moved(id);
    node.op = kElementAtOp;
    node.inputs.push_back(taken);
    NodeDef count;
    count.name = node.name + "/count";
    count.op = kNextCountOp;
    count.site = node.site;
    count.inputs = {taken};
    count.out_types = {DType::i64};
    count.out_shapes = {PartialShape::scalar()};
    out_.replace(id, std::move(node));
    before_.write(id, dataset);
    change(dataset, {{out_.append(std::move(count)), 0}, {}, false});
    return ok_status();
  }

  void change(const std::string& key, Version now) {
    std::vector<Version>& versions = versions_.at(key);
    if (now.flag.node == kNoNode && versions[0].flag.node != kNoNode) now.flag = yes();
    if (before_.count(key) < versions.size())
      versions.back() = now;  // a write of one variable by two handles
    else
      versions.push_back(now);
  }

  // --- calls ---

  // The version of a variable that the call sees: that of the writes before it.
  const Version& seen_by(NodeId id, const std::string& key, bool writes) const {
    const std::vector<Version>& versions = versions_.at(key);
    return writes ? versions.back() : versions[before_.before(id, key)];
  }
  Port item_for(NodeId id, const std::string& item, const Version** version) const {
    *version = nullptr;
    const auto at = versions_.find(item);
    if (at == versions_.end()) return items_.at(item);
    *version = &seen_by(id, item, false);
    return (*version)->value;
  }

  Status call(NodeId id, const VariableUses& uses) {
    const NodeDef& from = f_.nodes[id];
    const bool loop = from.op == "While";
    for (const std::string& key : uses.writes) before_.come_after_all(id, key);
    StateInLoop in;
    in.state = all_.signature_of(uses);
    if (loop) in.variables = loop_variables(from);
    std::vector<std::string> names;
    std::set<std::string> needed, passed;
    for (const std::string& name : functions_of(from)) {
      TROUPE_TRY(const FunctionDef* f, all_.function(name, from));
      if (loop) in.place = names.empty() ? StatePlace::condition : StatePlace::body;
      if (in.place == StatePlace::condition)
        TROUPE_TRY(all_.check_condition(all_.users.of(*f, all_.users.bound(from, keys_))));
      TROUPE_TRY(ThreadedFunction inner, all_.inside(*f, all_.users.bound(from, keys_), in));
      names.push_back(inner.name);
      needed.insert(inner.needs.begin(), inner.needs.end());
      passed.insert(inner.passes.begin(), inner.passes.end());
    }
    NodeDef node = out_.moved(id);
    set_functions_of(node.op, node.attrs, names);
    const std::size_t own = node.out_types.size() - 1;
    std::vector<Port> first;
    for (const std::string& key : in.state.written) {
      const Version& now = seen_by(id, key, true);
      first.push_back(now.value);
      if (now.old && needed.contains(key)) threaded_.needs.insert(key);
    }
    for (const std::string& key : in.state.flagged) first.push_back(versions_.at(key).back().flag);
    std::vector<Port> last;
    for (const std::string& item : in.state.read) {
      const Version* version = nullptr;
      last.push_back(item_for(id, item, &version));
      if (!version || version->old) threaded_.needs.insert(item);
    }
    add_state_to(node, in.variables, first, last, out_);
    const NodeId made = out_.replace(id, std::move(node));
    const auto results = std::uint32_t(in.state.written.size() + in.state.flagged.size());
    out_.map_port({id, std::uint32_t(own)}, {made, std::uint32_t(own) + results});
    for (const std::string& key : uses.writes) before_.write(id, key);
    for (std::uint32_t k = 0; k < in.state.written.size(); ++k) {
      const std::string& key = in.state.written[k];
      Version now{{made, std::uint32_t(own) + k}, {}, false};
      now.old = versions_.at(key).back().old && (loop || passed.contains(key));
      const auto flag = std::find(in.state.flagged.begin(), in.state.flagged.end(), key);
      if (flag != in.state.flagged.end())
        now.flag = {made, std::uint32_t(own + in.state.written.size() +
                                        std::size_t(flag - in.state.flagged.begin()))};
      change(key, now);
    }
    return ok_status();
  }

  StateThreading& all_;
  const OpRegistry& ops_;
  const FunctionDef& f_;
  const StateInLoop& in_;
  const Keys keys_;
  const std::vector<bool> dead_;
  WritesBefore before_;
  NodeCopies out_;
  ThreadedFunction& threaded_;
  FunctionDef made_;
  std::map<std::string, std::vector<Version>> versions_;  // by variable, in the order of writes
  std::map<std::string, Port> items_;                     // items that are only read
  std::vector<NodeId> values_, flags_, read_;             // arguments
  NodeId yes_ = kNoNode;
};

}  // namespace

Expected<FunctionDef> thread_body(StateThreading& all, const FunctionDef& f,
                                  const std::vector<std::string>& bound, const StateInLoop& in,
                                  ThreadedFunction& out) {
  return BodyThreading(all, f, bound, in, out).run();
}

}  // namespace troupe::detail
