#include "ops/kernels/lists/elements.hpp"

#include <algorithm>
#include <span>

namespace troupe {
namespace {

// Lists in lists: a program says how deep, but for one that packs a list into itself in a loop.
constexpr int kDeepest = 64;

Status too_deep() {
  return invalid_argument(fmt::format("lists in lists are more than {} deep", kDeepest));
}

template <class T>
void add_to(Tensor& sum, const Tensor& b) {
  T* to = sum.mutable_data<T>();
  const T* from = b.data<T>();
  for (std::int64_t i = 0; i < sum.elements(); ++i) to[i] = T(to[i] + from[i]);
}

bool has_16_bits(const Tensor& x) { return x.dtype() == DType::f16 || x.dtype() == DType::bf16; }

// In float, rounded once.
template <class T>
void add_rounding_once(Tensor& sum, std::span<const Tensor> parts) {
  T* to = sum.mutable_data<T>();
  for (std::int64_t i = 0; i < sum.elements(); ++i) {
    float total = 0;
    for (const Tensor& part : parts) total += part.data<T>()[i];
    to[i] = T(total);
  }
}

using Summed = Types<float, double, half, bfloat16, std::complex<float>, std::complex<double>,
                     std::int32_t, std::int64_t>;

}  // namespace

Expected<Tensor> zeros_like_element(const Tensor& element, int depth) {
  if (element.dtype() != DType::list) return zeros_of(element);
  if (depth >= kDeepest) return too_deep();
  List zeros;
  Status status;
  list_in(element).for_each([&](const Tensor& inner) {
    auto zero = zeros_like_element(inner, depth + 1);
    if (!zero.ok()) status = zero.status();
    if (status.ok()) zeros.push(std::move(zero).value());
  });
  if (!status.ok()) return status;
  return list_tensor(std::move(zeros));
}

Status add_to_list(List& sums, const List& list, int depth) {
  if (depth >= kDeepest) return too_deep();
  if (sums.size() != list.size())
    return invalid_argument(
        fmt::format("lists of {} and {} elements are added", sums.size(), list.size()));
  std::int64_t i = 0;
  Status status;
  list.for_each([&](const Tensor& element) {
    const std::int64_t at = i++;
    if (status.ok() && !element.zeros_alone()) status = add_to_element(sums, at, element, depth);
  });
  return status;
}

Status add_to_element(List& sums, std::int64_t at, const Tensor& element, int depth) {
  Tensor before = sums.get(at);
  sums.set(at, Tensor());  // so that it may be added to in place
  TROUPE_TRY(Tensor sum, add_elements(std::move(before), element, depth));
  sums.set(at, std::move(sum));
  return ok_status();
}

bool holds_halves(const Tensor& element, int depth) {
  if (element.dtype() != DType::list) return has_16_bits(element);
  bool found = false;
  if (depth < kDeepest)
    list_in(element).for_each(
        [&](const Tensor& inner) { found = found || holds_halves(inner, depth + 1); });
  return found;
}

Expected<Tensor> add_all(std::vector<Tensor> parts, int depth) {
  if (depth >= kDeepest) return too_deep();
  Tensor sum = parts.front();
  if (sum.dtype() == DType::list) {
    List sums;
    for (std::int64_t k = 0; k < list_in(sum).size(); ++k) {
      std::vector<Tensor> elements;
      for (const Tensor& part : parts) {
        if (part.dtype() != DType::list || list_in(part).size() != list_in(sum).size())
          return invalid_argument("lists of different lengths are added");
        elements.push_back(list_in(part).get(k));
      }
      TROUPE_TRY(Tensor element, add_all(std::move(elements), depth + 1));
      sums.push(std::move(element));
    }
    return list_tensor(std::move(sums));
  }
  const bool alike = std::all_of(parts.begin(), parts.end(), [&](const Tensor& part) {
    return part.dtype() == sum.dtype() && part.shape() == sum.shape();
  });
  std::erase_if(parts, [](const Tensor& part) { return !part.defined() || part.zeros_alone(); });
  if (!alike || !has_16_bits(sum) || parts.size() < 3) {
    for (std::size_t i = 1; i < parts.size(); ++i) {
      TROUPE_TRY(parts[0], add_elements(std::move(parts[0]), parts[i], depth));
    }
    return parts.empty() ? sum : parts[0];
  }
  TROUPE_TRY(sum, parts[0].clone());
  if (sum.dtype() == DType::f16)
    add_rounding_once<half>(sum, parts);
  else
    add_rounding_once<bfloat16>(sum, parts);
  return sum;
}

Expected<Tensor> add_elements(Tensor a, const Tensor& b, int depth) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    return invalid_argument(fmt::format("elements {}{} and {}{} are added", dtype_name(a.dtype()),
                                        a.shape().text(), dtype_name(b.dtype()), b.shape().text()));
  if (!a.defined() || a.elements() == 0) return a;
  if (a.dtype() == DType::list) {
    Tensor sums = a.unique() ? std::move(a) : list_tensor(list_in(a));
    TROUPE_TRY(add_to_list(list_in(sums), list_in(b), depth + 1));
    return sums;
  }
  if (b.zeros_alone()) return a;
  if (a.zeros_alone()) return b;
  Tensor sum;
  if (a.unique()) {
    sum = std::move(a);
  } else {
    TROUPE_TRY(sum, a.clone());
  }
  TROUPE_TRY(dispatch<Status>(Summed{}, sum.dtype(), [&](auto tag) {
    add_to<typename decltype(tag)::type>(sum, b);
    return ok_status();
  }));
  return sum;
}

}  // namespace troupe
