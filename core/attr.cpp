#include "core/attr.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 12> kKinds = {
    "int",    "float",     "bool",        "string",       "type",       "shape",
    "tensor", "list(int)", "list(float)", "list(string)", "list(type)", "list(shape)"};
static_assert(kKinds.size() == std::variant_size_v<Attr::Value>);

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string show(std::int64_t v) { return std::to_string(v); }
std::string show(bool v) { return v ? "true" : "false"; }
std::string show(const std::string& v) { return literal(v); }
std::string show(DType v) { return std::string(dtype_name(v)); }
std::string show(const PartialShape& v) { return v.text(); }
std::string show(const Tensor& v) { return v.text(); }
std::string show(double v) {
  // Shortest text that reads back as the same number, and never looks like an integer.
  std::string out = fmt::format("{}", v);
  return out.find_first_not_of("-0123456789") == std::string::npos ? out + ".0" : out;
}
template <class T>
std::string show(const std::vector<T>& list) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + show(list[i]);
  return out + ']';
}

template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
bool same(const Tensor& a, const Tensor& b) { return Tensor::same(a, b); }
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}

}  // namespace

Attr::Attr() : Attr(0) {}
Attr::Attr(int v) : value_(std::int64_t{v}) {}
Attr::Attr(std::int64_t v) : value_(v) {}
Attr::Attr(double v) : value_(v) {}
Attr::Attr(float v) : value_(double{v}) {}
Attr::Attr(bool v) : value_(v) {}
Attr::Attr(DType v) : value_(v) {}
Attr::Attr(const char* v) : value_(std::string(v)) {}
Attr::Attr(std::string v) : value_(std::move(v)) {}
Attr::Attr(std::string_view v) : value_(std::string(v)) {}
Attr::Attr(PartialShape v) : value_(std::move(v)) {}
Attr::Attr(const Shape& v) : value_(PartialShape(v)) {}
Attr::Attr(Tensor v) : value_(std::move(v)) {}
Attr::Attr(std::vector<std::int64_t> v) : value_(std::move(v)) {}
Attr::Attr(std::vector<double> v) : value_(std::move(v)) {}
Attr::Attr(std::vector<std::string> v) : value_(std::move(v)) {}
Attr::Attr(std::vector<DType> v) : value_(std::move(v)) {}
Attr::Attr(std::vector<PartialShape> v) : value_(std::move(v)) {}

Attr::Attr(const Attr& other) = default;
Attr::Attr(Attr&& other) noexcept = default;
Attr& Attr::operator=(const Attr& other) = default;
Attr& Attr::operator=(Attr&& other) noexcept = default;
Attr::~Attr() = default;

std::string_view Attr::kind() const { return kKinds[value_.index()]; }

std::string Attr::text() const {
  return std::visit([](const auto& v) { return show(v); }, value_);
}

bool operator==(const Attr& a, const Attr& b) {
  if (a.value_.index() != b.value_.index()) return false;
  return std::visit([&](const auto& v) { return same(v, *b.get<std::decay_t<decltype(v)>>()); },
                    a.value_);
}

}  // namespace troupe
