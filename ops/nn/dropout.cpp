#include "ops/nn/dropout.hpp"

#include "ops/api/math.hpp"
#include "ops/api/node.hpp"

namespace troupe::nn {

Dropout::Dropout(Module& parent, std::string_view name, double rate, Site site)
    : Module(parent, name), rate_(rate) {
  if (!(rate >= 0 && rate < 1))
    throw Error(invalid_argument("Dropout: the rate is in [0, 1)").at(site));
}

Output Dropout::operator()(Output x, Site site) const {
  check_given("Dropout: x", x, site);
  if (!training() || rate_ == 0) return x;
  auto inside = scope().enter();
  return dropout(x, rate_, std::move(site));
}

}  // namespace troupe::nn
