// Building graphs: handles of nodes and ports, and the builder, which checks each node when it is
// added.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "graph/op_registry.hpp"
#include "graph/passes/shape_inference.hpp"
#include "graph/unique_names.hpp"

namespace troupe {

class Body;  // graph/control/functions/body.hpp
class GraphBuilder;
class Index;          // graph/slicing.hpp
class ComputedIndex;  // graph/slicing.hpp
struct BodyState;     // graph/control/functions/body.hpp
struct FunctionRecord;

// A handle of one output of a node: two words, cheap to copy, valid as long as its builder. There
// is no operator bool, since a graph value has no truth value before a run. Methods of an empty
// handle, or of an output that its node does not have, throw Error with the caller's line.
class Output {
 public:
  Output() = default;
  Output(GraphBuilder* graph, Port port) : graph_(graph), port_(port) {}

  bool empty() const { return graph_ == nullptr; }
  GraphBuilder& graph(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (graph_ == nullptr) [[unlikely]]
      is_empty(file, line);
    return *graph_;
  }
  Port port() const { return port_; }
  NodeId node() const { return port_.node; }
  DType dtype(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;
  const PartialShape& shape(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;
  // The name of the port: "scope/MatMul"; of an output other than 0: "scope/Switch:1".
  std::string name(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;
  // Output `index` of the same node.
  Output sibling(int index) const { return {graph_, {port_.node, std::uint32_t(index)}}; }
  // Whether both are the same port of the same graph. Operator == compares values in a run
  // (ops/api/operators.hpp).
  bool is(const Output& other) const { return graph_ == other.graph_ && port_ == other.port_; }
  // Slicing, for any dtype: x[{1, range(0, 5), whole, newaxis}], or x[1] for one entry. Dimensions
  // after the last entry are taken whole. Differentiable. Throws Error for more entries than
  // dimensions, an index known to be out of range, a second ellipsis and a stride of 0. See
  // StridedSlice.
  Output operator[](std::initializer_list<Index> where) const;
  Output operator[](const Index& one) const;
  // The slices along dimension 0 with these numbers, integers [...] that are values of the graph:
  // [..., the other dimensions]. They count from the start; one outside fails the run. See Gather.
  Output operator[](const ComputedIndex& at) const;

 private:
  friend class Op;
  [[noreturn]] static void is_empty(const char* file, int line);
  const NodeDef& made_by(const char* file, int line) const;

  GraphBuilder* graph_ = nullptr;
  Port port_;
};

// A handle of a node, for targets and control edges. Made from an empty Output, it is empty.
class Op {
 public:
  Op() = default;
  Op(GraphBuilder* graph, NodeId node) : graph_(graph), node_(node) {}
  Op(Output output) : graph_(output.graph_), node_(output.node()) {}

  bool empty() const { return graph_ == nullptr; }
  // These throw Error, with the caller's line, if the Op is empty.
  GraphBuilder& graph(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (graph_ == nullptr) [[unlikely]]
      is_empty(file, line);
    return *graph_;
  }
  NodeId node() const { return node_; }
  const std::string& name(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;
  Output output(int index = 0) const { return {graph_, {node_, std::uint32_t(index)}}; }
  std::vector<Output> outputs(const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) const;

 private:
  [[noreturn]] static void is_empty(const char* file, int line);

  GraphBuilder* graph_ = nullptr;
  NodeId node_ = kNoNode;
};

// The description of a node to add. Empty fields take the values of the builder's current scope.
struct NodeSpec {
  std::string op;
  std::vector<Output> inputs = {};
  AttrMap attrs = {};
  std::string name =
      {};  // relative to the scope; "" means the op's name. Made unique with _1, _2...
  std::vector<Op> control = {};
  std::string device = {};
  std::vector<std::string> colocate = {};
  Site site = {};
};

// A graph under construction. Not thread-safe; not copyable or movable, because Outputs point at
// it. `add` throws troupe::Error in compiler format (file:line, what was expected, where each input
// was created); `try_add` returns the same as a Status and leaves the graph unchanged.
//
// The body of a function under construction (graph/control/functions/body.hpp) is a builder of its
// own; nodes, scopes and guards added to this graph meanwhile go there. Values of the builders
// around a body become arguments of its function when they are used. Resource handles are always
// made in the graph itself.
class GraphBuilder {
 public:
  explicit GraphBuilder(const OpRegistry& registry, std::uint64_t seed = 0);
  // Goes on with a graph that was built before, such as a saved one. Its functions can be called
  // and differentiated; gradient functions that come with it cannot be differentiated again. Throws
  // Error for a graph that import_graph refuses.
  GraphBuilder(const OpRegistry& registry, GraphDef graph);
  ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  const OpRegistry& registry() const { return registry_; }
  const GraphDef& def() const { return def_; }
  // A deep copy, for a session.
  std::shared_ptr<const GraphDef> snapshot() const;

  // Checks op, inputs, dtypes, attributes and shapes, fills in defaults, makes the name unique and
  // appends the node. A composite op is expanded, under a scope of its name.
  Expected<Op> try_add(NodeSpec spec);
  Op add(NodeSpec spec);
  // Adds a node and returns its output 0.
  Output add(std::string_view op, std::initializer_list<Output> inputs, AttrMap attrs = {},
             Site site = {});

  // Closes a loop: sets input `index` of a Merge to `value`, an output of a NextIteration. Inside a
  // body under construction it refers to that body.
  Status close_loop(NodeId merge, int index, Output value);

  // Throws Error (not_found) if there is no such node.
  const NodeDef& node(NodeId id) const {
    if (id >= def_.nodes.size()) [[unlikely]]
      no_node(id);
    return def_.nodes[id];
  }
  Op find(std::string_view name);  // empty if there is no such node
  // The output of this name, as Output::name() says it. Throws Error: not_found, with names that
  // are alike, or invalid_argument for what names no output.
  Output output(std::string_view name, const char* file = __builtin_FILE(),
                int line = __builtin_LINE());
  // The value of a port if it is known before a run: constants, shapes, and values computed from
  // shapes. nullptr otherwise.
  const Tensor* constant(Port port) const;
  // The nodes that Session::init runs: the assignments of initial values, in order.
  const std::vector<NodeId>& initializers() const { return initializers_; }
  void add_initializer(NodeId assign) { initializers_.push_back(assign); }

  // Sets names, devices or control edges of the nodes added while it is alive. Guards can be
  // nested.
  class [[nodiscard]] Guard {
   public:
    Guard(Guard&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
    ~Guard();

   private:
    friend class GraphBuilder;
    explicit Guard(GraphBuilder* graph) : graph_(graph) {}
    GraphBuilder* graph_;
  };
  // Opens the scope "name/" (made unique) inside the current one. A name that ends in '/' is a full
  // prefix and reopens that scope; "" is the root.
  Guard with_scope(std::string_view name, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE());
  // The prefix of the current scope: "" or "a/b/". with_scope() reopens the scope by this prefix.
  const std::string& scope_prefix() const { return innermost().frames_.back().prefix; }
  // Overrides the enclosing device, part by part. Throws Error for a malformed device name.
  Guard with_device(std::string_view device, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE());
  // Places nodes with the resource behind `handle`; overrides enclosing guards.
  Guard with_resource(const Output& handle);
  // Adds control inputs. Throws Error if an Op is empty.
  Guard with_control(std::vector<Op> control, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE());
  Guard with_site(Site site);  // the site of nodes that give none (gradients)
  Guard with_colocation(std::string_view node);

  // Its destructor removes the nodes, names and initializers added since its construction, and
  // opens the loops closed since then, unless keep() was called. Attempts can be nested; inner ones
  // end first.
  class [[nodiscard]] Attempt {
   public:
    explicit Attempt(GraphBuilder& graph) : Attempt(graph.innermost(), At{}) {}
    struct At {};
    Attempt(GraphBuilder& graph, At);  // of that builder, whatever body is open
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    ~Attempt();
    void keep() { kept_ = true; }

   private:
    GraphBuilder& graph_;
    std::size_t nodes_, initializers_, names_, function_names_, functions_, arguments_, waits_;
    std::size_t closed_;
    bool kept_ = false;
  };
  // Whether there is an Attempt at this graph: what it has added may be taken back.
  bool in_attempt() const { return attempts_ > 0; }

  // Expires with the graph; for sessions, which may outlive it.
  std::weak_ptr<const void> life() const { return life_; }

  // --- functions ---

  // Where nodes go now: the innermost body under construction, or this.
  GraphBuilder& innermost();
  const GraphBuilder& innermost() const { return const_cast<GraphBuilder*>(this)->innermost(); }
  // The graph that functions and variables belong to: this, unless it is a body.
  GraphBuilder& root();
  // Do nodes go into the body of a loop now, or into one inside of it?
  bool in_loop() const;
  // The function whose body this is; nullptr for a graph.
  const BodyState* body() const { return body_.get(); }
  // A copy of this body with its nodes under their numbers, for nodes that nobody else is to see.
  // REQUIRES: a body.
  std::unique_ptr<GraphBuilder> clone() const;
  bool is_tape() const;  // such a copy
  // What is known of a function of this graph, nullptr when there is none of that name.
  FunctionRecord* function(std::string_view name);
  // The value as this builder has it: its own, or, of a builder around this body, an argument.
  // invalid_argument names both places for a value of a body that is finished.
  Expected<Output> here(const Output& value);
  // While it lives nodes go to the graph itself, whatever body is under construction, under the
  // scopes that are open here. For what belongs to the graph: variables, and what they begin with.
  class [[nodiscard]] Outside {
   public:
    explicit Outside(GraphBuilder& graph);
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;
    ~Outside();

   private:
    GraphBuilder& root_;
    GraphBuilder* open_;
  };
  // A value of an open body, made in the graph itself. invalid_argument when it depends on what
  // only the body has.
  Expected<Output> outside(const Output& value);

 private:
  friend class Body;
  friend class ReadsBefore;
  [[noreturn]] void no_node(NodeId id) const;
  struct Frame {
    std::string prefix;
    std::string device;
    std::vector<Op> control;
    Site site;
    std::vector<std::string> colocate;
  };
  static std::uint64_t key(Port port) { return std::uint64_t{port.node} << 32 | port.index; }
  const Frame& frame() const { return frames_.back(); }
  Guard push(Frame frame);
  Expected<Op> try_add_here(NodeSpec spec);
  Expected<Op> add_handle(NodeSpec spec);
  Status complete_call(NodeSpec& spec);
  bool is_inside(const GraphBuilder& other) const;
  void forget_functions(std::size_t left);
  void forget_arguments(std::size_t left, std::size_t waits);
  Status bring_inputs(NodeSpec& spec);
  Expected<Output> capture(const Output& value);
  static Status gone(const GraphBuilder& body, NodeId node);
  void index_nodes();
  void add_functions_of_graph();
  Status check_inputs(const NodeSpec& spec) const;
  std::vector<InferenceContext::Input> known_inputs(const std::vector<Output>& inputs) const;
  Expected<NodeDef> make_node(const OpInfo& op, NodeSpec& spec);
  Expected<Op> append(const OpInfo& op, NodeDef node, const std::vector<Output>& inputs);
  Expected<Op> expand(const OpInfo& op, const NodeSpec& spec, const NodeDef& node);
  Status explain(const Status& status, const NodeSpec& spec, const Site& site) const;

  const OpRegistry& registry_;
  GraphDef def_;
  std::unordered_map<std::string, NodeId> by_name_;
  UniqueNames names_;           // of nodes and of scopes
  UniqueNames function_names_;  // of a graph: of its functions
  std::vector<Frame> frames_;
  std::vector<NodeId> initializers_;
  struct Closed {
    NodeId merge;
    std::size_t index;
    Port before;
  };
  std::size_t attempts_ = 0;                             // that are under way
  std::vector<Closed> closed_;                           // loops, since the first of them began
  std::unordered_map<std::uint64_t, KnownValue> known_;  // by node << 32 | port
  std::unique_ptr<BodyState> body_;                      // null: a graph
  GraphBuilder* open_ = nullptr;                         // the body in this one that nodes go to
  // Of a graph: its functions by name, and all bodies that there ever were, as Outputs point there.
  std::unordered_map<std::string, std::unique_ptr<FunctionRecord>> functions_;
  std::vector<std::unique_ptr<FunctionRecord>> abandoned_;
  std::shared_ptr<const void> life_ = std::make_shared<char>();
};

// What a composite op's builder sees.
class CompositeContext {
 public:
  CompositeContext(GraphBuilder& g, const std::vector<Output>& inputs, const AttrMap& attrs)
      : g(g), inputs(inputs), attrs(attrs) {}
  GraphBuilder& g;
  const std::vector<Output>& inputs;
  const AttrMap& attrs;
};

}  // namespace troupe
