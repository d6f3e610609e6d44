#include "ops/detail/extent.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"

namespace troupe::detail {

Output extent(const Output& x, int axis, const Site& site) {
  GraphBuilder& g = x.graph();
  if (x.shape().known_rank() && x.shape().known(axis)) return constant(g, x.shape()[axis], site);
  return gather(shape(x, {}, site), constant(g, std::int64_t{axis}, site), {}, site);
}

void check_rank(std::string_view what, const Output& x, int rank, std::string_view form,
                const Site& site) {
  check_given(what, x, site);
  const PartialShape& shape = x.shape();
  if (shape.known_rank() && shape.rank() == rank) return;
  throw Error(invalid_argument(std::string(what) + " has shape " + shape.text() + ", not " +
                               std::string(form))
                  .at(site));
}

}  // namespace troupe::detail
