#include "ops/data/records/example_message.hpp"

#include <cstring>
#include <limits>
#include <protozero/pbf_reader.hpp>

namespace troupe {

namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

enum class ListKind { none, bytes, floats, ints };

const char* name_of(ListKind kind) {
  switch (kind) {
    case ListKind::bytes:
      return "bytes";
    case ListKind::floats:
      return "floats";
    case ListKind::ints:
      return "int64s";
    case ListKind::none:
      break;
  }
  return "nothing";
}

// What a message holds of a feature: the bytes of its list, of which there is more than one where a
// writer merged messages.
struct FoundList {
  ListKind kind = ListKind::none;
  std::vector<data_view> parts;
};

Status bad_feature(const data::Feature& feature, const std::string& why) {
  return data_loss("feature '" + feature.name + "' " + why);
}

// A field of another wire type than the message has is skipped, as protocol buffers do.
bool is_message(const pbf_reader& reader) {
  return reader.wire_type() == pbf_wire_type::length_delimited;
}

// Later kinds replace earlier ones.
void read_feature(data_view bytes, FoundList& found) {
  pbf_reader feature(bytes);
  while (feature.next()) {
    const auto tag = feature.tag();
    if (tag < 1 || tag > 3 || !is_message(feature)) {
      feature.skip();
      continue;
    }
    const auto kind = ListKind(tag);
    if (found.kind != kind) found.parts.clear();
    found.kind = kind;
    found.parts.push_back(feature.get_view());
  }
}

// Calls `with(pbf_reader&)` at each field 1 of the parts.
template <class With>
Status each_value(const FoundList& found, With with) {
  for (const data_view& part : found.parts) {
    pbf_reader list(part);
    while (list.next()) {
      if (list.tag() != 1) {
        list.skip();
        continue;
      }
      TROUPE_TRY(with(list));
    }
  }
  return ok_status();
}

Status check_fixed(std::size_t bytes) {
  return bytes % sizeof(float) == 0 ? ok_status()
                                    : data_loss("packed floats that end in the middle");
}

// How many values there are; all that the list says of itself is checked here.
Expected<std::int64_t> count_values(const FoundList& found) {
  std::int64_t n = 0;
  const bool packable = found.kind != ListKind::bytes;
  const pbf_wire_type single = found.kind == ListKind::floats ? pbf_wire_type::fixed32
                               : found.kind == ListKind::ints ? pbf_wire_type::varint
                                                              : pbf_wire_type::length_delimited;
  TROUPE_TRY(each_value(found, [&](pbf_reader& list) -> Status {
    if (list.wire_type() == single) {
      list.skip();
      ++n;
      return ok_status();
    }
    if (!packable || !is_message(list)) return data_loss("values of another wire type");
    const data_view packed = list.get_view();
    if (found.kind == ListKind::floats) {
      TROUPE_TRY(check_fixed(packed.size()));
      n += std::int64_t(packed.size() / sizeof(float));
      return ok_status();
    }
    const char *at = packed.data(), *end = at + packed.size();
    for (; at != end; ++n) protozero::skip_varint(&at, end);
    return ok_status();
  }));
  return n;
}

// Calls `with` with each of them.
template <class With>
Status each_string(const FoundList& found, With with) {
  return each_value(found, [&](pbf_reader& list) {
    const data_view view = list.get_view();
    with(std::string_view(view.data(), view.size()));
    return ok_status();
  });
}

template <class With>
Status each_float(const FoundList& found, With with) {
  return each_value(found, [&](pbf_reader& list) {
    if (list.wire_type() == pbf_wire_type::fixed32) {
      with(list.get_float());
      return ok_status();
    }
    const data_view packed = list.get_view();
    for (std::size_t i = 0; i < packed.size(); i += sizeof(float)) {
      float value;  // little-endian, as this machine
      std::memcpy(&value, packed.data() + i, sizeof value);
      with(value);
    }
    return ok_status();
  });
}

template <class With>
Status each_int(const FoundList& found, With with) {
  return each_value(found, [&](pbf_reader& list) -> Status {
    if (list.wire_type() == pbf_wire_type::varint) return with(list.get_int64());
    const data_view packed = list.get_view();
    const char *at = packed.data(), *end = at + packed.size();
    while (at != end) TROUPE_TRY(with(std::int64_t(protozero::decode_varint(&at, end))));
    return ok_status();
  });
}

template <class T>
Status fill_ints(const data::Feature& feature, const FoundList& found, Tensor& to) {
  T* out = to.mutable_data<T>();
  return each_int(found, [&](std::int64_t value) {
    if (value < std::int64_t(std::numeric_limits<T>::lowest()) ||
        value > std::int64_t(std::numeric_limits<T>::max()))
      return bad_feature(feature, "has " + std::to_string(value) + ", which is no " +
                                      std::string(dtype_name(feature.dtype)));
    *out++ = T(value);
    return ok_status();
  });
}

Status fill(const data::Feature& feature, const FoundList& found, Tensor& to) {
  switch (feature.dtype) {
    case DType::string: {
      std::string* out = to.mutable_data<std::string>();
      return each_string(found, [&](std::string_view text) { *out++ = text; });
    }
    case DType::f32: {
      float* out = to.mutable_data<float>();
      return each_float(found, [&](float value) { *out++ = value; });
    }
    case DType::i64:
      return fill_ints<std::int64_t>(feature, found, to);
    case DType::i32:
      return fill_ints<std::int32_t>(feature, found, to);
    case DType::u8:
      return fill_ints<std::uint8_t>(feature, found, to);
    default:
      return fill_ints<bool>(feature, found, to);
  }
}

ListKind kind_of(const data::Feature& feature) {
  if (feature.raw || feature.dtype == DType::string) return ListKind::bytes;
  return feature.dtype == DType::f32 ? ListKind::floats : ListKind::ints;
}

// The shape of so many elements.
Expected<Shape> shape_for(const data::Feature& feature, std::int64_t elements) {
  std::vector<std::int64_t> dims(feature.shape.dims().begin(), feature.shape.dims().end());
  const auto ragged = [&] {
    return bad_feature(feature, "has " + std::to_string(elements) + " values, which are no " +
                                    feature.shape.text());
  };
  if (!feature.shape.fully_known()) {
    std::int64_t row = 1;
    for (std::size_t d = 1; d < dims.size(); ++d) row *= dims[d];
    if (row == 0 ? elements != 0 : elements % row != 0) return ragged();
    dims[0] = row == 0 ? 0 : elements / row;
  }
  TROUPE_TRY(const Shape shape, Shape::make(dims));
  if (shape.elements() != elements) return ragged();
  return shape;
}

// The default, one element of which stands for all. A feature without a length is then empty.
Expected<Tensor> missing_value(const data::Feature& feature) {
  const Tensor& value = feature.missing;
  if (feature.shape.accepts(value.shape())) return value;
  std::vector<std::int64_t> dims(feature.shape.dims().begin(), feature.shape.dims().end());
  if (!feature.shape.fully_known()) dims[0] = 0;
  TROUPE_TRY(const Shape shape, Shape::make(dims));
  TROUPE_TRY(Tensor all, Tensor::make(feature.dtype, shape));
  if (feature.dtype == DType::string) {
    std::fill_n(all.mutable_data<std::string>(), all.elements(), *value.data<std::string>());
    return all;
  }
  const std::size_t size = dtype_size(feature.dtype);
  for (std::int64_t i = 0; i < all.elements(); ++i)
    std::memcpy(static_cast<char*>(all.mutable_raw()) + std::size_t(i) * size, value.raw(), size);
  return all;
}

Expected<Tensor> raw_value(const data::Feature& feature, const FoundList& found) {
  std::string_view bytes;
  TROUPE_TRY(each_string(found, [&](std::string_view text) { bytes = text; }));
  const std::size_t size = dtype_size(feature.dtype);
  if (bytes.size() % size != 0)
    return bad_feature(feature, "has " + std::to_string(bytes.size()) +
                                    " bytes, which are no whole elements of " +
                                    std::string(dtype_name(feature.dtype)));
  TROUPE_TRY(const Shape shape, shape_for(feature, std::int64_t(bytes.size() / size)));
  TROUPE_TRY(Tensor value, Tensor::make(feature.dtype, shape));
  if (!bytes.empty()) std::memcpy(value.mutable_raw(), bytes.data(), bytes.size());
  // Any bit pattern is a number, but not a truth.
  if (feature.dtype == DType::bool_)
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (std::uint8_t(bytes[i]) > 1) return bad_feature(feature, "has bytes that are no bool");
  return value;
}

Expected<Tensor> value_of(const data::Feature& feature, const FoundList& found) {
  if (found.kind == ListKind::none) {
    if (feature.missing.defined()) return missing_value(feature);
    return bad_feature(feature, "is missing, and has no default");
  }
  if (found.kind != kind_of(feature))
    return bad_feature(feature, std::string("holds ") + name_of(found.kind) + ", not " +
                                    name_of(kind_of(feature)));
  auto counted = count_values(found);
  if (!counted.ok()) return bad_feature(feature, "is malformed: " + counted.status().message());
  if (feature.raw) {
    if (*counted == 1) return raw_value(feature, found);
    return bad_feature(feature, "has " + std::to_string(*counted) + " strings, not one");
  }
  TROUPE_TRY(const Shape shape, shape_for(feature, *counted));
  TROUPE_TRY(Tensor value, Tensor::make(feature.dtype, shape));
  TROUPE_TRY(fill(feature, found, value));
  return value;
}

Status wrong_feature(const data::Feature& feature, const std::string& why) {
  return invalid_argument("feature '" + feature.name + "': " + why);
}

Status check_feature(const data::Feature& feature) {
  const DType dtype = feature.dtype;
  const bool listed = dtype == DType::f32 || dtype == DType::i64 || dtype == DType::i32 ||
                      dtype == DType::u8 || dtype == DType::bool_ || dtype == DType::string;
  if (feature.raw ? dtype_size(dtype) == 0 || dtype == DType::string : !listed)
    return wrong_feature(feature, std::string(dtype_name(dtype)) +
                                      (feature.raw ? " is not made of bytes"
                                                   : " is not among f32, i64, i32, u8, bool and "
                                                     "string"));
  if (!feature.shape.known_rank()) return wrong_feature(feature, "the rank is unknown");
  std::vector<std::int64_t> dims(feature.shape.dims().begin(), feature.shape.dims().end());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d > 0 && dims[d] == PartialShape::kUnknown)
      return wrong_feature(feature,
                           "only dimension 0 may be unknown, not as in " + feature.shape.text());
    if (dims[d] == PartialShape::kUnknown) dims[d] = 1;
  }
  TROUPE_TRY(Shape::make(dims));
  const Tensor& missing = feature.missing;
  if (!missing.defined()) return ok_status();
  if (missing.dtype() != dtype ||
      (missing.elements() != 1 && !feature.shape.accepts(missing.shape())))
    return wrong_feature(feature, "its default is " + std::string(dtype_name(missing.dtype())) +
                                      missing.shape().text() + ", and it is " +
                                      std::string(dtype_name(dtype)) + feature.shape.text());
  return ok_status();
}

}  // namespace

ExampleMessages::ExampleMessages(std::vector<data::Feature> features)
    : features_(std::move(features)) {
  for (std::size_t i = 0; i < features_.size(); ++i) {
    signature_.push_back({features_[i].dtype, features_[i].shape});
    by_name_[features_[i].name].push_back(i);
  }
}

Expected<ExampleMessages> ExampleMessages::make(std::vector<data::Feature> features) {
  for (const data::Feature& feature : features) TROUPE_TRY(check_feature(feature));
  return ExampleMessages(std::move(features));
}

Expected<std::vector<Tensor>> ExampleMessages::parse(std::string_view message) const try {
  std::vector<FoundList> found(features_.size());
  pbf_reader example(data_view(message.data(), message.size()));
  while (example.next()) {
    if (example.tag() != 1 || !is_message(example)) {
      example.skip();
      continue;
    }
    pbf_reader features = example.get_message();
    while (features.next()) {
      if (features.tag() != 1 || !is_message(features)) {
        features.skip();
        continue;
      }
      pbf_reader entry = features.get_message();
      data_view name, feature;
      while (entry.next()) {
        if (is_message(entry) && entry.tag() == 1)
          name = entry.get_view();
        else if (is_message(entry) && entry.tag() == 2)
          feature = entry.get_view();
        else
          entry.skip();
      }
      const auto wanted = by_name_.find(std::string_view(name.data(), name.size()));
      if (wanted == by_name_.end()) continue;
      // The last entry of a name is that which counts.
      FoundList last;
      read_feature(feature, last);
      for (std::size_t i : wanted->second) found[i] = last;
    }
  }
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < features_.size(); ++i) {
    TROUPE_TRY(Tensor value, value_of(features_[i], found[i]));
    values.push_back(std::move(value));
  }
  return values;
} catch (const protozero::exception& e) {
  return data_loss(std::string("no tf.Example message: ") + e.what());
}

}  // namespace troupe
