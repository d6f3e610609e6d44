#include <algorithm>
#include <charconv>
#include <optional>

#include "ops/data/arrays/npy.hpp"

namespace troupe {

namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);

Status no_header(const std::string& why) { return data_loss("an NPY header " + why); }

// The few values of Python that headers are made of.
class PythonText {
 public:
  explicit PythonText(std::string_view text) : left_(text) {}

  // Whether the next sign is that one, which is then passed over.
  bool takes(char sign) {
    skip_spaces();
    if (left_.empty() || left_[0] != sign) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool at_end() {
    skip_spaces();
    return left_.empty();
  }
  std::optional<std::string> string() {
    skip_spaces();
    if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) return std::nullopt;
    const std::size_t end = left_.find(left_[0], 1);
    if (end == left_.npos) return std::nullopt;
    std::string text(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return text;
  }
  std::optional<bool> truth() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"})
      if (left_.starts_with(word)) {
        left_.remove_prefix(word.size());
        return word == "True";
      }
    return std::nullopt;
  }
  // "(3, 4)", "(3,)", "()"; Python 2 wrote "3L".
  std::optional<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> numbers;
    if (!takes('(')) return std::nullopt;
    while (!takes(')')) {
      if (!numbers.empty() && !takes(',')) return std::nullopt;
      if (!numbers.empty() && takes(')')) break;
      skip_spaces();
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), number);
      if (error != std::errc{} || number < 0) return std::nullopt;
      left_.remove_prefix(std::size_t(end - left_.data()));
      if (left_.starts_with('L')) left_.remove_prefix(1);
      if (numbers.size() == 64) return std::nullopt;
      numbers.push_back(number);
    }
    return numbers;
  }

 private:
  void skip_spaces() {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n')) left_.remove_prefix(1);
  }
  std::string_view left_;
};

DType number_dtype(char kind, std::size_t item) {
  constexpr struct {
    char kind;
    std::size_t item;
    DType dtype;
  } kNumbers[] = {{'f', 2, DType::f16}, {'f', 4, DType::f32},  {'f', 8, DType::f64},
                  {'i', 1, DType::i8},  {'i', 2, DType::i16},  {'i', 4, DType::i32},
                  {'i', 8, DType::i64}, {'u', 1, DType::u8},   {'u', 2, DType::u16},
                  {'u', 4, DType::u32}, {'u', 8, DType::u64},  {'b', 1, DType::bool_},
                  {'c', 8, DType::c64}, {'c', 16, DType::c128}};
  for (const auto& number : kNumbers)
    if (number.kind == kind && number.item == item) return number.dtype;
  return DType::invalid;
}

// "<f4", "|b1", ">U7".
Status parse_descr(const std::string& descr, NpyHeader& header) {
  const auto wrong = [&] {
    return unimplemented("elements of the kind '" + descr + "', which no tensor has");
  };
  if (descr.size() < 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    return wrong();
  std::uint32_t size = 0;
  const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), size);
  if (error != std::errc{} || end != descr.data() + descr.size() || size > (1u << 28))
    return wrong();
  header.kind = descr[1];
  header.swapped = descr[0] == '>';
  const bool text = header.kind == 'S' || header.kind == 'U';
  header.item = header.kind == 'U' ? std::size_t{4} * size : size;
  header.dtype = text ? DType::string : number_dtype(header.kind, header.item);
  return header.dtype == DType::invalid || header.item == 0 ? wrong() : ok_status();
}

Status parse_dictionary(std::string_view text, NpyHeader& header) {
  PythonText python(text);
  bool descr = false, order = false, shape = false;
  if (!python.takes('{')) return no_header("that is no dictionary");
  for (bool more = !python.takes('}'); more;) {
    const auto key = python.string();
    if (!key || !python.takes(':')) return no_header("that is no dictionary");
    if (*key == "descr") {
      const auto value = python.string();
      if (!value) return unimplemented("an array of records, which no tensor is");
      TROUPE_TRY(parse_descr(*value, header));
      descr = true;
    } else if (*key == "fortran_order") {
      const auto value = python.truth();
      if (!value) return no_header("whose 'fortran_order' is neither True nor False");
      header.fortran = *value;
      order = true;
    } else if (*key == "shape") {
      const auto value = python.tuple();
      if (!value) return no_header("whose 'shape' is no tuple of numbers");
      TROUPE_TRY(header.shape, Shape::make(*value));
      shape = true;
    } else {
      return no_header("with '" + *key + "'");
    }
    const bool comma = python.takes(',');
    const bool closed = python.takes('}');
    if (!comma && !closed) return no_header("that is no dictionary");
    more = !closed;
  }
  if (!python.at_end()) return no_header("with more behind its dictionary");
  if (!descr || !order || !shape) return no_header("without 'descr', 'fortran_order' or 'shape'");
  return ok_status();
}

}  // namespace

Expected<NpyHeader> parse_npy_header(std::string_view start) {
  if (!start.starts_with(kNpyMagic) || start.size() < 10) return data_loss("not an NPY file");
  const int version = std::uint8_t(start[6]);
  if (version < 1 || version > 3 || start[7] != 0)
    return data_loss("an NPY file of version " + std::to_string(version) + "." +
                     std::to_string(std::uint8_t(start[7])));
  const std::size_t begin = version == 1 ? 10 : 12;
  if (start.size() < begin) return no_header("that ends early");
  std::uint64_t length = 0;
  for (std::size_t i = begin; i-- > 8;) length = length << 8 | std::uint8_t(start[i]);
  if (length > kMostNpyHeader - begin) return no_header("of " + std::to_string(length) + " bytes");
  if (length > start.size() - begin) return no_header("that ends early");
  NpyHeader header;
  header.size = begin + length;
  TROUPE_TRY(parse_dictionary(start.substr(begin, length), header));
  if (std::uint64_t(header.shape.elements()) > (std::uint64_t{1} << 62) / header.item)
    return data_loss("an array of " + header.shape.text() + " that no file holds");
  return header;
}

}  // namespace troupe
