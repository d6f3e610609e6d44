// PNG and JPEG files: decoded, resized, from folders and records, and refused without harm.
#include <cstdio>
// After stdio, which it does not include.
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "ops/data/images/picture.hpp"
#include "ops/data/images/resize_picture.hpp"
#include "ops/data/records/record_frame.hpp"
#include "tests/ops/data/values.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

void append_bytes(png_structp png, png_bytep data, png_size_t n) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(data), n);
}

struct PngKind {
  int colour = PNG_COLOR_TYPE_RGB, bits = 8;
  bool interlaced = false, transparent = false;
};

// `rows`: as libpng takes them.
std::string png_file(int width, int height, const std::string& rows, const PngKind& kind = {}) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append_bytes, nullptr);
  png_set_IHDR(png, info, png_uint_32(width), png_uint_32(height), kind.bits, kind.colour,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_color palette[4] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {10, 20, 30}};
  png_byte opacity[2] = {255, 7};
  if (kind.colour == PNG_COLOR_TYPE_PALETTE) {
    png_set_PLTE(png, info, palette, 4);
    if (kind.transparent) png_set_tRNS(png, info, opacity, 2, nullptr);
  }
  png_write_info(png, info);
  const std::size_t row = rows.size() / std::size_t(height);
  std::vector<png_bytep> pointers;
  for (int y = 0; y < height; ++y)
    pointers.push_back(reinterpret_cast<png_bytep>(const_cast<char*>(rows.data())) +
                       std::size_t(y) * row);
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

struct JpegKind {
  J_COLOR_SPACE space = JCS_RGB;
  int components = 3;
  bool progressive = false;
};

std::string jpeg_file(int width, int height, const std::string& pixels, const JpegKind& kind = {}) {
  jpeg_compress_struct c{};
  jpeg_error_mgr errors;
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &data, &size);
  c.image_width = JDIMENSION(width);
  c.image_height = JDIMENSION(height);
  c.input_components = kind.components;
  c.in_color_space = kind.space;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, 95, TRUE);
  if (kind.progressive) jpeg_simple_progression(&c);
  jpeg_start_compress(&c, TRUE);
  for (int y = 0; y < height; ++y) {
    JSAMPROW row =
        reinterpret_cast<JSAMPROW>(const_cast<char*>(pixels.data())) + y * width * kind.components;
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  std::string out(reinterpret_cast<char*>(data), size);
  std::free(data);
  return out;
}

// A gradient, smooth enough for JPEG.
std::string gradient_pixels(int width, int height, int channels = 3) {
  std::string out;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) out += char(40 * c + 3 * x + 2 * y);
  return out;
}

std::string pixels_as_text(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

constexpr std::int64_t kManyPixels = 1 << 20;

DecodedImage decoded_image(const std::string& content) {
  auto image = decode_picture(content, kManyPixels);
  REQUIRE_MESSAGE(image.ok(), image.status().text());
  return std::move(*image);
}

double worst_difference(const DecodedImage& image, const std::string& pixels) {
  REQUIRE(image.pixels.size() == pixels.size());
  double worst = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    worst = std::max(worst, std::abs(double(image.pixels[i]) - double(std::uint8_t(pixels[i]))));
  return worst;
}

// A chunk of a PNG file, with its checksum.
std::string png_chunk(const std::string& kind, const std::string& content) {
  const auto big = [](std::uint32_t n) {
    return std::string{char(n >> 24), char(n >> 16), char(n >> 8), char(n)};
  };
  const std::string body = kind + content;
  return big(std::uint32_t(content.size())) + body +
         big(std::uint32_t(
             crc32(0, reinterpret_cast<const Bytef*>(body.data()), uInt(body.size()))));
}

}  // namespace

TEST_CASE("PNG files of every kind are decoded") {
  const std::string rgb = gradient_pixels(5, 3);
  for (const bool interlaced : {false, true}) {
    const DecodedImage image = decoded_image(png_file(5, 3, rgb, {.interlaced = interlaced}));
    CHECK(image.height == 3);
    CHECK(image.width == 5);
    CHECK(image.channels == 3);
    CHECK(pixels_as_text(image.pixels) == rgb);
  }
  CHECK(pixels_as_text(
            decoded_image(png_file(2, 2, "abcd", {.colour = PNG_COLOR_TYPE_GRAY})).pixels) ==
        "abcd");
  CHECK(pixels_as_text(
            decoded_image(png_file(2, 1, "a1b2", {.colour = PNG_COLOR_TYPE_GRAY_ALPHA})).pixels) ==
        "a1b2");
  CHECK(pixels_as_text(
            decoded_image(png_file(1, 2, "abcdefgh", {.colour = PNG_COLOR_TYPE_RGBA})).pixels) ==
        "abcdefgh");
  // One bit a pixel, from the left.
  CHECK(pixels_as_text(
            decoded_image(png_file(3, 1, "\xa0", {.colour = PNG_COLOR_TYPE_GRAY, .bits = 1}))
                .pixels) == std::string("\xff\0\xff", 3));
  // 16 bits, of which the nearest 8 are left.
  CHECK(pixels_as_text(decoded_image(png_file(2, 1, std::string("\x80\x80\xff\xff", 4),
                                              {.colour = PNG_COLOR_TYPE_GRAY, .bits = 16}))
                           .pixels) == "\x80\xff");
  const PngKind palette = {.colour = PNG_COLOR_TYPE_PALETTE};
  CHECK(pixels_as_text(decoded_image(png_file(2, 1, std::string("\2\3", 2), palette)).pixels) ==
        std::string("\0\0\xff\x0a\x14\x1e", 6));
  const DecodedImage clear = decoded_image(png_file(
      2, 1, std::string("\0\1", 2), {.colour = PNG_COLOR_TYPE_PALETTE, .transparent = true}));
  CHECK(clear.channels == 4);
  CHECK(pixels_as_text(clear.pixels) == std::string("\xff\0\0\xff\0\xff\0\7", 8));
}

TEST_CASE("JPEG files of every kind are decoded") {
  const std::string rgb = gradient_pixels(40, 24);
  for (const bool progressive : {false, true}) {
    const DecodedImage image = decoded_image(jpeg_file(40, 24, rgb, {.progressive = progressive}));
    CHECK(image.channels == 3);
    CHECK(worst_difference(image, rgb) < 12);
  }
  const std::string grey = gradient_pixels(16, 16, 1);
  CHECK(worst_difference(
            decoded_image(jpeg_file(16, 16, grey, {.space = JCS_GRAYSCALE, .components = 1})),
            grey) < 6);
  // Inks, inverted as Adobe's programs do, which libjpeg says of itself.
  std::string inks, lights;
  for (int i = 0; i < 64; ++i) {
    inks += std::string("\xff\x80\x40\x80", 4);
    lights += std::string("\x80\x40\x20", 3);
  }
  const DecodedImage image =
      decoded_image(jpeg_file(8, 8, inks, {.space = JCS_CMYK, .components = 4}));
  CHECK(image.channels == 3);
  CHECK(worst_difference(image, lights) < 4);
}

TEST_CASE("channels are added and left out") {
  const DecodedImage image{1, 2, 4, {255, 0, 0, 9, 10, 20, 30, 40}};
  CHECK(with_channels(image, 3).pixels == std::vector<std::uint8_t>{255, 0, 0, 10, 20, 30});
  CHECK(with_channels(image, 1).pixels == std::vector<std::uint8_t>{76, 18});
  const DecodedImage grey{1, 2, 2, {7, 1, 8, 2}};
  CHECK(with_channels(grey, 4).pixels == std::vector<std::uint8_t>{7, 7, 7, 1, 8, 8, 8, 2});
  CHECK(with_channels(DecodedImage{1, 1, 1, {255}}, 3).pixels ==
        std::vector<std::uint8_t>{255, 255, 255});
}

TEST_CASE("a picture at its own size is decoded to bytes of any channels") {
  const std::string rgb = gradient_pixels(20, 12), grey = gradient_pixels(20, 12, 1),
                    inks = gradient_pixels(20, 12, 4);
  for (const std::string& file :
       {png_file(20, 12, rgb), png_file(20, 12, grey, {.colour = PNG_COLOR_TYPE_GRAY}),
        png_file(20, 12, inks, {.colour = PNG_COLOR_TYPE_RGBA}), jpeg_file(20, 12, rgb),
        jpeg_file(20, 12, grey, {.space = JCS_GRAYSCALE, .components = 1}),
        jpeg_file(20, 12, inks, {.space = JCS_CMYK, .components = 4})})
    for (const std::int64_t channels : {1, 3, 4}) {
      const Tensor pixels =
          decode_image_tensor(file, {.channels = channels, .dtype = DType::u8}).value();
      CHECK(pixels.shape() == Shape{12, 20, channels});
      const auto* data = pixels.data<std::uint8_t>();
      CHECK(std::vector(data, data + pixels.elements()) ==
            with_channels(decoded_image(file), channels).pixels);
    }
  // Cut where its pixels are.
  const std::string jpeg = jpeg_file(20, 12, rgb);
  CHECK(
      decode_image_tensor(jpeg.substr(0, jpeg.size() - 40), {.dtype = DType::u8}).status().code() ==
      Code::data_loss);
}

TEST_CASE("a picture is resized to the means of what its pixels cover") {
  DecodedImage image{4, 4, 1, {}};
  for (int i = 0; i < 16; ++i) image.pixels.push_back(std::uint8_t(10 * i));
  const auto resized = [&](std::int64_t height, std::int64_t width, data::Fit fit) {
    return resize_picture(image, area_for(image, height, width, fit), height, width);
  };
  // The whole picture of a plane has the plane's values, at any size.
  for (const std::int64_t side : {1, 2, 3}) {
    const auto pixels = resized(side, side, data::Fit::stretch);
    double sum = 0;
    for (float pixel : pixels) sum += pixel;
    CHECK(sum / double(side * side) == doctest::Approx(75));
  }
  const auto same = resized(4, 4, data::Fit::stretch);
  for (int i = 0; i < 16; ++i) CHECK(same[std::size_t(i)] == doctest::Approx(10 * i));
  // Twice as wide as high: two rows of the middle.
  const auto middle = resized(2, 4, data::Fit::crop);
  for (int i = 0; i < 8; ++i) CHECK(middle[std::size_t(i)] == doctest::Approx(10 * (i + 4)));
  // Larger: between the pixels, and no further than their values.
  for (float pixel : resized(9, 7, data::Fit::stretch)) {
    CHECK(pixel >= 0);
    CHECK(pixel <= 150.001f);
  }
}

TEST_CASE("a folder of pictures has a class for each of its folders") {
  const QuietLog quiet;
  const DataDirectory files;
  for (const char* folder : {"dogs", "cats", ".hidden", "empty"})
    std::filesystem::create_directory(files.path(folder));
  files.write("dogs/2.PNG", png_file(2, 2, std::string(12, '\xff')));
  files.write("dogs/10.jpeg", jpeg_file(8, 8, std::string(192, '\x40')));
  files.write("cats/a.png", png_file(4, 2, std::string(24, '\0')));
  files.write("cats/readme.txt", "no picture");
  files.write("cats/.b.png", "no picture");
  files.write("top.png", "no picture");
  const auto all = data::image_folder(files.path(""), {.height = 2, .width = 2});
  const auto elements = elements_in_order(all);
  REQUIRE_MESSAGE(elements.ok(), elements.status().text());
  REQUIRE(elements->size() == 3);
  std::vector<std::int64_t> labels;
  for (const Values& values : *elements) {
    CHECK(values[0].shape() == Shape{2, 2, 3});
    labels.push_back(values[1].item<std::int64_t>());
  }
  // cats, dogs, empty.
  CHECK(labels == std::vector<std::int64_t>{0, 1, 1});
  CHECK((*elements)[0][0].data<float>()[0] == 0);
  CHECK((*elements)[1][0].data<float>()[0] == doctest::Approx(0x40 / 255.0).epsilon(0.02));
  CHECK((*elements)[2][0].data<float>()[11] == 1);
  check_places(all.shuffle(2, 1).repeat(3).batch(2), 5);
  CHECK(open_examples(all.repeat()).value().element(3'000'000'000'000).ok());
  // The same, by way of the files themselves; each as large as it is.
  const auto encoded = data::labelled_files(files.path(""));
  CHECK(elements_in_order(encoded)->size() == 4);  // with the text
  const auto natural = elements_in_order(
      encoded.decode_image({.channels = 1, .dtype = DType::u8}, 0, {.parallel = 3}).skip_errors(1));
  REQUIRE_MESSAGE(natural.ok(), natural.status().text());
  REQUIRE(natural->size() == 3);
  CHECK((*natural)[0][0].shape() == Shape{2, 4, 1});
  CHECK((*natural)[1][0].shape() == Shape{8, 8, 1});
  CHECK((*natural)[1][0].dtype() == DType::u8);
}

TEST_CASE("pictures and folders that are not as they should be are refused by name") {
  const DataDirectory files;
  std::filesystem::create_directory(files.path("a"));
  const auto error = [&] {
    return error_in_order(data::image_folder(files.path(""), {.height = 2, .width = 2}));
  };
  CHECK(tells(error(), "has no PNG or JPEG files in its folders"));
  files.write("a/b.png", "text");
  CHECK(tells(error(), "neither a PNG nor a JPEG file"));
  CHECK(tells(error(), "/a/b.png'"));
  files.write("a/b.png", "");
  CHECK(tells(error(), "neither a PNG nor a JPEG file"));
  CHECK(tells(error_in_order(data::labelled_files(files.path("a"))), "has no folders"));
  CHECK(error_in_order(data::labelled_files(files.path("absent"))).code() == Code::not_found);
  CHECK(tells(error_in_order(data::labelled_files(files.path("a/b.png"))), "b.png"));
  const std::pair<data::ImageOptions, const char*> wrong[] = {
      {{}, "need a height and a width"},
      {{.height = 3}, "give both sides, or none"},
      {{.height = -1, .width = 3}, "-1 is less than 0"},
      {{.height = 1 << 20, .width = 1 << 20}, "pictures of more than"},
      {{.height = 2, .width = 2, .channels = 2}, "there are 1, 3 or 4"},
      {{.height = 2, .width = 2, .dtype = DType::f64}, "they are f32 or u8"},
      {{.height = 2, .width = 2, .most_pixels = 0}, "0 is less than 1"}};
  for (const auto& [options, text] : wrong) {
    const Status status = data::image_folder("x", options).signature().status();
    const char* says = text;
    CHECK_MESSAGE(tells(status, says), status.text());
  }
  CHECK(tells(data::range(3).decode_image().signature().status(), "is no string[]"));
  CHECK(
      tells(data::labelled_files("x").decode_image({}, 0, {.parallel = 1000}).signature().status(),
            "at most 256"));
}

TEST_CASE("pictures in records are decoded, several at once, in the order of the records") {
  const DataDirectory files;
  std::string content;
  for (int i = 0; i < 12; ++i) {
    const std::string message =
        data::tf_example({{"image", Tensor::scalar(png_file(3, 2, std::string(18, char(20 * i))))},
                          {"label", Tensor::scalar(std::int64_t{i})}})
            .value();
    content += record_head(message.size()) + message + record_tail(message);
  }
  const auto parsed = data::tf_records({files.write("records", content)})
                          .parse_example({{.name = "image", .dtype = DType::string},
                                          {.name = "label", .dtype = DType::i64}});
  for (const std::int64_t parallel : {1, 4}) {
    const auto all = parsed.decode_image({.height = 2, .width = 3, .dtype = DType::u8}, 0,
                                         {.parallel = parallel});
    const auto elements = elements_in_order(all);
    REQUIRE_MESSAGE(elements.ok(), elements.status().text());
    REQUIRE(elements->size() == 12);
    for (int i = 0; i < 12; ++i) {
      CHECK((*elements)[std::size_t(i)][0].data<std::uint8_t>()[17] == 20 * i);
      CHECK((*elements)[std::size_t(i)][1].item<std::int64_t>() == i);
    }
    check_places(all.shuffle(5, 2).repeat(2), 9);
  }
}

TEST_CASE("a picture that is larger than allowed takes no memory") {
  // A file of some bytes that speaks of 2^31 - 1 by 2^31 - 1 pixels, and one of 50,000 by 50,000.
  for (const std::string& side :
       {std::string("\x7f\xff\xff\xff", 4), std::string("\0\0\xc3\x50", 4)}) {
    const std::string png = std::string("\x89PNG\r\n\x1a\n", 8) +
                            png_chunk("IHDR", side + side + std::string("\x08\2\0\0\0", 5)) +
                            png_chunk("IDAT", "x") + png_chunk("IEND", "");
    const Status status = decode_picture(png, data::ImageOptions{}.most_pixels).status();
    CHECK_MESSAGE(status.code() == Code::data_loss, status.text());
  }
  std::string jpeg = jpeg_file(8, 8, gradient_pixels(8, 8), {.progressive = true});
  const std::size_t frame = jpeg.find("\xff\xc2");
  REQUIRE(frame != jpeg.npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  const Status status = decode_picture(jpeg, data::ImageOptions{}.most_pixels).status();
  CHECK_MESSAGE(tells(status, "65500 x 65500 pixels, and no more than 67108864 are allowed"),
                status.text());
  CHECK(tells(decode_picture(png_file(5, 3, gradient_pixels(5, 3)), 14).status(), "3 x 5 pixels"));
  CHECK(decode_picture(png_file(5, 3, gradient_pixels(5, 3)), 15).ok());
}

TEST_CASE("every damage to a picture gives pixels or an error, and never more") {
  struct Kind {
    const char* what;
    std::string content;
    std::size_t least_errors;
  };
  const std::string rgb = gradient_pixels(12, 9);
  const Kind kinds[] = {
      {"PNG", png_file(12, 9, rgb), 400},
      {"interlaced PNG", png_file(12, 9, rgb, {.interlaced = true}), 400},
      {"PNG with a palette",
       png_file(2, 2, std::string("\0\1\2\3", 4),
                {.colour = PNG_COLOR_TYPE_PALETTE, .transparent = true}),
       200},
      {"JPEG", jpeg_file(12, 9, rgb), 600},
      {"progressive JPEG", jpeg_file(12, 9, rgb, {.progressive = true}), 600},
      {"CMYK JPEG", jpeg_file(8, 8, std::string(256, '\x30'), {.space = JCS_CMYK, .components = 4}),
       500}};
  for (const Kind& kind : kinds) {
    INFO(std::string(kind.what));
    std::size_t errors = 0;
    const auto check = [&](const std::string& damaged) {
      const auto image = decode_picture(damaged, 1 << 16);
      if (image.ok()) {
        CHECK(image->pixels.size() == std::size_t(image->height * image->width * image->channels));
        return;
      }
      ++errors;
      CHECK_MESSAGE(image.status().code() == Code::data_loss, image.status().text());
      CHECK(image.status().message().size() > 10);
    };
    // All that is cut off is missing: PNG and JPEG have an end.
    for (std::size_t n = 0; n < kind.content.size(); ++n) {
      const auto image = decode_picture(kind.content.substr(0, n), 1 << 16);
      CHECK_MESSAGE(image.status().code() == Code::data_loss, "the first " << n << " bytes");
    }
    for (std::size_t i = 0; i < kind.content.size(); ++i)
      for (const int bits : {1, 0x80, 0xff}) {
        std::string damaged = kind.content;
        damaged[i] = char(damaged[i] ^ bits);
        check(damaged);
      }
    CHECK(errors > kind.least_errors / 2);
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      Random random(seed);
      std::string damaged = kind.content;
      for (std::uint64_t k = 1 + random.below(6); k > 0; --k)
        damaged[random.below(damaged.size())] = char(random.below(256));
      check(damaged);
    }
  }
}

TEST_CASE("a progressive picture of endless scans is refused") {
  const std::string whole = jpeg_file(8, 8, gradient_pixels(8, 8), {.progressive = true});
  const std::size_t first = whole.find("\xff\xda");
  std::size_t second = whole.find("\xff\xc4", first);  // tables of the next scan, or
  second = std::min(second, whole.find("\xff\xda", first + 2));
  const std::string scan = whole.substr(first, second - first);
  std::string many = whole.substr(0, first);
  for (int i = 0; i < 5000; ++i) many += scan;
  const Status status = decode_picture(many + "\xff\xd9", kManyPixels).status();
  CHECK_MESSAGE(status.code() == Code::data_loss, status.text());
}
