#include "troupe/ops/data/pipeline.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "troupe/core/hash.hpp"

namespace troupe {

namespace {

Status check(const std::vector<Tensor>& examples, const PipelineSpec& spec) {
  if (examples.empty()) return invalid_argument("a pipeline needs at least one component");
  for (const Tensor& t : examples) {
    if (!t.defined() || t.rank() == 0)
      return invalid_argument("a component needs its examples in dimension 0");
    if (t.dim(0) != examples[0].dim(0))
      return invalid_argument("components differ in length: " + examples[0].shape().text() +
                              " and " + t.shape().text());
  }
  if (examples[0].dim(0) == 0) return invalid_argument("a pipeline needs at least one example");
  // The order of an epoch holds 32-bit indices.
  if (examples[0].dim(0) > std::numeric_limits<std::uint32_t>::max())
    return invalid_argument("a pipeline takes at most 2^32 - 1 examples");
  if (spec.batch < 1) return invalid_argument("batch must be at least 1");
  if (spec.shuffle < 0 || spec.limit < 0 || spec.repeat < -1)
    return invalid_argument("shuffle, limit and repeat must not be negative (repeat may be -1)");
  return ok_status();
}

// Row `i` of the batch is example rows[i], converted.
template <class To>
void gather_bytes(const Tensor& from, std::span<const std::uint32_t> rows, To scale, Tensor& to) {
  const std::int64_t size = from.elements() / from.dim(0);
  To* out = to.mutable_data<To>();
  for (std::uint32_t row : rows) {
    const std::uint8_t* in = from.data<std::uint8_t>() + row * size;
    for (std::int64_t i = 0; i < size; ++i) *out++ = To(in[i]) * scale;
  }
}

void gather_rows(const Tensor& from, std::span<const std::uint32_t> rows, Tensor& to) {
  const std::int64_t size = from.elements() / from.dim(0);
  if (from.dtype() == DType::string) {
    std::string* out = to.mutable_data<std::string>();
    for (std::uint32_t row : rows)
      out = std::copy_n(from.data<std::string>() + row * size, size, out);
    return;
  }
  const std::size_t bytes = std::size_t(size) * dtype_size(from.dtype());
  char* out = static_cast<char*>(to.mutable_raw());
  for (std::uint32_t row : rows) {
    if (bytes > 0) std::memcpy(out, static_cast<const char*>(from.raw()) + row * bytes, bytes);
    out += bytes;
  }
}

Expected<Tensor> batch_of(const Tensor& from, std::span<const std::uint32_t> rows) {
  const auto n = std::int64_t(rows.size());
  if (from.dtype() == DType::u8 && from.rank() == 3) {
    TROUPE_TRY(Tensor images, Tensor::make(DType::f32, Shape{n, from.dim(1), from.dim(2), 1}));
    gather_bytes<float>(from, rows, 1.0f / 255, images);
    return images;
  }
  if (from.dtype() == DType::u8 && from.rank() == 1) {
    TROUPE_TRY(Tensor labels, Tensor::make(DType::i64, Shape{n}));
    gather_bytes<std::int64_t>(from, rows, 1, labels);
    return labels;
  }
  Shape shape = from.shape();
  shape.set_dim(0, n);
  TROUPE_TRY(Tensor same, Tensor::make(from.dtype(), shape));
  gather_rows(from, rows, same);
  return same;
}

Expected<std::vector<Tensor>> element_of(const std::vector<Tensor>& examples,
                                         std::span<const std::uint32_t> rows) {
  std::vector<Tensor> batch;
  for (const Tensor& component : examples) {
    TROUPE_TRY(Tensor t, batch_of(component, rows));
    batch.push_back(std::move(t));
  }
  return batch;
}

}  // namespace

std::vector<std::uint32_t> epoch_order(std::int64_t count, std::int64_t window, std::uint64_t seed,
                                       std::uint64_t epoch) {
  std::vector<std::uint32_t> order(std::size_t(count), 0);
  std::iota(order.begin(), order.end(), 0u);
  if (window <= 1) return order;
  // Position i takes one of the next `window` examples that were not shown yet; the first of them
  // fills the gap, so `order` is its own buffer.
  Random random(hash_combine(mix64(seed), epoch));
  for (std::int64_t i = 0; i < count; ++i)
    std::swap(order[std::size_t(i)],
              order[std::size_t(i) + random.below(std::uint64_t(std::min(window, count - i)))]);
  return order;
}

Expected<Pipeline> Pipeline::make(std::vector<Tensor> examples, const PipelineSpec& spec) {
  TROUPE_TRY(check(examples, spec));
  Pipeline p;
  p.spec_ = spec;
  p.count_ = examples[0].dim(0);
  if (spec.limit > 0) p.count_ = std::min(p.count_, spec.limit);
  p.examples_ = std::move(examples);
  p.per_epoch_ = std::uint64_t(p.count_ / spec.batch);
  if (!spec.drop_remainder && p.count_ % spec.batch != 0) ++p.per_epoch_;
  if (p.per_epoch_ == 0)
    return invalid_argument("a batch of " + std::to_string(spec.batch) + " is never full with " +
                            std::to_string(p.count_) + " examples an epoch");
  return p;
}

std::optional<std::uint64_t> Pipeline::elements() const {
  if (spec_.repeat < 0) return std::nullopt;
  return std::uint64_t(spec_.repeat) * per_epoch_;
}

Expected<std::vector<Tensor>> Pipeline::element(std::uint64_t index) {
  const std::uint64_t epoch = index / per_epoch_;
  if (spec_.repeat >= 0 && epoch >= std::uint64_t(spec_.repeat))
    return out_of_range("the dataset has ended: it has " + std::to_string(*elements()) +
                        " elements");
  const auto begin = std::int64_t(index % per_epoch_) * spec_.batch;
  const std::int64_t size = std::min(spec_.batch, count_ - begin);
  const std::span<const std::uint32_t> rows(order_of(epoch).data() + begin, std::size_t(size));
  return element_of(examples_, rows);
}

Expected<std::vector<Tensor>> Pipeline::sample() const {
  std::vector<std::uint32_t> rows(std::size_t(std::min(spec_.batch, count_)), 0);
  std::iota(rows.begin(), rows.end(), 0u);
  return element_of(examples_, rows);
}

const std::vector<std::uint32_t>& Pipeline::order_of(std::uint64_t epoch) {
  Epoch& cached = epochs_[epoch % epochs_.size()];
  if (cached.number != epoch) {
    cached.order = epoch_order(count_, spec_.shuffle, spec_.seed, epoch);
    cached.number = epoch;
  }
  return cached.order;
}

}  // namespace troupe
