#include "ops/api/text.hpp"

#include <fmt/format.h>

#include <ostream>

namespace troupe {

std::string printed(const Tensor& x) { return x.text(); }
std::string printed(const Shape& x) { return x.text(); }
std::string printed(const PartialShape& x) { return x.text(); }
std::string printed(const Status& x) { return x.ok() ? "ok" : x.text(); }
std::string printed(const Output& x) {
  if (x.empty()) return "an empty Output";
  return x.name() + ": " + std::string(dtype_name(x.dtype())) + x.shape().text();
}
std::string printed(DType x) { return std::string(dtype_name(x)); }

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << printed(x); }
std::ostream& operator<<(std::ostream& out, const Shape& x) { return out << printed(x); }
std::ostream& operator<<(std::ostream& out, const PartialShape& x) { return out << printed(x); }
std::ostream& operator<<(std::ostream& out, const Status& x) { return out << printed(x); }
std::ostream& operator<<(std::ostream& out, const Output& x) { return out << printed(x); }
std::ostream& operator<<(std::ostream& out, DType x) { return out << printed(x); }

}  // namespace troupe

template <troupe::PrintedAsText T>
fmt::format_context::iterator fmt::formatter<T>::format(const T& x,
                                                        fmt::format_context& context) const {
  return fmt::formatter<fmt::string_view>::format(troupe::printed(x), context);
}

template struct fmt::formatter<troupe::Tensor>;
template struct fmt::formatter<troupe::Shape>;
template struct fmt::formatter<troupe::PartialShape>;
template struct fmt::formatter<troupe::Status>;
template struct fmt::formatter<troupe::Output>;
template struct fmt::formatter<troupe::DType>;
