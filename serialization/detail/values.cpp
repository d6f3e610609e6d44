#include "serialization/detail/values.hpp"

namespace troupe::detail {
namespace {

using Kind = schema::Attr::Which;

std::vector<std::uint8_t> numbers_of(const std::vector<DType>& types) {
  std::vector<std::uint8_t> out;
  for (DType t : types) out.push_back(std::uint8_t(t));
  return out;
}

// One function per alternative of Attr::Value.
struct AttrWriter {
  schema::Attr::Builder out;

  void operator()(std::int64_t v) { out.setInteger(v); }
  void operator()(double v) { out.setNumber(v); }
  void operator()(bool v) { out.setFlag(v); }
  void operator()(const std::string& v) { out.setText(text(v)); }
  void operator()(DType v) { out.setType(std::uint8_t(v)); }
  void operator()(const PartialShape& v) { write(out.initShape(), v); }
  void operator()(const Tensor& v) { write(out.initTensor(), v); }
  void operator()(const std::vector<std::int64_t>& v) {
    write_numbers(out.initIntegers(unsigned(v.size())), v);
  }
  void operator()(const std::vector<double>& v) {
    write_numbers(out.initNumbers(unsigned(v.size())), v);
  }
  void operator()(const std::vector<std::string>& v) {
    write_texts(out.initTexts(unsigned(v.size())), v);
  }
  void operator()(const std::vector<DType>& v) {
    write_numbers(out.initTypes(unsigned(v.size())), numbers_of(v));
  }
  void operator()(const std::vector<PartialShape>& v) {
    auto list = out.initShapes(unsigned(v.size()));
    for (unsigned i = 0; i < v.size(); ++i) write(list[i], v[i]);
  }
};

Expected<Attr> read_types(capnp::List<std::uint8_t>::Reader in) {
  std::vector<DType> out;
  for (std::uint8_t value : in) {
    TROUPE_TRY(DType type, read_dtype(value));
    out.push_back(type);
  }
  return Attr(std::move(out));
}

Expected<Attr> read_shapes(capnp::List<schema::PartialShape>::Reader in) {
  std::vector<PartialShape> out;
  for (auto item : in) {
    TROUPE_TRY(PartialShape shape, read(item));
    out.push_back(std::move(shape));
  }
  return Attr(std::move(out));
}

template <class T>
Expected<Attr> as_attr(Expected<T> value) {
  TROUPE_TRY(T v, std::move(value));
  return Attr(std::move(v));
}

}  // namespace

void write(schema::PartialShape::Builder out, const PartialShape& shape) {
  out.setKnownRank(shape.known_rank());
  if (shape.known_rank()) write_numbers(out.initDims(unsigned(shape.rank())), shape.dims());
}

Expected<PartialShape> read(schema::PartialShape::Reader in) {
  auto list = in.getDims();
  if (!in.getKnownRank()) {
    if (list.size() > 0) return invalid_argument("a shape of unknown rank came with dimensions");
    return PartialShape::unknown();
  }
  if (list.size() > unsigned(kMaxRank))
    return invalid_argument("rank " + std::to_string(list.size()) + " is above the limit");
  return PartialShape::make(read_numbers(list));
}

void write(schema::Attr::Builder out, const std::string& name, const Attr& attr) {
  out.setName(text(name));
  std::visit(AttrWriter{out}, attr.value());
}

Expected<Attr> read(schema::Attr::Reader in) {
  switch (in.which()) {
    case Kind::INTEGER:
      return Attr(std::int64_t(in.getInteger()));
    case Kind::NUMBER:
      return Attr(in.getNumber());
    case Kind::FLAG:
      return Attr(in.getFlag());
    case Kind::TEXT:
      return Attr(text(in.getText()));
    case Kind::TYPE:
      return as_attr(read_dtype(in.getType()));
    case Kind::SHAPE:
      return as_attr(read(in.getShape()));
    case Kind::TENSOR:
      return as_attr(read(in.getTensor()));
    case Kind::INTEGERS:
      return Attr(read_numbers(in.getIntegers()));
    case Kind::NUMBERS:
      return Attr(read_numbers(in.getNumbers()));
    case Kind::TEXTS:
      return Attr(read_texts(in.getTexts()));
    case Kind::TYPES:
      return read_types(in.getTypes());
    case Kind::SHAPES:
      return read_shapes(in.getShapes());
  }
  return invalid_argument("attribute of unknown kind " + std::to_string(int(in.which())));
}

void write(schema::Site::Builder out, const Site& site) {
  out.setFile(text(site.file));
  out.setLine(site.line);
}

Site read(schema::Site::Reader in) {
  return in.getLine() == 0 ? Site{} : Site{text(in.getFile()), in.getLine()};
}

Expected<DType> read_dtype(std::uint8_t value) {
  if (value != 0 && !valid_dtype(value))
    return invalid_argument("unknown dtype " + std::to_string(value));
  return DType(value);
}

void write_texts(capnp::List<capnp::Text>::Builder out, const std::vector<std::string>& texts) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, text(texts[i]));
}

std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader in) {
  std::vector<std::string> out;
  out.reserve(in.size());
  for (auto item : in) out.push_back(text(item));
  return out;
}

}  // namespace troupe::detail
