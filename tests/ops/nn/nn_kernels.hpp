// Runs single kernels of ops::builtin() for the nn_*_test.cpp files.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "devices/cpu/cpu_device.hpp"
#include "ops/evaluate.hpp"
#include "ops/op.hpp"

namespace troupe::test {

inline Device& inline_device() {
  static std::unique_ptr<Device> device =
      make_inline_device(DeviceName::parse("/job:worker/task:0/cpu:0").value());
  return *device;
}

// Chunks on three threads, in an order that changes from call to call.
class ThreeLanes final : public Lanes {
 public:
  void parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) override {
    std::atomic<std::int64_t> next{0};
    auto work = [&] {
      for (std::int64_t i; (i = next.fetch_add(1)) < chunks;) chunk(chunks - 1 - i);
    };
    std::thread a(work), b(work);
    work();
    a.join();
    b.join();
  }
  int count() const override { return 3; }
};

// A node of `op` whose attributes are `attrs` and, for the rest, the defaults.
inline NodeDef make_node(const std::string& op, const std::vector<Tensor>& inputs, AttrMap attrs) {
  const OpInfo* info = ops::builtin().ops.find(op);
  REQUIRE_MESSAGE(info != nullptr, op);
  NodeDef node;
  node.name = "n";
  node.op = op;
  node.attrs = std::move(attrs);
  node.inputs.resize(inputs.size());
  for (std::size_t i = 0; i < info->in.size(); ++i)
    if (info->in[i].kind == ArgSpec::Kind::attr)
      node.attrs.emplace(info->in[i].type_attr, inputs[i].dtype());
  for (const AttrSpec& a : info->attrs)
    if (a.fallback) node.attrs.emplace(a.name, *a.fallback);
  for (const ArgSpec& out : info->out) node.out_types.push_back(out.type(node.attrs));
  return node;
}

inline Expected<std::vector<Tensor>> try_run(const std::string& op, std::vector<Tensor> inputs,
                                             AttrMap attrs = {}, EvaluateOptions options = {}) {
  NodeDef node = make_node(op, inputs, std::move(attrs));
  return evaluate(ops::builtin(), node, std::move(inputs), inline_device(), options);
}

// All outputs; checks on the way that three lanes give the same bits, and that overwriting an
// input gives the same bits too.
inline std::vector<Tensor> run(const std::string& op, const std::vector<Tensor>& inputs,
                               AttrMap attrs = {}) {
  auto out = try_run(op, inputs, attrs);
  REQUIRE_MESSAGE(out.ok(), out.status().text());
  ThreeLanes lanes;
  std::vector<Tensor> own;
  for (const Tensor& t : inputs) own.push_back(t.clone().value());
  auto again = try_run(op, std::move(own), attrs, {.lanes = &lanes, .in_place = true});
  REQUIRE_MESSAGE(again.ok(), again.status().text());
  for (std::size_t i = 0; i < out->size(); ++i) {
    INFO(op << " output " << i << " " << (*out)[i].shape().text());
    REQUIRE(Tensor::same((*out)[i], (*again)[i]));
  }
  return std::move(out).value();
}

// Rounded once; sizes and labels, which are i64, as they are.
inline Tensor converted(const Tensor& x, DType to) {
  return x.dtype() == DType::i64 ? x : run("Cast", {x}, {{"to", to}})[0];
}
inline std::vector<Tensor> converted(std::vector<Tensor> all, DType to) {
  for (Tensor& x : all) x = converted(x, to);
  return all;
}

// Uniform in [-1, 1), f64.
inline Tensor random_f64(std::mt19937_64& rng, const Shape& shape) {
  Tensor t = Tensor::make(DType::f64, shape).value();
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data<double>()[i] = double(rng() >> 11) * 0x1p-52 - 1;
  return t;
}

inline Tensor to_f32(const Tensor& t) {
  Tensor out = Tensor::make(DType::f32, t.shape()).value();
  for (std::int64_t i = 0; i < t.elements(); ++i)
    out.mutable_data<float>()[i] = float(t.data<double>()[i]);
  return out;
}

inline double at(const Tensor& t, std::int64_t i) {
  return t.dtype() == DType::f32 ? double(t.data<float>()[i]) : t.data<double>()[i];
}

// Same shape, and every element within tolerance * max(1, largest |want|).
inline void check_close(const Tensor& got, const Tensor& want, double tolerance) {
  REQUIRE(got.shape() == want.shape());
  double scale = 1, worst = 0;
  std::int64_t where = 0;
  for (std::int64_t i = 0; i < want.elements(); ++i) scale = std::max(scale, std::abs(at(want, i)));
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    double error = std::abs(at(got, i) - at(want, i));
    if (!(error <= worst)) worst = error, where = i;  // NaN too
  }
  INFO("element " << where << ": " << (want.elements() ? at(got, where) : 0) << " for "
                  << (want.elements() ? at(want, where) : 0));
  CHECK(worst <= tolerance * scale);
}

// Runs `op` in f32 and in f64 on the same f64 inputs, each against `want`.
inline void check_op(const std::string& op, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& want, AttrMap attrs = {}, double f32_error = 2e-6) {
  std::vector<Tensor> narrow;
  for (const Tensor& t : inputs) narrow.push_back(t.dtype() == DType::f64 ? to_f32(t) : t);
  auto wide = run(op, inputs, attrs), single = run(op, narrow, attrs);
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO(op << " output " << i);
    check_close(wide[i], want[i], 1e-12);
    check_close(single[i], want[i], f32_error);
  }
}

inline std::uint64_t test_seed() {
  static const std::uint64_t seed = std::random_device{}();
  return seed;
}

}  // namespace troupe::test
