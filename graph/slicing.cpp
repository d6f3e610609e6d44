#include "graph/slicing.hpp"

namespace troupe {

namespace {

Output list(GraphBuilder& g, const std::vector<std::int64_t>& values, const Site& site) {
  const Shape shape{std::int64_t(values.size())};
  return g.add("Const", {}, {{"T", DType::i64}, {"value", Tensor::of<std::int64_t>(shape, values)}},
               site);
}

}  // namespace

Output Output::operator[](std::initializer_list<Index> where) const {
  Site site;
  std::vector<std::int64_t> begin, end, strides;
  std::uint64_t no_begin = 0, no_end = 0, ellipses = 0, new_axes = 0, shrinks = 0, bit = 1;
  for (const Index& index : where) {
    if (!site.known()) site = index.site();
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
  if (empty()) throw Error(invalid_argument("[]: the Output is empty").at(site));
  const Output first = list(*graph_, begin, site), last = list(*graph_, end, site),
               step = list(*graph_, strides, site);
  return graph_->add("StridedSlice", {*this, first, last, step},
                     {{"begin_mask", std::int64_t(no_begin)},
                      {"end_mask", std::int64_t(no_end)},
                      {"ellipsis_mask", std::int64_t(ellipses)},
                      {"new_axis_mask", std::int64_t(new_axes)},
                      {"shrink_axis_mask", std::int64_t(shrinks)}},
                     site);
}

Output Output::operator[](const Index& one) const {
  return (*this)[std::initializer_list<Index>{one}];
}

Output Output::operator[](const ComputedIndex& at) const {
  if (empty()) throw Error(invalid_argument("[]: the Output is empty").at(at.site()));
  if (at.at().empty()) throw Error(invalid_argument("[]: the index is empty").at(at.site()));
  if (at.at().dtype() == DType::bool_)
    throw Error(invalid_argument("[]: the index is bool: boolean_mask(x, mask) takes the slices at "
                                 "which a mask is true")
                    .at(at.site()));
  return graph_->add("Gather", {*this, at.at()}, {}, at.site());
}

}  // namespace troupe
