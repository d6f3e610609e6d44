#include "ops/api/products.hpp"

#include <fmt/format.h>

#include <string>

#include "ops/api/einsum.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/extent.hpp"

namespace troupe {

namespace {

[[noreturn]] void refuse_product(std::string what, const Site& site) {
  throw Error(invalid_argument(std::move(what)).at(site));
}

int rank_of(const char* what, const Output& x, const Site& site) {
  check_given(fmt::format("tensordot: {}", what), x, site);
  if (!x.shape().known_rank())
    refuse_product(fmt::format("tensordot: the rank of {} is not known", what), site);
  return x.shape().rank();
}

// Gives each dimension in `axes` its letter, the others new ones, which are the result's.
std::string letters_of(const char* what, int rank, const std::vector<std::int64_t>& axes,
                       const std::string& shared, char& next, std::string& result,
                       const Site& site) {
  std::string letters(std::size_t(rank), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank)
      refuse_product(
          fmt::format("tensordot: axis {} of {}, which has {} dimensions", axes[i], what, rank),
          site);
    if (letters[std::size_t(axis)] != 0)
      refuse_product(fmt::format("tensordot: axis {} of {} is named twice", axes[i], what), site);
    letters[std::size_t(axis)] = shared[i];
  }
  for (char& letter : letters)
    if (letter == 0) result += letter = next++;
  return letters;
}

}  // namespace

Output dot(Output a, Output b, Site site) {
  detail::check_rank("dot: a", a, 1, "a vector", site);
  detail::check_rank("dot: b", b, 1, "a vector", site);
  return einsum("i,i->", {a, b}, std::move(site));
}

Output outer(Output a, Output b, Site site) {
  detail::check_rank("outer: a", a, 1, "a vector", site);
  detail::check_rank("outer: b", b, 1, "a vector", site);
  return einsum("i,j->ij", {a, b}, std::move(site));
}

Output tensordot(Output a, Output b, std::int64_t axes, Site site) {
  const int rank = rank_of("a", a, site);
  if (axes < 0 || axes > rank || axes > rank_of("b", b, site))
    refuse_product(
        fmt::format("tensordot: {} axes of {} and {}", axes, a.shape().text(), b.shape().text()),
        site);
  std::vector<std::int64_t> last, first;
  for (std::int64_t i = 0; i < axes; ++i) {
    last.push_back(rank - axes + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first, std::move(site));
}

Output tensordot(Output a, Output b, const std::vector<std::int64_t>& a_axes,
                 const std::vector<std::int64_t>& b_axes, Site site) {
  const int a_rank = rank_of("a", a, site), b_rank = rank_of("b", b, site);
  if (a_axes.size() != b_axes.size())
    refuse_product(fmt::format("tensordot: {} axes of a and {} of b", a_axes.size(), b_axes.size()),
                   site);
  std::string shared, result;
  char next = 'a';
  for (std::size_t i = 0; i < a_axes.size(); ++i) shared += next++;
  const std::string left = letters_of("a", a_rank, a_axes, shared, next, result, site);
  const std::string right = letters_of("b", b_rank, b_axes, shared, next, result, site);
  return einsum(left + "," + right + "->" + result, {a, b}, std::move(site));
}

}  // namespace troupe
