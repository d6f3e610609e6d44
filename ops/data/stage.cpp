#include "ops/data/stage.hpp"

namespace troupe {

std::size_t bytes_of(const Example& example) {
  std::size_t bytes = sizeof example;
  for (const Tensor& value : example.values) {
    bytes += sizeof value + value.bytes();
    if (value.dtype() != DType::string) continue;
    for (const std::string& text : value.span<std::string>()) bytes += text.size();
  }
  return bytes;
}

Expected<std::uint64_t> Pass::skip(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    TROUPE_TRY(const auto passed, next());
    if (!passed) return i;
  }
  return n;
}

}  // namespace troupe
