#include "ops/api/tensor_array.hpp"

#include "ops/api/generated.hpp"
#include "ops/api/node.hpp"

namespace troupe {
namespace {

// A run checks what is not known of its shape.
Output with_shape(const Output& value, const PartialShape& element, const Site& site) {
  if (value.empty() || value.dtype() == DType::list) return value;
  const auto both = PartialShape::merge(element, value.shape());
  return !both.ok() || *both == value.shape() ? value : ensure_shape(value, element, site);
}

}  // namespace

TensorArray::TensorArray(GraphBuilder& g, DType dtype, const TensorArrayOptions& options, Site site)
    : TensorArray(list_empty(g, dtype, {.shape = options.element}, std::move(site)), dtype,
                  options) {}

TensorArray::TensorArray(Output list, DType dtype, const TensorArrayOptions& options)
    : list_(list), dtype_(dtype), element_(options.element) {
  if (list.empty() || list.dtype() == DType::list) return;  // methods refuse an empty one
  throw Error(invalid_argument("TensorArray: '" + list.name() + "' is " +
                               std::string(dtype_name(list.dtype())) + ", not a list")
                  .at(list.graph().node(list.node()).site));
}

TensorArray TensorArray::unstack(const Output& rows, Site site) {
  check_given("TensorArray: `rows`", rows, site);
  const Output list = list_unstack(rows, std::move(site));
  return TensorArray(list, rows.dtype(), {.element = list.shape()});
}

void TensorArray::check(const Output& value, const Site& site) const {
  check_given("TensorArray: the list", list_, site);
  check_given("TensorArray: the element", value, site);
  if (value.dtype() == dtype_) return;
  throw Error(invalid_argument("TensorArray: its elements are " + std::string(dtype_name(dtype_)) +
                               ", but '" + value.name() + "' is " +
                               std::string(dtype_name(value.dtype())))
                  .at(site));
}

Output TensorArray::read(const Output& index, Site site) const {
  return list_get(list_, index, dtype_, {.shape = element_}, std::move(site));
}

TensorArray TensorArray::write(const Output& index, const Output& value, Site site) const {
  check(value, site);
  return in_form_of(*this, list_set(list_, index, with_shape(value, element_, site), site));
}

TensorArray TensorArray::push(const Output& value, Site site) const {
  check(value, site);
  return in_form_of(*this, list_push(list_, with_shape(value, element_, site), site));
}

Output TensorArray::size(Site site) const { return list_length(list_, std::move(site)); }

Output TensorArray::stack(Site site) const {
  return list_stack(list_, dtype_, {.shape = element_}, std::move(site));
}

}  // namespace troupe
