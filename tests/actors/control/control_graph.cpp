#include "tests/actors/control/control_graph.hpp"

#include <algorithm>
#include <functional>
#include <optional>

namespace troupe::test::control {
namespace {

struct Value {
  Output output;
  std::string name;  // in the text
  std::string device;
};
using Values = Scope<Value>;

struct Writer {
  Op op;
  std::string name;
};

// What statements see.
struct Around {
  Values scope;
  Writer writers[kResources];  // the last one of each, if there was any
  std::size_t functions = 0;   // that may be called
  bool in_function = false;
  const troupe::Function* self = nullptr;  // of a function that calls itself
  Value depth;                             // that it may go yet
};

TensorArray array(const Output& list) {
  return TensorArray(list, DType::f64, {.element = PartialShape::scalar()});
}
Output position(const Output& i, const Output& n) { return mod(i, cast<std::int32_t>(n)); }
Output squash(const Output& x) { return x / (1.0 + x * x); }
// Of the numbers of four: those from an integer on, round and round.
Output turned(const Output& x, const Output& i, const Output& four) {
  GraphBuilder& g = x.graph();
  Output begin = reshape(cast<std::int64_t>(mod(i, constant(g, 4))), {1});
  return slice(concat({x, x}), begin, four);
}
// The last of xs, and three of x.
Output slid_in(const Output& x, const Output& xs, const Output& four) {
  return slice(concat({xs, x}), reshape(size(xs) - 1, {1}), four);
}
// x, once it is said what was drawn.
Output drawn(const Output& x, const std::string& message) {
  GraphBuilder& g = x.graph();
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  Output u = random_uniform(g, PartialShape::scalar(), {.dtype = DType::f64});
  Output told = print(cast<std::int64_t>(u * double(kMost)), {.message = message});
  return x + cast<double>(told / constant(g, kMost));
}

constexpr const char* kPreamble = R"(auto array = [](Output list) {
  return TensorArray(list, DType::f64, {.element = PartialShape::scalar()});
};
auto position = [](Output i, Output n) { return mod(i, cast<std::int32_t>(n)); };
auto squash = [](Output x) { return x / (1.0 + x * x); };
auto turned = [&](Output x, Output i, Output four) {
  Output begin = reshape(cast<std::int64_t>(mod(i, constant(g, 4))), {1});
  return slice(concat({x, x}), begin, four);
};
auto slid_in = [](Output x, Output xs, Output four) {
  return slice(concat({xs, x}), reshape(size(xs) - 1, {1}), four);
};
auto drawn = [&](Output x, const char* message) {
  const std::int64_t most = std::int64_t{1} << 53;
  Output u = random_uniform(g, PartialShape::scalar(), {.dtype = DType::f64});
  Output told = print(cast<std::int64_t>(u * double(most)), {.message = message});
  return x + cast<double>(told / constant(g, most));
};
auto on = [&](const char* device, auto make) {
  auto there = g.with_device(device);
  return make();
};
using Values = std::vector<Output>;
)";

ValueType value_type(Type type) {
  switch (type) {
    case Type::number:
      return f64_scalar;
    case Type::integer:
      return {DType::i32, PartialShape::scalar()};
    case Type::vector:
      return {DType::f64, {-1}};
    case Type::four:
      return {DType::f64, {4}};
    default:
      return {DType::list, PartialShape::unknown()};
  }
}
const char* value_type_text(Type type) {
  constexpr const char* kText[] = {"f64_scalar", "{DType::i32, PartialShape::scalar()}",
                                   "{DType::f64, {-1}}", "{DType::f64, {4}}", "list"};
  return kText[std::size_t(type)];
}

class Builder {
 public:
  Builder(Graph& g, const Program& program, const Placement& placement, std::string& text)
      : g_(g), program_(program), placement_(placement), numbers_(numbered(program)), text_(text) {}

  Built build(const Variables& first) {
    text_ = kPreamble;
    auto scope = g_.with_scope("program");
    begin(first);
    for (const Function& f : program_.functions) define(f);
    Around around{.scope = inputs_, .functions = program_.functions.size()};
    run_all(program_.main, around);
    finish(around);
    return std::move(made_);
  }

 private:
  // --- text ---

  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }
  void line(const std::string& what) { text_ += std::string(indent_, ' ') + what + "\n"; }
  // %0, %1, ... of the form are these names.
  static std::string filled(std::string form, const std::vector<std::string>& names) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      const std::string mark = "%" + std::to_string(k);
      for (std::size_t at; (at = form.find(mark)) != std::string::npos;)
        form.replace(at, mark.size(), names[k]);
    }
    return form;
  }
  static std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
  }
  static std::string number_text(double x) {
    std::string text(32, 0);
    text.resize(std::size_t(snprintf(text.data(), text.size(), "%.17g", x)));
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }

  // --- devices ---

  std::string device(std::size_t k) const {
    return placement_.devices.size() == 1 ? "" : placement_.devices[k];
  }
  std::string home() const { return device(0); }
  std::string device_of_resource(int resource) const {
    return device(control::device_of_resource(resource, placement_));
  }
  std::string device_of(const Statement& s, const Around& around) const {
    return device(
        control::device_of(program_, around.functions, s, around.in_function, placement_));
  }
  static std::string placed(const std::string& device, const std::string& expression) {
    return device.empty() ? expression
                          : "on(\"" + device + "\", [&] { return " + expression + "; })";
  }
  template <class Make>
  auto on(const std::string& device, const Make& make) {
    std::optional<GraphBuilder::Guard> there;
    if (!device.empty()) there.emplace(g_.with_device(device));
    return make();
  }
  // A value of an expression, whose text is the form with the operands' names.
  Value value(const std::string& device, const std::string& form,
              const std::vector<Value>& operands,
              const std::function<Output(const std::vector<Output>&)>& make) {
    std::vector<Output> outputs;
    std::vector<std::string> names;
    for (const Value& v : operands) {
      outputs.push_back(v.output);
      names.push_back(v.name);
    }
    const std::string name = fresh("v");
    line("Output " + name + " = " + placed(device, filled(form, names)) + ";");
    return {on(device, [&] { return make(outputs); }), name, device};
  }

  // --- the program ---

  void begin(const Variables& first) {
    auto feed = [&](Type type, const std::string& name) {
      const ValueType is = value_type(type);
      line("Output " + name + " = placeholder<" +
           (is.dtype == DType::f64 ? "double" : "std::int32_t") + ">(g, " +
           (type == Type::vector ? "{-1}" : "PartialShape::scalar()") + ", \"" + name + "\");");
      Output made = on(home(), [&] { return placeholder(g_, is.dtype, is.shape, name); });
      made_.feeds.push_back(made);
      made_.also_needed.push_back(on(home(), [&] { return identity(made); }));
      return Value{made, name, home()};
    };
    auto declare = [&](std::vector<Variable>& all, bool states, const char* prefix,
                       const double* values, int n) {
      for (int k = 0; k < n; ++k) {
        const std::string name = prefix + std::to_string(k);
        const std::string device = states ? device_of_resource(k) : home();
        line("Variable " + name + " = " +
             placed(device, "variable(g, \"" + name + "\", Tensor::scalar(" +
                                number_text(values[k]) + "))") +
             ";");
        all.push_back(on(device, [&] { return variable(g_, name, Tensor::scalar(values[k])); }));
      }
    };
    declare(made_.weights, false, "weight", first.weights, kWeights);
    declare(made_.states, true, "state", first.states, kStates);
    declare_queues();
    for (int w = 0; w < kWeights; ++w)
      inputs_.add(Type::number, {made_.weights[std::size_t(w)].value(),
                                 "weight" + std::to_string(w) + ".value()", home()});
    for (const char* name : {"x0", "x1"}) inputs_.add(Type::number, feed(Type::number, name));
    for (const char* name : {"n0", "n1"}) inputs_.add(Type::integer, feed(Type::integer, name));
    inputs_.add(Type::vector, feed(Type::vector, "xs"));
    const Value& x0 = inputs_.pick(Type::number, 1);
    inputs_.add(
        Type::list,
        value(home(),
              "array(list_empty(g, DType::f64, {.shape = PartialShape::scalar()})).push(%0)", {x0},
              [&](const auto& o) {
                return TensorArray(g_, DType::f64, {.element = PartialShape::scalar()}).push(o[0]);
              }));
    four_ =
        value(home(), "reshape(cast<std::int64_t>(%0) * std::int64_t{0} + std::int64_t{4}, {1})",
              {inputs_.pick(Type::integer, 1)}, [](const auto& o) {
                return reshape(cast<std::int64_t>(o[0]) * std::int64_t{0} + std::int64_t{4}, {1});
              });
    inputs_.add(Type::four, value(home(),
                                  "gather(concat({reshape(%0, {1}), reshape(%1, {1})}), "
                                  "constant(g, Tensor::of<std::int32_t>({4}, {0, 1, 1, 0})))",
                                  {x0, inputs_.pick(Type::number, 0)}, [&](const auto& o) {
                                    return gather(
                                        concat({reshape(o[0], {1}), reshape(o[1], {1})}),
                                        constant(g_, Tensor::of<std::int32_t>({4}, {0, 1, 1, 0})));
                                  }));
  }

  void declare_queues() {
    auto declare = [&](int resource, const char* name) {
      line(std::string("Output ") + name + " = " +
           placed(device_of_resource(resource),
                  "fifo_queue(g, {DType::f64}, {.shapes = {PartialShape::scalar()}, "
                  ".capacity = 100'000})") +
           ";");
      return on(device_of_resource(resource), [&] {
        return fifo_queue(g_, {DType::f64},
                          {.shapes = {PartialShape::scalar()}, .capacity = 100'000});
      });
    };
    puts_ = declare(kPuts, "puts");
    takes_ = declare(kTakes, "takes");
    on(device_of_resource(kPuts), [&] {
      made_.put_count = queue_size(puts_);
      made_.put_one = taken_from(puts_);
    });
    on(device_of_resource(kTakes), [&] {
      made_.waiting = queue_size(takes_);
      made_.take_one = taken_from(takes_);
      made_.added = placeholder<double>(g_, PartialShape::scalar(), "added");
      made_.add = enqueue(takes_, {made_.added});
    });
  }
  static Output taken_from(const Output& queue) {
    return dequeue(queue, {DType::f64}, {.shapes = {PartialShape::scalar()}})[0];
  }

  // What is made, its text for itself: the client's functions decide which body is made first.
  template <class Make>
  auto aside(std::string& text, const Make& make) {
    std::string before = std::move(text_);
    text_.clear();
    auto result = make();
    text = std::exchange(text_, std::move(before));
    return result;
  }

  void define(const Function& f) {
    const std::string name = "f" + std::to_string(defined_.size());
    std::vector<ValueType> takes, gives;
    std::vector<std::string> takes_text, gives_text;
    for (Type type : f.takes) {
      takes.push_back(value_type(type));
      takes_text.push_back(value_type_text(type));
    }
    for (Type type : f.gives) {
      gives.push_back(value_type(type));
      gives_text.push_back(value_type_text(type));
    }
    const std::string arguments = fresh("a");
    std::string text;  // the last time: the body of one that calls itself may be made twice
    auto make = [&](troupe::Function& self, const std::vector<Output>& values) {
      return aside(text, [&] {
        Around inside{.scope = inputs_, .functions = defined_.size(), .in_function = true};
        for (std::size_t k = 0; k < values.size(); ++k)
          inside.scope.add(f.takes[k], {values[k], arguments + "[" + std::to_string(k) + "]", ""});
        indent_ += 2;
        if (calls_itself(f)) {
          inside.self = &self;
          const std::string form = "mod(%0, constant(g, " + std::to_string(kDeepest) + "))";
          inside.depth = value(home(), form, {{values[0], arguments + "[0]", ""}},
                               [&](const auto& o) { return mod(o[0], constant(g_, kDeepest)); });
        }
        indent_ -= 2;
        return body(f.body, f.gives, inside);
      });
    };
    defined_.push_back(g_.function(name, takes, gives, make));
    line("Function " + name + " = g.function(\"" + name + "\", {" + joined(takes_text) + "}, {" +
         joined(gives_text) + "}, [&](Function& self, const Values& " + arguments + ") {\n" + text +
         "});");
  }

  void finish(Around& around) {
    std::vector<Value> parts;
    for (std::size_t r = 0; r < kMainResults.size(); ++r) {
      Value made = around.scope.pick(kMainResults[r], program_.main.results[r]);
      if (kMainResults[r] == Type::list)
        made = value(home(), "array(%0).stack()", {made},
                     [](const auto& o) { return array(o[0]).stack(); });
      made = value(home(), "identity(%0)", {made}, [](const auto& o) { return identity(o[0]); });
      made_.results.push_back(made.output);
      if (kMainResults[r] == Type::integer) continue;
      if (value_type(kMainResults[r]).shape != PartialShape::scalar())
        made = value(home(), "sum(%0)", {made}, [](const auto& o) { return sum(o[0]); });
      parts.push_back(made);
    }
    Value y = parts[0];
    for (std::size_t k = 1; k < parts.size(); ++k)
      y = value(home(), "%0 + %1", {y, parts[k]}, [](const auto& o) { return o[0] + o[1]; });
    line("// y is " + y.name);
    made_.y = y.output;
  }

  void run_all(const Block& block, Around& around) {
    for (const Statement& s : block.statements) run(s, around);
  }
  // Between the braces of a lambda.
  using Names = std::vector<std::string>;
  static std::string values_text(const Names& names) { return "Values{" + joined(names) + "}"; }
  std::vector<Output> body(const Block& block, const std::vector<Type>& types, Around inside,
                           const std::function<std::string(const Names&)>& returned = values_text) {
    indent_ += 2;
    run_all(block, inside);
    std::vector<Output> results;
    std::vector<std::string> names;
    for (std::size_t r = 0; r < types.size(); ++r) {
      const Value& v = inside.scope.pick(types[r], r < block.results.size() ? block.results[r] : 0);
      results.push_back(v.output);
      names.push_back(v.name);
    }
    line("return " + returned(names) + ";");
    indent_ -= 2;
    return results;
  }
  void run(const Statement& s, Around& around) {
    switch (s.kind) {
      case Kind::branch:
      case Kind::choose:
        return branch(s, around);
      case Kind::loop:
        return loop(s, around);
      case Kind::scan:
      case Kind::map:
      case Kind::fold:
        return scan(s, around);
      case Kind::call:
        return call(s, around);
      case Kind::recur:
        return recur(s, around);
      case Kind::assign:
      case Kind::assign_add:
        return write(s, around);
      case Kind::put:
        return put(s, around);
      case Kind::take:
        return take(s, around);
      case Kind::print:
      case Kind::draw:
        around.scope.add(Type::number, simple(s, around));
        return wrote(s, Op(around.scope.pick(Type::number, 0).output), "", around);
      default:
        around.scope.add(signature(s.kind).gives, simple(s, around));
    }
  }

  Value simple(const Statement& s, const Around& around) {
    const Signature& is = signature(s.kind);
    std::vector<Value> operands;
    for (std::size_t k = 0; k < is.takes.size(); ++k)
      operands.push_back(around.scope.pick(is.takes[k], s.pick(k)));
    const std::string device = device_of(s, around);
    for (std::size_t k = 0; k < operands.size(); ++k)
      made_.lists_on_channels |= is.takes[k] == Type::list && operands[k].device != device;
    auto make = [&](const std::string& form,
                    const std::function<Output(const std::vector<Output>&)>& f) {
      return value(device, form, operands, f);
    };
    const std::string value_text = std::to_string(s.value);
    switch (s.kind) {
      case Kind::add:
        return make("%0 + %1", [](const auto& o) { return o[0] + o[1]; });
      case Kind::subtract:
        return make("%0 - %1", [](const auto& o) { return o[0] - o[1]; });
      case Kind::multiply:
        return make("%0 * %1", [](const auto& o) { return o[0] * o[1]; });
      case Kind::negate:
        return make("-%0", [](const auto& o) { return -o[0]; });
      case Kind::squash:
        return make("squash(%0)", [](const auto& o) { return squash(o[0]); });
      case Kind::scale:
        return make("%0 * " + number_text(s.value / 8.0),
                    [&](const auto& o) { return o[0] * (s.value / 8.0); });
      case Kind::to_number:
        return make("cast<double>(%0)", [](const auto& o) { return cast<double>(o[0]); });
      case Kind::element:
        return make("gather(%0, position(%1, size(%0)))",
                    [](const auto& o) { return gather(o[0], position(o[1], size(o[0]))); });
      case Kind::one_of_four:
        return make("gather(%0, position(%1, size(%0)))",
                    [](const auto& o) { return gather(o[0], position(o[1], size(o[0]))); });
      case Kind::get:
        return make("array(%0).read(position(%1, array(%0).size()))", [](const auto& o) {
          return array(o[0]).read(position(o[1], array(o[0]).size()));
        });
      case Kind::read_weight: {
        const std::size_t w = std::size_t(s.value % kWeights);
        return make("read(weight" + std::to_string(w) + ")",
                    [&](const auto&) { return read(made_.weights[w]); });
      }
      case Kind::read_state:
        return read_state(s, around, device);
      case Kind::print: {
        const std::string message = message_of(numbers_.at(&s), false);
        return make("print(%0, {.message = \"" + message + "\"})",
                    [&](const auto& o) { return print(o[0], {.message = message}); });
      }
      case Kind::draw: {
        const std::string message = message_of(numbers_.at(&s), true);
        return make("drawn(%0, \"" + message + "\")",
                    [&](const auto& o) { return drawn(o[0], message); });
      }
      case Kind::sum:
        return make("mod(%0 + %1, constant(g, 16))",
                    [&](const auto& o) { return mod(o[0] + o[1], constant(g_, 16)); });
      case Kind::product:
        return make("mod(%0 * %1 + " + value_text + ", constant(g, 16))",
                    [&](const auto& o) { return mod(o[0] * o[1] + s.value, constant(g_, 16)); });
      case Kind::fixed:
        return make("constant(g, " + value_text + ")",
                    [&](const auto&) { return constant(g_, std::int32_t(s.value)); });
      case Kind::less:
        return make("cast<std::int32_t>(%0 < %1)",
                    [](const auto& o) { return cast<std::int32_t>(o[0] < o[1]); });
      case Kind::length:
        return make("mod(cast<std::int32_t>(array(%0).size()), constant(g, 16))",
                    [&](const auto& o) {
                      return mod(cast<std::int32_t>(array(o[0]).size()), constant(g_, 16));
                    });
      case Kind::scaled:
        return make("%0 * %1", [](const auto& o) { return o[0] * o[1]; });
      case Kind::shifted:
        return make("%0 + %1", [](const auto& o) { return o[0] + o[1]; });
      case Kind::squared:
        return make("%0 * %0", [](const auto& o) { return o[0] * o[0]; });
      case Kind::appended:
        return make("concat({%0, reshape(%1, {1})})", [](const auto& o) {
          return concat({o[0], reshape(o[1], {1})});
        });
      case Kind::stacked:
        return make("array(%0).stack()", [](const auto& o) { return array(o[0]).stack(); });
      case Kind::widened:
        return make("identity(%0)", [](const auto& o) { return identity(o[0]); });
      case Kind::sums:
        return make("%0 + %1", [](const auto& o) { return o[0] + o[1]; });
      case Kind::multiples:
        return make("%0 * %1", [](const auto& o) { return o[0] * o[1]; });
      // What they are of a run alone knows.
      case Kind::reshaped:
        return make("reshape(%0, " + four_.name + ")",
                    [&](const auto& o) { return reshape(o[0], four_.output); });
      case Kind::turned:
        return make("turned(%0, %1, " + four_.name + ")",
                    [&](const auto& o) { return turned(o[0], o[1], four_.output); });
      case Kind::slid_in:
        return make("slid_in(%0, %1, " + four_.name + ")",
                    [&](const auto& o) { return slid_in(o[0], o[1], four_.output); });
      case Kind::filled:
        return make("fill(" + four_.name + ", %0)",
                    [&](const auto& o) { return fill(four_.output, o[0]); });
      case Kind::begin:
        return make(
            "TensorArray(g, DType::f64, {.element = PartialShape::scalar()}).push(%0)",
            [&](const auto& o) {
              return TensorArray(g_, DType::f64, {.element = PartialShape::scalar()}).push(o[0]);
            });
      case Kind::unstacked:
        return make("TensorArray::unstack(%0)",
                    [](const auto& o) { return TensorArray::unstack(o[0]); });
      case Kind::push:
        return make("array(%0).push(%1)", [](const auto& o) { return array(o[0]).push(o[1]); });
      default:  // set
        return make("array(%0).write(position(%1, array(%0).size() + 1), %2)", [](const auto& o) {
          return array(o[0]).write(position(o[1], array(o[0]).size() + 1), o[2]);
        });
    }
  }

  // After the writes that come before it, which nothing else tells the read.
  Value read_state(const Statement& s, const Around& around, const std::string& device) {
    const std::size_t k = std::size_t(s.value % kStates);
    const Writer& writer = around.writers[k];
    std::vector<Op> after;
    if (!writer.op.empty()) after.push_back(writer.op);
    return value(device, "read(state" + std::to_string(k) + ", {" + writer.name + "})", {},
                 [&](const auto&) { return read(made_.states[k], after); });
  }

  void write(const Statement& s, Around& around) {
    const std::size_t k = std::size_t(s.value % kStates);
    const Value& x = around.scope.pick(Type::number, s.pick(0));
    const bool add = s.kind == Kind::assign_add;
    const std::string name = fresh("op"), device = device_of(s, around);
    line("Op " + name + " = " +
         placed(device, std::string(signature(s.kind).name) + "(state" + std::to_string(k) + ", " +
                            x.name + ")") +
         ";");
    const Op op = on(device, [&] {
      auto later = g_.with_control(before(s, around));
      return add ? assign_add(made_.states[k], x.output) : assign(made_.states[k], x.output);
    });
    wrote(s, op, name, around);
  }

  void put(const Statement& s, Around& around) {
    const Value& x = around.scope.pick(Type::number, s.pick(0));
    const std::string name = fresh("op"), device = device_of(s, around);
    line("Op " + name + " = " + placed(device, "enqueue(puts, {" + x.name + "})") + ";");
    const Op op = on(device, [&] {
      auto later = g_.with_control(before(s, around));
      return enqueue(puts_, {x.output});
    });
    wrote(s, op, name, around);
  }

  void take(const Statement& s, Around& around) {
    const std::string device = device_of(s, around);
    const Value taken =
        value(device, "dequeue(takes, {DType::f64}, {.shapes = {PartialShape::scalar()}})[0]", {},
              [&](const auto&) {
                auto later = g_.with_control(before(s, around));
                return taken_from(takes_);
              });
    around.scope.add(Type::number, taken);
    wrote(s, Op(taken.output), taken.name, around);
  }

  // The effects that are before it. With gradients the order in which they were made does not do
  // (control_found_test.cpp).
  std::vector<Op> before(const Statement& s, const Around& around) const {
    std::vector<Op> all;
    for (int k = 0; k < kResources; ++k)
      if (!around.writers[k].op.empty() && changes(program_, around.functions, s, k))
        all.push_back(around.writers[k].op);
    return all;
  }
  void wrote(const Statement& s, const Op& op, const std::string& name, Around& around) {
    for (int k = 0; k < kResources; ++k) {
      if (!changes(program_, around.functions, s, k)) continue;
      around.writers[k] = {op, name};
      made_.uses_queues |= k >= kStates;
    }
    if (indent_ == 0 && has_effects(program_, around.functions, s)) made_.effects.push_back(op);
  }

  Value predicate(const Statement& s, const Around& around, const std::string& device) {
    auto of = [&](Type type) {
      return std::vector{around.scope.pick(type, s.pick(0)), around.scope.pick(type, s.pick(1))};
    };
    if (s.value % 3 == 2)
      return value(device, "mod(%0, constant(g, 2)) == 0", of(Type::integer),
                   [&](const auto& o) { return mod(o[0], constant(g_, 2)) == 0; });
    return value(device, "%0 < %1", of(s.value % 3 == 0 ? Type::number : Type::integer),
                 [](const auto& o) { return o[0] < o[1]; });
  }

  void returned(const Statement& s, const std::vector<Type>& types,
                const std::vector<Output>& results, const std::string& name, Around& around) {
    for (std::size_t r = 0; r < types.size(); ++r)
      around.scope.add(types[r],
                       {results[r], name + "[" + std::to_string(r) + "]", device_of(s, around)});
    wrote(s, Op(results[0]), name + "[0]", around);
  }
  std::string lambda(const std::string& arguments, const std::string& text) const {
    return "[&]" + (arguments.empty() ? "" : "(" + arguments + ")") + " {\n" + text +
           std::string(indent_, ' ') + "}";
  }

  void branch(const Statement& s, Around& around) {
    const std::string device = device_of(s, around), name = fresh("v");
    std::vector<std::string> texts(s.blocks.size());
    auto bodies = [&](std::size_t b) {
      return aside(texts[b], [&] { return body(s.blocks[b], s.types, around); });
    };
    std::vector<Output> results;
    std::string made;
    if (s.kind == Kind::branch) {
      const Value p = predicate(s, around, device);
      results = on(device, [&] {
        return cond(
            p.output, [&] { return bodies(0); }, [&] { return bodies(1); });
      });
      made = "cond(" + p.name;
    } else {
      const Value& pick = around.scope.pick(Type::integer, s.pick(0));
      const Value index = value(device, "%0 - 1", {pick}, [](const auto& o) { return o[0] - 1; });
      Bodies all;
      for (std::size_t b = 0; b < s.blocks.size(); ++b) all.push_back([&, b] { return bodies(b); });
      const Op op = on(device, [&] { return switch_case_op(index.output, all); });
      results = op.outputs();
      made = "switch_case_op(" + index.name + ", {";
    }
    for (std::size_t b = 0; b < texts.size(); ++b)
      made += (b || s.kind == Kind::branch ? ", " : "") + lambda("", texts[b]);
    made += s.kind == Kind::branch ? ")" : "}).outputs()";
    line("Values " + name + " = " + placed(device, made) + ";");
    returned(s, s.types, results, name, around);
  }

  static void add(Around& inside, const std::vector<Type>& types, const std::vector<Output>& values,
                  std::size_t from, const std::string& name, const std::string& device) {
    for (std::size_t v = 0; v < types.size(); ++v)
      inside.scope.add(types[v],
                       {values[from + v], name + "[" + std::to_string(from + v) + "]", device});
  }

  struct First {
    std::vector<Output> outputs;
    std::vector<std::string> names;
    LoopOptions options;
    std::vector<std::string> shapes;
  };
  static std::string options_text(const First& first) {
    const bool saves = first.options.save == LoopSave::values;
    return "{.shapes = {" + joined(first.shapes) + "}" +
           (saves ? "" : ", .save = LoopSave::variables") + "}";
  }
  First first_values(const Statement& s, std::size_t from, const Around& around) const {
    First all;
    if (s.device >= 6) all.options.save = LoopSave::variables;
    for (std::size_t v = 0; v < s.types.size(); ++v) {
      const Value& value = around.scope.pick(s.types[v], s.pick(from + v));
      all.outputs.push_back(value.output);
      all.names.push_back(value.name);
      all.options.shapes.push_back(value_type(s.types[v]).shape);
      all.shapes.push_back(s.types[v] == Type::vector ? "{-1}"
                           : s.types[v] == Type::four ? "{4}"
                           : s.types[v] == Type::list ? "PartialShape::unknown()"
                                                      : "PartialShape::scalar()");
    }
    // Those of the first values do, unless a vector grows.
    const bool grows = std::count(s.types.begin(), s.types.end(), Type::vector) > 0;
    if (!grows && s.value % 2 == 0) all.options.shapes.clear(), all.shapes.clear();
    return all;
  }

  void loop(const Statement& s, Around& around) {
    const std::string device = device_of(s, around), name = fresh("v"), variables = fresh("a");
    const std::string most = std::to_string(s.value + 1);
    const Value limit = value(
        device, "mod(%0, constant(g, " + most + "))", {around.scope.pick(Type::integer, s.pick(0))},
        [&](const auto& o) { return mod(o[0], constant(g_, std::int32_t(s.value + 1))); });
    First first = first_values(s, 2, around);
    auto inside = [&](const std::vector<Output>& v) {
      Around all = around;
      all.scope.add(Type::integer, {v[0], variables + "[0]", device});
      add(all, s.types, v, 1, variables, device);
      return all;
    };
    std::string condition, text;
    auto more = [&](const std::vector<Output>& v) {
      return aside(condition, [&] {
        const Output below = v[0] < limit.output;
        const std::string below_text = variables + "[0] < " + limit.name;
        if (s.pick(1) == 0) {
          text_ = below_text;
          return below;
        }
        const Value also = inside(v).scope.pick(Type::number, s.pick(1) - 1);
        text_ = "logical_and(" + below_text + ", " + also.name + " < 0.5)";
        return logical_and(below, also.output < 0.5);
      });
    };
    auto next = [&](const std::vector<Output>& v) {
      return aside(text, [&] {
        std::vector<Output> values{v[0] + 1};
        auto returned = [&](Names names) {
          names.insert(names.begin(), variables + "[0] + 1");
          return values_text(names);
        };
        for (const Output& value : body(s.blocks[0], s.types, inside(v), returned))
          values.push_back(value);
        return values;
      });
    };
    const bool shapes = !first.options.shapes.empty();
    if (shapes) first.options.shapes.insert(first.options.shapes.begin(), PartialShape::scalar());
    const std::vector<Output> last = on(device, [&] {
      auto later = g_.with_control(before(s, around));
      first.outputs.insert(first.outputs.begin(), constant(g_, std::int32_t{0}));
      return while_loop(first.outputs, more, next, first.options);
    });
    first.names.insert(first.names.begin(), "constant(g, 0)");
    if (shapes) first.shapes.insert(first.shapes.begin(), "PartialShape::scalar()");
    const std::string arguments = "const Values& " + variables;
    line("Values " + name + " = " +
         placed(device, "while_loop(" + values_text(first.names) + ", [&](" + arguments +
                            ") { return " + condition + "; }, " + lambda(arguments, text) + ", " +
                            options_text(first) + ")") +
         ";");
    around.scope.add(Type::integer, {last[0], name + "[0]", device});
    add(around, s.types, last, 1, name, device);
    wrote(s, Op(last[0]), name + "[0]", around);
  }

  void scan(const Statement& s, Around& around) {
    const std::string device = device_of(s, around), name = fresh("v"), variables = fresh("a"),
                      slice = fresh("x");
    const Value& xs = around.scope.pick(Type::vector, s.pick(0));
    const First first = first_values(s, 1, around);
    std::vector<Type> types = s.types;
    if (s.kind != Kind::fold) types.push_back(Type::number);
    std::string text;
    auto results = [&](const std::vector<Output>& state, const Output& x) {
      return aside(text, [&] {
        Around inside = around;
        add(inside, s.types, state, 0, variables, device);
        inside.scope.add(Type::number, {x, slice, device});
        auto returned = [&](Names names) {
          if (s.kind == Kind::map) return names[0];
          const std::string out = names.back();
          if (s.kind == Kind::fold) return values_text(names);
          names.pop_back();
          return "std::pair{" + values_text(names) + ", " + out + "}";
        };
        return body(s.blocks[0], types, inside, returned);
      });
    };
    const char* kind = signature_name(s.kind);
    const std::string arguments =
        (s.kind == Kind::map ? "" : "const Values& " + variables + ", ") + "Output " + slice;
    auto finish = [&](const std::string& state, const std::string& options) {
      line("auto " + name + " = " +
           placed(device, std::string(kind) + "(" + xs.name + state + ", " +
                              lambda(arguments, text) + options + ")") +
           ";");
    };
    const std::string state = ", Values{" + joined(first.names) + "}";
    const std::string options = ", " + options_text(first);
    if (s.kind == Kind::map) {
      const Output all = on(device, [&] {
        auto later = g_.with_control(before(s, around));
        return map(xs.output, [&](const Output& x) { return results({}, x)[0]; });
      });
      finish("", "");
      around.scope.add(Type::vector, {all, name, device});
      wrote(s, Op(all), name, around);
    } else if (s.kind == Kind::fold) {
      const auto last = on(device, [&] {
        auto later = g_.with_control(before(s, around));
        return fold(xs.output, first.outputs, results, first.options);
      });
      finish(state, options);
      add(around, s.types, last, 0, name, device);
      wrote(s, Op(last[0]), name + "[0]", around);
    } else {
      const auto [last, all] = on(device, [&] {
        auto later = g_.with_control(before(s, around));
        return troupe::scan(
            xs.output, first.outputs,
            [&](const std::vector<Output>& v, const Output& x) {
              std::vector<Output> next = results(v, x);
              const Output out = next.back();
              next.pop_back();
              return std::pair{next, out};
            },
            first.options);
      });
      finish(state, options);
      add(around, s.types, last, 0, name + ".first", device);
      around.scope.add(Type::vector, {all, name + ".second", device});
      wrote(s, Op(all), name + ".second", around);
    }
  }
  static const char* signature_name(Kind kind) {
    return kind == Kind::scan ? "scan" : kind == Kind::map ? "map" : "fold";
  }

  void call(const Statement& s, Around& around) {
    const int called = callee(s, around.functions);
    if (called < 0) return;
    const Function& f = program_.functions[std::size_t(called)];
    const std::string device = device_of(s, around), name = fresh("v");
    std::vector<Output> arguments;
    std::vector<std::string> names;
    for (std::size_t k = 0; k < f.takes.size(); ++k) {
      const Value& v = around.scope.pick(f.takes[k], s.pick(k));
      arguments.push_back(v.output);
      names.push_back(v.name);
    }
    const auto results = on(device, [&] {
      auto later = g_.with_control(before(s, around));
      return defined_[std::size_t(called)].call(arguments);
    });
    line("Values " + name + " = " +
         placed(device, "f" + std::to_string(called) + ".call({" + joined(names) + "})") + ";");
    returned(s, f.gives, results, name, around);
  }

  void recur(const Statement& s, Around& around) {
    const Function& f = program_.functions[around.functions];
    const std::string device = device_of(s, around), name = fresh("v");
    std::vector<Output> inner, last;
    std::vector<std::string> inner_names, last_names;
    for (std::size_t k = 1; k < f.takes.size(); ++k) {
      const Value& v = around.scope.pick(f.takes[k], s.pick(k));
      inner.push_back(v.output);
      inner_names.push_back(v.name);
    }
    for (std::size_t r = 0; r < f.gives.size(); ++r) {
      const Value& v = around.scope.pick(f.gives[r], s.pick(4 + r));
      last.push_back(v.output);
      last_names.push_back(v.name);
    }
    const Value deeper =
        value(device, "%0 > 0", {around.depth}, [](const auto& o) { return o[0] > 0; });
    const std::vector<Output> results = on(device, [&] {
      return cond(
          deeper.output,
          [&] {
            auto later = g_.with_control(before(s, around));
            std::vector<Output> arguments{around.depth.output - 1};
            arguments.insert(arguments.end(), inner.begin(), inner.end());
            return around.self->call(arguments);
          },
          [&] { return last; });
    });
    inner_names.insert(inner_names.begin(), around.depth.name + " - 1");
    line("Values " + name + " = " +
         placed(device, "cond(" + deeper.name + ", [&] { return self.call({" + joined(inner_names) +
                            "}); }, [&] { return " + values_text(last_names) + "; })") +
         ";");
    returned(s, f.gives, results, name, around);
  }

  Graph& g_;
  const Program& program_;
  const Placement& placement_;
  const std::unordered_map<const Statement*, int> numbers_;
  std::string& text_;
  std::size_t names_ = 0, indent_ = 0;
  Built made_;
  Output puts_, takes_;
  Values inputs_;
  Value four_;  // {4}, which is not known before a run
  std::vector<troupe::Function> defined_;
};

}  // namespace

std::string message_of(int number, bool drawn) {
  return "~" + std::to_string(number) + (drawn ? "d " : " ");
}

Built build(Graph& g, const Program& program, const Variables& first, const Placement& placement,
            std::string& text) {
  return Builder(g, program, placement, text).build(first);
}

}  // namespace troupe::test::control
