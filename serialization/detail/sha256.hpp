// SHA-256 by libcrypto.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/check.hpp"

namespace troupe::detail {

// One digest, fed in pieces. Numbers are hashed as their bytes in memory.
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
  // Once, at the end.
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

}  // namespace troupe::detail
