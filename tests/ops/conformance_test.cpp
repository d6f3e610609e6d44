// Every registered op, row by row of the tables in cases_*.cpp:
//   - the shape known before the run is the shape at run time, from known and from unknown inputs
//   - one lane, three lanes, overwritten inputs and the fake device give the same bits
//   - gradients equal finite differences, with known shapes and with unknown ones
//   - hostile rows are answered with a Status
// and every op has a documentation, a shape function and a row.
#include "tests/ops/conformance.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <future>
#include <set>

#include "tests/ops/nn_kernels.hpp"
#include "troupe/devices/cpu/cpu_device.hpp"
#include "troupe/devices/fake/fake_device.hpp"
#include "troupe/graph/gradients.hpp"
#include "troupe/ops/evaluate.hpp"

namespace troupe::test {
namespace {

const OpTable& table() { return ops::builtin(); }

// The row as a graph of one node behind placeholders. Host arguments are constants when `known`,
// and the placeholders have the shapes of the inputs; else nothing is known.
struct Built {
  GraphBuilder g{table().ops};
  std::vector<Output> inputs;
  std::vector<Tensor> feeds;  // by node
  Op node;

  Status add(const OpCase& row, bool known) {
    const OpInfo& op = *table().ops.find(row.op);
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
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
    auto added = g.try_add({.op = row.op, .inputs = inputs, .attrs = row.attrs});
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

Tensor weights(const Shape& shape) { return any(shape, 0.5, 1.5); }

bool close(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) return false;
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

// The row's kernel on the fake device; nullopt where it has none for these types.
std::optional<std::vector<Tensor>> on_fake(const OpCase& row, const NodeDef& node) {
  const OpInfo& op = *table().ops.find(row.op);
  auto made = table().kernels.make(node, op, "FAKE");
  if (!made.ok()) return std::nullopt;
  for (const Tensor& t : row.inputs)
    if (t.dtype() == DType::string) return std::nullopt;
  auto device = make_fake_device(DeviceName::parse("/job:worker/task:0/fake:0").value());
  std::vector<Slot> in(row.inputs.size()), out(node.out_types.size());
  std::vector<std::uint32_t> slots;
  for (std::size_t i = 0; i < in.size(); ++i) {
    slots.push_back(std::uint32_t(i));
    const ArgSpec& arg = op.in[std::min(i, op.in.size() - 1)];
    in[i].tensor = row.inputs[i];
    if (arg.host) continue;
    in[i].tensor =
        Tensor::make(row.inputs[i].dtype(), row.inputs[i].shape(), device->allocator()).value();
    device->copy(row.inputs[i], in[i].tensor);
  }
  InlineLanes lanes;
  KernelContext ctx({.slots = in.data(),
                     .input_slots = slots.data(),
                     .outputs = out.data(),
                     .inputs = std::uint16_t(in.size()),
                     .n_outputs = std::uint16_t(out.size()),
                     .device = device.get(),
                     .lanes = &lanes});
  Status issued = (*made)->compute(ctx);
  REQUIRE_MESSAGE(issued.ok(), issued.text());
  std::vector<Tensor> results;
  for (Slot& slot : out) {
    if (slot.tensor.space() == MemorySpace::host) {
      results.push_back(slot.tensor);
      continue;
    }
    Tensor host =
        Tensor::make(slot.tensor.dtype(), slot.tensor.shape(), device->host_allocator()).value();
    std::promise<Status> copied;
    device->on_complete(device->copy(slot.tensor, host),
                        [&](Status s) { copied.set_value(std::move(s)); });
    Status status = copied.get_future().get();
    REQUIRE_MESSAGE(status.ok(), status.text());
    results.push_back(host);
  }
  return results;
}

// Everything but strings, and ops whose shapes depend on values.
bool expected_on_fake(const OpCase& row, const NodeDef& node) {
  bool text = false;
  for (const Tensor& t : row.inputs) text = text || t.dtype() == DType::string;
  for (DType t : node.out_types) text = text || t == DType::string;
  return !text && table().ops.find(row.op)->def.shape != &unknown_shape;
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
    if (table().ops.find(row.op)->def.shape != &unknown_shape)
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

// The sum of all float outputs times fixed weights: what is differentiated.
double loss(const Built& built, const OpCase& row, std::vector<Tensor> inputs) {
  auto out = evaluate(table(), built.g.node(built.node.node()), std::move(inputs), inline_device());
  REQUIRE_MESSAGE(out.ok(), out.status().text());
  double sum = 0;
  for (const Tensor& t : *out) {
    if (t.dtype() != DType::f64) continue;
    Tensor w = weights(t.shape());
    for (std::int64_t i = 0; i < t.elements(); ++i) sum += at(t, i) * at(w, i);
  }
  (void)row;
  return sum;
}

Tensor finite_differences(const Built& built, const OpCase& row, int input) {
  constexpr double kStep = 1e-6;
  Tensor slope = row.inputs[std::size_t(input)].clone().value();
  for (std::int64_t i = 0; i < slope.elements(); ++i) {
    auto at_offset = [&](double h) {
      std::vector<Tensor> inputs = row.inputs;
      Tensor moved = inputs[std::size_t(input)].clone().value();
      moved.mutable_data<double>()[i] += h;
      inputs[std::size_t(input)] = moved;
      return loss(built, row, std::move(inputs));
    };
    slope.mutable_data<double>()[i] = (at_offset(kStep) - at_offset(-kStep)) / (2 * kStep);
  }
  return slope;
}

void check_gradients(const OpCase& row, bool known) {
  Built built;
  Status added = built.add(row, known);
  REQUIRE_MESSAGE(added.ok(), added.text());
  auto forward = built.run(built.feeds);
  REQUIRE_MESSAGE(forward.ok(), forward.status().text());
  std::vector<Output> ys, xs, dys;
  for (Output y : built.node.outputs()) {
    if (y.dtype() != DType::f64) continue;
    ys.push_back(y);
    const Shape& shape = (*forward)[y.node()][y.port().index].shape();
    dys.push_back(built.g.add("Const", {}, {{"T", DType::f64}, {"value", weights(shape)}}));
  }
  for (int i : row.differentiate) xs.push_back(built.inputs[std::size_t(i)]);
  auto dxs = gradients(ys, xs, dys);
  REQUIRE_MESSAGE(dxs.ok(), dxs.status().text());
  auto values = built.run(built.feeds);
  REQUIRE_MESSAGE(values.ok(), values.status().text());
  for (std::size_t k = 0; k < xs.size(); ++k) {
    INFO("gradient of input " << row.differentiate[k] << (known ? "" : ", shapes unknown"));
    REQUIRE(!(*dxs)[k].empty());
    const Tensor& got = (*values)[(*dxs)[k].node()][(*dxs)[k].port().index];
    Tensor want = finite_differences(built, row, row.differentiate[k]);
    REQUIRE(got.shape() == want.shape());
    CHECK((*dxs)[k].shape().accepts(got.shape()));
    for (std::int64_t i = 0; i < want.elements(); ++i)
      CHECK(at(got, i) == doctest::Approx(at(want, i)).epsilon(2e-6).scale(1));
  }
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

}  // namespace

TEST_CASE("every op does what its definition says") {
  int rows = 0;
  for (auto make : AddCases::all())
    for (const OpCase& row : make()) {
      std::string about = row.op;
      for (const Tensor& t : row.inputs) about += " " + t.text(4);
      for (auto& [name, value] : row.attrs) about += " " + name + "=" + value.text();
      INFO(about);
      REQUIRE(table().ops.find(row.op) != nullptr);
      ++rows;
      if (!row.error.empty()) {
        check_hostile(row);
        continue;
      }
      check_values(row);
      if (row.differentiate.empty()) continue;
      check_gradients(row, true);
      check_gradients(row, false);
    }
  MESSAGE(rows << " rows");
}

TEST_CASE("every op is documented, has a shape function and a row in the tables") {
  std::set<std::string> tried, differentiated;
  for (auto make : AddCases::all())
    for (const OpCase& row : make()) {
      if (row.error.empty()) tried.insert(row.op);
      if (!row.differentiate.empty()) differentiated.insert(row.op);
    }
  for (const OpInfo* op : table().ops.all()) {
    INFO(op->def.name);
    CHECK(op->def.doc.size() > 4);
    if (op->def.composite == nullptr) CHECK((op->def.shape != nullptr));
    const bool kernel = op->def.role == Role::kernel && op->def.composite == nullptr;
    CHECK((table().kernels.find(op->def.name, "CPU") != nullptr) >= kernel);
    if (!kernel) continue;
    CHECK_MESSAGE(tried.count(op->def.name) == 1, "no row for this op");
    if (op->def.grad != nullptr)
      CHECK_MESSAGE(differentiated.count(op->def.name) == 1, "no row differentiates this op");
  }
}

}  // namespace troupe::test
