#include "graph/gradients.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "graph/control/functions/body.hpp"
#include "graph/control/functions/calls.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/control/gradients/detail/tape.hpp"
#include "graph/control/gradients/gradients.hpp"
#include "graph/detail/node_check.hpp"
#include "graph/detail/partial_gradient.hpp"
#include "graph/node_query.hpp"

namespace troupe {
namespace {

template <class T>
const T& attr(const NodeDef& node, std::string_view name) {
  auto at = node.attrs.find(name);
  const T* value = at == node.attrs.end() ? nullptr : at->second.get<T>();
  TROUPE_CHECK(value, node.op + " has no attribute " + std::string(name) + " of that kind");
  return *value;
}

// What of the graph reads variables that are differentiated for. The reads that no write of their
// run precedes have one value, the snapshot's; handles of one name are one variable.
class Variables {
 public:
  explicit Variables(const GraphBuilder& g) : g_(g) {}

  // The handle of the variable that `x` stands for, a handle itself or a read of the snapshot.
  // Empty for any other value.
  std::optional<Port> handle_of(Port x) const {
    const NodeDef& node = g_.node(x.node);
    if (is_variable(x.node)) return x;
    const bool reads =
        op(x.node).is(External::Order::read) && is_trainable(node.out_types[x.index]);
    if (reads && write_before(x.node) == kNoNode) return node.inputs[0];
    return std::nullopt;
  }

  // Any handle of that name means this one from now on, unless an earlier one does.
  void add(Port handle) { first_.try_emplace(key(handle.node), handle); }

  // Where the gradient of a port is summed up: for the handles of one variable at one of them.
  Port home(Port p) const {
    if (first_.empty() || !is_variable(p.node)) return p;
    auto at = first_.find(key(p.node));
    return at == first_.end() ? p : at->second;
  }

  // A write of the same variable that `read` is ordered after; kNoNode for a read of the snapshot.
  NodeId write_before(NodeId read) const { return write_before(read, g_.node(read).inputs[0]); }
  // The same for any node that takes the handle.
  NodeId write_before(NodeId read, Port handle) const {
    const NodeDef& node = g_.node(read);
    // The handle itself is never executed.
    if (node.control.empty() && node.inputs.size() < 2) return kNoNode;
    const std::string variable = key(handle.node);
    std::vector<bool> seen(read, false);
    std::vector<NodeId> ahead;
    auto visit = [&](NodeId id) {
      if (id >= read || seen[id] || is_variable(id)) return;
      seen[id] = true;
      ahead.push_back(id);
    };
    for (NodeId id : node.control) visit(id);
    for (Port p : node.inputs) visit(p.node);
    while (!ahead.empty()) {
      const NodeId id = ahead.back();
      ahead.pop_back();
      const NodeDef& earlier = g_.node(id);
      for (Port p : earlier.inputs) {
        if (is_variable(p.node) && key(p.node) == variable && writes(id, p)) return id;
        visit(p.node);
      }
      for (NodeId c : earlier.control) visit(c);
    }
    return kNoNode;
  }

 private:
  const OpInfo& op(NodeId id) const { return op_of(g_.node(id), g_.registry()); }
  bool writes(NodeId id, Port handle) const {
    if (op(id).is(External::Order::write)) return true;
    if (op(id).def.role != Role::call) return false;
    const NodeDef& call = g_.node(id);
    const GraphDef& graph = const_cast<GraphBuilder&>(g_).root().def();
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      if (call.inputs[i] == handle && writes_input(graph, g_.registry(), call, i)) return true;
    return false;
  }
  bool is_variable(NodeId id) const {
    const OpDef& def = op(id).def;
    return is_handle(def.role) && def.external.resource == "variable";
  }
  std::string key(NodeId handle) const { return resource_key(g_.node(handle), g_.registry()); }

  const GraphBuilder& g_;
  std::map<std::string, Port> first_;
};

// The sides of a client's Switches that nodes are on: a node is dead unless all of them are taken.
// Branches of functions are not included.
class SwitchSides {
 public:
  // Of the first `end` nodes. Does nothing if there is no Switch among them.
  void find(const GraphBuilder& g, NodeId end) {
    const std::vector<NodeDef>& nodes = g.def().nodes;
    const auto role = [&](NodeId id) { return op_of(nodes[id], g.registry()).def.role; };
    const auto joined_by = [&](Port index) {
      const bool is_index = role(index.node) == Role::merge && index.index == 1;
      return is_index ? &nodes[index.node].inputs : nullptr;
    };
    std::map<std::pair<Port, std::size_t>, NodeId> alike;  // by predicate and number of sides
    first_.assign(end, kNoNode);
    for (NodeId id = 0; id < end; ++id)
      if (role(id) == Role::switch_)
        first_[id] =
            alike.try_emplace({nodes[id].inputs[1], nodes[id].out_types.size()}, id).first->second;
    if (alike.empty()) return;
    of_.resize(end);
    for (NodeId id = 0; id < end; ++id) {
      if (first_[id] != kNoNode)
        if (const std::vector<Port>* joined = joined_by(nodes[id].inputs[1]))
          for (std::uint32_t k = 0; k < std::min(joined->size(), nodes[id].out_types.size()); ++k)
            if (Port in = (*joined)[k]; in.node < id) parts_.emplace(Port{id, k}, of(in));
      if (role(id) == Role::control_trigger) continue;
      const bool merges = role(id) == Role::merge, leaves = role(id) == Role::exit;
      bool first = true;
      for (Port in : nodes[id].inputs) {
        if (in.node >= id) continue;  // of a loop
        const std::vector<Port> sides = leaves ? of_[in.node] : of(in);
        of_[id] = merges && !first ? common(of_[id], sides) : all(of_[id], sides);
        first = false;
      }
      for (NodeId c : nodes[id].control)
        if (!merges) of_[id] = all(of_[id], of_[c]);
    }
  }
  bool any() const { return !of_.empty(); }

  // Outputs of Switches, the outer ones first; of those alike the first one's.
  std::vector<Port> of(Port p) const {
    if (first_[p.node] == kNoNode) return of_[p.node];
    if (auto at = parts_.find(p); at != parts_.end() && !at->second.empty())
      return all(of_[p.node], at->second);
    return all(of_[p.node], {{first_[p.node], p.index}});
  }
  // The sides that the node is on and the port is not.
  std::vector<Port> beyond(NodeId id, Port p) const { return without(of_[id], of(p)); }

  static std::vector<Port> common(const std::vector<Port>& a, const std::vector<Port>& b) {
    std::vector<Port> out;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
  }
  static std::vector<Port> without(const std::vector<Port>& a, const std::vector<Port>& b) {
    std::vector<Port> out;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
  }

 private:
  static constexpr std::size_t kMostSides = 64;  // of a node, so that finding them takes no longer

  static std::vector<Port> all(const std::vector<Port>& a, const std::vector<Port>& b) {
    std::vector<Port> out;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    if (out.size() > kMostSides) out.resize(kMostSides);
    return out;
  }

  std::vector<NodeId> first_;  // by Switch: the first that is alike
  // By output of a Switch that parts what a Merge has joined, by the Merge's index, as gradients of
  // a Merge do: the sides of what that was.
  std::map<Port, std::vector<Port>> parts_;
  std::vector<std::vector<Port>> of_;  // by node, ascending
};

// One differentiation. Nodes are appended, so descending ids are a reverse topological order: when
// a node's turn comes, every contribution to the gradients of its outputs is there.
class Backprop {
 public:
  Backprop(GraphBuilder& g, std::span<const Output> ys, std::span<const Output> xs,
           std::span<const Output> grad_ys, std::span<const Output> stop)
      : g_(g),
        ys_(ys),
        xs_(xs),
        grad_ys_(grad_ys),
        stop_(stop),
        end_(g.def().nodes.size()),
        variables_(g) {}

  Expected<std::vector<Output>> run() {
    TROUPE_TRY(check());
    GraphBuilder::Attempt attempt(g_);
    auto scope = g_.with_scope("gradients");
    reach_from_xs();
    reach_from_ys();
    find_sides();
    TROUPE_TRY(check_calls());
    TROUPE_TRY(seed());
    for (NodeId id = NodeId(end_); id-- > 0;)
      if (reached_[id] && leads_[id]) TROUPE_TRY(differentiate(id));
    std::vector<Output> out;
    for (Port x : x_list_) {
      TROUPE_TRY(Output gradient, total(variables_.home(x)));
      out.push_back(gradient);
    }
    attempt.keep();
    return out;
  }

 private:
  struct Part {
    NodeId consumer;  // kNoNode for what was given as grad_ys, which comes last
    Output gradient;
  };

  Status check() {
    if (&g_.innermost() != &g_)
      return invalid_argument("gradients: y '" + ys_[0].name() +
                              "' is made outside of the body that is open here; take its gradients "
                              "outside, too")
          .at(g_.node(ys_[0].node()).site);
    for (auto list : {ys_, xs_, grad_ys_, stop_})
      for (const Output& o : list) {
        if (o.empty() && list.data() == grad_ys_.data()) continue;
        if (o.empty() || &o.graph() != &g_ || o.node() >= end_)
          return invalid_argument("gradients: every output must be of one graph");
      }
    if (!grad_ys_.empty() && grad_ys_.size() != ys_.size())
      return invalid_argument("gradients: " + std::to_string(ys_.size()) + " ys but " +
                              std::to_string(grad_ys_.size()) + " grad_ys");
    for (const Output& y : ys_)
      if (!carries_gradient(y.dtype()))
        return invalid_argument("gradients: y '" + y.name() + "' is " +
                                std::string(dtype_name(y.dtype())) + ", which has no gradient")
            .at(g_.node(y.node()).site);
    return ok_status();
  }

  static bool among(std::span<const Output> list, Port port) {
    return std::any_of(list.begin(), list.end(), [&](const Output& o) { return o.port() == port; });
  }

  DType dtype(Port port) const { return g_.node(port.node).out_types[port.index]; }

  // Can a change of some x be felt at this port, so that a gradient comes back through it? Handles
  // and integers carry none, but for the handles of variables among the xs; neither do ports
  // declared constant by `stop`. What a loop saved stands for values of its body.
  bool carries(Port port) const {
    if (is_saved(port)) return port.node < reached_.size() && reached_[port.node];
    if (dtype(port) == DType::resource) return x_ports_.contains(variables_.home(port));
    if (!carries_gradient(dtype(port))) return false;
    if (x_ports_.contains(port)) return true;
    return port.node < reached_.size() && reached_[port.node] && !among(stop_, port) &&
           g_.registry().find(g_.node(port.node).op)->def.no_gradient.empty();
  }

  bool is_saved(Port port) const {
    const NodeDef& node = g_.node(port.node);
    return node.op == "While" && port.index == saved_port(node);
  }

  void reach_from_xs() {
    for (const Output& x : xs_) {
      x_list_.push_back(x.port());
      if (among(stop_, x.port())) continue;  // that value alone
      auto handle = variables_.handle_of(x.port());
      if (!handle) continue;
      variables_.add(*handle);
      x_list_.back() = *handle;
    }
    for (Port x : x_list_) x_ports_.insert(variables_.home(x));
    reached_.assign(end_, false);
    for (NodeId id = 0; id < end_; ++id)
      for (Port p : g_.node(id).inputs)
        if (carries(p)) reached_[id] = true;
  }

  void reach_from_ys() {
    leads_.assign(end_, false);
    for (const Output& y : ys_) leads_[y.node()] = true;
    for (NodeId id = NodeId(end_); id-- > 0;)
      if (leads_[id])
        for (Port p : g_.node(id).inputs) leads_[p.node] = true;
  }

  void find_sides() {
    sides_.find(g_, NodeId(end_));
    if (!sides_.any()) return;
    of_ys_ = sides_.of(ys_[0].port());
    for (const Output& y : ys_) of_ys_ = SwitchSides::common(of_ys_, sides_.of(y.port()));
  }

  // Where no function is being differentiated yet.
  Status check_calls() const {
    for (NodeId id = 0; id < end_ && !g_.is_tape(); ++id)
      if (reached_[id] && leads_[id] && role_of(g_.node(id), g_.registry()) == Role::call)
        TROUPE_TRY(check_gradient_size(g_.root(), g_.node(id)));
    return ok_status();
  }

  // The gradients that come from outside: given, or ones.
  Status seed() {
    for (std::size_t i = 0; i < ys_.size(); ++i) {
      const Output& y = ys_[i];
      Output given = grad_ys_.empty() ? Output() : grad_ys_[i];
      auto site = g_.with_site(g_.node(y.node()).site);
      if (given.empty()) {
        TROUPE_TRY(given, ones(y));
      } else {
        TROUPE_TRY(fits(given, y.port(), "grad_ys[" + std::to_string(i) + "]"));
      }
      parts_[y.port()].push_back({kNoNode, given});
    }
    return ok_status();
  }

  template <class T>
  static Tensor one() {
    return Tensor::scalar(T(1.0f));
  }

  Expected<Output> ones(const Output& y) {
    if (is_complex(y.dtype()))
      return invalid_argument("gradients: y '" + y.name() + "' is " +
                              std::string(dtype_name(y.dtype())) +
                              ", but a loss must be real: take its real part or absolute value, or "
                              "give grad_ys")
          .at(g_.node(y.node()).site);
    if (!is_float(y.dtype()))
      return invalid_argument("gradients: " + std::string(dtype_name(y.dtype())) + " y '" +
                              y.name() + "' needs a grad_ys of its own")
          .at(g_.node(y.node()).site);
    if (!(y.shape() == PartialShape::scalar())) {
      TROUPE_TRY(Op op, g_.try_add({.op = "OnesLike", .inputs = {y}}));
      return op.output();
    }
    Tensor value = y.dtype() == DType::f32   ? one<float>()
                   : y.dtype() == DType::f64 ? one<double>()
                   : y.dtype() == DType::f16 ? one<half>()
                                             : one<bfloat16>();
    TROUPE_TRY(Op op, g_.try_add({.op = "Const", .attrs = {{"T", y.dtype()}, {"value", value}}}));
    return op.output();
  }

  // The whole gradient of a port; empty when none came. Made once, then remembered.
  Expected<Output> total(Port port) {
    auto at = parts_.find(port);
    if (at == parts_.end()) return Output();
    std::vector<Part>& parts = at->second;
    if (parts.size() > 1) {
      // A fixed order, so that the sum has the same bits whoever added what first.
      std::stable_sort(parts.begin(), parts.end(),
                       [](const Part& a, const Part& b) { return a.consumer < b.consumer; });
      NodeSpec spec{.op = "AddN"};
      for (const Part& part : parts) spec.inputs.push_back(part.gradient);
      spec.site = g_.node(port.node).site;
      spec.device =
          g_.node(port.node).device;  // where the value is, not wherever the client is now
      TROUPE_TRY(Output sum,
                 dtype(port) == DType::list ? list_sum(std::move(spec)) : sum_of(std::move(spec)));
      parts = {{port.node, sum}};
    }
    return parts[0].gradient;
  }

  // A node takes so many inputs: of more, sums are added.
  Expected<Output> sum_of(NodeSpec spec) {
    while (spec.inputs.size() > detail::kMaxPorts) {
      std::vector<Output> sums;
      for (std::size_t i = 0; i < spec.inputs.size(); i += detail::kMaxPorts) {
        NodeSpec part = spec;
        const auto begin = spec.inputs.begin() + std::ptrdiff_t(i);
        part.inputs.assign(
            begin, begin + std::ptrdiff_t(std::min(detail::kMaxPorts, spec.inputs.size() - i)));
        TROUPE_TRY(Op sum, g_.try_add(std::move(part)));
        sums.push_back(sum.output());
      }
      spec.inputs = std::move(sums);
    }
    TROUPE_TRY(Op sum, g_.try_add(std::move(spec)));
    return sum.output();
  }

  // One element that is not zero is added in its place, rather than a list of them.
  Expected<Output> list_sum(NodeSpec spec) {
    NodeSpec whole{.op = "ListAddN", .site = spec.site};
    std::vector<Output> single;
    for (const Output& part : spec.inputs)
      (detail::op_that_adds(part).empty() ? whole.inputs : single).push_back(part);
    if (whole.inputs.empty()) {
      whole.inputs.push_back(single.front());
      single.erase(single.begin());
    }
    Output sum = whole.inputs.front();
    if (whole.inputs.size() > 1) {
      TROUPE_TRY(sum, sum_of(std::move(whole)));
    }
    for (const Output& part : single) {
      TROUPE_TRY(sum, sum_of(detail::added_to(sum, part)));
    }
    return sum;
  }

  Status differentiate(NodeId id) {
    std::vector<Output> dy;
    std::vector<GradContext::OfSaved> of_saved;
    bool any = false;
    const std::size_t outputs = g_.node(id).out_types.size();
    for (std::size_t i = 0; i < outputs; ++i) {
      Port port{id, std::uint32_t(i)};
      Output d;
      if (is_saved(port)) {
        for (const Part& part : parts_[port]) of_saved.push_back({part.consumer, part.gradient});
        any = any || !of_saved.empty();
      } else if (!among(stop_, port)) {
        TROUPE_TRY(d, total(port));
      }
      any = any || !d.empty();
      dy.push_back(d);
    }
    const OpInfo& op = *g_.registry().find(g_.node(id).op);
    const OpDef& def = op.def;
    if (!any || !def.no_gradient.empty()) return ok_status();
    if (!def.grad) return no_gradient(id);
    if (op.is(External::Order::read)) TROUPE_TRY(check_snapshot(id, g_.node(id).inputs[0]));
    if (op.def.role == Role::call)
      for (Port p : std::vector<Port>(g_.node(id).inputs))
        if (dtype(p) == DType::resource && !is_saved(p) && carries(p))
          TROUPE_TRY(check_snapshot(id, p));
    TROUPE_TRY(std::vector<Output> dx, call(id, def.grad, std::move(dy), std::move(of_saved)));
    return distribute(id, dx);
  }

  Status no_gradient(NodeId id) {
    const NodeDef& node = g_.node(id);
    return not_found("no gradient is defined for op " + node.op + " (node '" + node.name +
                     "', type " + std::string(dtype_name(node.out_types[0])) + ")")
        .at(node.site);
  }

  // What a write leaves is made of its operands, over all replicas: no gradient flows back through
  // it, and to leave that part out in silence would be wrong.
  Status check_snapshot(NodeId read, Port handle) {
    const NodeId write = variables_.write_before(read, handle);
    if (write == kNoNode) return ok_status();
    const NodeDef& node = g_.node(read);
    return invalid_argument("gradients: '" + node.name + "' reads '" + g_.node(handle.node).name +
                            "' behind the write '" + g_.node(write).name +
                            "' of the same run, and no gradient flows back through a write; hold "
                            "it constant (StopGradient), or differentiate for that read itself")
        .at(node.site);
  }

  // Runs the op's gradient function, its nodes placed, named and blamed like the forward node.
  Expected<std::vector<Output>> call(NodeId id, GradFn grad, std::vector<Output> dy,
                                     std::vector<GradContext::OfSaved> of_saved) {
    // By value: building invalidates references to nodes.
    const std::string name = g_.node(id).name;
    const std::string full = g_.scope_prefix() + name;
    GradContext context{.g = g_, .op = Op(&g_, id)};
    context.of_saved = std::move(of_saved);
    for (Port p : g_.node(id).inputs) context.x.emplace_back(&g_, p);
    context.y = context.op.outputs();
    for (Port p : g_.node(id).inputs) context.wanted.push_back(carries(p));
    const bool of_call = g_.registry().find(g_.node(id).op)->def.role == Role::call;
    try {
      auto site = g_.with_site(g_.node(id).site);
      auto device = g_.with_device(g_.node(id).device);
      auto scope = g_.with_scope(full.size() < kLongName ? name : "grad");
      for (std::size_t i = 0; i < dy.size(); ++i)
        if (dy[i].empty() && carries_gradient(context.y[i].dtype()) && !of_call)
          dy[i] = zero_gradient(context.y[i]);
      context.dy = std::move(dy);
      return grad(context);
    } catch (const Error& e) {
      return e.status().at(g_.node(id).site).in("in the gradient of node '" + name + "'");
    }
  }

  Status distribute(NodeId id, const std::vector<Output>& dx) {
    const NodeDef& node = g_.node(id);
    auto bad = [&](const Status& s) {
      return Status(s.code(), "gradient of " + node.op + ": " + s.message()).at(node.site);
    };
    if (dx.size() != node.inputs.size())
      return bad(internal_error("returned " + std::to_string(dx.size()) + " outputs for " +
                                std::to_string(node.inputs.size()) + " inputs"));
    const OpInfo& op = *g_.registry().find(node.op);
    std::vector<std::pair<Port, Output>> parts;
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (dx[i].empty() || !carries(node.inputs[i])) continue;
      Status s = fits(dx[i], node.inputs[i], op.input_name(node, int(i)));
      if (!s.ok()) return bad(s);
      parts.emplace_back(node.inputs[i], dx[i]);
    }
    for (auto& [of, gradient] : parts) {  // builds: `node` is gone
      if (sides_.any()) {
        TROUPE_TRY(gradient, from_all_sides(id, of, gradient));
      }
      parts_[variables_.home(of)].push_back({id, gradient});
    }
    return ok_status();
  }

  // A node on one side of a client's Switch gives no gradient if the other side is taken. If the
  // value that it takes is there all the same, and so are the ys, the gradient is zero then:
  //
  //   zeros --> Switch ---> Switch ...   one after the other, as the sides are in each other
  //               |            |
  //             Merge <----- Merge <--- gradient
  Expected<Output> from_all_sides(NodeId id, Port of, Output gradient) {
    const std::vector<Port> sides = SwitchSides::without(sides_.beyond(id, of), of_ys_);
    const Output x(&g_, of);
    const bool handle = dtype(of) == DType::resource;
    if (sides.empty() || (handle && (is_saved(of) || !x.shape().fully_known()))) return gradient;
    try {
      auto site = g_.with_site(g_.node(id).site);
      auto device = g_.with_device(g_.node(of.node).device);
      Output zeros = handle ? zeros_of_variable(g_, x, gradient.dtype()) : zero_gradient(x);
      std::vector<Op> switches;
      for (Port side : sides) {
        const NodeDef& like = g_.node(side.node);
        NodeSpec spec{.op = like.op, .inputs = {zeros, Output(&g_, like.inputs[1])}};
        if (like.attrs.contains("N")) spec.attrs.emplace("N", like.attrs.at("N"));
        switches.push_back(g_.add(std::move(spec)));
        zeros = switches.back().output(int(side.index));
      }
      for (std::size_t k = sides.size(); k-- > 0;) {
        NodeSpec spec{.op = "Merge", .inputs = switches[k].outputs()};
        spec.inputs[sides[k].index] = gradient;
        gradient = g_.add(std::move(spec)).output();
      }
    } catch (const Error& e) {
      return e.status();
    }
    return gradient;
  }

  // A gradient has the dtype and the shape of what it belongs to. A handle has the shape of its
  // variable, and the dtype of no value. Another shape may also come of inputs that do not fit each
  // other, which a run would refuse.
  Status fits(const Output& gradient, Port of, const std::string& what) {
    if (gradient.dtype() != dtype(of) && dtype(of) != DType::resource)
      return internal_error(what + " is " + std::string(dtype_name(gradient.dtype())) +
                            " where the value is " + std::string(dtype_name(dtype(of))));
    const PartialShape& shape = g_.node(of.node).out_shapes[of.index];
    if (PartialShape::merge(gradient.shape(), shape).ok()) return ok_status();
    return invalid_argument(what + " has shape " + gradient.shape().text() +
                            " where the value has " + shape.text());
  }

  static constexpr std::size_t kLongName = 512;

  GraphBuilder& g_;
  std::span<const Output> ys_, xs_, grad_ys_, stop_;
  const std::size_t end_;  // nodes of the forward graph
  Variables variables_;
  std::vector<Port> x_list_;  // one for each x: its port, or the handle that it stands for
  std::set<Port> x_ports_;
  std::vector<bool> reached_, leads_;
  std::map<Port, std::vector<Part>> parts_;
  SwitchSides sides_;
  std::vector<Port> of_ys_;  // the sides that all ys are on
};

}  // namespace

Output of_dtype(const Output& x, DType dtype) {
  return x.dtype() == dtype ? x : x.graph().add("Cast", {x}, {{"to", dtype}});
}

Output zero_gradient(const Output& x) {
  return x.graph().add(x.dtype() == DType::list ? "ListZerosLike" : "ZerosLike", {x});
}

std::int64_t GradContext::int_attr(std::string_view name) const {
  return attr<std::int64_t>(node(), name);
}
double GradContext::float_attr(std::string_view name) const { return attr<double>(node(), name); }
bool GradContext::bool_attr(std::string_view name) const { return attr<bool>(node(), name); }
const std::string& GradContext::string_attr(std::string_view name) const {
  return attr<std::string>(node(), name);
}
DType GradContext::type_attr(std::string_view name) const { return attr<DType>(node(), name); }
const std::vector<std::int64_t>& GradContext::ints_attr(std::string_view name) const {
  return attr<std::vector<std::int64_t>>(node(), name);
}

Expected<std::vector<Output>> gradients(std::span<const Output> ys, std::span<const Output> xs,
                                        std::span<const Output> grad_ys,
                                        std::span<const Output> stop) {
  if (ys.empty()) return std::vector<Output>(xs.size());
  if (ys[0].empty()) return invalid_argument("gradients: y is empty");
  GraphBuilder& g = ys[0].graph();
  if (g.body() && !g.is_tape()) {  // values of the graph around it are arguments there
    std::vector<Output> lists[4];
    const std::span<const Output> given[4] = {ys, xs, grad_ys, stop};
    for (int l = 0; l < 4; ++l)
      for (const Output& o : given[l]) {
        TROUPE_TRY(Output here, g.here(o));
        lists[l].push_back(here);
      }
    return Backprop(g, lists[0], lists[1], lists[2], lists[3]).run();
  }
  return Backprop(ys[0].graph(), ys, xs, grad_ys, stop).run();
}

}  // namespace troupe
