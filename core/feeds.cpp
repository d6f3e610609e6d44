#include "core/feeds.hpp"

#include <fmt/format.h>

namespace troupe {

Status check_feeds(const std::vector<FeedSpec>& specs, const std::vector<Tensor>& feeds) {
  if (Status status = check_feed_count(specs.size(), feeds.size()); !status.ok()) return status;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const FeedSpec& spec = specs[i];
    const Tensor& fed = feeds[i];
    if (fed.defined() && fed.dtype() == spec.dtype && spec.shape.accepts(fed.shape())) continue;
    return invalid_argument(fmt::format(
        "feed '{}' takes {}{}, not {}", spec.name, dtype_name(spec.dtype), spec.shape.text(),
        fed.defined() ? std::string(dtype_name(fed.dtype())) + fed.shape().text() : "nothing"));
  }
  return ok_status();
}

}  // namespace troupe
