// `image_folder PATH HEIGHT WIDTH CHANNELS DTYPE FIT MOST_PIXELS`: the PNG and JPEG files in a
// folder's subfolders as pictures [HEIGHT,WIDTH,CHANNELS], and the indices of the subfolders, i64
// []. Random access.
#include "ops/data/images/picture.hpp"
#include "ops/data/sources/labelled_folder.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

Signature folder_signature(const data::ImageOptions& options) {
  return {{options.dtype, image_shape(options)}, {DType::i64, PartialShape::scalar()}};
}

class ImageFolderSource final : public LabelledFolderSource {
 public:
  ImageFolderSource(LabelledFolder folder, const data::ImageOptions& options)
      : LabelledFolderSource(folder_signature(options), std::move(folder)), options_(options) {}
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    const std::int64_t size = options_.height * options_.width * options_.channels *
                              std::int64_t(dtype_size(options_.dtype));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t file = first + std::uint64_t(i);
      TROUPE_TRY(const std::string content, folder().content(file));
      const Status decoded = decode_image_into(
          content, options_, static_cast<char*>(out[0].mutable_raw()) + (row + i) * size);
      if (!decoded.ok()) return decoded.in("in " + where(file));
      out[1].mutable_data<std::int64_t>()[row + i] = folder().label(file);
    }
    return ok_status();
  }

 private:
  data::ImageOptions options_;
};

Expected<data::ImageOptions> folder_options(const StageText& stage) {
  TROUPE_TRY(stage.takes(1 + kImageWords, 1 + kImageWords));
  TROUPE_TRY(const data::ImageOptions options, parse_image_words(stage, 1));
  if (options.height == 0)
    return invalid_argument(
        "image_folder: the pictures need a height and a width; labelled_files() and "
        "decode_image() leave each as large as it is");
  return options;
}

Expected<Signature> signature_of_image_folder(const StageText& stage,
                                              const std::vector<Signature>&) {
  TROUPE_TRY(const data::ImageOptions options, folder_options(stage));
  return folder_signature(options);
}

Expected<StagePtr> open_image_folder(const StageText& stage, Signature, Stages, StageOpening&) {
  TROUPE_TRY(const data::ImageOptions options, folder_options(stage));
  TROUPE_TRY(LabelledFolder folder, LabelledFolder::list(stage.arguments[0], true));
  return source_stage(std::make_unique<ImageFolderSource>(std::move(folder), options));
}

}  // namespace

StageKind image_folder_source() {
  return {"image_folder", 0, signature_of_image_folder, open_image_folder};
}

}  // namespace troupe
