// Sets of numbers that are joined, by union-find.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace troupe::detail {

// Elements 0, 1, ..., each alone at first. A set is known by its smallest element, so that sets
// come in the order of their first elements.
class DisjointSets {
 public:
  using Element = std::uint32_t;

  explicit DisjointSets(std::size_t elements = 0) : parent_(elements) {
    std::iota(parent_.begin(), parent_.end(), Element{0});
  }
  std::size_t size() const { return parent_.size(); }
  Element add() {
    parent_.push_back(Element(parent_.size()));
    return parent_.back();
  }
  Element find(Element e) {
    while (parent_[e] != e) e = parent_[e] = parent_[parent_[e]];
    return e;
  }
  void join(Element a, Element b) {
    a = find(a), b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<Element> parent_;
};

}  // namespace troupe::detail
