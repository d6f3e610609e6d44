// Initial values of parameters.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "graph/builder.hpp"

namespace troupe::nn {

// How a parameter begins. The numbers depend on the graph's seed and the variable's name.
class Init {
 public:
  static const Init glorot;  // uniform in +- sqrt(6 / (fan in + fan out)), also called Xavier:
                             // for tanh, sigmoid and linear layers
  static const Init glorot_normal;  // truncated normal, deviation sqrt(2 / (fan in + fan out))
  static const Init he;             // truncated normal, deviation sqrt(2 / fan in), also called
                                    // Kaiming: before a Relu
  static const Init he_uniform;     // uniform in +- sqrt(6 / fan in)
  static const Init lecun;          // truncated normal, deviation sqrt(1 / fan in): for selu
  // The deviations above are those of the numbers. Of truncated_normal() it is that of the normal
  // numbers of which those within two deviations are taken: 0.88 of it is left.
  static constexpr Init normal(double stddev) { return {Kind::normal, stddev}; }
  static constexpr Init truncated_normal(double stddev) { return {Kind::truncated, stddev}; }
  static constexpr Init uniform(double reach) { return {Kind::uniform, reach}; }  // in +- reach
  static constexpr Init constant(double value) { return {Kind::constant, value}; }

 private:
  friend Output initial_weights(GraphBuilder&, Init, const Shape&, std::int64_t, std::int64_t,
                                DType, Site);
  enum class Kind : std::uint8_t {
    normal,
    truncated,
    uniform,
    constant,
    // Of a variance that is `value` divided by the fan in, or by both fans:
    by_fan_in,
    by_fan_in_uniform,
    by_fans,
    by_fans_uniform
  };
  constexpr Init(Kind kind, double value) : kind_(kind), value_(value) {}
  Kind kind_;
  double value_;
};
inline constexpr Init Init::glorot{Kind::by_fans_uniform, 2};
inline constexpr Init Init::glorot_normal{Kind::by_fans, 2};
inline constexpr Init Init::he{Kind::by_fan_in, 2};
inline constexpr Init Init::he_uniform{Kind::by_fan_in_uniform, 2};
inline constexpr Init Init::lecun{Kind::by_fan_in, 1};

// Throws Error for a deviation or reach that is negative or no number.
Output initial_weights(GraphBuilder& g, Init init, const Shape& shape, std::int64_t fan_in,
                       std::int64_t fan_out, DType dtype = DType::f32, Site site = Site::here());

Tensor zeros(DType dtype, const Shape& shape, const Site& site = Site::here());

// Throws Error, in the name of `layer`, for a size below 1.
void check_sizes(std::string_view layer, std::initializer_list<std::int64_t> sizes,
                 const Site& site);
// Throws Error unless `groups` divide both numbers of channels.
void check_groups(std::string_view layer, std::int64_t in, std::int64_t out, std::int64_t groups,
                  const Site& site);

}  // namespace troupe::nn
