// Rows of the conformance test: texts joined, split, hashed, looked up, and read as numbers.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases joined_texts([] {
  const Tensor two = strings({2}, {"a", "b"});
  return Cases{
      {.op = "StringJoin",
       .inputs = {two, strings({2}, {"c", ""})},
       .want = {strings({2}, {"ac", "b"})}},
      {.op = "StringJoin",
       .inputs = {strings({}, {"<"}), two, strings({}, {">"})},
       .attrs = {{"separator", " "}},
       .want = {strings({2}, {"< a >", "< b >"})}},
      {.op = "StringJoin", .inputs = {strings({}, {"x"})}, .want = {strings({}, {"x"})}},
      {.op = "StringJoin",
       .inputs = {strings({0}, {}), strings({}, {"x"})},
       .want = {strings({0}, {})}},
      {.op = "StringJoin",
       .inputs = {two, strings({3}, {"", "", ""})},
       .error = "cannot be joined"},
      {.op = "StringJoin", .inputs = {two, strings({2, 1}, {"", ""})}, .error = "cannot be joined"},
      {.op = "StringJoin", .inputs = {any({2})}, .error = "f64"},
  };
});

const AddCases split_texts([] {
  return Cases{
      {.op = "StringSplit",
       .inputs = {strings({3}, {" one  two\n", "", "three"})},
       .want = {strings({3}, {"one", "two", "three"}), i64({3}, {2, 0, 1})}},
      {.op = "StringSplit",
       .inputs = {strings({2, 2}, {"a,b", ",", "", "c"})},
       .attrs = {{"separator", ","}},
       .want = {strings({6}, {"a", "b", "", "", "", "c"}), i64({2, 2}, {2, 2, 1, 1})}},
      {.op = "StringSplit",
       .inputs = {strings({}, {"a::b:c"})},
       .attrs = {{"separator", "::"}},
       .want = {strings({2}, {"a", "b:c"}), i64({}, {2})}},
      {.op = "StringSplit", .inputs = {strings({0}, {})}, .want = {strings({0}, {}), i64({0}, {})}},
      {.op = "StringSplit", .inputs = {any({2})}, .error = "f64"},
  };
});

const AddCases numbered_texts([] {
  const Tensor words = strings({3}, {"the", "cat", ""});
  return Cases{
      // For ever the same.
      {.op = "StringHash",
       .inputs = {strings({3}, {"the", "cat", ""})},
       .attrs = {{"buckets", 1000}},
       .want = {i64({3}, {819, 999, 8})}},
      {.op = "StringHash",
       .inputs = {strings({}, {"the"})},
       .attrs = {{"buckets", 1}, {"seed", 7}},
       .want = {i64({}, {0})}},
      {.op = "StringHash", .inputs = {words}, .attrs = {{"buckets", 0}}, .error = "buckets is 0"},
      {.op = "StringHash", .inputs = {any({2})}, .attrs = {{"buckets", 2}}, .error = "f64"},
      {.op = "VocabularyIndex",
       .inputs = {strings({2, 2}, {"cat", "dog", "", "the"})},
       .attrs = {{"words", words}},
       .want = {i64({2, 2}, {1, -1, 2, 0})}},
      {.op = "VocabularyIndex",
       .inputs = {strings({1}, {"dog"})},
       .attrs = {{"words", strings({0}, {})}, {"missing", 9}},
       .want = {i64({1}, {9})}},
      {.op = "VocabularyIndex",
       .inputs = {words},
       .attrs = {{"words", strings({3}, {"a", "b", "a"})}},
       .error = "words 0 and 2 are 'a' both"},
      {.op = "VocabularyIndex",
       .inputs = {words},
       .attrs = {{"words", strings({1, 1}, {"a"})}},
       .error = "words must be string[n], not string[1,1]"},
      {.op = "VocabularyIndex",
       .inputs = {words},
       .attrs = {{"words", i64({1}, {1})}},
       .error = "i64[1]"},
      {.op = "StringToNumber",
       .inputs = {strings({3}, {"1.5", " -2e3 ", "\t+7\r\n"})},
       .want = {f32({3}, {1.5, -2000, 7})}},
      {.op = "StringToNumber",
       .inputs = {strings({}, {"0.1"})},
       .attrs = {{"out_type", DType::f64}},
       .want = {f64({}, {0.1})}},
      {.op = "StringToNumber",
       .inputs = {strings({1}, {"9223372036854775807"})},
       .attrs = {{"out_type", DType::i64}},
       .want = {i64({1}, {INT64_MAX})}},
      {.op = "StringToNumber",
       .inputs = {strings({1}, {"-3"})},
       .attrs = {{"out_type", DType::i32}},
       .want = {i32({1}, {-3})}},
      {.op = "StringToNumber",
       .inputs = {strings({2}, {"1", "one"})},
       .error = "x[1] is 'one', which is no f32"},
      {.op = "StringToNumber",
       .inputs = {strings({1}, {"3000000000"})},
       .attrs = {{"out_type", DType::i32}},
       .error = "which is no i32"},
      {.op = "StringToNumber", .inputs = {strings({1}, {""})}, .error = "x[0] is ''"},
      {.op = "StringToNumber", .inputs = {any({2})}, .error = "f64"},
  };
});

}  // namespace
}  // namespace troupe::test
