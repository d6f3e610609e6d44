// Every registered op, row by row of the tables in cases_*.cpp:
//   - the shape known before the run is the shape at run time, from known and from unknown inputs
//   - one lane, three lanes, overwritten inputs and the fake device give the same bits
//   - gradients equal finite differences, with known shapes and with unknown ones, and so do the
//     gradients of these gradients; so they do where any two inputs are one tensor
//   - hostile rows are answered with a Status
// and every op has a documentation, a shape function, a row, and a gradient or the reason for none.
//
// The rows of one op alone: troupe_test_ops --test-case="every op does*" --subcase=Softmax
#include "tests/ops/kernels/conformance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <map>
#include <set>

#include "devices/cpu/cpu_device.hpp"
#include "devices/fake/fake_device.hpp"
#include "graph/gradients.hpp"
#include "ops/evaluate.hpp"
#include "tests/contains.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

const OpTable& table() { return ops::builtin(); }

// Two inputs of a row, of which the second is replaced by the first: one tensor given twice.
struct Pair {
  std::size_t first, second;
};

// The row as a graph of one node behind placeholders. Host arguments are constants when `known`,
// and the placeholders have the shapes of the inputs; else nothing is known.
struct Built {
  GraphBuilder g{table().ops};
  std::vector<Output> inputs;
  std::vector<Tensor> feeds;  // by node
  Op node;

  Status add(const OpCase& row, bool known, std::optional<Pair> one = {}) {
    const OpInfo& op = *table().ops.find(row.op);
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
      if (one && i == one->second) {
        inputs.push_back(inputs[one->first]);
        continue;
      }
      const Tensor& value = row.inputs[i];
      const bool constant = known && op.in[std::min(i, op.in.size() - 1)].host;  // lists come last
      AttrMap attrs{{"T", value.dtype()}};
      if (constant)
        attrs.emplace("value", value);
      else
        attrs.emplace("shape", known ? PartialShape(value.shape()) : PartialShape());
      inputs.push_back(g.add(constant ? "Const" : "Placeholder", {}, attrs));
      feeds.push_back(value);
    }
    auto added =
        g.try_add({.op = row.op, .inputs = inputs, .attrs = row.attrs, .name = node_name(row)});
    if (!added.ok()) return added.status();
    node = *added;
    return ok_status();
  }

  // All nodes in order; values by node.
  Expected<std::vector<std::vector<Tensor>>> run(const std::vector<Tensor>& fed) const {
    std::vector<std::vector<Tensor>> values;
    for (const NodeDef& def : g.def().nodes) {
      std::vector<Tensor> in;
      for (Port p : def.inputs) in.push_back(values[p.node][p.index]);
      if (def.op == "Placeholder") {
        values.push_back({fed[values.size()]});
      } else {
        TROUPE_TRY(auto out, evaluate(table(), def, std::move(in), inline_device()));
        values.push_back(std::move(out));
      }
    }
    return values;
  }
};

bool differentiable(DType dtype) { return dtype == DType::f64 || dtype == DType::c128; }

// The elements of a real tensor, or the parts of those of a complex one, as a vector. The gradient
// of a real loss for a complex number has its derivatives for the parts as its own parts, so that
// all below holds for these.
Tensor reals(const Tensor& t) {
  const std::int64_t parts = is_complex(t.dtype()) ? 2 : 1;
  return Tensor(parts == 2 ? real_of(t.dtype()) : t.dtype(), Shape{t.elements() * parts},
                t.buffer(), t.offset());
}
Tensor like(const Tensor& t, Tensor reals) {
  return Tensor(t.dtype(), t.shape(), reals.buffer(), reals.offset());
}
Tensor any_like(const Tensor& t, double low, double high) {
  return like(t, any(reals(t).shape(), low, high));
}
Tensor weights(const Tensor& t) { return any_like(t, 0.5, 1.5); }

bool close(const Tensor& got_, const Tensor& want_) {
  if (got_.dtype() != want_.dtype() || got_.shape() != want_.shape()) return false;
  const Tensor got = reals(got_), want = reals(want_);
  if (got.dtype() != DType::f32 && got.dtype() != DType::f64) return Tensor::same(got, want);
  const double tolerance = got.dtype() == DType::f32 ? 1e-6 : 1e-12;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double a = at(got, i), b = at(want, i);
    const bool equal = a == b || (std::isnan(a) && std::isnan(b)) ||
                       std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
    if (!equal) return false;
  }
  return true;
}

// One for all rows: each that ends takes threads with it.
FakeDevice& fake_device() {
  static const auto device =
      make_fake_device(DeviceName::parse("/job:worker/task:0/fake:0").value());
  return *device;
}

// The row's kernel on the fake device; nullopt where it has none for these types.
std::optional<std::vector<Tensor>> on_fake(const OpCase& row, const NodeDef& node) {
  const OpInfo& op = *table().ops.find(row.op);
  auto made = table().kernels.make(node, op, "FAKE");
  if (!made.ok()) return std::nullopt;
  for (const Tensor& t : row.inputs)
    if (t.dtype() == DType::string) return std::nullopt;
  FakeDevice& device = fake_device();
  std::vector<Slot> in(row.inputs.size()), out(node.out_types.size());
  std::vector<std::uint32_t> slots;
  for (std::size_t i = 0; i < in.size(); ++i) {
    slots.push_back(std::uint32_t(i));
    const ArgSpec& arg = op.in[std::min(i, op.in.size() - 1)];
    in[i].tensor = row.inputs[i];
    if (arg.host) continue;
    in[i].tensor =
        Tensor::make(row.inputs[i].dtype(), row.inputs[i].shape(), device.allocator()).value();
    device.copy(row.inputs[i], in[i].tensor);
  }
  InlineLanes lanes;
  const KernelPlace place{.device = &device, .lanes = &lanes};
  KernelContext ctx({.slots = in.data(),
                     .input_slots = slots.data(),
                     .outputs = out.data(),
                     .inputs = std::uint16_t(in.size()),
                     .n_outputs = std::uint16_t(out.size()),
                     .place = &place});
  Status issued = (*made)->compute(ctx);
  REQUIRE_MESSAGE(issued.ok(), issued.text());
  std::vector<Tensor> results;
  for (Slot& slot : out) {
    if (slot.tensor.space() == MemorySpace::host) {
      results.push_back(slot.tensor);
      continue;
    }
    Tensor host =
        Tensor::make(slot.tensor.dtype(), slot.tensor.shape(), device.host_allocator()).value();
    std::promise<Status> copied;
    device.on_complete(device.copy(slot.tensor, host),
                       [&](Status s) { copied.set_value(std::move(s)); });
    Status status = copied.get_future().get();
    REQUIRE_MESSAGE(status.ok(), status.text());
    results.push_back(host);
  }
  return results;
}

// Ops of which a dimension is how many elements a kernel finds.
bool counts_elements(const std::string& op) {
  static const std::set<std::string> counting{
      "DynamicPartition", "DynamicStitch", "SegmentMax",  "SegmentMean", "SegmentMin",
      "SegmentProd",      "SegmentSum",    "StringSplit", "Unique",      "Where"};
  return counting.count(op) != 0;
}

// Everything but strings, and ops whose shapes depend on values.
bool expected_on_fake(const OpCase& row, const NodeDef& node) {
  bool text = false;
  for (const Tensor& t : row.inputs) text = text || t.dtype() == DType::string;
  for (DType t : node.out_types) text = text || t == DType::string;
  return !text && !counts_elements(row.op) && table().ops.find(row.op)->def.shape != &unknown_shape;
}

void check_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK_MESSAGE(Tensor::same(a[i], b[i]), a[i].text() << " and " << b[i].text());
}

void check_values(const OpCase& row) {
  Built known, unknown;
  for (Built* built : {&known, &unknown}) {
    Status added = built->add(row, built == &known);
    REQUIRE_MESSAGE(added.ok(), added.text());
  }
  const NodeDef& node = known.g.node(known.node.node());
  if (node.op == "Placeholder") return;
  auto out = evaluate(table(), node, row.inputs, inline_device());
  REQUIRE_MESSAGE(out.ok(), out.status().text());
  for (std::size_t i = 0; i < out->size(); ++i) {
    const Shape& shape = (*out)[i].shape();
    INFO("output " << i << " " << (*out)[i].text());
    if (counts_elements(row.op))
      CHECK(node.out_shapes[i].accepts(shape));
    else if (table().ops.find(row.op)->def.shape != &unknown_shape)
      CHECK(node.out_shapes[i] == PartialShape(shape));
    CHECK(unknown.g.node(unknown.node.node()).out_shapes[i].accepts(shape));
    if (i < row.want.size()) CHECK_MESSAGE(close((*out)[i], row.want[i]), row.want[i].text());
  }
  auto again = evaluate(table(), unknown.g.node(unknown.node.node()), row.inputs, inline_device());
  REQUIRE_MESSAGE(again.ok(), again.status().text());
  check_same(*out, *again);

  ThreeLanes lanes;
  std::vector<Tensor> own;
  for (const Tensor& t : row.inputs) own.push_back(t.clone().value());
  auto in_place =
      evaluate(table(), node, std::move(own), inline_device(), {.lanes = &lanes, .in_place = true});
  REQUIRE_MESSAGE(in_place.ok(), in_place.status().text());
  check_same(*out, *in_place);
  auto fake = on_fake(row, node);
  CHECK(fake.has_value() == expected_on_fake(row, node));
  if (fake) check_same(*out, *fake);
}

double along(const Tensor& gradient, const Tensor& direction) {
  const Tensor a = reals(gradient), b = reals(direction);
  double sum = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) sum += at(a, i) * at(b, i);
  return sum;
}

// The sum of `t` times fixed weights, part by part.
double weighted(const Tensor& t) { return along(t, weights(t)); }

// The sum over all float outputs: what is differentiated. `fed` by node.
double loss(const Built& built, const std::vector<Tensor>& fed) {
  std::vector<Tensor> inputs;
  for (Output input : built.inputs) inputs.push_back(fed[input.node()]);
  auto out = evaluate(table(), built.g.node(built.node.node()), std::move(inputs), inline_device());
  REQUIRE_MESSAGE(out.ok(), out.status().text());
  double sum = 0;
  for (const Tensor& t : *out)
    if (differentiable(t.dtype())) sum += weighted(t);
  return sum;
}

constexpr double kStep = 1e-6;

// The slope of `f`, a function of `values`, for element after element of value `i`.
template <class F>
Tensor finite_differences(const std::vector<Tensor>& values, std::size_t i, F&& f) {
  Tensor slope = values[i].clone().value(), parts = reals(slope);
  for (std::int64_t k = 0; k < parts.elements(); ++k) {
    auto at_offset = [&](double h) {
      std::vector<Tensor> moved = values;
      moved[i] = values[i].clone().value();
      reals(moved[i]).mutable_data<double>()[k] += h;
      return f(std::move(moved));
    };
    parts.mutable_data<double>()[k] = (at_offset(kStep) - at_offset(-kStep)) / (2 * kStep);
  }
  return slope;
}

void check_close(const Tensor& got_, const Tensor& want_) {
  REQUIRE(got_.shape() == want_.shape());
  REQUIRE(got_.dtype() == want_.dtype());
  const Tensor got = reals(got_), want = reals(want_);
  for (std::int64_t i = 0; i < want.elements(); ++i)
    CHECK(at(got, i) == doctest::Approx(at(want, i)).epsilon(2e-6).scale(1));
}

// The graph of a row with its gradients, and theirs: of the sum of all first gradients times fixed
// weights, for the inputs and for the gradients that arrived at the outputs.
struct Differentiated {
  Built built;
  std::vector<Output> xs, dxs;    // what is differentiated for, and the gradients
  std::vector<Output> xs2, dxs2;  // the xs and the arriving gradients; empty where none comes back

  Differentiated(const OpCase& row, bool known, std::optional<Pair> one) {
    Status added = built.add(row, known, one);
    REQUIRE_MESSAGE(added.ok(), added.text());
    for (int i : row.differentiate)
      if (!one || std::size_t(i) != one->second) xs.push_back(built.inputs[std::size_t(i)]);
    xs2 = xs;
    std::vector<Output> ys, dys;
    auto forward = values(built.feeds);
    for (Output y : built.node.outputs()) {
      if (!differentiable(y.dtype())) continue;
      ys.push_back(y);
      dys.push_back(fed(weights(of(forward, y))));
      xs2.push_back(dys.back());
    }
    auto first = gradients(ys, xs, dys);
    REQUIRE_MESSAGE(first.ok(), first.status().text());
    dxs = *first;
    for (Output dx : dxs) REQUIRE(!dx.empty());
    if (row.orders < 2) {
      xs2.clear();
      return;
    }
    forward = values(built.feeds);
    std::vector<Output> ddys;
    for (Output dx : dxs) ddys.push_back(fed(weights(of(forward, dx))));
    auto second = gradients(dxs, xs2, ddys);
    REQUIRE_MESSAGE(second.ok(), second.status().text());
    dxs2 = *second;
  }

  using Values = std::vector<std::vector<Tensor>>;
  static const Tensor& of(const Values& values, Output o) {
    return values[o.node()][o.port().index];
  }
  Values values(const std::vector<Tensor>& feeds) const {
    auto run = built.run(feeds);
    REQUIRE_MESSAGE(run.ok(), run.status().text());
    return std::move(run).value();
  }

 private:
  Output fed(const Tensor& value) {
    Output o = built.g.add("Placeholder", {}, {{"T", value.dtype()}, {"shape", value.shape()}});
    built.feeds.resize(built.g.def().nodes.size());
    built.feeds[o.node()] = value;
    return o;
  }
};

using Slope = std::function<double(const std::vector<Tensor>& feeds)>;
// `got` is the gradient of `f` for feed `x`: element by element, or along one direction alone.
void check_gradient(const Tensor& got, const std::vector<Tensor>& feeds, std::size_t x,
                    const Slope& f, bool element_by_element) {
  if (element_by_element) return check_close(got, finite_differences(feeds, x, f));
  REQUIRE(got.shape() == feeds[x].shape());
  const Tensor direction = any_like(got, -2, 3), steps = reals(direction);
  const auto moved = [&](double h) {
    std::vector<Tensor> there = feeds;
    there[x] = feeds[x].clone().value();
    Tensor parts = reals(there[x]);
    for (std::int64_t i = 0; i < steps.elements(); ++i)
      parts.mutable_data<double>()[i] += h * at(steps, i);
    return f(there);
  };
  const double want = (moved(kStep) - moved(-kStep)) / (2 * kStep);
  CHECK(along(got, direction) == doctest::Approx(want).epsilon(4e-6).scale(1));
}

// First order, element by element, and second, unless the row says otherwise, along one direction:
// an element that is wrong changes that, too. Along one as well where shapes are unknown, as the
// formulas are the same ones, and for a pair: there are many pairs.
void check_gradients(const OpCase& row, bool known, std::optional<Pair> one = {}) {
  const Differentiated d(row, known, one);
  const auto values = d.values(d.built.feeds);
  for (std::size_t k = 0; k < d.xs.size(); ++k) {
    INFO("gradient " << k << (known ? "" : ", shapes unknown"));
    const Tensor& got = d.of(values, d.dxs[k]);
    CHECK(d.dxs[k].shape().accepts(got.shape()));
    check_gradient(
        got, d.built.feeds, d.xs[k].node(), [&](const auto& fed) { return loss(d.built, fed); },
        !one && known);
  }
  const Slope slope = [&](const std::vector<Tensor>& feeds) {
    const auto moved = d.values(feeds);
    double sum = 0;
    for (Output dx : d.dxs) sum += weighted(d.of(moved, dx));
    return sum;
  };
  for (std::size_t k = 0; k < d.xs2.size(); ++k) {
    INFO("second order, for " << (k < d.xs.size() ? "an input, " : "an arriving gradient, ") << k
                              << (known ? "" : ", shapes unknown"));
    const std::size_t x = d.xs2[k].node();
    const Output got = d.dxs2[k];
    const Tensor& fed = d.built.feeds[x];
    const Tensor zeros = Tensor::zeros(fed.dtype(), fed.shape()).value();
    check_gradient(got.empty() ? zeros : d.of(values, got), d.built.feeds, x, slope, false);
  }
}

// A kernel on one tensor given twice does what it does on two equal ones, lanes and memory aside.
void check_values(const OpCase& row, Pair one) {
  Built built;
  Status added = built.add(row, true, one);
  if (!added.ok()) return;  // the other value does not do
  const NodeDef& node = built.g.node(built.node.node());
  if (node.op == "Placeholder") return;
  std::vector<Tensor> equal, same;
  for (const Tensor& t : row.inputs) {
    equal.push_back(t);
    same.push_back(t.clone().value());
  }
  equal[one.second] = equal[one.first].clone().value();
  same[one.second] = same[one.first];
  auto out = evaluate(table(), node, std::move(equal), inline_device());
  ThreeLanes lanes;
  auto again = evaluate(table(), node, std::move(same), inline_device(),
                        {.lanes = &lanes, .in_place = true});
  REQUIRE(out.ok() == again.ok());
  if (out.ok()) check_same(*out, *again);
}

// Inputs that could be one tensor.
std::vector<Pair> pairs(const OpCase& row) {
  std::vector<Pair> all;
  for (std::size_t j = 0; j < row.inputs.size(); ++j)
    for (std::size_t i = 0; i < j; ++i)
      if (row.inputs[i].dtype() == row.inputs[j].dtype() &&
          row.inputs[i].shape() == row.inputs[j].shape())
        all.push_back({i, j});
  return all;
}

bool differentiates(const OpCase& row, std::size_t i) {
  return std::count(row.differentiate.begin(), row.differentiate.end(), int(i)) > 0;
}
// Elsewhere a finite difference would see a change that the op keeps no gradient for.
bool differentiates(const OpCase& row, Pair one) {
  return differentiates(row, one.first) && differentiates(row, one.second);
}

// Refused while the graph is built or, where too little is known then, at run time.
void check_hostile(const OpCase& row) {
  for (bool known : {true, false}) {
    Built built;
    Status status = built.add(row, known);
    if (status.ok()) status = built.run(built.feeds).status();
    INFO((known ? "shapes known" : "shapes unknown"));
    CHECK_MESSAGE(!status.ok(), "accepted");
    CHECK_MESSAGE(status.text().find(row.error) != std::string::npos, status.text());
  }
}

std::string about(const OpCase& row) {
  std::string text = row.op;
  for (const Tensor& t : row.inputs) text += " " + t.text(4);
  for (auto& [name, value] : row.attrs) text += " " + name + "=" + value.text();
  return text;
}

void check_row(const OpCase& row) {
  INFO(about(row));
  REQUIRE(table().ops.find(row.op) != nullptr);
  if (!row.error.empty()) return check_hostile(row);
  check_values(row);
  if (row.differentiate.empty()) return;
  for (bool known : {true, false}) check_gradients(row, known);
}

void check_pairs(const OpCase& row) {
  if (!row.error.empty()) return;
  for (Pair one : pairs(row)) {
    INFO(about(row) << ", where input " << one.second << " is input " << one.first);
    check_values(row, one);
    if (differentiates(row, one)) check_gradients(row, true, one);
  }
}

const std::map<std::string, Cases>& rows_by_op() {
  static const auto rows = [] {
    std::map<std::string, Cases> by_op;
    for (auto make : AddCases::all())
      for (OpCase& row : make()) by_op[row.op].push_back(std::move(row));
    return by_op;
  }();
  return rows;
}

// Whose rows are graphs: lists_test.cpp.
bool works_on_lists(const OpInfo& op) {
  auto is_list = [](const ArgSpec& arg) { return arg.dtype == DType::list; };
  return std::any_of(op.in.begin(), op.in.end(), is_list) ||
         std::any_of(op.out.begin(), op.out.end(), is_list);
}

}  // namespace

TEST_CASE("every op does what its definition says") {
  for (const auto& [op, rows] : rows_by_op())
    for (const OpCase& row : rows) check_row(row);
}

TEST_CASE("every op, and its gradients, take two inputs that are one tensor") {
  for (const auto& [op, rows] : rows_by_op())
    for (const OpCase& row : rows) check_pairs(row);
}

TEST_CASE("every pair of inputs that could be one tensor is one in some row") {
  std::set<std::string> missing;
  for (const auto& [its_op, rows] : rows_by_op()) {
    const std::string& op = its_op;
    std::set<std::string> tried, differentiated;
    for (const OpCase& row : rows) {
      const auto name = [&](std::size_t i, std::size_t j) {
        return op + " " + std::to_string(i) + "," + std::to_string(j);
      };
      if (!row.error.empty()) continue;
      for (std::size_t j = 0; j < row.inputs.size(); ++j)
        for (std::size_t i = 0; i < j; ++i)
          if (differentiates(row, {i, j})) differentiated.insert(name(i, j));
      for (Pair one : pairs(row))
        if (differentiates(row, one)) tried.insert(name(one.first, one.second));
    }
    std::set_difference(differentiated.begin(), differentiated.end(), tried.begin(), tried.end(),
                        std::inserter(missing, missing.end()));
  }
  // Gates are four times as wide as states, sequences have a dimension more than weights, pictures
  // than scales, logits have two more than losses, and queries one more than their stats, input 5.
  const auto differ = [](const std::string& pair) {
    return pair.starts_with("Lstm") || pair.starts_with("CTCLoss") ||
           pair.starts_with("GroupNorm") ||
           (contains(pair, "AttentionGrad") && pair.ends_with(",5"));
  };
  for (const std::string& pair : missing) CHECK_MESSAGE(differ(pair), pair);
}

TEST_CASE("every op is documented, has a shape function and a row in the tables") {
  std::set<std::string> tried, differentiated;
  for (const auto& [op, rows] : rows_by_op())
    for (const OpCase& row : rows) {
      if (row.error.empty()) tried.insert(op);
      if (!row.differentiate.empty()) differentiated.insert(op);
    }
  for (const OpInfo* op : table().ops.all()) {
    INFO(op->def.name);
    CHECK(op->def.doc.size() > 4);
    if (op->def.composite == nullptr) CHECK((op->def.shape != nullptr));
    if (op->def.composite == nullptr)
      CHECK_MESSAGE((op->def.grad != nullptr) == op->def.no_gradient.empty(),
                    "neither a gradient nor the reason why there is none");
    if (!op->def.added.empty()) {
      const OpInfo* sum = table().ops.find(op->def.added);
      REQUIRE(sum != nullptr);
      REQUIRE(sum->in.size() == op->in.size() + 1);
      for (std::size_t i = 0; i < op->in.size(); ++i) CHECK(sum->in[i + 1].name == op->in[i].name);
    }
    const bool kernel = op->def.role == Role::kernel && op->def.composite == nullptr;
    CHECK((table().kernels.find(op->def.name, "CPU") != nullptr) >= kernel);
    if (!kernel || works_on_lists(*op)) continue;
    if (op->def.name.starts_with('_') && tried.count(op->def.name) == 0) {
      // the rule of a write, which loops run
      CHECK(table().ops.find(op->def.name.substr(1)) != nullptr);
      continue;
    }
    CHECK_MESSAGE(tried.count(op->def.name) == 1, "no row for this op");
    if (op->def.grad != nullptr)
      CHECK_MESSAGE(differentiated.count(op->def.name) == 1, "no row differentiates this op");
  }
}

}  // namespace troupe::test
