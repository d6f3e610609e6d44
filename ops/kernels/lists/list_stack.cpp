// ListStack: the elements of a list as one tensor.
#include <algorithm>

#include "ops/kernels/lists/elements.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/moves.hpp"

using namespace troupe;

namespace {

// A type of elements and a shape of rows -> the tensor.
Expected<Tensor> stacked(KernelContext& c, DType dtype, const Shape& row) {
  const List& list = list_in(c.input(0));
  std::vector<std::int64_t> dims(row.dims().begin(), row.dims().end());
  dims.insert(dims.begin(), list.size());
  TROUPE_TRY(Shape shape, Shape::make(dims));
  std::vector<Tensor> elements;
  elements.reserve(std::size_t(list.size()));
  list.for_each([&](const Tensor& element) { elements.push_back(element); });
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i].dtype() != dtype || elements[i].shape() != row)
      return invalid_argument(fmt::format(
          "element {} is {}{}, where {}{} is stacked", i, dtype_name(elements[i].dtype()),
          elements[i].shape().text(), dtype_name(dtype), row.text()));
  TROUPE_TRY(Tensor y, c.allocate(dtype, shape));
  if (y.elements() == 0) return y;
  const Moves moves(dtype);
  const std::int64_t n = row.elements();
  const Chunks chunks = row_chunks(list.size(), n);
  c.parallel(chunks.count, [&](std::int64_t chunk) {
    const Range r = chunks[chunk];
    for (std::int64_t i = r.begin; i < r.end; ++i) {
      const Tensor& element = elements[std::size_t(i)];
      void* to = moves.at(y.mutable_raw(), i * n);
      if (!element.zeros_alone())
        moves.copy(element.raw(), n, to);
      else if (dtype != DType::string)
        std::memset(to, 0, element.bytes());
    }
  });
  return y;
}

Status list_stack_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape row, element_shape(c));
  if (!row.known_rank()) return ok_status();
  auto dims = row.dims();
  dims.insert(dims.begin(), std::max<std::int64_t>(c.int_attr("length"), PartialShape::kUnknown));
  TROUPE_TRY(PartialShape shape, PartialShape::make(dims));
  c.set(0, std::move(shape));
  return ok_status();
}
struct ListStack final : Kernel {
  explicit ListStack(const KernelSpec& s) : element(s), length(s.int_attr("length")) {
    // What the graph knows of the list as well.
    if (element.shape.fully_known() || s.node.out_shapes.size() != 1) return;
    const PartialShape& whole = s.node.out_shapes[0];
    if (!whole.known_rank() || whole.rank() == 0) return;
    auto dims = whole.dims();
    dims.erase(dims.begin());
    if (auto row = PartialShape::make(dims); row.ok()) element.shape = *row;
  }
  Status compute(KernelContext& c) override {
    const List& list = list_in(c.input(0));
    if (length >= 0 && list.size() != length)
      return invalid_argument(fmt::format("the list has {} elements, not {}", list.size(), length));
    if (list.empty() && !element.shape.fully_known())
      return invalid_argument("an empty list is stacked, whose elements have shape " +
                              element.shape.text() + "; it must be known");
    const Shape row = list.empty() ? element.shape.shape() : list.get(0).shape();
    if (!element.shape.accepts(row))
      return invalid_argument(fmt::format("the elements of the list have shape {}, not {}",
                                          row.text(), element.shape.text()));
    TROUPE_TRY(Tensor y, stacked(c, element.dtype, row));
    c.set_output(0, std::move(y));
    return ok_status();
  }
  ElementType element;
  std::int64_t length;
};
std::vector<Output> list_stack_grad(GradContext& c) { return {c.g.add("ListUnstack", {c.dy[0]})}; }

// The gradient of ListUnstack: of a shape that is given, as there may be no element to ask.
struct ListUnstackGrad final : Kernel {
  explicit ListUnstackGrad(const KernelSpec& s) : dtype(s.type()) {}
  Status compute(KernelContext& c) override {
    TROUPE_TRY(auto dims, host_ints(c.input(1), "shape"));
    const std::int64_t size = list_in(c.input(0)).size();
    if (dims.empty() || dims[0] != size)
      return invalid_argument(
          fmt::format("a list of {} elements is no tensor of that shape", size));
    dims.erase(dims.begin());
    TROUPE_TRY(Shape row, checked_shape(dims));
    TROUPE_TRY(Tensor y, stacked(c, dtype, row));
    c.set_output(0, std::move(y));
    return ok_status();
  }
  DType dtype;
};
Status list_unstack_grad_shape(InferenceContext& c) { return set_shape_from(c, 1); }
std::vector<Output> list_unstack_grad_grad(GradContext& c) {
  return {c.g.add("ListUnstack", {c.dy[0]}), Output()};
}

}  // namespace

TROUPE_OPS(list_stack) {
  r.add({.name = "ListStack",
         .in = {"list: list"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"T: type", "shape: shape = ?", "length: int = -1"},
         .shape = list_stack_shape,
         .grad = list_stack_grad,
         .doc = "The elements of the list, all of type T and of one shape, stacked along a new "
                "first dimension; their number must be `length` unless that is negative. For an "
                "empty list, the list or `shape` must define the shape of elements."})
      .cpu(make_kernel<ListStack>);
  r.add({.name = "ListUnstackGrad",
         .in = {"dlist: list", "shape: i64"},
         .out = {"dx"},
         .types = kAllTypes,
         .attrs = {"T: type"},
         .shape = list_unstack_grad_shape,
         .grad = list_unstack_grad_grad,
         .host = {"shape"},
         .doc = "The elements of the list stacked into a tensor of that shape: the gradient of "
                "ListUnstack."})
      .cpu(make_kernel<ListUnstackGrad>);
}
