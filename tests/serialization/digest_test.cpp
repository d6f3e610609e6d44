#include "serialization/digest.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("the digest of no parameters is that of no bytes") {
  CHECK(params_sha256({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// The expected value is of sha256sum over the bytes written out by hand:
//   printf '\1\0\0\0a\3\0\0\0f32\1\0\0\0\2\0\0\0\0\0\0\0\0\0\200\77\0\0\0\300' |
//     sha256sum
TEST_CASE("the digest is over the documented bytes") {
  CHECK(params_sha256({{"a", Tensor::of<float>({2}, {1.f, -2.f})}}) ==
        "c37e5516c7e7cfdc40308758e12bdb5f53e09d7b140fc3a928a5f2e777f70eaa");
}

TEST_CASE("the digest does not depend on the order of the list") {
  Tensor a = Tensor::scalar(1.f), b = Tensor::scalar(std::int64_t{2});
  CHECK(params_sha256({{"a", a}, {"b", b}}) == params_sha256({{"b", b}, {"a", a}}));
}

TEST_CASE("the digest sees names, dtypes, shapes, bits and where strings end") {
  auto digest = [](const char* name, Tensor t) { return params_sha256({{name, std::move(t)}}); };
  Tensor t = Tensor::of<float>({2}, {0.f, 1.f});
  std::string base = digest("a", t);
  CHECK(digest("b", t) != base);
  CHECK(digest("a", t.retyped(DType::i32)) != base);
  CHECK(digest("a", t.reshaped({1, 2})) != base);
  CHECK(digest("a", Tensor::of<float>({2}, {-0.f, 1.f})) != base);
  CHECK(digest("a", Tensor::of<std::string>({2}, {"xy", "z"})) !=
        digest("a", Tensor::of<std::string>({2}, {"x", "yz"})));
}

TEST_CASE("the digest of a slice is that of its own elements") {
  Tensor whole = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  CHECK(params_sha256({{"a", whole.rows(1, 2)}}) ==
        params_sha256({{"a", Tensor::of<float>({1, 2}, {3, 4})}}));
}
