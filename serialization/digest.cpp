#include "serialization/digest.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "the layout is that of the memory");

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    TROUPE_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
                 "libcrypto has no SHA-256");
  }
  void bytes(const void* data, std::size_t size) {
    if (size == 0) return;
    TROUPE_CHECK(EVP_DigestUpdate(context_.get(), data, size) == 1, "SHA-256 does not fail");
  }
  template <class T>
  void number(T value) {
    bytes(&value, sizeof value);
  }
  void text(std::string_view text) {
    number(std::uint32_t(text.size()));
    bytes(text.data(), text.size());
  }
  std::string hex() {
    unsigned char digest[32];
    TROUPE_CHECK(EVP_DigestFinal_ex(context_.get(), digest, nullptr) == 1, "SHA-256 ends once");
    std::string out;
    for (unsigned char byte : digest)
      for (int half : {byte >> 4, byte & 15}) out += "0123456789abcdef"[half];
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

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
