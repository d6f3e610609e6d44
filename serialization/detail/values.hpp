// Converts values of core/ to and from schema/value.capnp. Readers trust nothing; writers take
// valid values. A kj::Exception passes through: detail/capnp.hpp catches it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/attr.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "serialization/detail/capnp.hpp"
#include "serialization/schema/value.capnp.h"

namespace troupe::detail {

// REQUIRES: undefined, or in host memory and not a resource.
void write(schema::Tensor::Builder out, const Tensor& t);
void write(schema::PartialShape::Builder out, const PartialShape& shape);
void write(schema::Attr::Builder out, const std::string& name, const Attr& attr);
void write(schema::Site::Builder out, const Site& site);

Expected<Tensor> read(schema::Tensor::Reader in);
Expected<PartialShape> read(schema::PartialShape::Reader in);
Expected<Attr> read(schema::Attr::Reader in);
Site read(schema::Site::Reader in);
Expected<DType> read_dtype(std::uint8_t value);

template <class List, class Values>
void write_numbers(List out, const Values& values) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, values[i]);
}
template <class List>
auto read_numbers(List in) {
  using T = std::decay_t<decltype(in[0])>;
  std::vector<T> out(in.size());
  for (unsigned i = 0; i < in.size(); ++i) out[i] = in[i];
  return out;
}
void write_texts(capnp::List<capnp::Text>::Builder out, const std::vector<std::string>& texts);
std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader in);

}  // namespace troupe::detail
