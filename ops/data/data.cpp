#include "ops/data/data.hpp"

namespace troupe::data {

// Test digits begin where no training set reaches.
constexpr std::int64_t kFirstTestPicture = std::int64_t{1} << 40;

template <class F>
Images Images::with(F change) const {
  Images changed = *this;
  change(changed);
  return changed;
}

Images Images::shuffle(std::int64_t window) const {
  return with([&](Images& i) { i.shuffle_ = window; });
}
Images Images::batch(std::int64_t size) const {
  return with([&](Images& i) { i.batch_ = size; });
}
Images Images::repeat(std::int64_t epochs) const {
  return with([&](Images& i) { i.repeat_ = epochs; });
}
Images Images::prefetch(std::int64_t elements) const {
  return with([&](Images& i) { i.prefetch_ = elements; });
}
Images Images::seed(std::uint64_t seed) const {
  return with([&](Images& i) { i.seed_ = seed; });
}
Images Images::take(std::int64_t count, std::int64_t first) const {
  return with([&](Images& i) {
    i.limit_ = count;
    i.first_ += first;
  });
}
Images Images::drop_remainder(bool drop) const {
  return with([&](Images& i) { i.drop_remainder_ = drop; });
}
Images Images::size(std::int64_t height, std::int64_t width) const {
  return with([&](Images& i) {
    i.height_ = height;
    i.width_ = width;
  });
}

std::array<Output, 2> Images::outputs(GraphBuilder& g, std::string_view name, Site site) const {
  const bool drop = drop_remainder_.value_or(repeat_ < 0);
  const std::int64_t batch = drop ? batch_ : PartialShape::kUnknown;
  const std::vector<DType> types = {DType::f32, DType::i64};
  const std::vector<PartialShape> shapes = {{batch, height_, width_, 1}, {batch}};
  const Op dataset = g.add(NodeSpec{.op = "Dataset",
                                    .attrs = {{"source", source_},
                                              {"files", files_},
                                              {"first", first_},
                                              {"limit", limit_},
                                              {"digits_seed", std::int64_t(digits_seed_)},
                                              {"batch", batch_},
                                              {"shuffle", shuffle_},
                                              {"seed", std::int64_t(seed_.value_or(g.def().seed))},
                                              {"repeat", repeat_},
                                              {"drop_remainder", drop},
                                              {"prefetch", prefetch_},
                                              {"types", types},
                                              {"shapes", shapes}},
                                    .name = std::string(name),
                                    .site = site});
  const Op next = g.add(NodeSpec{.op = "NextElement",
                                 .inputs = {dataset.output()},
                                 .attrs = {{"types", types}, {"shapes", shapes}},
                                 .name = std::string(name) + "_next",
                                 .site = site});
  return {next.output(0), next.output(1)};
}

Examples Images::examples() const {
  const std::string first = std::to_string(first_), limit = std::to_string(limit_);
  if (source_ == "digits")
    return Examples::of("digits " + std::to_string(digits_seed_) + " " + first + " " + limit, {});
  const Examples all = Examples::of(
      "idx [" + std::to_string(height_) + "," + std::to_string(width_) + "] []", files_);
  const Examples rest = first_ == 0 ? all : all.skip(first_);
  return limit_ == 0 ? rest : rest.take(limit_);
}

Images idx(std::string_view folder, Split split) {
  const std::string path = std::string(folder) + (split == Split::train ? "/train" : "/t10k");
  Images images;
  images.source_ = "idx";
  images.files_ = {path + "-images-idx3-ubyte", path + "-labels-idx1-ubyte"};
  return images;
}

Images digits(std::int64_t count, Split split, std::uint64_t seed) {
  Images images;
  images.source_ = "digits";
  images.limit_ = count;
  images.first_ = split == Split::train ? 0 : kFirstTestPicture;
  images.digits_seed_ = seed;
  return images;
}

Examples shapes(std::int64_t count, Split split, std::uint64_t seed) {
  const std::int64_t first = split == Split::train ? 0 : kFirstTestPicture;
  return Examples::of(
      "shapes " + std::to_string(seed) + " " + std::to_string(first) + " " + std::to_string(count),
      {});
}

Examples cifar10(std::string_view folder, Split split) {
  const std::string path(folder);
  if (split == Split::test) return Examples::of("cifar10 1", {path + "/test_batch.bin"});
  std::vector<std::string> files;
  for (int i = 1; i <= 5; ++i) files.push_back(path + "/data_batch_" + std::to_string(i) + ".bin");
  return Examples::of("cifar10 5", std::move(files));
}

}  // namespace troupe::data
