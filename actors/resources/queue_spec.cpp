#include "actors/resources/queue_spec.hpp"

#include <algorithm>

#include "core/tensor_blocks.hpp"

namespace troupe {
namespace {

Status check_shuffle(const QueueSpec& spec) {
  if (spec.min_after_dequeue >= 0 && spec.min_after_dequeue < spec.capacity) return ok_status();
  return invalid_argument("queue '" + spec.name + "' of capacity " + std::to_string(spec.capacity) +
                          ": no element could be taken and " +
                          std::to_string(spec.min_after_dequeue) + " left");
}

Status check_priority(const QueueSpec& spec) {
  if (spec.dtypes[0] == DType::i64 && (spec.shapes.empty() || spec.shapes[0].accepts(Shape{})))
    return ok_status();
  return invalid_argument("queue '" + spec.name +
                          "': component 0 is the priority and must be an i64 scalar");
}

bool has_bytes(DType dtype) { return dtype == DType::string || dtype_size(dtype) > 0; }

std::string component(const QueueSpec& spec, std::size_t i) {
  return "component " + std::to_string(i) + " of queue '" + spec.name + "'";
}

}  // namespace

Status QueueSpec::check() const {
  if (capacity < 1)
    return invalid_argument("queue '" + name + "': capacity " + std::to_string(capacity) +
                            " is below 1");
  if (dtypes.empty()) return invalid_argument("queue '" + name + "': an element needs components");
  if (!shapes.empty() && shapes.size() != dtypes.size())
    return invalid_argument("queue '" + name + "': " + std::to_string(shapes.size()) +
                            " shapes for " + std::to_string(dtypes.size()) + " components");
  if (order == Order::shuffle) TROUPE_TRY(check_shuffle(*this));
  if (order == Order::priority) TROUPE_TRY(check_priority(*this));
  return padded ? check_batches(*this) : ok_status();
}

std::string QueueSpec::text() const {
  std::string text = "queue '" + name + "' of capacity " + std::to_string(capacity) + " (";
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    text += (i ? ", " : "") + std::string(dtype_name(dtypes[i]));
    if (!shapes.empty()) text += shapes[i].text();
  }
  if (order == Order::priority) text += "; by priority";
  if (order == Order::shuffle)
    text += "; shuffled by seed " + std::to_string(seed) + ", of which " +
            std::to_string(min_after_dequeue) + " stay";
  if (padded) text += "; padded";
  return text + ")";
}

Status check_element(const QueueSpec& spec, const QueueElement& element) {
  if (element.size() != spec.dtypes.size())
    return invalid_argument("queue '" + spec.name + "' holds elements of " +
                            std::to_string(spec.dtypes.size()) + " components, not " +
                            std::to_string(element.size()));
  for (std::size_t i = 0; i < element.size(); ++i) {
    if (element[i].dtype() != spec.dtypes[i])
      return invalid_argument(component(spec, i) + " is " +
                              std::string(dtype_name(spec.dtypes[i])) + ", not " +
                              std::string(dtype_name(element[i].dtype())));
    if (!spec.shapes.empty() && !spec.shapes[i].accepts(element[i].shape()))
      return invalid_argument(component(spec, i) + " has shape " + spec.shapes[i].text() +
                              ", not " + element[i].shape().text());
  }
  if (spec.order == QueueSpec::Order::priority && element[0].rank() != 0)
    return invalid_argument(component(spec, 0) + " is the priority, a scalar, not of shape " +
                            element[0].shape().text());
  return ok_status();
}

std::int64_t priority_of(const QueueElement& element) { return element[0].item<std::int64_t>(); }

// Copies: a part of the batch's buffer would keep all of it alive.
Expected<std::vector<QueueElement>> elements_of(const QueueSpec& spec, const QueueElement& batch) {
  if (batch.size() != spec.dtypes.size())
    return invalid_argument("queue '" + spec.name + "' holds elements of " +
                            std::to_string(spec.dtypes.size()) + " components, not " +
                            std::to_string(batch.size()));
  for (std::size_t c = 0; c < batch.size(); ++c) {
    if (batch[c].rank() == 0 || !has_bytes(batch[c].dtype()))
      return invalid_argument(component(spec, c) + " is to be taken from a batch, and " +
                              std::string(dtype_name(batch[c].dtype())) + batch[c].shape().text() +
                              " is none");
    if (batch[c].dim(0) != batch[0].dim(0))
      return invalid_argument("a batch for queue '" + spec.name + "' has " +
                              std::to_string(batch[0].dim(0)) + " elements in component 0 and " +
                              std::to_string(batch[c].dim(0)) + " in component " +
                              std::to_string(c));
  }
  const std::int64_t n = batch[0].dim(0);
  if (n > spec.capacity)
    return invalid_argument("a batch of " + std::to_string(n) + " elements is more than queue '" +
                            spec.name + "' of capacity " + std::to_string(spec.capacity) +
                            " can hold");
  std::vector<QueueElement> elements{std::size_t(n)};
  for (const Tensor& component : batch) {
    TROUPE_TRY(const Shape shape, Shape::make(component.shape().dims().subspan(1)));
    for (std::int64_t i = 0; i < n; ++i) {
      TROUPE_TRY(Tensor row, component.rows(i, i + 1).reshaped(shape).clone());
      elements[std::size_t(i)].push_back(std::move(row));
    }
  }
  return elements;
}

Status check_batches(const QueueSpec& spec) {
  for (std::size_t c = 0; c < spec.dtypes.size(); ++c) {
    if (!has_bytes(spec.dtypes[c]))
      return invalid_argument(component(spec, c) + " is " +
                              std::string(dtype_name(spec.dtypes[c])) +
                              ", of which there are no batches");
    const bool known = !spec.shapes.empty() &&
                       (spec.padded ? spec.shapes[c].known_rank() : spec.shapes[c].fully_known());
    if (known) continue;
    return invalid_argument("elements of queue '" + spec.name + "' cannot be stacked: the " +
                            (spec.padded ? "rank" : "shape") + " of component " +
                            std::to_string(c) + " is not declared" +
                            (spec.padded ? "" : "; a PaddingFIFOQueue pads them"));
  }
  return ok_status();
}

Expected<QueueElement> batch_of(const QueueSpec& spec,
                                std::span<const QueueElement* const> elements) {
  QueueElement batch;
  for (std::size_t c = 0; c < spec.dtypes.size(); ++c) {
    std::vector<std::int64_t> dims{std::int64_t(elements.size())};
    for (std::int64_t d : spec.shapes[c].dims()) dims.push_back(std::max<std::int64_t>(d, 0));
    for (const QueueElement* element : elements)
      for (int d = 0; d < (*element)[c].rank(); ++d)
        dims[std::size_t(d) + 1] = std::max(dims[std::size_t(d) + 1], (*element)[c].dim(d));
    TROUPE_TRY(const Shape shape, Shape::make(dims));
    TROUPE_TRY(Tensor rows, spec.padded ? Tensor::zeros(spec.dtypes[c], shape)
                                        : Tensor::make(spec.dtypes[c], shape));
    for (std::size_t i = 0; i < elements.size(); ++i)
      copy_block((*elements[i])[c], rows, std::int64_t(i));
    batch.push_back(std::move(rows));
  }
  return batch;
}

}  // namespace troupe
