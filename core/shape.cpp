#include "core/shape.hpp"

#include <algorithm>
#include <optional>

namespace troupe {
namespace {

std::string dims_text(std::span<const std::int64_t> dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ',';
    out += dims[i] == PartialShape::kUnknown ? "?" : std::to_string(dims[i]);
  }
  return out + ']';
}

Status check_dims(std::span<const std::int64_t> dims, std::int64_t lowest) {
  if (dims.size() > std::size_t(kMaxRank))
    return invalid_argument("rank " + std::to_string(dims.size()) + " is above the limit of " +
                            std::to_string(kMaxRank));
  for (std::int64_t d : dims)
    if (d < lowest)
      return invalid_argument("dimension " + std::to_string(d) + " of a shape is negative");
  return ok_status();
}

bool can_be(std::span<const std::int64_t> dims) {
  return dims.size() <= std::size_t(kMaxRank) &&
         std::all_of(dims.begin(), dims.end(), [](std::int64_t d) { return d >= 0; });
}

Site site_of(const char* file, int line) { return file ? Site::here(file, line) : Site(); }

Status missing_dimension(int i, const std::string& shape) {
  return out_of_range("shape " + shape + " has no dimension " + std::to_string(i));
}

template <class S>
Status no_broadcast(const S& a, const S& b) {
  return invalid_argument("shapes " + a.text() + " and " + b.text() + " do not broadcast together");
}

// One dimension of a broadcast, -1 for unknown; nullopt where the two cannot meet.
std::optional<std::int64_t> broadcast_dim(std::int64_t a, std::int64_t b) {
  constexpr auto kUnknown = PartialShape::kUnknown;
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  if (a == kUnknown) return b;  // must be 1 or b, either way the result is b
  if (b == kUnknown) return a;
  return std::nullopt;
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> dims, const char* file, int line) {
  if (!can_be(dims)) throw Error(check_dims(dims, 0).at(Site::here(file, line)));
  rank_ = std::uint8_t(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

Shape::Shape(std::span<const std::int64_t> dims) {
  if (!can_be(dims)) throw Error(check_dims(dims, 0));
  rank_ = std::uint8_t(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

Expected<Shape> Shape::make(std::span<const std::int64_t> dims) {
  TROUPE_TRY(check_dims(dims, 0));
  // Zeros are left out of the product, so that no partial product can overflow later either.
  std::int64_t n = 1;
  for (std::int64_t d : dims)
    if (d != 0 && __builtin_mul_overflow(n, d, &n))
      return invalid_argument("shape " + dims_text(dims) + " has more than 2^63 - 1 elements");
  return Shape(dims);
}

void Shape::append(std::int64_t dim) {
  std::array<std::int64_t, kMaxRank + 1> longer{};
  std::copy_n(dims_.begin(), rank_, longer.begin());
  longer[rank_] = dim;
  *this = Shape(std::span<const std::int64_t>(longer.data(), std::size_t(rank_) + 1));
}

void Shape::set_dim(int i, std::int64_t value) {
  if (i < 0 || i >= rank_) no_dimension(i, nullptr, 0);
  if (value < 0) throw Error(check_dims(std::span(&value, 1), 0));
  dims_[std::size_t(i)] = value;
}

void Shape::no_dimension(int i, const char* file, int line) const {
  throw Error(missing_dimension(i, text()).at(site_of(file, line)));
}

std::string Shape::text() const { return dims_text(dims()); }

Expected<std::int64_t> byte_size(const Shape& shape, std::size_t element_size) {
  std::int64_t n = std::int64_t(element_size);
  bool fits = element_size <= std::size_t{1} << 62;
  for (std::int64_t d : shape.dims()) {
    if (d == 0) return std::int64_t{0};
    fits = fits && !__builtin_mul_overflow(n, d, &n);
  }
  if (!fits || n > std::int64_t{1} << 62)
    return invalid_argument("a tensor of shape " + shape.text() + " exceeds 2^62 bytes");
  return n;
}

PartialShape::PartialShape(std::initializer_list<std::int64_t> dims, const char* file, int line)
    : known_rank_(true), dims_(dims) {
  throw_if_error(check_dims(dims_, kUnknown).at(Site::here(file, line)));
}

PartialShape::PartialShape(const Shape& shape)
    : known_rank_(true), dims_(shape.dims().begin(), shape.dims().end()) {}

Expected<PartialShape> PartialShape::make(std::span<const std::int64_t> dims) {
  TROUPE_TRY(check_dims(dims, kUnknown));
  PartialShape out;
  out.known_rank_ = true;
  out.dims_.assign(dims.begin(), dims.end());
  return out;
}

PartialShape PartialShape::unknown_of_rank(int rank) {
  if (rank < 0 || rank > kMaxRank)
    throw Error(invalid_argument("a shape has 0 to 8 dimensions, not " + std::to_string(rank)));
  PartialShape out;
  out.known_rank_ = true;
  out.dims_.assign(std::size_t(rank), kUnknown);
  return out;
}

void PartialShape::set_dim(int i, std::int64_t value) {
  if (i < 0 || std::size_t(i) >= dims_.size()) no_dimension(i, nullptr, 0);
  dims_[std::size_t(i)] = value;
}

void PartialShape::no_dimension(int i, const char* file, int line) const {
  if (!known_rank_) no_rank(file, line);
  throw Error(missing_dimension(i, text()).at(site_of(file, line)));
}

void PartialShape::no_rank(const char* file, int line) {
  throw Error(failed_precondition("the number of dimensions is not known before a run")
                  .at(site_of(file, line)));
}

void Dim::unknown() {
  throw Error(failed_precondition(
      "a dimension that is not known before a run was used as a number; take it from shape(x)"));
}

bool PartialShape::fully_known() const {
  return known_rank_ && std::find(dims_.begin(), dims_.end(), kUnknown) == dims_.end();
}

Shape PartialShape::shape(const char* file, int line) const {
  if (!fully_known())
    throw Error(failed_precondition("shape " + text() + " is not fully known before a run")
                    .at(Site::here(file, line)));
  return Shape(std::span<const std::int64_t>(dims_));
}

bool PartialShape::accepts(const Shape& shape) const {
  if (!known_rank_) return true;
  if (rank() != shape.rank()) return false;
  for (int i = 0; i < rank(); ++i)
    if (known(i) && dim(i) != shape.dim(i)) return false;
  return true;
}

Expected<PartialShape> PartialShape::merge(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank_) return b;
  if (!b.known_rank_) return a;
  PartialShape out = a;
  bool compatible = a.rank() == b.rank();
  for (int i = 0; compatible && i < a.rank(); ++i) {
    if (!a.known(i)) out.set_dim(i, b.dim(i));
    compatible = !a.known(i) || !b.known(i) || a.dim(i) == b.dim(i);
  }
  if (!compatible)
    return invalid_argument("shapes " + a.text() + " and " + b.text() + " are incompatible");
  return out;
}

std::string PartialShape::text() const { return known_rank_ ? dims_text(dims_) : "?"; }

Expected<PartialShape> broadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape::unknown();
  PartialShape out = PartialShape::unknown_of_rank(std::max(a.rank(), b.rank()));
  for (int i = 1; i <= out.rank(); ++i) {  // from the right
    const Dim da = i <= a.rank() ? a.dim(a.rank() - i) : Dim(1);
    const Dim db = i <= b.rank() ? b.dim(b.rank() - i) : Dim(1);
    auto d = broadcast_dim(da, db);
    if (!d) return no_broadcast(a, b);
    out.set_dim(out.rank() - i, *d);
  }
  return out;
}

Expected<Shape> broadcast(const Shape& a, const Shape& b) {
  int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, kMaxRank> dims{};
  for (int i = 1; i <= rank; ++i) {
    std::int64_t da = i <= a.rank() ? a.dim(a.rank() - i) : 1;
    std::int64_t db = i <= b.rank() ? b.dim(b.rank() - i) : 1;
    auto d = broadcast_dim(da, db);
    if (!d) return no_broadcast(a, b);
    dims[std::size_t(rank - i)] = *d;
  }
  // Two shapes that fit may broadcast to one that does not: [2^40,1] with [1,2^40].
  return Shape::make({dims.data(), std::size_t(rank)});
}

}  // namespace troupe
