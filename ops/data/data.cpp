#include "ops/data/data.hpp"

#include "ops/data/stage_text.hpp"

namespace troupe::data {

namespace {

// Drawn test pictures begin where no training set reaches.
constexpr std::int64_t kFirstTestPicture = std::int64_t{1} << 40;

FixedExamples<2> drawn(const char* source, std::int64_t count, Split split, std::uint64_t seed) {
  const std::int64_t first = split == Split::train ? 0 : kFirstTestPicture;
  const StageText stage{source,
                        {std::to_string(seed), std::to_string(first), std::to_string(count)}};
  return FixedExamples<2>(Examples::of(stage.text(), {}));
}

}  // namespace

FixedExamples<2> idx(std::string_view folder, Split split, const PictureSize& size) {
  const std::string path = std::string(folder) + (split == Split::train ? "/train" : "/t10k");
  const std::string picture =
      "[" + std::to_string(size.height) + "," + std::to_string(size.width) + "]";
  return FixedExamples<2>(Examples::of(StageText{"idx", {picture, "[]"}}.text(),
                                       {path + "-images-idx3-ubyte", path + "-labels-idx1-ubyte"}));
}

FixedExamples<2> digits(std::int64_t count, Split split, std::uint64_t seed) {
  return drawn("digits", count, split, seed);
}

FixedExamples<2> shapes(std::int64_t count, Split split, std::uint64_t seed) {
  return drawn("shapes", count, split, seed);
}

FixedExamples<2> cifar10(std::string_view folder, Split split) {
  const std::string path(folder);
  std::vector<std::string> files;
  if (split == Split::test) files = {path + "/test_batch.bin"};
  for (int i = 1; split == Split::train && i <= 5; ++i)
    files.push_back(path + "/data_batch_" + std::to_string(i) + ".bin");
  const std::string source = "cifar10 " + std::to_string(files.size());
  return FixedExamples<2>(Examples::of(source, std::move(files)));
}

}  // namespace troupe::data
