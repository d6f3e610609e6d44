// Learning rate schedules.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>

#include "ops/api/operators.hpp"

namespace troupe::optim {

// A rate as a function of the number of earlier updates: scalar f64 to scalar f64. An optimizer
// with a schedule counts its updates in a variable of its own; the runs of an accumulation count
// once.
//
//   Op train = optim::Adam{.lr = optim::warm_up(500, optim::cosine({.rate = 1e-3, .steps = 9500}))}
//                  .minimize(loss);
class Schedule {
 public:
  // Throws Error if the function is empty.
  explicit Schedule(std::function<Output(Output step)> rate, Site site = Site::here());
  // Throws Error if the function returns an empty Output.
  Output operator()(Output step) const;

 private:
  std::function<Output(Output)> rate_;
  Site site_;
};

// All of these throw Error if a count is below 1, or a rate or factor is negative or not finite.

Schedule constant_rate(double rate, Site site = Site::here());

struct StepDecay {
  double rate;
  std::int64_t every;
  double factor = 0.1;
};
// rate * factor^floor(step / every)
Schedule step_decay(const StepDecay& decay, Site site = Site::here());

struct ExponentialDecay {
  double rate;
  double factor;
  std::int64_t every = 1;
};
// rate * factor^(step / every)
Schedule exponential_decay(const ExponentialDecay& decay, Site site = Site::here());

struct CosineDecay {
  double rate;
  std::int64_t steps;
  double least = 0;
};
// Half a cosine wave from `rate` down to `least` over `steps` steps, then `least`.
Schedule cosine(const CosineDecay& decay, Site site = Site::here());

// For the first `steps` steps, (step + 1) / steps times the first rate of `then`; afterwards
// `then`, counting from 0.
Schedule warm_up(std::int64_t steps, Schedule then, Site site = Site::here());

// A rate of an optimizer: a number, a graph value (a scalar of any floating dtype), or a schedule.
// Errors show the line of the number or value.
class Rate {
 public:
  template <class T>
  requires(std::is_constructible_v<Operand, const T&, Site>)
      Rate(const T& value, Site site = Site::here())
      : value_(value, std::move(site)) {}
  Rate(Operand value) : value_(std::move(value)) {}
  Rate(Schedule schedule) : value_(0), schedule_(std::make_shared<Schedule>(std::move(schedule))) {}

  const Operand& value() const { return value_; }
  const Schedule* schedule() const { return schedule_.get(); }  // null: see value()

 private:
  Operand value_;
  std::shared_ptr<const Schedule> schedule_;
};

}  // namespace troupe::optim
