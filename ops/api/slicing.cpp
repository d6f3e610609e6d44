#include "troupe/ops/api/slicing.hpp"

#include "troupe/ops/api/constant.hpp"
#include "troupe/ops/api/node.hpp"

namespace troupe {

Output slice(Output x, std::initializer_list<Index> where, Site site) {
  if (x.empty()) throw Error(invalid_argument("slice: x is empty").at(site));
  std::vector<std::int64_t> begin, end, strides;
  std::uint64_t no_begin = 0, no_end = 0, ellipses = 0, new_axes = 0, shrinks = 0, bit = 1;
  for (const Index& index : where) {
    begin.push_back(index.begin().value_or(0));
    end.push_back(index.end().value_or(0));
    strides.push_back(index.stride());
    if (!index.begin()) no_begin |= bit;
    if (!index.end()) no_end |= bit;
    if (index.kind() == Index::Kind::ellipsis) ellipses |= bit;
    if (index.kind() == Index::Kind::newaxis) new_axes |= bit;
    if (index.kind() == Index::Kind::one) shrinks |= bit;
    bit <<= 1;
  }
  const auto list = [&](const std::vector<std::int64_t>& values) {
    const Shape shape{std::int64_t(values.size())};
    return constant(x.graph(), Tensor::of<std::int64_t>(shape, values), site);
  };
  return add_node({.op = "StridedSlice",
                   .inputs = {x, list(begin), list(end), list(strides)},
                   .attrs = {{"begin_mask", std::int64_t(no_begin)},
                             {"end_mask", std::int64_t(no_end)},
                             {"ellipsis_mask", std::int64_t(ellipses)},
                             {"new_axis_mask", std::int64_t(new_axes)},
                             {"shrink_axis_mask", std::int64_t(shrinks)}},
                   .site = site})
      .output();
}

}  // namespace troupe
