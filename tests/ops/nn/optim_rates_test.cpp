// Rates of optimizers that are numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ops/api.hpp"
#include "ops/optim/optim.hpp"

using namespace troupe;

namespace {

template <class T>
Status trained(double rate, double momentum = 0.9) {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(T(1)));
  try {
    optim::Momentum{.lr = rate, .momentum = momentum}.minimize(v.value() * v.value());
  } catch (const Error& error) {
    return error.status();
  }
  return ok_status();
}

}  // namespace

TEST_CASE("a rate that is NaN, infinite or negative is refused on its line") {
  for (double wrong : {-0.1, -1e-9, std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    CAPTURE(wrong);
    for (const Status& status : {trained<float>(wrong), trained<double>(wrong)}) {
      CAPTURE(status.text());
      CHECK(status.code() == Code::invalid_argument);
      CHECK(status.text().find("the rate 'lr' of an optimizer is finite and not negative") !=
            std::string::npos);
      CHECK(status.text().find("optim_rates_test.cpp") != std::string::npos);
    }
    CHECK(trained<float>(0.1, wrong).code() == Code::invalid_argument);
  }
  CHECK(trained<float>(0).ok());
  CHECK(trained<double>(1e-3, 0).ok());
}
