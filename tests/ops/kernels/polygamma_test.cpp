// Polygamma where its parts are beyond the numbers there are, and it is not.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "ops/graph_api.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

double polygamma_at(int n, double x) {
  Graph g;
  Output y = g.add("Polygamma", {constant(g, x)}, {{"n", n}});
  return Interpreter(g).run({y})[0].item<double>();
}

}  // namespace

TEST_CASE("polygamma of a high order has its digits wherever it is a number") {
  // To 20 digits, by Euler and Maclaurin's formula with numbers of 90 digits.
  struct Known {
    int n;
    double x, y;
  };
  const Known all[] = {
      {60, 1e6, -1.38687279081544557587e-280},  {60, 1e5, -1.38724727711088630796e-220},
      {61, 1e6, 8.32124090547082652820e-285},   {100, 5000, -1.19492066263005938323e-214},
      {100, 900, -3.71245352787189108549e-140}, {40, 1e7, -2.03979228769894828590e-234},
      {1, 1e200, 1.00000000000000003027e-200},  {1, 1e300, 9.99999999999999947495e-301},
      {2, 1e150, -1.00000000000000003833e-300}, {3, 1e100, 1.99999999999999990458e-300},
      {4, 1e70, -5.99999999999999825925e-280},  {20, 1e15, -1.21645100408833216451e-283},
      {60, 0.5, -1.91868899636719739098e+100},  {60, 0.001, -8.32098711274137957814e+264},
      {99, 30, 1.88202941792092258669e+8},      {100, 12.5, -1.52151150406767821641e+47},
      {61, -0.5, 4.68160115113596163399e+102},  {60, -1234.25, 4.42419560912854073520e+118},
      {60, -0.5, -1.50871791385564033758e+71},  // what is left of two sums that are equal
  };
  for (const Known& known : all) {
    CAPTURE(known.n);
    CAPTURE(known.x);
    CHECK(polygamma_at(known.n, known.x) / known.y == doctest::Approx(1).epsilon(1e-13));
  }
  CHECK(polygamma_at(60, 1e9) == 0);
  CHECK(polygamma_at(60, 1e-6) == -HUGE_VAL);
  CHECK(polygamma_at(61, 1e-6) == HUGE_VAL);
  CHECK(polygamma_at(61, -1e-6) == HUGE_VAL);
  CHECK(polygamma_at(60, -1e-6) == HUGE_VAL);
}

TEST_CASE("polygamma far out is (n - 1)! / x^n, and little more") {
  for (int n = 1; n <= 100; ++n)
    for (double x = 1e5; x < 1e9; x *= 10) {
      const double log_y = std::lgamma(double(n)) - n * std::log(x);
      if (log_y < -700) continue;
      CAPTURE(n);
      CAPTURE(x);
      const double y = polygamma_at(n, x) * (n % 2 == 0 ? -1 : 1);
      const double more = n / (2 * x) + n * (n + 1) / (12 * x * x);
      CHECK(std::log(y) == doctest::Approx(log_y + std::log1p(more)).epsilon(1e-12));
    }
}
