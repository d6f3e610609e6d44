// Tests that do the same with tensors of each type.
#pragma once

#include <cstdint>
#include <string>

#include "core/dtype.hpp"
#include "core/status.hpp"

namespace troupe::test {

// f of a value of the type. Throws Error unless it is bool or has real numbers.
template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float());
    case DType::f64:
      return f(double());
    case DType::f16:
      return f(half());
    case DType::bf16:
      return f(bfloat16());
    case DType::i8:
      return f(std::int8_t());
    case DType::i16:
      return f(std::int16_t());
    case DType::i32:
      return f(std::int32_t());
    case DType::i64:
      return f(std::int64_t());
    case DType::u8:
      return f(std::uint8_t());
    case DType::u16:
      return f(std::uint16_t());
    case DType::u32:
      return f(std::uint32_t());
    case DType::u64:
      return f(std::uint64_t());
    case DType::bool_:
      return f(bool());
    default:
      throw Error(internal_error("no real numbers: " + std::string(dtype_name(dtype))));
  }
}

}  // namespace troupe::test
