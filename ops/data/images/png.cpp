// PNG files, by libpng. It reports errors by longjmp: what may jump is in functions whose frames
// hold nothing that is destroyed, and that only read through pointers.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "ops/data/images/picture.hpp"

namespace troupe {

namespace {

constexpr std::size_t kMessage = 200;

// All that libpng's callbacks see.
struct PngSource {
  const char* at;
  std::size_t left;
  char message[kMessage];
};

struct PngReader {
  png_structp png;
  png_infop info;
  PngSource* source;
};

extern "C" {
void troupe_png_error(png_structp png, png_const_charp text) {
  auto* source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::strncpy(source->message, text, kMessage - 1);
  png_longjmp(png, 1);
}

void troupe_png_warning(png_structp, png_const_charp) {}

void troupe_png_read(png_structp png, png_bytep out, png_size_t n) {
  auto* source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (n > source->left) png_error(png, "the file ends early");
  std::memcpy(out, source->at, n);
  source->at += n;
  source->left -= n;
}
}

// The functions that jump. False after an error.

bool png_begin(PngReader* reader) {
  if (setjmp(png_jmpbuf(reader->png))) return false;
  png_set_read_fn(reader->png, reader->source, troupe_png_read);
  png_set_chunk_malloc_max(reader->png, png_alloc_size_t{8} << 20);
  png_set_chunk_cache_max(reader->png, 128);
  png_read_info(reader->png, reader->info);
  return true;
}

// To 8 bits of each of 1 to 4 channels.
bool png_convert(PngReader* reader) {
  if (setjmp(png_jmpbuf(reader->png))) return false;
  png_set_expand(reader->png);  // palettes, fewer bits, transparent colours
  png_set_scale_16(reader->png);
  png_set_interlace_handling(reader->png);
  png_read_update_info(reader->png, reader->info);
  return true;
}

bool png_rows(PngReader* reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader->png))) return false;
  png_read_image(reader->png, rows);
  png_read_end(reader->png, nullptr);
  return true;
}

// Owns what libpng allocates.
class PngDecoder {
 public:
  explicit PngDecoder(std::string_view content) : source_{content.data(), content.size(), {}} {
    reader_.source = &source_;
    reader_.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, troupe_png_error,
                                         troupe_png_warning);
    reader_.info = reader_.png == nullptr ? nullptr : png_create_info_struct(reader_.png);
  }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() {
    if (reader_.png != nullptr) png_destroy_read_struct(&reader_.png, &reader_.info, nullptr);
  }

  Status decode(std::int64_t most_pixels, PixelMemory memory) {
    if (reader_.info == nullptr) return resource_exhausted("libpng has no memory");
    if (!png_begin(&reader_)) return failed();
    const std::uint64_t height = png_get_image_height(reader_.png, reader_.info),
                        width = png_get_image_width(reader_.png, reader_.info);
    TROUPE_TRY(check_pixels(height, width, most_pixels));
    if (!png_convert(&reader_)) return failed();
    const std::size_t channels = png_get_channels(reader_.png, reader_.info),
                      row = png_get_rowbytes(reader_.png, reader_.info);
    if (channels < 1 || channels > 4 || row != width * channels)
      return data_loss("a PNG file of an unknown kind of pixels");
    TROUPE_TRY(auto* pixels,
               memory(std::int64_t(height), std::int64_t(width), std::int64_t(channels)));
    std::vector<png_bytep> rows(height);
    for (std::size_t y = 0; y < height; ++y) rows[y] = pixels + y * row;
    return png_rows(&reader_, rows.data()) ? ok_status() : failed();
  }

 private:
  Status failed() const { return data_loss(std::string("a damaged PNG file: ") + source_.message); }

  PngSource source_;
  PngReader reader_{};
};

}  // namespace

bool is_png(std::string_view content) {
  return content.starts_with(std::string_view("\x89PNG\r\n\x1a\n", 8));
}

Status decode_png(std::string_view content, std::int64_t most_pixels, PixelMemory memory) {
  return PngDecoder(content).decode(most_pixels, memory);
}

}  // namespace troupe
