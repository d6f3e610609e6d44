// What a client can write with tensors, shapes and lists that cannot be: an Error, never garbage.
#include <doctest/doctest.h>

#include "core/list.hpp"
#include "core/tensor.hpp"
#include "tests/misuse.hpp"

namespace troupe {
namespace {

using test::check_refused;
using test::check_thrown;

const Tensor kFloats = Tensor::of<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
const Tensor kInts = Tensor::of<std::int64_t>(Shape{2}, {1, 2});

TEST_CASE("elements are not read as another type than the tensor's") {
  check_refused({
      {"elements of i64[2] were asked for as f32", [] { kInts.data<float>(); }},
      {"elements of f32[2,3] were asked for as i32", [] { kFloats.data<std::int32_t>(); }},
      {"elements of i64[2] were asked for as f64", [] { kInts.span<double>(); }},
      {"elements of nothing were asked for as f32", [] { Tensor().data<float>(); }},
      {"elements of i64[2] were asked for as string",
       [] { Tensor(kInts).mutable_data<std::string>(); }},
      {"one f64 was asked for, and the tensor is f32[]",
       [] { Tensor::scalar(1.0f).item<double>(); }},
      {"one f32 was asked for, and the tensor is f32[2,3]", [] { kFloats.item<float>(); }},
      {"one f32 was asked for, and the tensor is nothing", [] { Tensor().item<float>(); }},
      {"one bool was asked for", [] { Tensor::scalar(std::uint8_t{2}).item<bool>(); }},
  });
  CHECK(kInts.data<std::int64_t>()[1] == 2);
  CHECK(kInts.data<char>()[0] == 1);  // its bytes
}

TEST_CASE("a tensor is made of as many values as its shape has") {
  check_refused({
      {"3 values do not fill shape [2], which has 2",
       [] {
         Tensor::of<float>(Shape{2}, {1, 2, 3});
       }},
      {"0 values do not fill shape [], which has 1", [] { Tensor::of<float>(Shape{}, {}); }},
      {"exceeds 2^62 bytes",
       [] {
         const std::vector<double> none;
         Tensor::of<double>(Shape{std::int64_t{1} << 40, std::int64_t{1} << 40},
                            std::span<const double>(none));
       }},
  });
}

TEST_CASE("shapes that cannot be are refused, and so are dimensions that are not there") {
  check_refused({
      {"dimension -2 of a shape is negative",
       [] {
         Shape{3, -2};
       }},
      {"rank 9 is above the limit of 8", [] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }},
      {"dimension -2 of a shape is negative",
       [] {
         PartialShape{3, -2};
       }},
      {"shape [] has no dimension 3", [] { Tensor::scalar(1.0f).dim(3); }},
      {"shape [2,3] has no dimension -1", [] { kFloats.shape().dim(-1); }},
      {"shape [2,3] has no dimension 2", [] { kFloats.dim(2); }},
      {"shape [?,3] has no dimension 2",
       [] {
         PartialShape({-1, 3}).dim(2);
       }},
      {"the number of dimensions is not known", [] { PartialShape().rank(); }},
      {"the number of dimensions is not known", [] { PartialShape().dim(0); }},
      {"the number of dimensions is not known", [] { PartialShape().known(0); }},
      {"shape [?,3] is not fully known",
       [] {
         PartialShape({-1, 3}).shape();
       }},
  });
  check_thrown({
      {"shape [2,3] has no dimension 7", [] { kFloats.shape()[7]; }},
      {"shape [?] has no dimension 1", [] { PartialShape({-1})[1]; }},
      {"dimension -1 of a shape is negative", [] { Shape({1}).set_dim(0, -1); }},
      {"shape [1] has no dimension 1", [] { Shape({1}).set_dim(1, 1); }},
      {"shape [1] has no dimension 1", [] { PartialShape({1}).set_dim(1, 3); }},
      {"rank 9",
       [] {
         Shape({1, 1, 1, 1, 1, 1, 1, 1}).append(1);
       }},
      {"dimension -1", [] { Shape({1}).append(-1); }},
      {"a shape has 0 to 8 dimensions, not -1", [] { PartialShape::unknown_of_rank(-1); }},
      {"f32[2,3] cannot be reshaped to [4]", [] { kFloats.reshaped(Shape{4}); }},
      {"the bits of f32[2,3] are no f64", [] { kFloats.retyped(DType::f64); }},
      {"f32[2,3] has no rows [1, 3)", [] { kFloats.rows(1, 3); }},
      {"f32[] has no rows [0, 0)", [] { Tensor::scalar(1.0f).rows(0, 0); }},
  });
}

TEST_CASE("a dimension that is not known is no number to compute with") {
  const Dim unknown = PartialShape{-1, 3}[0], three = PartialShape{-1, 3}[1];
  check_thrown({
      {"not known before a run", [&] { unknown* std::int64_t{2}; }},
      {"not known before a run", [&] { 2.5 / unknown; }},
      {"not known before a run", [&] { three + unknown; }},
      {"not known before a run", [&] { -unknown; }},
      {"not known before a run", [&] { unknown % 2; }},
      {"not known before a run", [&] { unknown.value(); }},
      {"not known before a run", [&] { (void)double(unknown); }},
      {"not known before a run", [&] { (void)int(unknown); }},
  });
  CHECK(three * 2 == 6);
  CHECK(1.5 * three == 4.5);
  CHECK(7 - three == 4);
  CHECK(7 / three == 2);
  CHECK(three % 2 == 1);
  CHECK(double(three) == 3);
  CHECK(three == 3);
  CHECK(unknown == PartialShape::kUnknown);
  CHECK_FALSE(unknown.known());
}

TEST_CASE("what a list does not hold is not taken from it") {
  List list;
  list.push(kInts);
  check_thrown({
      {"a list of 1 elements has no element 1", [&] { list.get(1); }},
      {"a list of 1 elements has no element -1", [&] { list.set(-1, kInts); }},
      {"an empty list has no last element", [] { List().pop(); }},
      {"a tensor of type i64 holds no list", [] { list_in(kInts); }},
      {"a tensor of type invalid holds no list", [] { list_in(Tensor()); }},
  });
}

TEST_CASE("the value of an error is that error") {
  const Expected<int> none = not_found("nobody here");
  check_thrown(
      {{"nobody here", [&] { (void)none.value(); }}, {"nobody here", [&] { (void)*none; }}});
}

}  // namespace
}  // namespace troupe
