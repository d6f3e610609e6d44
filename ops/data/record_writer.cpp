#include "ops/data/record_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <protozero/pbf_writer.hpp>

#include "core/descriptor.hpp"
#include "core/held_signal.hpp"
#include "core/name.hpp"
#include "ops/data/records/record_frame.hpp"
#include "ops/data/stage.hpp"

namespace troupe::data {

namespace {

constexpr std::size_t kWriteBuffer = std::size_t{256} << 10;
constexpr std::size_t kMostInExample = std::size_t{1} << 31;  // of protocol buffers

Status write_error(const std::string& path, const char* what, int error) {
  const std::string text = std::string("cannot ") + what + " '" + path + "': " + strerror(error);
  if (error == ENOENT || error == ENOTDIR) return not_found(text);
  return error == ENOSPC || error == EDQUOT ? resource_exhausted(text) : failed_precondition(text);
}

// A new file there, or what a killed process left, emptied. It is locked until it is closed, since
// of two writers each would write over what the other one has; not where there are no locks.
Expected<Descriptor> open_part(const std::string& part) {
  for (;;) {
    Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    if (!file) return write_error(part, "make", errno);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return failed_precondition("somebody else writes '" + part + "' now");
    // Another writer may have renamed or removed it before it was locked here.
    struct stat mine {
    }, there{};
    if (::fstat(file.get(), &mine) != 0) return write_error(part, "look at", errno);
    if (::stat(part.c_str(), &there) != 0 || mine.st_ino != there.st_ino ||
        mine.st_dev != there.st_dev)
      continue;
    if (::ftruncate(file.get(), 0) != 0) return write_error(part, "empty", errno);
    return file;
  }
}

}  // namespace

struct RecordWriter::State {
  std::string path, part;  // the final name, and the name until it is complete
  Descriptor file;
  bool packs = false, done = false;
  z_stream packer{};
  std::string buffer;
  Status failed = {};

  State(std::string to, Descriptor opened)
      : path(std::move(to)), part(path + ".part"), file(std::move(opened)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (packs) deflateEnd(&packer);
    if (!done) ::unlink(part.c_str());
  }

  Status write_all(std::string_view left) {
    const HeldSignal limit(SIGXFSZ);
    while (!left.empty()) {
      const ssize_t n = ::write(file.get(), left.data(), left.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return write_error(part, "write", errno);
      left.remove_prefix(std::size_t(n));
    }
    return ok_status();
  }

  Status put(std::string_view bytes) {
    if (packs) return pack(bytes, Z_NO_FLUSH);
    buffer += bytes;
    return buffer.size() < kWriteBuffer ? ok_status() : flush();
  }

  Status flush() {
    TROUPE_TRY(write_all(buffer));
    buffer.clear();
    return ok_status();
  }

  // zlib fills the buffer, which is written when it is full.
  Status pack(std::string_view bytes, int how) {
    // zlib counts in 32 bits.
    do {
      const std::string_view some = bytes.substr(0, std::size_t{1} << 30);
      bytes.remove_prefix(some.size());
      packer.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(some.data()));
      packer.avail_in = uInt(some.size());
      int result = Z_OK;
      do {
        if (packer.avail_out == 0) {
          if (!buffer.empty()) TROUPE_TRY(write_all(buffer));
          buffer.resize(kWriteBuffer);
          packer.next_out = reinterpret_cast<Bytef*>(buffer.data());
          packer.avail_out = uInt(buffer.size());
        }
        result = deflate(&packer, how);
      } while (packer.avail_in > 0 || (how == Z_FINISH && result != Z_STREAM_END));
    } while (!bytes.empty());
    return ok_status();
  }

  Status write(std::string_view record) {
    TROUPE_TRY(put(record_head(record.size())));
    TROUPE_TRY(put(record));
    return put(record_tail(record));
  }

  Status finish() {
    if (packs) {
      TROUPE_TRY(pack({}, Z_FINISH));
      buffer.resize(buffer.size() - packer.avail_out);
    }
    TROUPE_TRY(flush());
    if (::fsync(file.get()) != 0) return write_error(part, "write", errno);
    if (std::rename(part.c_str(), path.c_str()) != 0) return write_error(path, "make", errno);
    done = true;
    file.reset();  // and its lock, now that nobody else finds it under that name
    return ok_status();
  }
};

RecordWriter::RecordWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordWriter::RecordWriter(RecordWriter&&) noexcept = default;
RecordWriter& RecordWriter::operator=(RecordWriter&&) noexcept = default;
RecordWriter::~RecordWriter() = default;

Expected<RecordWriter> RecordWriter::create(const std::string& path, Packing packing) {
  if (packing == Packing::detect)
    return invalid_argument("records are written packed by gzip, by zlib or not at all");
  TROUPE_TRY(check_path(path));
  TROUPE_TRY(Descriptor file, open_part(path + ".part"));
  auto state = std::make_unique<State>(path, std::move(file));
  if (packing != Packing::none) {
    const int bits = packing == Packing::gzip ? 15 + 16 : 15;
    if (deflateInit2(&state->packer, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      return resource_exhausted("zlib has no memory");
    state->packs = true;
  }
  return RecordWriter(std::move(state));
}

Status RecordWriter::write(std::string_view record) {
  if (state_->done) return failed_precondition("'" + state_->path + "' is finished");
  if (state_->failed.ok()) state_->failed = state_->write(record);
  return state_->failed;
}

Status RecordWriter::finish() {
  if (state_->done) return failed_precondition("'" + state_->path + "' is finished");
  if (state_->failed.ok()) state_->failed = state_->finish();
  return state_->failed;
}

namespace {

using protozero::pbf_writer;

Status no_feature(const std::string& name, const std::string& why) {
  return invalid_argument("feature '" + name + "': " + why);
}

template <class T>
std::vector<float> as_floats(const Tensor& tensor) {
  const auto all = tensor.span<T>();
  std::vector<float> out;
  for (T value : all) out.push_back(float(value));
  return out;
}

template <class T>
std::vector<std::int64_t> as_ints(const Tensor& tensor) {
  const auto all = tensor.span<T>();
  return {all.begin(), all.end()};
}

Expected<std::vector<std::int64_t>> ints_of(const std::string& name, const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::i8:
      return as_ints<std::int8_t>(tensor);
    case DType::i16:
      return as_ints<std::int16_t>(tensor);
    case DType::i32:
      return as_ints<std::int32_t>(tensor);
    case DType::i64:
      return as_ints<std::int64_t>(tensor);
    case DType::u8:
      return as_ints<std::uint8_t>(tensor);
    case DType::u16:
      return as_ints<std::uint16_t>(tensor);
    case DType::u32:
      return as_ints<std::uint32_t>(tensor);
    case DType::bool_:
      return as_ints<bool>(tensor);
    case DType::u64:
      for (std::uint64_t value : tensor.span<std::uint64_t>())
        if (value > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
          return no_feature(name, std::to_string(value) + " is no int64");
      return as_ints<std::uint64_t>(tensor);
    default:
      return no_feature(name, "a tf.Example holds no " + std::string(dtype_name(tensor.dtype())));
  }
}

// The Feature message of a tensor.
Expected<std::string> feature_message(const std::string& name, const Tensor& tensor) {
  std::string list, feature;
  pbf_writer values(list), kinds(feature);
  if (!tensor.defined()) return no_feature(name, "there is no tensor");
  // A number takes at most ten bytes.
  if (tensor.elements() > std::int64_t(kMostInExample / 10) ||
      bytes_of(Example{nullptr, 0, {tensor}}) > kMostInExample)
    return no_feature(name, std::to_string(tensor.elements()) + " elements are too many");
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : tensor.span<std::string>()) values.add_bytes(1, text);
    kinds.add_message(1, list);
    return feature;
  }
  if (tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64) {
    const std::vector<float> floats =
        tensor.dtype() == DType::f32 ? as_floats<float>(tensor) : as_floats<double>(tensor);
    values.add_packed_float(1, floats.begin(), floats.end());
    kinds.add_message(2, list);
    return feature;
  }
  TROUPE_TRY(const std::vector<std::int64_t> ints, ints_of(name, tensor));
  values.add_packed_int64(1, ints.begin(), ints.end());
  kinds.add_message(3, list);
  return feature;
}

}  // namespace

Expected<std::string> tf_example(const std::vector<std::pair<std::string, Tensor>>& features) {
  std::string all, example;
  pbf_writer entries(all);
  for (const auto& [name, tensor] : features) {
    TROUPE_TRY(const std::string feature, feature_message(name, tensor));
    std::string entry;
    pbf_writer fields(entry);
    fields.add_bytes(1, name);
    fields.add_message(2, feature);
    entries.add_message(1, entry);
    if (all.size() > kMostInExample)
      return invalid_argument("a tf.Example of more than " + std::to_string(kMostInExample) +
                              " bytes, which is what a message may have");
  }
  pbf_writer(example).add_message(1, all);
  return example;
}

}  // namespace troupe::data
