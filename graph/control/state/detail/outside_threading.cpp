#include "graph/control/state/detail/outside_threading.hpp"

#include <algorithm>

#include "graph/control/state/detail/state_nodes.hpp"
#include "graph/control/state/detail/writes_before.hpp"
#include "graph/control/state/state_ops.hpp"

namespace troupe::detail {
namespace {

class OutsideThreading {
 public:
  OutsideThreading(StateThreading& all, const std::vector<NodeDef>& nodes, const Keys& keys,
                   NodeCopies& out)
      : all_(all), nodes_(nodes), keys_(keys), before_(nodes), out_(out) {}

  Status run() {
    for (NodeId id = 0; id < nodes_.size(); ++id) TROUPE_TRY(visit(id));
    return ok_status();
  }

 private:
  Status visit(NodeId id) {
    before_.visit(id);
    const VariableUses uses = all_.users.of(nodes_[id], keys_);
    const bool repeats = nodes_[id].op == "While" || all_.users.is_recursive(nodes_[id]);
    if (repeats && uses.loops) return loop(id, uses);
    NodeDef node = out_.moved(id);
    if (uses.loops) TROUPE_TRY(call(id, uses, node));
    for (NodeId c : nodes_[id].control)
      if (const auto at = behind_.find(c); at != behind_.end())
        node.control.insert(node.control.end(), at->second.begin(), at->second.end());
    for (const auto* used : {&uses.reads, &uses.writes})
      for (const std::string& item : *used) come_behind(node, id, key_of(item));
    const NodeId made = out_.replace(id, std::move(node));
    wrote(id, uses.writes, made);
    return ok_status();
  }

  void wrote(NodeId id, const std::set<std::string>& keys, NodeId made) {
    for (const std::string& key : keys) {
      before_.write(id, key);
      writers_[key].push_back(made);
    }
  }

  // Makes the node come after the last write before it, unless its inputs do so already.
  void come_behind(NodeDef& node, NodeId id, const std::string& key) const {
    const std::size_t writes = before_.before(id, key);
    if (writes == 0) return;
    const NodeId last = writers_.at(key)[writes - 1];
    if (writes_behind_.contains(last)) node.control.push_back(last);
  }

  // A call of functions that contain loops.
  Status call(NodeId id, const VariableUses& uses, NodeDef& node) {
    for (const std::string& key : uses.in_loops)
      if (all_.users.is_dataset(key))
        return in_node(unimplemented("it takes elements of a dataset in a loop that stands in the "
                                     "branch or function of '" +
                                     nodes_[id].name + "'; such a loop stands outside of both"),
                       all_.users.writer(key));
    std::vector<std::string> names;
    for (const std::string& name : functions_of(nodes_[id])) {
      TROUPE_TRY(const FunctionDef* f, all_.function(name, nodes_[id]));
      TROUPE_TRY(std::string made, all_.outside_function(*f, all_.users.bound(nodes_[id], keys_)));
      names.push_back(std::move(made));
    }
    set_functions_of(node.op, node.attrs, names);
    come_after_writes(node, uses.in_loops);
    return ok_status();
  }

  // A node that reads and then writes must see all writes that are applied before its own.
  void come_after_writes(NodeDef& node, const std::set<std::string>& keys) const {
    for (const std::string& key : keys)
      if (const auto at = writers_.find(key); at != writers_.end())
        node.control.push_back(at->second.back());
  }

  // --- a loop, or a call of a recursive function ---

  Status loop(NodeId id, const VariableUses& uses) {
    const NodeDef& from = nodes_[id];
    for (Port in : from.inputs)
      if (!keys_[in.node].empty()) {
        all_.handles.insert_or_assign(keys_[in.node], nodes_[in.node]);
        handles_.insert_or_assign(keys_[in.node], out_.port(in));
      }
    for (const std::string& key : uses.writes) before_.come_after_all(id, key);
    const std::vector<std::string> functions = functions_of(from);
    const std::vector<std::string> bound = all_.users.bound(from, keys_);
    const bool is_loop = from.op == "While";
    TROUPE_TRY(const FunctionDef* cond, all_.function(functions.front(), from));
    TROUPE_TRY(const FunctionDef* body, all_.function(functions.back(), from));
    if (is_loop) TROUPE_TRY(all_.check_condition(all_.users.of(*cond, bound)));
    TROUPE_TRY(check(uses));

    const auto is_dataset = [&](const std::string& key) { return all_.users.is_dataset(key); };
    std::set<std::string> always = all_.users.of(*body, bound).always;
    std::erase_if(always, is_dataset);
    std::set<std::string> flagged;
    std::set_difference(uses.writes.begin(), uses.writes.end(), always.begin(), always.end(),
                        std::inserter(flagged, flagged.end()));
    std::erase_if(flagged, is_dataset);
    all_.begin_loop(std::move(flagged));
    StateInLoop in;
    in.state = all_.signature_of(uses);
    if (is_loop) {
      in.place = StatePlace::condition;
      in.variables = loop_variables(from);
      in.ran = !always.empty();
    }
    TROUPE_TRY(const ThreadedFunction first, all_.inside(*cond, bound, in));
    if (is_loop) in.place = StatePlace::body;
    TROUPE_TRY(const ThreadedFunction repeated, all_.inside(*body, bound, in));

    NodeDef node = out_.moved(id);
    set_functions_of(node.op, node.attrs, {first.name, repeated.name});
    come_after_writes(node, uses.writes);
    std::vector<Port> begin, around;
    for (const std::string& key : in.state.written)
      begin.push_back(is_dataset(key)                ? taken_before(from, key)
                      : first.needs.contains(key)    ? read(id, key, node.control)
                      : repeated.needs.contains(key) ? handles_.at(key)
                                                     : nothing(from, key));
    const std::size_t flags = in.state.flagged.size() + (in.ran ? 1 : 0);
    for (std::size_t k = 0; k < flags; ++k) begin.push_back(truth(from, false));
    for (const std::string& item : in.state.read) around.push_back(read(id, item, {}));
    const auto own = std::uint32_t(node.out_types.size() - 1);
    add_state_to(node, in.variables, begin, around, out_);
    const NodeId made = out_.replace(id, std::move(node));
    out_.map_port({id, own}, {made, own + std::uint32_t(begin.size())});
    for (std::uint32_t k = 0; k < in.state.written.size(); ++k)
      if (is_dataset(in.state.written[k])) taken_[in.state.written[k]] = {made, own + k};
    write_behind(id, made, own, in.state, always);
    return ok_status();
  }

  Status check(const VariableUses& uses) const {
    for (const std::string& item : uses.reads)
      if (!all_.users.is_value(item) && uses.writes.contains(key_of(item)))
        return in_node(unimplemented("it asks this of a variable in a loop that writes it"),
                       all_.users.reader(item));
    return ok_status();
  }

  const std::string& key_of(const std::string& item) const { return all_.users.key_of(item); }

  // Reads the variable before the loop, after the writes that the loop comes after.
  Port read(NodeId loop, const std::string& item, std::vector<NodeId> control) {
    const std::string& key = key_of(item);
    const NodeDef& handle = all_.handles.at(key);
    NodeDef node;
    if (all_.users.has_reader(item)) {
      node = all_.users.reader(item);
    } else {
      node.op = "ReadVariable";
      node.attrs = {{"T", dtype_of_variable(handle)}};
      node.out_types = {dtype_of_variable(handle)};
      node.site = nodes_[loop].site;
    }
    node.name = nodes_[loop].name + "/read";
    node.device.clear();
    node.colocate.clear();
    node.inputs = {handles_.at(key)};
    node.attrs.insert_or_assign(std::string(kAtVariableAttr), Attr(true));
    if (all_.users.is_value(item)) node.out_shapes = {handle.out_shapes[0]};
    node.control = std::move(control);
    if (const std::size_t writes = before_.before(loop, key); writes > 0)
      node.control.push_back(writers_.at(key)[writes - 1]);
    return {out_.append(std::move(node)), 0};
  }

  // A dummy value for a variable that every iteration writes before reading it.
  Port nothing(const NodeDef& loop, const std::string& key) {
    const DType dtype = dtype_of_variable(all_.handles.at(key));
    NodeDef node = scalar_constant(loop.name + "/nothing", none_of(dtype), loop.site);
    node.out_shapes = {all_.handles.at(key).out_shapes[0]};
    return {out_.append(std::move(node)), 0};
  }

  // The number of elements of the dataset that the run has taken before the loop.
  Port taken_before(const NodeDef& loop, const std::string& dataset) {
    if (const auto at = taken_.find(dataset); at != taken_.end()) return at->second;
    const std::int64_t outside = is_taken_outside(dataset) ? 1 : 0;
    return {out_.append(scalar_constant(loop.name + "/taken", Tensor::scalar(outside), loop.site)),
            0};
  }
  // All nodes outside loops that take an element take the same one.
  bool is_taken_outside(const std::string& dataset) {
    for (const NodeDef& node : nodes_)
      if (node.op != "While" && all_.users.of(node, keys_).writes.contains(dataset)) return true;
    return false;
  }

  Port truth(const NodeDef& loop, bool is) {
    const std::string name = loop.name + (is ? "/yes" : "/no");
    return {out_.append(scalar_constant(name, Tensor::scalar(is), loop.site)), 0};
  }

  // --- writes after the loop ---

  void write_behind(NodeId id, NodeId made, std::uint32_t own, const StateSignature& state,
                    const std::set<std::string>& always) {
    const auto values = std::uint32_t(state.written.size());
    std::vector<std::string> all;
    std::vector<Port> of_all;
    for (std::uint32_t k = 0; k < values; ++k) {
      const std::string& key = state.written[k];
      if (always.contains(key)) all.push_back(key), of_all.push_back({made, own + k});
    }
    for (std::uint32_t j = 0; j < state.flagged.size(); ++j) {
      const auto k =
          std::uint32_t(std::find(state.written.begin(), state.written.end(), state.flagged[j]) -
                        state.written.begin());
      write_if(id, {made, own + values + j}, {state.flagged[j]}, {{made, own + k}});
    }
    if (all.empty()) return;
    const Port ran{made, own + values + std::uint32_t(state.flagged.size())};
    write_if(id, nodes_[id].op == "While" ? ran : truth(nodes_[id], true), all, of_all);
  }

  void write_if(NodeId loop, Port when, const std::vector<std::string>& keys,
                const std::vector<Port>& values) {
    NodeDef node;
    node.op = "If";
    node.name = nodes_[loop].name + "/write";
    node.site = nodes_[loop].site;
    node.inputs = {when};
    for (std::size_t k = 0; k < keys.size(); ++k) {
      node.inputs.push_back(handles_.at(keys[k]));
      node.inputs.push_back(values[k]);
    }
    node.attrs = {{"else_branch", all_.write_function(keys, false)},
                  {"then_branch", all_.write_function(keys, true)},
                  {"Tin", std::vector<DType>()},
                  {"Tout", std::vector<DType>()},
                  {"shapes", std::vector<PartialShape>()}};
    node.out_types = {DType::resource};
    node.out_shapes = {PartialShape::unknown()};
    const NodeId made = out_.append(std::move(node));
    behind_[loop].push_back(made);
    writes_behind_.insert(made);
    wrote(loop, {keys.begin(), keys.end()}, made);
  }

  StateThreading& all_;
  const std::vector<NodeDef>& nodes_;
  const Keys& keys_;
  WritesBefore before_;
  NodeCopies& out_;
  std::map<std::string, Port> handles_;                 // of the loops' variables, in the copies
  std::map<std::string, std::vector<NodeId>> writers_;  // likewise, in the order of WritesBefore
  std::map<NodeId, std::vector<NodeId>> behind_;        // loop -> writes after it
  std::set<NodeId> writes_behind_;
  std::map<std::string, Port> taken_;  // by dataset: elements taken, after the last loop
};

}  // namespace

Status thread_outside(StateThreading& all, const std::vector<NodeDef>& nodes, const Keys& keys,
                      NodeCopies& out) {
  return OutsideThreading(all, nodes, keys, out).run();
}

}  // namespace troupe::detail
