#include "devices/cuda/image_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/hash.hpp"
#include "core/log.hpp"

namespace troupe::cuda {
namespace {

// The first bytes of a file: what it is, and the hash of the rest.
std::string header_of(std::string_view image) {
  return fmt::format("troupe image 1 {:016x}\n", hash_text(image));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

ImageCache ImageCache::standard(bool by_default) {
  if (std::string folder = variable("TROUPE_CUDA_CACHE"); !folder.empty())
    return ImageCache(folder == "-" ? std::string() : std::move(folder));
  if (!by_default) return ImageCache({});
  if (std::string folder = variable("XDG_CACHE_HOME"); !folder.empty())
    return ImageCache(folder + "/troupe/cuda");
  const std::string home = variable("HOME");
  return ImageCache(home.empty() ? home : home + "/.cache/troupe/cuda");
}

std::string ImageCache::path(const std::string& key) const { return folder_ + "/" + key; }

std::optional<std::string> ImageCache::read(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream in(path(key), std::ios::binary);
  if (!in) return std::nullopt;
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const std::size_t header = header_of({}).size();
  if (file.size() <= header) return std::nullopt;
  std::string image = file.substr(header);
  if (file.substr(0, header) == header_of(image)) return image;
  TROUPE_LOG(warning, "cuda", path(key) + " is damaged, and is made anew");
  return std::nullopt;
}

bool ImageCache::write(const std::string& key, const std::string& image) const {
  return write(key, image, true);
}

std::string ImageCache::add(const std::string& key, const std::string& text) const {
  if (write(key, text, false)) return text;
  if (const auto first = read(key)) return *first;
  write(key, text);  // what is there is damaged
  return text;
}

// False without a warning: it is there already, and is not to be replaced.
bool ImageCache::write(const std::string& key, const std::string& image, bool replaces) const {
  if (folder_.empty()) return false;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  // Another process or device may write the same.
  const std::string whole = path(key), part = fmt::format("{}.{}", whole, gettid());
  std::ofstream out(part, std::ios::binary);
  out << header_of(image) << image;
  out.close();
  if (out && replaces) std::filesystem::rename(part, whole, error);
  if (out && !replaces) std::filesystem::create_hard_link(part, whole, error);
  const bool written = out && !error, there = error == std::errc::file_exists;
  if (!written || !replaces) std::filesystem::remove(part, error);
  if (written || there) return written;
  TROUPE_LOG(warning, "cuda", "cannot write " + whole + ": each process makes it by itself");
  return false;
}

}  // namespace troupe::cuda
