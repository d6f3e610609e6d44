#include "serialization/detail/safetensors_header.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace troupe::detail {
namespace {

struct Named {
  DType dtype;
  std::string_view name;
};
constexpr Named kNames[] = {{DType::f64, "F64"},    {DType::f32, "F32"}, {DType::f16, "F16"},
                            {DType::bf16, "BF16"},  {DType::i64, "I64"}, {DType::i32, "I32"},
                            {DType::i16, "I16"},    {DType::i8, "I8"},   {DType::u64, "U64"},
                            {DType::u32, "U32"},    {DType::u16, "U16"}, {DType::u8, "U8"},
                            {DType::bool_, "BOOL"}, {DType::c64, "C64"}};

constexpr std::string_view kMetadata = "__metadata__";

// Receives the events of the JSON parser and accepts only one structure, so that no untrusted
// document is ever built:
//   {"__metadata__": {name: text}, name: {"dtype": text, "shape": [n], "data_offsets": [n, n]}}
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader take() { return std::move(header_); }
  const std::string& why() const { return why_; }

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a fraction"); }
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3) return refuse("a number");
    if (numbers_.size() > std::size_t(kMaxRank)) return refuse("a long list");
    numbers_.push_back(value);
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ != 2) return refuse("a text");
    if (in_metadata_) {
      header_.metadata[field_] = value;
      return true;
    }
    if (field_ != "dtype") return refuse("a text for '" + field_ + "'");
    SafetensorsEntry& entry = header_.entries.back();
    entry.dtype_text = value;
    for (const Named& named : kNames)
      if (named.name == value) entry.dtype = named.dtype;
    return true;
  }
  bool start_object(std::size_t) override {
    return ++depth_ <= 2 || refuse("an object inside an entry");
  }
  bool end_object() override {
    if (depth_-- != 2) return true;
    if (!in_metadata_ && fields_.size() != 3) return refuse("an entry without all its fields");
    return true;
  }
  bool start_array(std::size_t) override {
    numbers_.clear();
    return (++depth_ == 3 && !in_metadata_) || refuse("a list");
  }
  bool end_array() override {
    --depth_;
    if (field_ == "shape") return set_shape();
    if (field_ == "data_offsets") return set_offsets();
    return refuse("a list for '" + field_ + "'");
  }
  bool key(string_t& name) override {
    if (depth_ == 1) return start_entry(name);
    if (!fields_.insert(name).second) return refuse("'" + name + "' twice");
    field_ = name;
    return in_metadata_ || name == "dtype" || name == "shape" || name == "data_offsets" ||
           refuse("the field '" + name + "'");
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return refuse("no JSON at byte " + std::to_string(position));
  }

 private:
  bool refuse(const std::string& what) {
    why_ = "its header has " + what;
    if (!header_.entries.empty() && !in_metadata_)
      why_ += " in '" + header_.entries.back().name + "'";
    return false;
  }
  bool start_entry(const std::string& name) {
    if (!names_.insert(name).second) return refuse("'" + name + "' twice");
    fields_.clear();
    in_metadata_ = name == kMetadata;
    if (!in_metadata_) header_.entries.push_back({name});
    return true;
  }
  bool set_shape() {
    std::vector<std::int64_t> dims;
    for (std::uint64_t n : numbers_) {
      if (n > std::uint64_t(INT64_MAX)) return refuse("a huge dimension");
      dims.push_back(std::int64_t(n));
    }
    auto shape = Shape::make(dims);
    if (!shape.ok()) return refuse("a shape that is none: " + shape.status().message());
    header_.entries.back().shape = *shape;
    return true;
  }
  bool set_offsets() {
    if (numbers_.size() != 2) return refuse("data_offsets that are not two");
    header_.entries.back().begin = numbers_[0];
    header_.entries.back().end = numbers_[1];
    return true;
  }

  SafetensorsHeader header_;
  std::set<std::string> names_, fields_;
  std::string field_, why_;
  std::vector<std::uint64_t> numbers_;
  int depth_ = 0;  // 1: the header, 2: an entry, 3: a list in it
  bool in_metadata_ = false;
};

// How many bytes an entry must have; those that it has for a dtype that Troupe lacks.
Expected<std::uint64_t> bytes_of(const SafetensorsEntry& e) {
  if (e.dtype == DType::invalid) return e.end - std::min(e.begin, e.end);
  TROUPE_TRY(const auto bytes, byte_size(e.shape, dtype_size(e.dtype)));
  return std::uint64_t(bytes);
}

// Entries must fill the data without gaps or overlaps.
Status check_tiling(std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (const SafetensorsEntry& e : entries) {
    const auto bytes = bytes_of(e);
    if (!bytes.ok() || e.begin != at || e.end < e.begin || e.end - e.begin != *bytes)
      return data_loss("'" + e.name + "' stands at [" + std::to_string(e.begin) + ", " +
                       std::to_string(e.end) + "), which does not fit " + e.type_text() +
                       " after byte " + std::to_string(at));
    at = e.end;
  }
  if (at != data_bytes)
    return data_loss("its tensors have " + std::to_string(at) + " bytes, the file has " +
                     std::to_string(data_bytes));
  return ok_status();
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const Named& named : kNames)
    if (named.dtype == dtype) return named.name;
  return "";
}

Expected<std::string> format_header(const SafetensorsHeader& header) try {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[std::string(kMetadata)] = header.metadata;
  for (const SafetensorsEntry& e : header.entries) {
    auto dims = e.shape.dims();
    json[e.name] = {{"dtype", safetensors_name(e.dtype)},
                    {"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                    {"data_offsets", {e.begin, e.end}}};
  }
  std::string out = json.dump();
  out.resize((out.size() + 7) / 8 * 8, ' ');
  return out;
} catch (const nlohmann::json::exception& e) {
  return invalid_argument(std::string("a name or text is not UTF-8: ") + e.what());
}

Expected<SafetensorsHeader> parse_header(std::string_view json, std::uint64_t data_bytes) {
  if (json.empty() || json[0] != '{') return data_loss("its header does not start with '{'");
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) return data_loss(reader.why());
  SafetensorsHeader header = reader.take();
  TROUPE_TRY(check_tiling(header.entries, data_bytes));
  return header;
}

}  // namespace troupe::detail
