#include "ops/optim/schedule.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ops/api/generated.hpp"
#include "ops/api/node.hpp"

namespace troupe::optim {

namespace {

void check(std::string_view what, std::initializer_list<double> factors, std::int64_t count,
           const Site& site) {
  for (double factor : factors)
    if (!(factor >= 0) || std::isinf(factor))
      throw Error(
          invalid_argument(fmt::format("{}: rates and factors are finite and not negative, not {}",
                                       what, factor))
              .at(site));
  if (count < 1)
    throw Error(invalid_argument(std::string(what) + ": a number of steps is positive, not " +
                                 std::to_string(count))
                    .at(site));
}

// Numbers and graph values, at the line where the schedule was made.
struct At {
  const Site& site;
  Operand operator()(double number) const { return {number, site}; }
  Operand operator()(Output value) const { return {value, site}; }
};

}  // namespace

Schedule::Schedule(std::function<Output(Output)> rate, Site site)
    : rate_(std::move(rate)), site_(std::move(site)) {
  if (!rate_) throw Error(invalid_argument("Schedule: the function is empty").at(site_));
}

Output Schedule::operator()(Output step) const {
  check_given("a schedule: the step", step, site_);
  const Output rate = rate_(step);
  check_given("a schedule: its rate", rate, site_);
  return rate;
}

Schedule constant_rate(double rate, Site site) {
  check("constant_rate", {rate}, 1, site);
  return Schedule([=](Output step) { return Operand(rate, site).beside(step); }, site);
}

Schedule step_decay(const StepDecay& decay, Site site) {
  check("step_decay", {decay.rate, decay.factor}, decay.every, site);
  return Schedule(
      [=](Output step) {
        const At at{site};
        const Output times = floor(at(step) / at(double(decay.every)), site);
        return at(decay.rate) * at(pow(at(decay.factor).beside(step), times, site));
      },
      site);
}

Schedule exponential_decay(const ExponentialDecay& decay, Site site) {
  check("exponential_decay", {decay.rate, decay.factor}, decay.every, site);
  return Schedule(
      [=](Output step) {
        const At at{site};
        const Output times = at(step) / at(double(decay.every));
        return at(decay.rate) * at(pow(at(decay.factor).beside(step), times, site));
      },
      site);
}

Schedule cosine(const CosineDecay& decay, Site site) {
  check("cosine", {decay.rate, decay.least}, decay.steps, site);
  return Schedule(
      [=](Output step) {
        const At at{site};
        const Output last = at(double(decay.steps)).beside(step);
        const Output angle =
            at(minimum(step, last, site)) * at(std::numbers::pi / double(decay.steps));
        const Output height = at(cos(angle, site)) * at(0.5) + at(0.5);
        return at(height) * at(decay.rate - decay.least) + at(decay.least);
      },
      site);
}

Schedule warm_up(std::int64_t steps, Schedule then, Site site) {
  check("warm_up", {}, steps, site);
  return Schedule(
      [=](Output step) {
        const At at{site};
        const Output zero = at(0).beside(step), one = at(1).beside(step);
        const Output after = maximum(at(step) - at(double(steps)), zero, site);
        const Output part = (at(step) + at(1)) / at(double(steps));
        return at(then(after)) * at(minimum(part, one, site));
      },
      site);
}

}  // namespace troupe::optim
