#include "graph/detail/attr_parser.hpp"

#include <algorithm>
#include <array>

#include "core/number.hpp"

namespace troupe::detail {
namespace {

constexpr std::array<std::string_view, 12> kKinds = {
    "int",    "float",     "bool",        "string",       "type",       "shape",
    "tensor", "list(int)", "list(float)", "list(string)", "list(type)", "list(shape)"};

Status no_value(std::string_view text, std::string_view kind) {
  return invalid_argument("'" + std::string(text) + "' is no " + std::string(kind));
}

Expected<std::int64_t> parse_int(std::string_view text) {
  const auto v = parse_number<std::int64_t>(text);
  if (!v) return no_value(text, "int");
  return *v;
}

Expected<double> parse_float(std::string_view text) {
  const auto v = parse_number<double>(text);
  if (!v) return no_value(text, "float");
  return *v;
}

// Bare, or between double quotes when it has spaces, commas or brackets.
Expected<std::string> parse_string(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    return std::string(text.substr(1, text.size() - 2));
  return std::string(text);
}

Expected<DType> parse_type(std::string_view text) {
  auto type = parse_dtype(text);
  if (!type || *type == DType::invalid) return no_value(text, "dtype");
  return *type;
}

// Splits "[a,[b,c],d]" at the commas of its own level.
Expected<std::vector<std::string_view>> elements(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return no_value(text, "list");
  text = trim(text.substr(1, text.size() - 2));
  std::vector<std::string_view> out;
  if (text.empty()) return out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] != ',' || depth != 0) continue;
    out.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  out.push_back(trim(text.substr(begin)));
  return out;
}

template <class T>
Expected<std::vector<T>> parse_list(std::string_view text, Expected<T> (*parse)(std::string_view)) {
  TROUPE_TRY(auto parts, elements(text));
  std::vector<T> out;
  for (std::string_view part : parts) {
    TROUPE_TRY(T v, parse(part));
    out.push_back(std::move(v));
  }
  return out;
}

// "?" alone is an unknown rank, "[?,3]" an unknown dimension.
Expected<PartialShape> parse_shape(std::string_view text) {
  if (text == "?") return PartialShape::unknown();
  TROUPE_TRY(auto dims, parse_list<std::int64_t>(text, [](std::string_view part) {
               if (part == "?") return Expected<std::int64_t>(PartialShape::kUnknown);
               return parse_int(part);
             }));
  return PartialShape::make(dims);
}

template <class T>
Expected<Attr> as_attr(Expected<T> value) {
  TROUPE_TRY(T v, std::move(value));
  return Attr(std::move(v));
}

Expected<Attr> parse_value(std::string_view kind, std::string_view text) {
  if (kind == "int") return as_attr(parse_int(text));
  if (kind == "float") return as_attr(parse_float(text));
  if (kind == "string") return as_attr(parse_string(text));
  if (kind == "type") return as_attr(parse_type(text));
  if (kind == "shape") return as_attr(parse_shape(text));
  if (kind == "list(int)") return as_attr(parse_list<std::int64_t>(text, parse_int));
  if (kind == "list(float)") return as_attr(parse_list<double>(text, parse_float));
  if (kind == "list(string)") return as_attr(parse_list<std::string>(text, parse_string));
  if (kind == "list(type)") return as_attr(parse_list<DType>(text, parse_type));
  if (kind == "list(shape)") return as_attr(parse_list<PartialShape>(text, parse_shape));
  if (kind == "bool" && (text == "true" || text == "false")) return Attr(text == "true");
  return no_value(text, kind);  // a tensor has no text
}

Status parse_set(AttrSpec& spec, std::string_view text) {
  for (std::string_view word : words(text)) {
    if (spec.kind == "string") {
      spec.strings.emplace_back(word);
      continue;
    }
    TROUPE_TRY(DType type, parse_type(word));
    spec.types.push_back(type);
  }
  return ok_status();
}

std::string set_text(const AttrSpec& spec) {
  std::string out;
  for (const std::string& s : spec.strings) out += (out.empty() ? "" : " ") + s;
  for (DType t : spec.types) out += (out.empty() ? "" : " ") + std::string(dtype_name(t));
  return out;
}

bool allowed(const AttrSpec& spec, DType type) {
  if (type == DType::invalid || !valid_dtype(std::uint8_t(type))) return false;
  if (spec.types.empty())  // handles and lists only where they are named
    return type != DType::resource && type != DType::list;
  return std::find(spec.types.begin(), spec.types.end(), type) != spec.types.end();
}

// What is inside the kind's C++ type is a value too: dtypes, shapes and tensors that came from
// outside may be none.
Status check_content(const AttrSpec& spec, const Attr& value) {
  auto refuse = [&](std::string why) {
    return invalid_argument("attribute '" + spec.name + "' " + std::move(why));
  };
  auto check_type = [&](DType type) {
    if (allowed(spec, type)) return ok_status();
    std::string set = set_text(spec);
    const bool numbers = type == DType::bool_ && allowed(spec, DType::f32);
    return refuse("is " + std::string(dtype_name(type)) + ", which is not " +
                  (set.empty() ? "an element type" : "one of {" + set + "}") +
                  (numbers ? ": cast it to numbers" : ""));
  };
  auto check_shape = [&](const PartialShape& shape) {
    Status s = shape.known_rank() ? PartialShape::make(shape.dims()).status() : ok_status();
    return s.ok() ? s : refuse("is no shape: " + s.message());
  };
  if (auto* type = value.get<DType>()) return check_type(*type);
  if (auto* types = value.get<std::vector<DType>>())
    for (DType type : *types) TROUPE_TRY(check_type(type));
  if (auto* shape = value.get<PartialShape>()) return check_shape(*shape);
  if (auto* shapes = value.get<std::vector<PartialShape>>())
    for (const PartialShape& shape : *shapes) TROUPE_TRY(check_shape(shape));
  if (auto* tensor = value.get<Tensor>()) {
    if (!valid_dtype(std::uint8_t(tensor->dtype())) || dtype_size(tensor->dtype()) == 0)
      return refuse("is a tensor without elements' type");
    if (tensor->space() != MemorySpace::host) return refuse("is not in host memory");
    TROUPE_TRY(auto bytes, byte_size(tensor->shape(), dtype_size(tensor->dtype())));
    if (tensor->offset() > tensor->buffer().size() ||
        std::size_t(bytes) > tensor->buffer().size() - tensor->offset())
      return refuse("is a tensor larger than its buffer");
  }
  if (auto* s = value.get<std::string>(); s && !spec.strings.empty())
    if (std::find(spec.strings.begin(), spec.strings.end(), *s) == spec.strings.end())
      return refuse("is \"" + *s + "\", not one of {" + set_text(spec) + "}");
  return ok_status();
}

bool empty_list(const Attr& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (
            requires { v.front(); } && !requires { v.c_str(); })
          return v.empty();
        else
          return false;
      },
      value.value());
}

// The value in the wanted kind, where that says the same.
void convert(std::string_view kind, Attr& value) {
  if (kind == "float")
    if (auto* i = value.get<std::int64_t>()) value = Attr(double(*i));
  if (kind == "list(float)")
    if (auto* list = value.get<std::vector<std::int64_t>>())
      value = Attr(std::vector<double>(list->begin(), list->end()));
  if (value.kind() != kind && kind.starts_with("list(") && empty_list(value))
    value = parse_value(kind, "[]").value();
}

}  // namespace

std::string_view trim(std::string_view text) {
  std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!(text = trim(text)).empty()) {
    std::size_t end = std::min(text.find(' '), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

bool valid_word(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

Status accept(const AttrSpec& spec, Attr& value) {
  convert(spec.kind, value);
  if (value.kind() != spec.kind)
    return invalid_argument("attribute '" + spec.name + "' is a " + std::string(value.kind()) +
                            ", expected " + spec.kind);
  return check_content(spec, value);
}

Status check_fallback(AttrSpec& spec) {
  return spec.fallback ? accept(spec, *spec.fallback) : ok_status();
}

Expected<AttrSpec> parse_attr(std::string_view text) {
  auto refuse = [&](std::string_view why) {
    return invalid_argument("attribute \"" + std::string(text) + "\": " + std::string(why));
  };
  std::size_t colon = text.find(':');
  AttrSpec spec;
  spec.name = trim(text.substr(0, colon));
  if (!valid_word(spec.name)) return refuse("no name");
  if (colon == std::string_view::npos) return refuse("no kind");
  std::string_view rest = text.substr(colon + 1);
  std::size_t equals = rest.find('=');
  std::string_view type = trim(rest.substr(0, equals));
  std::size_t brace = type.find('{');
  spec.kind = trim(type.substr(0, brace));
  if (std::find(kKinds.begin(), kKinds.end(), spec.kind) == kKinds.end())
    return refuse("'" + spec.kind + "' is no kind");
  if (brace != std::string_view::npos) {
    if (!type.ends_with('}')) return refuse("the set has no end");
    if (spec.kind != "type" && spec.kind != "list(type)" && spec.kind != "string")
      return refuse("only types and strings have a set");
    if (Status s = parse_set(spec, type.substr(brace + 1, type.size() - brace - 2)); !s.ok())
      return refuse(s.message());
    if (spec.types.empty() && spec.strings.empty()) return refuse("the set is empty");
  }
  if (equals == std::string_view::npos) return spec;
  auto value = parse_value(spec.kind, trim(rest.substr(equals + 1)));
  if (!value.ok()) return refuse(value.status().message());
  spec.fallback = std::move(value).value();
  if (Status s = check_fallback(spec); !s.ok()) return refuse(s.message());
  return spec;
}

}  // namespace troupe::detail
