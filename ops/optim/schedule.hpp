// Rates that change while a model is trained.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>

#include "ops/api/operators.hpp"

namespace troupe::optim {

// A rate as a function of the number of updates before this one: an f64 scalar in, an f64 scalar
// out. An optimizer that is given one counts its updates in a variable of its own (the runs of an
// accumulation count once), so that nobody has to.
//
//   Op train = optim::Adam{.lr = optim::warm_up(500, optim::cosine({.rate = 1e-3, .steps = 9500}))}
//                  .minimize(loss);
class Schedule {
 public:
  // Throws Error for an empty function.
  explicit Schedule(std::function<Output(Output step)> rate, Site site = Site::here());
  // Throws Error where that gives an empty Output.
  Output operator()(Output step) const;

 private:
  std::function<Output(Output)> rate_;
  Site site_;
};

// All throw Error for counts below 1 and for rates and factors that are negative or not finite.

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
// Half a wave from `rate` down to `least` over `steps` steps, and `least` from then on.
Schedule cosine(const CosineDecay& decay, Site site = Site::here());

// (step + 1) / steps of the first rate of `then` for the first `steps` steps; `then` from there on,
// which counts from 0.
Schedule warm_up(std::int64_t steps, Schedule then, Site site = Site::here());

// What an optimizer takes as a rate: a number, a graph value (a scalar of any float dtype), or a
// schedule. A number notes its line, as an operand of an operator does.
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
