// Random numbers beside those of generated.hpp (random_uniform, truncated_normal, categorical,
// random_gamma and so on), made of them. New values in each run, but the same for the same seed,
// node name and run. Throw Error for a parameter that is out of range.
#pragma once

#include <cstdint>

#include "ops/api/generated.hpp"

namespace troupe {

// Normally distributed: random_standard_normal(), whose options have a mean and a deviation.
Output random_normal(GraphBuilder& g, PartialShape shape,
                     const RandomStandardNormalOptions& options = {}, Site site = Site::here());
Output random_normal_like(Output like, const RandomStandardNormalLikeOptions& options = {},
                          Site site = Site::here());

struct RandomExponentialOptions {
  DType dtype = DType::f32;  // f32 or f64
  double rate = 1;           // above 0
};
// The density is rate e^(-rate x), x >= 0.
Output random_exponential(GraphBuilder& g, PartialShape shape,
                          const RandomExponentialOptions& options = {}, Site site = Site::here());

struct RandomLaplaceOptions {
  DType dtype = DType::f32;  // f32 or f64
  double mean = 0;
  double scale = 1;  // above 0
};
// The density is e^(-|x - mean| / scale) / (2 scale).
Output random_laplace(GraphBuilder& g, PartialShape shape, const RandomLaplaceOptions& options = {},
                      Site site = Site::here());

struct RandomGumbelOptions {
  DType dtype = DType::f32;  // f32 or f64
};
// -log(-log(u)) of a uniform u: the argmax of logits plus such numbers is a categorical draw.
Output random_gumbel(GraphBuilder& g, PartialShape shape, const RandomGumbelOptions& options = {},
                     Site site = Site::here());

// One number in [0, 1] for each pair of a and b, which broadcast, of density x^(a - 1) (1 - x)^(b -
// 1) / B(a, b). A parameter that is not positive and finite fails the run. No gradient.
Output random_beta(Output a, Output b, Site site = Site::here());

// 0, 1, ..., n - 1 in a random order, as i64.
Output random_permutation(GraphBuilder& g, std::int64_t n, Site site = Site::here());

}  // namespace troupe
