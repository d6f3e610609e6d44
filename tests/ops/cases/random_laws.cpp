// Rows of the conformance test: random ops that take their parameters from an input. What they
// draw is in random_laws_test.cpp.
#include <cmath>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases laws([] {
  Cases rows{
      {.op = "Bernoulli", .inputs = {any({40'001}, 0, 1)}},
      {.op = "Bernoulli", .inputs = {f32({2}, {0, 1})}, .want = {bools({2}, {false, true})}},
      {.op = "Bernoulli", .inputs = {f64({2}, {0.5, 1.5})}, .error = "p[1] is 1.5"},
      {.op = "RandomGamma", .inputs = {any({3, 12'001}, 0.1, 4)}},
      {.op = "RandomGamma", .inputs = {f64({2}, {1, 0})}, .error = "alpha[1] is 0"},
      {.op = "RandomGamma", .inputs = {f64({1}, {HUGE_VAL})}, .error = "alpha[0] is inf"},
      {.op = "RandomPoisson", .inputs = {any({40'001}, 0, 40)}},
      {.op = "RandomPoisson", .inputs = {f32({2}, {0, 0})}, .want = {f32({2}, {0, 0})}},
      {.op = "RandomPoisson", .inputs = {f64({1}, {-1})}, .error = "rate[0] is -1"},
      {.op = "RandomPoisson", .inputs = {f64({1}, {std::nan("")})}, .error = "rate[0] is nan"},
      {.op = "Categorical", .inputs = {any({301, 17})}, .attrs = {{"n", 200}}},
      {.op = "Categorical", .inputs = {any({40, 9'001})}, .attrs = {{"n", 1}}},
      {.op = "Categorical",
       .inputs = {f32({1, 3}, {-HUGE_VALF, 5, -HUGE_VALF})},
       .attrs = {{"n", 3}},
       .want = {i64({1, 3}, {1, 1, 1})}},
      {.op = "Categorical", .inputs = {any({0, 3})}, .attrs = {{"n", 3}}},
      {.op = "Categorical", .inputs = {any({3, 3})}, .attrs = {{"n", 0}}},
      {.op = "Categorical", .inputs = {any({3})}, .attrs = {{"n", 1}}, .error = "rank 2"},
      {.op = "Categorical", .inputs = {any({1, 2})}, .attrs = {{"n", -1}}, .error = "n is -1"},
      {.op = "Categorical",
       .inputs = {any({1, 0})},
       .attrs = {{"n", 1}},
       .error = "row 0 of logits has no class"},
      {.op = "Categorical",
       .inputs = {f64({1, 2}, {-HUGE_VAL, -HUGE_VAL})},
       .attrs = {{"n", 1}},
       .error = "row 0 of logits has no class"},
      {.op = "Categorical",
       .inputs = {f64({2, 2}, {0, 0, 0, std::nan("")})},
       .attrs = {{"n", 1}},
       .error = "logits[1,1] is nan"},
      {.op = "Categorical",
       .inputs = {f64({1, 2}, {HUGE_VAL, 0})},
       .attrs = {{"n", 1}},
       .error = "logits[0,0] is inf"},
      {.op = "RandomOrder", .inputs = {any({9'001})}},
      {.op = "RandomOrder", .inputs = {any({1, 3})}, .want = {i64({1}, {0})}},
      {.op = "RandomOrder", .inputs = {any({0, 3})}},
      {.op = "RandomOrder", .inputs = {f64({}, {1})}, .error = "rank"},
      {.op = "RandomStandardNormalLike", .inputs = {any({7, 9'001})}},
      {.op = "RandomStandardNormalLike",
       .inputs = {any({2})},
       .attrs = {{"stddev", -1.0}},
       .error = "stddev"},
      {.op = "RandomUniform",
       .attrs = {{"shape", PartialShape()}},
       .error = "PartialShape::scalar()"},
  };
  for (const char* op : {"UniformCandidateSampler", "LogUniformCandidateSampler"}) {
    const auto sampler = [&](Tensor labels, std::int64_t n, std::int64_t range_max,
                             std::string error, bool unique = true) {
      rows.push_back({.op = op,
                      .inputs = {std::move(labels)},
                      .attrs = {{"n", n}, {"range_max", range_max}, {"unique", unique}},
                      .error = std::move(error)});
    };
    const Tensor labels = i64({2, 2}, {0, 3, 99, 3});
    rows.push_back({.op = op,
                    .inputs = {i64({2, 1}, {0, 0})},
                    .attrs = {{"n", 3}, {"range_max", 1}, {"unique", false}},
                    .want = {i64({3}, {0, 0, 0}), f32({2, 1}, {3, 3}), f32({3}, {3, 3, 3})}});
    rows.push_back({.op = op,
                    .inputs = {i32({1}, {0})},
                    .attrs = {{"n", 1}, {"range_max", 1}, {"Tcount", DType::f64}},
                    .want = {i32({1}, {0}), f64({1}, {1}), f64({1}, {1})}});
    rows.push_back({.op = op,
                    .inputs = {i64({}, {1})},
                    .attrs = {{"n", 0}, {"range_max", 2}},
                    .want = {i64({0}, {}), f32({}, {0}), f32({0}, {})}});
    sampler(labels, 64, 100, "");
    sampler(labels, 100, 100, "");
    sampler(i64({0, 1}, {}), 5, std::int64_t{1} << 53, "");
    sampler(i32({1}, {INT32_MAX}), 5, std::int64_t{1} << 31, "");
    sampler(labels, 500, 100, "", false);
    sampler(labels, 5, 99, "indices[2] = 99 is outside [0, 99)");
    sampler(i64({1}, {-1}), 5, 99, "indices[0] = -1");
    sampler(labels, 101, 100, "101 different classes of 100");
    sampler(labels, -1, 100, "n is -1");
    sampler(labels, 0, 0, "range_max is 0");
    sampler(labels, 1, (std::int64_t{1} << 53) + 1, "range_max is");
    sampler(i32({1}, {0}), 1, (std::int64_t{1} << 31) + 1, "range_max is");
    sampler(f32({1}, {0}), 1, 2, "f32");
  }
  for (const char* op : {"Bernoulli", "RandomGamma", "RandomPoisson"}) {
    rows.push_back({.op = op, .inputs = {any({0, 2}, 0, 1)}});
    rows.push_back({.op = op, .inputs = {i32({1}, {1})}, .error = "i32"});
  }
  return rows;
});

}  // namespace
}  // namespace troupe::test
