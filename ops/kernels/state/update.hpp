// What the update rules share: the shape function of a write and the loop over a variable.
//
// A write op's first inputs are handles, then operands. Its CPU kernel is the rule: at commit it is
// called with the current values of the handles followed by the operands, and its outputs are the
// new values in the order of the handles, written over the old ones where nobody else holds them.
// The shape function of a write checks everything that could make the rule fail, so it can be asked
// again, with the shapes that the variables have by then, when a write is logged.
#pragma once

#include <algorithm>
#include <concepts>

#include "devices/chunks.hpp"
#include "graph/control/state/state_ops.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

namespace troupe {

// The definition of a dense write: `def` has its name, inputs, types, doc and what is combined.
OpDef dense_update(OpDef def);

// A rule that does nothing unless its last operand, a truth value, is true. The handles keep their
// values then.
std::unique_ptr<Kernel> only_when(const KernelSpec& spec, std::unique_ptr<Kernel> rule);
template <KernelFactory kRule>
Expected<std::unique_ptr<Kernel>> only_when(const KernelSpec& spec) {
  TROUPE_TRY(auto rule, kRule(spec));
  return only_when(spec, std::move(rule));
}

// --- writes in loops ---

// A dense write as an op on values, "_NAME", for loops (graph/control/state/state_ops.hpp): of the
// handles it takes the values, and returns the new ones.
OpDef rule_on_values_op(const OpDef& write);

// The rule behind it, on what it has not seen before.
std::unique_ptr<Kernel> checked_rule(const KernelSpec& spec, std::unique_ptr<Kernel> rule);
template <KernelFactory kRule>
Expected<std::unique_ptr<Kernel>> checked_rule(const KernelSpec& spec) {
  TROUPE_TRY(auto rule, kRule(spec));
  return checked_rule(spec, std::move(rule));
}

template <KernelFactory kRule>
void add_write(OpTable& table, const OpDef& def) {
  table.add(dense_update(def)).cpu(kRule);
  table.add(rule_on_values_op(dense_update(def))).cpu(checked_rule<kRule>);
}

// The definition of "NAMEWhen" beside that of "NAME".
OpDef only_when(const OpDef& write);

// The same with a rule for GPUs (ops/cuda/update.hpp). "NAMEWhen" runs on the CPU beside them.
template <KernelFactory kRule, KernelFactory kGpuRule>
void add_update(OpTable& table, const OpDef& def) {
  table.add(dense_update(def)).cpu(kRule).cuda(kGpuRule);
  table.add(rule_on_values_op(dense_update(def))).cpu(checked_rule<kRule>);
  add_write<only_when<kRule>>(table, only_when(def));
}

// Registers a dense write with its rule, and beside "NAME" the same as "NAMEWhen", which has one
// more operand: a run in which that is false changes nothing. Of both also what they do to values.
template <KernelFactory kRule>
void add_update(OpTable& table, const OpDef& def) {
  add_write<kRule>(table, def);
  add_write<only_when<kRule>>(table, only_when(def));
}

// A rule computes with the parts of complex numbers: to it a complex tensor is one of real numbers
// with twice as many elements, as PyTorch's view_as_real makes of it. T is the type of the parts.
template <class T>
bool has_parts(const Tensor& t) {
  if constexpr (std::is_floating_point_v<T>) return t.dtype() == dtype_of<std::complex<T>>;
  return false;
}
template <class T>
const T* parts_of(const Tensor& t) {
  if (has_parts<T>(t)) return static_cast<const T*>(t.raw());
  return t.data<T>();
}
template <class T>
T* mutable_parts_of(Tensor& t) {
  if (has_parts<T>(t)) return static_cast<T*>(t.mutable_raw());
  return t.mutable_data<T>();
}
// f<T>() with the T in which a rule computes for variables of `dtype`: f32 f64 c64 c128.
template <class F>
Status with_parts(DType dtype, F&& f) {
  if (dtype == DType::f32 || dtype == DType::c64) return f(TypeTag<float>{});
  return f(TypeTag<double>{});
}
inline constexpr const char* kRealsAndComplex = "f32 f64 c64 c128";

// The value of scalar operand `i`; of a complex one the real part.
template <class T>
T scalar_operand(const KernelContext& c, int i) {
  return *parts_of<T>(c.input(i));
}

// The new value of a handle while a rule makes it: in the old one's memory when that may be
// overwritten, else in memory of its own.
template <class T>
class NewValue {
 public:
  static Expected<NewValue> of(const KernelContext& c, int i) {
    TROUPE_TRY(Tensor tensor, c.reuse_or_allocate(i, c.input(i).dtype(), c.input(i).shape()));
    return NewValue(parts_of<T>(c.input(i)), std::move(tensor));
  }

  // Elements [begin, end), which are the old ones until they are written.
  T* bring(std::int64_t begin, std::int64_t end) const {
    if (old_ != data_) std::copy(old_ + begin, old_ + end, data_ + begin);
    return data_ + begin;
  }
  // Where these elements will be, for who asks for them ahead.
  const T* at(std::int64_t begin) const { return data_ + begin; }
  // All elements, for a rule that writes few of them.
  void bring_all(const KernelContext& c) const {
    if (old_ == data_) return;
    const Chunks chunks = elementwise_chunks(elements());
    c.parallel(chunks.count, [&](std::int64_t i) { bring(chunks[i].begin, chunks[i].end); });
  }
  // As many T: of complex numbers each has two.
  std::int64_t elements() const { return (has_parts<T>(tensor_) ? 2 : 1) * tensor_.elements(); }
  Tensor take() { return std::move(tensor_); }

 private:
  NewValue(const T* old, Tensor tensor)
      : old_(old), tensor_(std::move(tensor)), data_(mutable_parts_of<T>(tensor_)) {}

  const T* old_;
  Tensor tensor_;
  T* data_;
};

// f(values[i]..., operand[i]) for every i. Nothing of it overlaps: memory that an operand or
// another handle shares is not overwritten. The compiler has to know, or it will not vectorise.
template <class T, class F, class... Values>
void update_range(F f, std::int64_t n, const T* __restrict operand, Values* __restrict... values) {
  for (std::int64_t i = 0; i < n; ++i) f(values[i]..., operand[i]);
}

// The same over whole variables, in chunks on the lanes.
template <class T, class F>
void update_elements(const KernelContext& c, const T* operand, F f,
                     const std::same_as<NewValue<T>> auto&... values) {
  const Chunks chunks = elementwise_chunks((values.elements(), ...));
  c.parallel(chunks.count, [&](std::int64_t i) {
    const Range r = chunks[i];
    update_range<T>(f, r.size(), operand + r.begin, values.bring(r.begin, r.end)...);
  });
}

}  // namespace troupe
