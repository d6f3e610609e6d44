// JPEG files, by libjpeg. Its errors end the program unless they are caught, and can be caught by
// longjmp only: what may jump is in functions whose frames hold nothing that is destroyed.
#include <csetjmp>
#include <cstdio>
#include <cstring>
// After stdio, which it does not include.
#include <jerror.h>
#include <jpeglib.h>

#include "ops/data/images/picture.hpp"

namespace troupe {

namespace {

// A progressive file of a few bytes can ask for any number of passes over all pixels.
constexpr int kMostScans = 500;

// All that libjpeg's callbacks see; the first member is what it knows.
struct JpegErrors {
  jpeg_error_mgr known;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

struct JpegProgress {
  jpeg_progress_mgr known;
};

extern "C" {
void troupe_jpeg_exit(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

// Warnings of bytes that are missing or make no sense: libjpeg would go on with grey.
void troupe_jpeg_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA:
      return;
    default:
      troupe_jpeg_exit(info);
  }
}

void troupe_jpeg_output(j_common_ptr) {}

void troupe_jpeg_progress(j_common_ptr info) {
  if (!info->is_decompressor) return;
  auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::strcpy(errors->message, "more scans than any camera writes");
  std::longjmp(errors->jump, 1);
}
}

// The functions that jump. False after an error.

bool jpeg_begin(jpeg_decompress_struct* decoder, JpegErrors* errors, JpegProgress* progress,
                const unsigned char* data, unsigned long size) {
  if (setjmp(errors->jump)) return false;
  jpeg_create_decompress(decoder);
  decoder->progress = &progress->known;
  jpeg_mem_src(decoder, data, size);
  jpeg_read_header(decoder, TRUE);
  return true;
}

// Grey stays grey, four inks stay four, all else becomes red, green and blue.
bool jpeg_start(jpeg_decompress_struct* decoder, JpegErrors* errors) {
  if (setjmp(errors->jump)) return false;
  if (decoder->num_components == 4)
    decoder->out_color_space = JCS_CMYK;
  else if (decoder->num_components == 1)
    decoder->out_color_space = JCS_GRAYSCALE;
  else
    decoder->out_color_space = JCS_RGB;
  decoder->dct_method = JDCT_ISLOW;  // the same bits everywhere
  jpeg_start_decompress(decoder);
  return true;
}

bool jpeg_rows(jpeg_decompress_struct* decoder, JpegErrors* errors, unsigned char* pixels,
               std::size_t row) {
  if (setjmp(errors->jump)) return false;
  while (decoder->output_scanline < decoder->output_height) {
    JSAMPROW to = pixels + decoder->output_scanline * row;
    jpeg_read_scanlines(decoder, &to, 1);
  }
  jpeg_finish_decompress(decoder);
  return true;
}

// Adobe's programs store inks inverted, and say who they are.
void without_inks(const std::vector<std::uint8_t>& inks, bool inverted, std::uint8_t* to) {
  for (std::size_t i = 0; i < inks.size(); i += 4) {
    const auto light = [&](std::size_t c) {
      return unsigned(inverted ? inks[i + c] : 255 - inks[i + c]);
    };
    for (std::size_t c = 0; c < 3; ++c) *to++ = std::uint8_t((light(c) * light(3) + 127) / 255);
  }
}

// Owns what libjpeg allocates.
class JpegDecoder {
 public:
  JpegDecoder() {
    decoder_.err = jpeg_std_error(&errors_.known);
    errors_.known.error_exit = troupe_jpeg_exit;
    errors_.known.emit_message = troupe_jpeg_message;
    errors_.known.output_message = troupe_jpeg_output;
    progress_.known.progress_monitor = troupe_jpeg_progress;
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&decoder_); }

  Status decode(std::string_view content, std::int64_t most_pixels, PixelMemory memory) {
    const auto* data = reinterpret_cast<const unsigned char*>(content.data());
    if (!jpeg_begin(&decoder_, &errors_, &progress_, data, content.size())) return failed();
    TROUPE_TRY(check_pixels(decoder_.image_height, decoder_.image_width, most_pixels));
    const int components = decoder_.num_components;
    if (components != 1 && components != 3 && components != 4)
      return data_loss("a JPEG file of " + std::to_string(components) + " components");
    if (!jpeg_start(&decoder_, &errors_)) return failed();
    const std::int64_t height = decoder_.output_height, width = decoder_.output_width;
    const std::size_t row = std::size_t(width) * std::size_t(decoder_.output_components);
    if (decoder_.output_components != 4) {
      TROUPE_TRY(auto* pixels, memory(height, width, decoder_.output_components));
      return jpeg_rows(&decoder_, &errors_, pixels, row) ? ok_status() : failed();
    }
    std::vector<std::uint8_t> inks(row * std::size_t(height));
    if (!jpeg_rows(&decoder_, &errors_, inks.data(), row)) return failed();
    TROUPE_TRY(auto* pixels, memory(height, width, 3));
    without_inks(inks, decoder_.saw_Adobe_marker, pixels);
    return ok_status();
  }

 private:
  Status failed() const {
    return data_loss(std::string("a damaged JPEG file: ") + errors_.message);
  }

  jpeg_decompress_struct decoder_{};
  JpegErrors errors_{};
  JpegProgress progress_{};
};

}  // namespace

bool is_jpeg(std::string_view content) {
  return content.starts_with(std::string_view("\xff\xd8\xff", 3));
}

Status decode_jpeg(std::string_view content, std::int64_t most_pixels, PixelMemory memory) {
  return JpegDecoder().decode(content, most_pixels, memory);
}

}  // namespace troupe
