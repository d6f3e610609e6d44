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

int place_of(const Output& x, std::int64_t axis, std::string_view what, const Site& site) {
  const std::string before = std::string(what) + ": ";
  if (x.empty()) throw Error(invalid_argument(before + "x is empty").at(site));
  const PartialShape& shape = x.shape();
  if (!shape.known_rank())
    throw Error(
        invalid_argument(before + "the number of dimensions of '" + x.name() + "' must be known")
            .at(site));
  const int rank = shape.rank();
  if (axis < -rank || axis >= rank)
    throw Error(invalid_argument(before + "'" + x.name() + "' has shape " + shape.text() +
                                 " and no dimension " + std::to_string(axis))
                    .at(site));
  return int(axis < 0 ? axis + rank : axis);
}

std::int64_t known_extent(const Output& x, int place, std::string_view what, const Site& site) {
  if (x.shape().known(place)) return x.shape()[place];
  throw Error(invalid_argument(std::string(what) + ": dimension " + std::to_string(place) +
                               " of '" + x.name() + "' must be known, not " + x.shape().text())
                  .at(site));
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
