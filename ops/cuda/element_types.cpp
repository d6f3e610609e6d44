#include "ops/cuda/element_types.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "core/check.hpp"

namespace troupe::cuda {

std::string element_type(DType dtype) {
  // In memory a bool is a byte that is 0 or 1, for both.
  return dtype == DType::bool_ ? "bool" : "troupe::device::" + std::string(dtype_name(dtype));
}

DType without_sign(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return DType::u8;
    case DType::i16:
      return DType::u16;
    case DType::i32:
      return DType::u32;
    case DType::i64:
      return DType::u64;
    default:
      return dtype;
  }
}

std::string moved_type(DType dtype) {
  return "troupe::device::u" + std::to_string(8 * dtype_size(dtype));
}

std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  TROUPE_CHECK(status == 0, "a type has a name");
  return name.get();
}

std::string device_type(const char* name, const std::vector<std::string>& arguments) {
  std::string text = "troupe::device::" + std::string(name);
  for (std::size_t i = 0; i < arguments.size(); ++i) text += (i == 0 ? "<" : ", ") + arguments[i];
  return text + ">";
}

}  // namespace troupe::cuda
