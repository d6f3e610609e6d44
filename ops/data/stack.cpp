#include "ops/data/stack.hpp"

#include <algorithm>
#include <cstring>

#include "core/tensor_blocks.hpp"

namespace troupe {

namespace {

Expected<Tensor> rows_of(DType dtype, const Shape& each, std::size_t n) {
  std::vector<std::int64_t> dims{std::int64_t(n)};
  dims.insert(dims.end(), each.dims().begin(), each.dims().end());
  TROUPE_TRY(const Shape shape, Shape::make(dims));
  return Tensor::make(dtype, shape);
}

Expected<std::vector<Tensor>> room_for(const Example& first, std::size_t n) {
  std::vector<Tensor> out;
  if (first.source != nullptr) {
    for (const Component& component : first.source->signature()) {
      TROUPE_TRY(Tensor t, rows_of(component.dtype, component.shape.shape(), n));
      out.push_back(std::move(t));
    }
    return out;
  }
  for (const Tensor& value : first.values) {
    TROUPE_TRY(Tensor t, rows_of(value.dtype(), value.shape(), n));
    out.push_back(std::move(t));
  }
  return out;
}

bool same_dims(const Tensor& batch, std::span<const std::int64_t> each) {
  const auto dims = batch.shape().dims().subspan(1);
  return std::equal(dims.begin(), dims.end(), each.begin(), each.end());
}

Status check_alike(const std::vector<Tensor>& batch, const Example& example) {
  auto differs = [&](const Tensor& t, const std::string& shape) {
    return invalid_argument("the examples of a batch differ in shape: " + shape +
                            " beside others in " + t.shape().text() +
                            "; a padded batch takes them");
  };
  for (std::size_t c = 0; c < batch.size(); ++c) {
    if (example.source != nullptr) {
      const PartialShape& shape = example.source->signature()[c].shape;
      if (!same_dims(batch[c], shape.dims())) return differs(batch[c], shape.text());
    } else if (!same_dims(batch[c], example.values[c].shape().dims())) {
      return differs(batch[c], example.values[c].shape().text());
    }
  }
  return ok_status();
}

// The number of examples from `begin` on that are consecutive in one source.
std::size_t run_length(std::span<const Example> examples, std::size_t begin) {
  const Example& first = examples[begin];
  std::size_t n = 1;
  while (begin + n < examples.size() && examples[begin + n].source == first.source &&
         examples[begin + n].index == first.index + n)
    ++n;
  return n;
}

}  // namespace

Expected<std::vector<Tensor>> values_of(Example example) {
  if (example.source == nullptr) return std::move(example.values);
  TROUPE_TRY(std::vector<Tensor> values, stack({&example, 1}));
  const Signature& signature = example.source->signature();
  for (std::size_t c = 0; c < values.size(); ++c)
    values[c] = values[c].reshaped(signature[c].shape.shape());
  return values;
}

Expected<std::vector<Tensor>> stack(std::span<const Example> examples) {
  TROUPE_TRY(std::vector<Tensor> batch, room_for(examples[0], examples.size()));
  for (std::size_t i = 0; i < examples.size();) {
    const Example& example = examples[i];
    TROUPE_TRY(check_alike(batch, example));
    if (example.source != nullptr) {
      const std::size_t n = run_length(examples, i);
      TROUPE_TRY(example.source->read(example.index, std::int64_t(n), batch, std::int64_t(i)));
      i += n;
      continue;
    }
    for (std::size_t c = 0; c < batch.size(); ++c) {
      const std::int64_t size = example.values[c].elements();
      copy_elements(example.values[c], 0, batch[c], std::int64_t(i) * size, size);
    }
    ++i;
  }
  return batch;
}

namespace {

// Calls `with` on a value of the C++ type of `dtype`; false for one that is not padded with
// numbers.
template <class With>
bool for_number(DType dtype, With with) {
  switch (dtype) {
    case DType::f32:
      return with(float{});
    case DType::f64:
      return with(double{});
    case DType::i8:
      return with(std::int8_t{});
    case DType::i16:
      return with(std::int16_t{});
    case DType::i32:
      return with(std::int32_t{});
    case DType::i64:
      return with(std::int64_t{});
    case DType::u8:
      return with(std::uint8_t{});
    case DType::u16:
      return with(std::uint16_t{});
    case DType::u32:
      return with(std::uint32_t{});
    case DType::u64:
      return with(std::uint64_t{});
    case DType::bool_:
      return with(bool{});
    default:
      return false;
  }
}

// In dtypes that numbers are not converted to here it is 0.
void fill(Tensor& t, double value) {
  const bool filled = for_number(t.dtype(), [&](auto type) {
    std::fill_n(t.mutable_data<decltype(type)>(), t.elements(), decltype(type)(value));
    return true;
  });
  if (!filled && t.dtype() != DType::string) std::memset(t.mutable_raw(), 0, t.bytes());
}

Expected<Shape> padded_shape(const std::vector<std::vector<Tensor>>& examples, std::size_t c,
                             const PartialShape& wanted) {
  std::vector<std::int64_t> dims(wanted.dims());
  for (const auto& values : examples) {
    const Shape& shape = values[c].shape();
    if (shape.rank() != wanted.rank())
      return invalid_argument("an example of " + shape.text() + " is of another rank than " +
                              wanted.text() + ", to which it is to be padded");
    for (int d = 0; d < shape.rank(); ++d) {
      if (wanted.known(d) && shape.dim(d) > wanted.dim(d))
        return invalid_argument("an example of " + shape.text() + " is longer than " +
                                wanted.text() + ", to which it is to be padded");
      dims[std::size_t(d)] = std::max(dims[std::size_t(d)], shape.dim(d));
    }
  }
  return Shape::make(dims);
}

}  // namespace

Status check_padding(std::span<const Padding> padding, const Signature& signature) {
  if (padding.size() != signature.size())
    return invalid_argument("padding for " + std::to_string(padding.size()) + " components of " +
                            std::to_string(signature.size()));
  for (std::size_t c = 0; c < signature.size(); ++c) {
    const DType dtype = signature[c].dtype;
    if (!padding[c].shape.known_rank())
      return invalid_argument("component " + std::to_string(c) +
                              " is of unknown rank: it cannot be padded");
    TROUPE_TRY(PartialShape::merge(PartialShape::unknown_of_rank(padding[c].shape.rank()),
                                   signature[c].shape));
    // 0 is one in every dtype, also in those that numbers are not converted to here.
    const bool converted = for_number(dtype, [](auto) { return true; });
    const bool held = padding[c].value == 0 || dtype == DType::string ||
                      (converted && can_hold(dtype, padding[c].value));
    if (!held)
      return invalid_argument("component " + std::to_string(c) + " of " +
                              std::string(dtype_name(dtype)) + " cannot be padded with " +
                              std::to_string(padding[c].value));
  }
  return ok_status();
}

Expected<std::vector<Tensor>> stack_padded(std::span<const Example> examples,
                                           std::span<const Padding> padding) {
  std::vector<std::vector<Tensor>> all;
  for (const Example& example : examples) {
    TROUPE_TRY(std::vector<Tensor> values, values_of(example));
    all.push_back(std::move(values));
  }
  std::vector<Tensor> batch;
  for (std::size_t c = 0; c < padding.size(); ++c) {
    TROUPE_TRY(const Shape each, padded_shape(all, c, padding[c].shape));
    TROUPE_TRY(Tensor rows, rows_of(all[0][c].dtype(), each, all.size()));
    fill(rows, padding[c].value);
    for (std::size_t i = 0; i < all.size(); ++i) copy_block(all[i][c], rows, std::int64_t(i));
    batch.push_back(std::move(rows));
  }
  return batch;
}

}  // namespace troupe
