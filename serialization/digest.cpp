#include "serialization/digest.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "serialization/detail/sha256.hpp"

namespace troupe {
namespace {

using detail::Sha256;

static_assert(std::endian::native == std::endian::little, "the layout is that of the memory");

void add(Sha256& sha, const Tensor& t) {
  sha.text(dtype_name(t.dtype()));
  sha.number(std::uint32_t(t.rank()));
  for (std::int64_t d : t.shape().dims()) sha.number(d);
  if (t.dtype() != DType::string) return sha.bytes(t.raw(), t.bytes());
  for (const std::string& s : t.span<std::string>()) {
    sha.number(std::uint64_t(s.size()));
    sha.bytes(s.data(), s.size());
  }
}

}  // namespace

std::string tensor_sha256(const Tensor& tensor) {
  TROUPE_CHECK(tensor.defined() && tensor.space() == MemorySpace::host,
               "tensor_sha256: a tensor is defined and in host memory");
  Sha256 sha;
  add(sha, tensor);
  return sha.hex();
}

std::string params_sha256(std::vector<std::pair<std::string, Tensor>> parameters) {
  std::sort(parameters.begin(), parameters.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Sha256 sha;
  const std::string* last = nullptr;
  for (const auto& [name, tensor] : parameters) {
    TROUPE_CHECK(!last || *last != name, "params_sha256: names differ");
    TROUPE_CHECK(tensor.defined() && tensor.space() == MemorySpace::host,
                 "params_sha256: tensors are defined and in host memory");
    sha.text(name);
    add(sha, tensor);
    last = &name;
  }
  return sha.hex();
}

}  // namespace troupe
