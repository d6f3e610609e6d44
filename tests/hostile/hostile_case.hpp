// One node of an op, with inputs and attributes that nobody means, drawn from a seed. A new op has
// its cases at once: they follow from its definition and from its rows of the conformance test.
#pragma once

#include <string>
#include <vector>

#include "ops/op.hpp"

namespace troupe::test {

struct HostileInput {
  enum class From : std::uint8_t { constant, feed, list, handle };
  From from = From::feed;
  Tensor value;                  // of a constant or a feed
  PartialShape declared;         // of a feed, or of the elements of a list
  std::vector<Tensor> elements;  // of a list
  std::string handle = {};       // the op that makes the handle
  AttrMap handle_attrs = {};

  // What the node is given.
  DType dtype() const;
  std::string text() const;
};

struct HostileCase {
  std::string op;
  std::vector<HostileInput> inputs;
  AttrMap attrs;
  int gradients = 0;  // orders that are asked for

  std::string text() const;  // one line
};

// The same case for the same seed.
HostileCase draw_hostile_case(const OpTable& table, const OpInfo& op, std::uint64_t seed);

// Makes what the first case would make, once for all processes that are forked later.
void make_hostile_rows();

}  // namespace troupe::test
