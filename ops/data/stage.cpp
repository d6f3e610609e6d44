#include "ops/data/stage.hpp"

#include "core/content_bytes.hpp"

namespace troupe {

std::size_t bytes_of(const Example& example) {
  std::size_t bytes = sizeof example;
  for (const Tensor& value : example.values) bytes += sizeof value + content_bytes(value);
  return bytes;
}

Origin origin_of(const Example& example) {
  return example.source != nullptr ? example.source->origin(example.index) : example.origin;
}

Status in_example(const Status& status, const Example& example) {
  const Origin origin = origin_of(example);
  return !origin.known() ? status : status.in("in " + origin.text());
}

}  // namespace troupe
