#include "serialization/event_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "core/number.hpp"
#include "core/utf8.hpp"

namespace troupe {
namespace {

using protozero::pbf_wire_type;
using protozero::pbf_writer;

constexpr std::string_view kEventsPrefix = "events.out.tfevents.";
constexpr std::string_view kFileVersion = "brain.Event:2";  // with SessionLog
constexpr std::int64_t kLatest = 9'999'999'999;  // ten digits, so that names sort as numbers

// ------------------------------------------------------------------ what readers take

// A field whose content readers parse: a message, text, or packed numbers.
struct Field {
  enum class Kind : std::uint8_t { message, text, packed4, packed8, varints };
  std::uint32_t number;
  Kind kind;
  std::span<const Field> of = {};  // of a message
};
using Kind = Field::Kind;

// tensor_shape.proto, tensor.proto and summary.proto. Other fields are bytes or numbers, which need
// no check.
constexpr Field kDim[] = {{2, Kind::text}};
constexpr Field kTensorShape[] = {{2, Kind::message, kDim}};
constexpr Field kHandle[] = {
    {1, Kind::text}, {2, Kind::text}, {3, Kind::text}, {5, Kind::text}, {6, Kind::message}};
constexpr Field kVariant[] = {{1, Kind::text}, {3, Kind::message}};
constexpr Field kTensor[] = {{2, Kind::message, kTensorShape},
                             {5, Kind::packed4},
                             {6, Kind::packed8},
                             {7, Kind::varints},
                             {9, Kind::packed4},
                             {10, Kind::varints},
                             {11, Kind::varints},
                             {12, Kind::packed8},
                             {13, Kind::varints},
                             {14, Kind::message, kHandle},
                             {15, Kind::message, kVariant},
                             {16, Kind::varints},
                             {17, Kind::varints}};
constexpr Field kHistogram[] = {{6, Kind::packed8}, {7, Kind::packed8}};
constexpr Field kAudio[] = {{5, Kind::text}};
constexpr Field kPlugin[] = {{1, Kind::text}};
constexpr Field kMetadata[] = {{1, Kind::message, kPlugin}, {2, Kind::text}, {3, Kind::text}};
constexpr Field kValue[] = {{1, Kind::text},
                            {4, Kind::message},
                            {5, Kind::message, kHistogram},
                            {6, Kind::message, kAudio},
                            {7, Kind::text},
                            {8, Kind::message, kTensor},
                            {9, Kind::message, kMetadata}};
constexpr Field kSummary[] = {{1, Kind::message, kValue}};

Status check_fields(protozero::data_view bytes, std::span<const Field> fields);

Status check_field(protozero::data_view bytes, const Field& field) {
  switch (field.kind) {
    case Kind::message:
      return check_fields(bytes, field.of);
    case Kind::text:
      return is_utf8({bytes.data(), bytes.size()})
                 ? ok_status()
                 : invalid_argument("a text of the summary is not UTF-8");
    case Kind::packed4:
    case Kind::packed8:
      return bytes.size() % (field.kind == Kind::packed4 ? 4 : 8) == 0
                 ? ok_status()
                 : invalid_argument("a list of numbers of the summary is cut off");
    case Kind::varints:
      break;
  }
  for (const char *at = bytes.data(), *end = at + bytes.size(); at != end;)
    (void)protozero::decode_varint(&at, end);
  return ok_status();
}

Status check_fields(protozero::data_view bytes, std::span<const Field> fields) {
  for (protozero::pbf_reader in(bytes); in.next();) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& f) { return f.number == in.tag(); });
    if (field != fields.end() && in.wire_type() == pbf_wire_type::length_delimited)
      TROUPE_TRY(check_field(in.get_view(), *field));
    else
      in.skip();
  }
  return ok_status();
}

// ------------------------------------------------------------------ names

// The seconds in the name of an event file; nullopt for other files.
std::optional<std::int64_t> seconds_of(std::string_view name) {
  if (!name.starts_with(kEventsPrefix)) return std::nullopt;
  name.remove_prefix(kEventsPrefix.size());
  const auto seconds = parse_number<std::int64_t>(name.substr(0, name.find('.')));
  if (!seconds || *seconds < 0 || *seconds >= kLatest) return std::nullopt;
  return *seconds;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  std::string out = name;
  for (char& c : out) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '.' && c != '_') c = '_';
  }
  return out;
}

}  // namespace

Status check_summary(std::string_view summary) try {
  return check_fields({summary.data(), summary.size()}, kSummary);
} catch (const protozero::exception& e) {
  return invalid_argument(fmt::format("it is no serialized Summary: {}", e.what()));
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Expected<std::unique_ptr<EventFile>> EventFile::create(const std::string& dir,
                                                       std::optional<std::int64_t> next_step,
                                                       FileSystem& files, Clock now) {
  static std::atomic<std::uint64_t> number{0};  // of this process
  TROUPE_TRY(files.make_dirs(dir));
  TROUPE_TRY(const auto names, files.list(dir));
  auto seconds = std::int64_t(std::clamp(now(), 0.0, double(kLatest - 1)));
  for (const std::string& name : names)
    if (const auto other = seconds_of(name)) seconds = std::max(seconds, *other + 1);
  const std::string path = fmt::format("{}/{}{:010}.{}.{}.{}", dir, kEventsPrefix, seconds,
                                       host_name(), getpid(), number.fetch_add(1));
  TROUPE_TRY(auto opened, files.create(path));
  std::unique_ptr<EventFile> file(new EventFile(std::move(opened), path, std::move(now)));
  if (Status begun = file->begin(next_step); !begun.ok()) {
    (void)files.remove(path);  // the first error is reported
    return begun;
  }
  return file;
}

Status EventFile::write(std::string event) {
  constexpr std::size_t kMost = (std::size_t{1} << 31) - 1;
  if (event.size() > kMost)
    return invalid_argument(
        fmt::format("an event has {} bytes, and may have {}", event.size(), kMost));
  return records_.write(std::as_bytes(std::span(event.data(), event.size())));
}

namespace {

// The beginning of each event.
std::string begun(double wall, std::int64_t step) {
  std::string bytes;
  pbf_writer event(bytes);
  event.add_double(1, wall);
  event.add_int64(2, step);
  return bytes;
}

}  // namespace

Status EventFile::begin(std::optional<std::int64_t> next_step) {
  std::string version;
  {
    pbf_writer event(version);
    event.add_double(1, now_());
    event.add_string(3, kFileVersion.data(), kFileVersion.size());
  }
  TROUPE_TRY(write(std::move(version)));
  if (!next_step) return ok_status();
  std::string start = begun(now_(), *next_step);
  {
    pbf_writer event(start);
    pbf_writer log(event, 7);
    log.add_enum(1, 1);  // SessionLog.START
  }
  return write(std::move(start));
}

Status EventFile::add_scalars(std::int64_t step, const Scalars& values) {
  std::string summary;
  pbf_writer out(summary);
  for (const auto& [tag, value] : values) {
    if (tag.empty() || !is_utf8(tag))
      return invalid_argument("the tag '" + as_utf8(tag) + "' is empty or not UTF-8");
    pbf_writer one(out, 1);
    one.add_string(1, tag);
    one.add_float(2, float(value));
  }
  std::string bytes = begun(now_(), step);
  pbf_writer event(bytes);
  event.add_message(5, summary);
  return write(std::move(bytes));
}

Status EventFile::add_summary(std::int64_t step, std::string_view summary) {
  TROUPE_TRY(check_summary(summary));
  std::string bytes = begun(now_(), step);
  pbf_writer event(bytes);
  event.add_message(5, summary.data(), summary.size());
  return write(std::move(bytes));
}

Status EventFile::add_graph(std::string_view graph) {
  std::string bytes = begun(now_(), 0);
  pbf_writer event(bytes);
  event.add_bytes(4, graph.data(), graph.size());
  return write(std::move(bytes));
}

Status EventFile::add_run(std::int64_t step, std::string_view tag, std::string_view metadata) {
  std::string bytes = begun(now_(), step);
  pbf_writer event(bytes);
  pbf_writer run(event, 8);
  run.add_string(1, as_utf8(tag));
  run.add_bytes(2, metadata.data(), metadata.size());
  run.commit();
  return write(std::move(bytes));
}

}  // namespace troupe
