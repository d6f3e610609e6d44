// Element types as device code names them.
#pragma once

#include <string>
#include <typeinfo>
#include <vector>

#include "core/dtype.hpp"

namespace troupe::cuda {

// "troupe::device::f32". REQUIRES: an element type that devices hold.
std::string element_type(DType dtype);
// An unsigned integer of the same size for an integer, else the type itself.
DType without_sign(DType dtype);
// An unsigned integer, or a pair of them, that has as many bytes.
std::string moved_type(DType dtype);

// "troupe::formula::Add" for a formula.
std::string name_of(const std::type_info& type);
// "troupe::device::Elementwise<troupe::formula::Add, troupe::device::f32>".
std::string device_type(const char* name, const std::vector<std::string>& arguments);

}  // namespace troupe::cuda
