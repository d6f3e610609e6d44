#include "devices/spares.hpp"

#include <doctest/doctest.h>

#include "devices/arena.hpp"

using namespace troupe;

namespace {

Tensor number(Allocator& allocator, DType dtype = DType::f64, const Shape& shape = {}) {
  return value_or_throw(Tensor::make(dtype, shape, allocator));
}

}  // namespace

TEST_CASE("memory that was let go serves the next element of its size, once") {
  ArenaPtr arena = make_arena();
  Spares spares(*arena);
  Tensor x = number(*arena);
  const void* data = x.raw();
  spares.put(x);
  CHECK(!x.defined());
  CHECK(!spares.take(DType::f32));
  Buffer same = spares.take(DType::i64);
  CHECK(same.data() == data);
  CHECK(!spares.take(DType::i64));
}

TEST_CASE("what others have, what is large, of elsewhere or no bytes alone is not kept") {
  ArenaPtr arena = make_arena(), other = make_arena();
  Spares spares(*arena);
  Tensor shared = number(*arena), copy = shared;
  spares.put(shared);
  CHECK(!shared.defined());
  CHECK(copy.unique());
  Tensor large = number(*arena, DType::f64, {3}), elsewhere = number(*other),
         text = number(*arena, DType::string), nothing;
  for (Tensor* tensor : {&large, &elsewhere, &text, &nothing}) spares.put(*tensor);
  for (DType dtype : {DType::f64, DType::string, DType::list, DType::resource, DType::invalid})
    CHECK(!spares.take(dtype));
  CHECK(other->bytes_in_use() == 0);
}

TEST_CASE("one of each size is kept, and none after clear") {
  ArenaPtr arena = make_arena();
  Spares spares(*arena);
  std::vector<Tensor> many;
  for (int i = 0; i < 10; ++i) many.push_back(number(*arena));
  const std::size_t each = arena->bytes_in_use() / many.size();
  for (Tensor& tensor : many) spares.put(tensor);
  CHECK(arena->bytes_in_use() == each);
  spares.clear();
  CHECK(arena->bytes_in_use() == 0);
}
