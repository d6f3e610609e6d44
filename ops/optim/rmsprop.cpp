#include "ops/optim/rmsprop.hpp"

namespace troupe::optim {

Op RmsProp::update(const Parameter& p) const {
  const Variable square = p.slot("square"), velocity = p.slot("velocity");
  NodeSpec node{.op = centered ? "ApplyCenteredRMSProp" : "ApplyRMSProp",
                .inputs = {p.variable().handle()}};
  if (centered) node.inputs.push_back(p.slot("mean").handle());
  for (const Output& each :
       {square.handle(), velocity.handle(), p.rate(lr, "lr"), p.rate(rho, "rho"),
        p.rate(momentum, "momentum"), p.rate(epsilon, "epsilon")})
    node.inputs.push_back(each);
  return p.write_gradient(std::move(node), lazy);
}

}  // namespace troupe::optim
