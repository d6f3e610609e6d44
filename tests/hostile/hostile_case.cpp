#include "tests/hostile/hostile_case.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "core/hash.hpp"
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr std::int64_t kMost64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMostElements = 512;

constexpr DType kTensorTypes[] = {DType::f32,   DType::f64, DType::f16,  DType::bf16,
                                  DType::i8,    DType::i16, DType::i32,  DType::i64,
                                  DType::u8,    DType::u16, DType::u32,  DType::u64,
                                  DType::bool_, DType::c64, DType::c128, DType::string};

const std::string& odd_text(Random& random) {
  static const std::vector<std::string> texts = {"",
                                                 "a",
                                                 ",",
                                                 "a,b,,c",
                                                 " 12 ",
                                                 "-1",
                                                 "1e999",
                                                 "nan",
                                                 "-inf",
                                                 "99999999999999999999999",
                                                 "0x10",
                                                 std::string("a\0b", 3),
                                                 std::string(1, '\0'),
                                                 "\xff\xfe",
                                                 "\xc3",
                                                 "\xf0\x9f\x98",
                                                 std::string(300, 'x'),
                                                 std::string(5'000, ','),
                                                 "{}%s%n",
                                                 "a\nb"};
  return texts[random.below(texts.size())];
}

std::int64_t odd_number(Random& random) {
  constexpr std::int64_t kOdd[] = {-1,
                                   0,
                                   2,
                                   -2,
                                   -3,
                                   5,
                                   8,
                                   9,
                                   64,
                                   1000,
                                   65'536,
                                   1 << 20,
                                   std::numeric_limits<std::int32_t>::max(),
                                   std::numeric_limits<std::int32_t>::min(),
                                   std::int64_t{1} << 31,
                                   std::int64_t{1} << 32,
                                   std::int64_t{1} << 40,
                                   std::int64_t{1} << 61,
                                   std::int64_t{1} << 62,
                                   kMost64 - 1,
                                   kMost64,
                                   kLeast64,
                                   kLeast64 + 1};
  return kOdd[random.below(std::size(kOdd))];
}

double odd_real(Random& random) {
  using Limits = std::numeric_limits<double>;
  constexpr double kOdd[] = {Limits::quiet_NaN(),
                             Limits::infinity(),
                             -Limits::infinity(),
                             -0.0,
                             0.0,
                             Limits::denorm_min(),
                             -Limits::denorm_min(),
                             Limits::max(),
                             Limits::lowest(),
                             Limits::min(),
                             1.0,
                             -1.0,
                             1e30,
                             -1e30,
                             1e-30,
                             9.3e18,
                             -9.3e18,
                             65'504.0,
                             65'536.0,
                             float(3.4028235e38F),
                             1.4e-45};
  return kOdd[random.below(std::size(kOdd))];
}

// How the elements of a tensor are drawn.
enum class Style : std::uint8_t { tame, sprinkled, odd, sorted, equal };

Style draw_style(Random& random) {
  constexpr Style kStyles[] = {Style::tame, Style::tame,  Style::tame,   Style::sprinkled,
                               Style::odd,  Style::equal, Style::sorted, Style::sprinkled};
  return kStyles[random.below(std::size(kStyles))];
}

template <class T>
T draw_value(Random& random, Style style, std::int64_t i) {
  const bool odd = style == Style::odd || (style == Style::sprinkled && random.below(6) == 0);
  if constexpr (std::is_same_v<T, std::string>) {
    return odd ? odd_text(random) : std::string(random.below(3), char('a' + random.below(3)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return random.below(2) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (style == Style::sorted) return T(i / 2);
    if (!odd) return T(random.below(std::is_signed_v<T> && random.below(4) == 0 ? 2 : 5));
    switch (random.below(4)) {
      case 0:
        return std::numeric_limits<T>::max();
      case 1:
        return std::numeric_limits<T>::min();
      default:
        return T(odd_number(random));
    }
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    using Part = typename T::value_type;
    return {draw_value<Part>(random, style, i), draw_value<Part>(random, style, i)};
  } else {
    double value = odd ? odd_real(random) : std::round(random.uniform(-3, 3) * 4) / 4;
    if (style == Style::sorted) value = double(i / 2);
    if constexpr (!std::is_same_v<T, double>) {
      const double most = std::numeric_limits<float>::max();
      if (std::isfinite(value)) value = std::clamp(value, -most, most);
    }
    return T(float(value));
  }
}
template <>
double draw_value<double>(Random& random, Style style, std::int64_t i) {
  const bool odd = style == Style::odd || (style == Style::sprinkled && random.below(6) == 0);
  return odd ? odd_real(random) : style == Style::sorted ? double(i) / 2 : random.uniform(-3, 3);
}

template <class T>
void fill_with(Tensor& t, Random& random, Style style) {
  T* data = t.mutable_data<T>();
  for (std::int64_t i = 0; i < t.elements(); ++i)
    data[i] = style == Style::equal && i > 0 ? data[0] : draw_value<T>(random, style, i);
}

Tensor draw_tensor(Random& random, DType type, const Shape& shape) {
  auto made = Tensor::make(type, shape);
  if (!made.ok()) return Tensor::scalar(1.0F);
  Tensor t = std::move(made).value();
  const Style style = draw_style(random);
  switch (type) {
    case DType::f32:
      fill_with<float>(t, random, style);
      break;
    case DType::f64:
      fill_with<double>(t, random, style);
      break;
    case DType::f16:
      fill_with<half>(t, random, style);
      break;
    case DType::bf16:
      fill_with<bfloat16>(t, random, style);
      break;
    case DType::i8:
      fill_with<std::int8_t>(t, random, style);
      break;
    case DType::i16:
      fill_with<std::int16_t>(t, random, style);
      break;
    case DType::i32:
      fill_with<std::int32_t>(t, random, style);
      break;
    case DType::i64:
      fill_with<std::int64_t>(t, random, style);
      break;
    case DType::u8:
      fill_with<std::uint8_t>(t, random, style);
      break;
    case DType::u16:
      fill_with<std::uint16_t>(t, random, style);
      break;
    case DType::u32:
      fill_with<std::uint32_t>(t, random, style);
      break;
    case DType::u64:
      fill_with<std::uint64_t>(t, random, style);
      break;
    case DType::bool_:
      fill_with<bool>(t, random, style);
      break;
    case DType::c64:
      fill_with<std::complex<float>>(t, random, style);
      break;
    case DType::c128:
      fill_with<std::complex<double>>(t, random, style);
      break;
    case DType::string:
      fill_with<std::string>(t, random, style);
      break;
    default:
      break;
  }
  return t;
}

// Draws a case from the definition, or changes a row of the tables.
class Draw {
 public:
  Draw(const OpTable& table, const OpInfo& op, std::uint64_t seed)
      : table_(table), op_(op), random_(hash_text(op.def.name, seed)) {
    // Most cases are nearly right, so that more than the first check is reached.
    constexpr std::uint64_t kOneIn[] = {24, 12, 6, 2};
    one_in_ = kOneIn[random_.below(std::size(kOneIn))];
    base_ = shape(int(random_.below(5)));
  }

  HostileCase from_definition() {
    drawn_.op = op_.def.name;
    for (const AttrSpec& spec : op_.attrs) {
      if (spec.name == "N" || has_input_of(spec.name)) continue;
      const bool needed = !spec.fallback;
      if (needed ? !rarely(40) : random_.below(3) == 0) drawn_.attrs[spec.name] = attr(spec);
    }
    const std::int64_t n = 1 + std::int64_t(random_.below(3));
    if (op_.attr("N") && (!has_list() || rarely(8)))
      drawn_.attrs["N"] = odd() ? odd_number(random_) : n;
    for (const ArgSpec& arg : op_.in) {
      std::int64_t count = 1;
      if (arg.kind == ArgSpec::Kind::list) count = n;
      if (arg.kind == ArgSpec::Kind::types) count = std::int64_t(random_.below(3));
      for (; count > 0; --count) add_input(arg);
    }
    hostile_touches();
    return std::move(drawn_);
  }

  HostileCase from_row(const OpCase& row) {
    drawn_.op = op_.def.name;
    drawn_.attrs = row.attrs;
    const DType before = row.inputs.empty() ? DType::invalid : row.inputs[0].dtype();
    DType after = before;
    if (random_.below(3) == 0) after = type_of("T");
    std::size_t i = 0;
    for (const Tensor& value : row.inputs) {
      const ArgSpec& arg = op_.in[std::min(i++, op_.in.size() - 1)];
      const bool retype = value.dtype() == before && arg.type_attr == "T";
      input(arg, retype && after != before ? draw_tensor(random_, after, value.shape()) : value);
    }
    for (std::uint64_t changes = random_.below(3); changes > 0; --changes) change_input();
    if (random_.below(3) == 0) change_attr();
    hostile_touches();
    return std::move(drawn_);
  }

 private:
  bool odd() { return random_.below(one_in_) == 0; }
  bool rarely(std::uint64_t n) { return random_.below(n) == 0; }

  bool has_list() const {
    for (const ArgSpec& arg : op_.in)
      if (arg.kind == ArgSpec::Kind::list) return true;
    return false;
  }
  bool has_input_of(std::string_view type_attr) const {
    for (const ArgSpec& arg : op_.in)
      if (arg.type_attr == type_attr && arg.kind != ArgSpec::Kind::fixed) return true;
    return false;
  }

  std::int64_t number() {
    return odd() ? odd_number(random_) : std::int64_t(random_.below(5)) - (rarely(5) ? 1 : 0);
  }
  std::int64_t dim() {
    if (!odd()) return 1 + std::int64_t(random_.below(4));
    constexpr std::int64_t kDims[] = {0, 0, 0, 1, 7, 17, 33};
    return kDims[random_.below(std::size(kDims))];
  }
  // Where a dimension is 0, others may be as large as they like: nothing is allocated.
  Shape shape(int rank) {
    Shape made;
    for (int i = 0; i < rank; ++i) made.append(dim());
    if (rank > 1 && rarely(24)) {
      const int empty = int(random_.below(std::uint64_t(rank)));
      made.set_dim(empty, 0);
      const std::int64_t large = std::int64_t{1} << (20 + random_.below(43));
      made.set_dim((empty + 1) % rank, large);
    }
    return fitting(made);
  }
  // Not too large, and countable.
  static Shape fitting(Shape made) {
    std::vector<std::int64_t> dims(made.dims().begin(), made.dims().end());
    if (!Shape::make(dims).ok()) return Shape{0};
    for (int i = 0; made.elements() > kMostElements; ++i)
      made.set_dim(i, std::min<std::int64_t>(made[i], 2));
    return made;
  }
  Shape near_base() {
    switch (random_.below(odd() ? 6 : 3)) {
      case 0:
      case 1:
        return base_;
      case 2: {  // which broadcasts to it
        Shape made;
        const int from = int(random_.below(std::uint64_t(base_.rank()) + 1));
        for (int i = from; i < base_.rank(); ++i) made.append(random_.below(3) == 0 ? 1 : base_[i]);
        return fitting(made);
      }
      case 3:
        return Shape{};
      case 4:
        return shape(base_.rank());
      default:
        return shape(int(random_.below(6)));
    }
  }

  DType type_of(std::string_view attr) {
    const AttrSpec* spec = op_.attr(attr);
    if (spec && !spec->types.empty() && !rarely(30))
      return spec->types[random_.below(rarely(2) ? std::min<std::size_t>(2, spec->types.size())
                                                 : spec->types.size())];
    return kTensorTypes[random_.below(std::size(kTensorTypes))];
  }

  PartialShape partial() {
    if (rarely(3)) return {};
    PartialShape made(odd() ? shape(int(random_.below(6))) : base_);
    for (int i = 0; i < made.rank(); ++i) {
      if (rarely(4)) made.set_dim(i, -1);
      if (odd() && rarely(2)) made.set_dim(i, std::max<std::int64_t>(-1, odd_number(random_)));
    }
    return made;
  }

  template <class Make>
  auto list(Make make) {
    std::vector<decltype(make())> made;
    const std::uint64_t length = odd() ? random_.below(10) : std::uint64_t(base_.rank());
    for (std::uint64_t i = 0; i < length; ++i) made.push_back(make());
    return made;
  }

  Attr attr(const AttrSpec& spec) {
    const std::string& kind = spec.kind;
    if (rarely(64)) return wrong_kind();
    auto text = [&] {
      if (!spec.strings.empty() && !odd()) return spec.strings[random_.below(spec.strings.size())];
      return odd_text(random_);
    };
    auto real = [&] { return odd() ? odd_real(random_) : random_.uniform(-1, 2); };
    auto type = [&] {
      if (spec.types.empty() || odd()) return kTensorTypes[random_.below(std::size(kTensorTypes))];
      return spec.types[random_.below(spec.types.size())];
    };
    if (kind == "int") return number();
    if (kind == "float") return real();
    if (kind == "bool") return random_.below(2) == 0;
    if (kind == "string") return text();
    if (kind == "type") return type();
    if (kind == "shape") return partial();
    if (kind == "tensor")
      return draw_tensor(random_, kTensorTypes[random_.below(std::size(kTensorTypes))],
                         shape(int(random_.below(3))));
    if (kind == "list(int)") return list([&] { return number(); });
    if (kind == "list(float)") return list(real);
    if (kind == "list(string)") return list(text);
    if (kind == "list(type)") return list(type);
    return list([&] { return partial(); });
  }
  Attr wrong_kind() {
    switch (random_.below(6)) {
      case 0:
        return odd_number(random_);
      case 1:
        return odd_real(random_);
      case 2:
        return odd_text(random_);
      case 3:
        return std::vector<std::int64_t>(random_.below(70), odd_number(random_));
      case 4:
        return DType::resource;
      default:
        return Tensor::scalar(odd_real(random_));
    }
  }

  // --- inputs ---

  DType type(const ArgSpec& arg) {
    if (arg.kind == ArgSpec::Kind::types) return type_of({});
    if (arg.kind == ArgSpec::Kind::fixed && rarely(60))
      return kTensorTypes[random_.below(std::size(kTensorTypes))];
    if (arg.kind == ArgSpec::Kind::fixed) return arg.dtype;
    auto [at, first] = types_.emplace(arg.type_attr, DType::invalid);
    if (first) {
      const Attr* given = nullptr;
      if (auto found = drawn_.attrs.find(arg.type_attr); found != drawn_.attrs.end())
        given = &found->second;
      at->second = given && given->get<DType>() ? *given->get<DType>() : type_of(arg.type_attr);
    }
    if (rarely(80)) return kTensorTypes[random_.below(std::size(kTensorTypes))];
    if (!arg.derived) return at->second;
    const DType derived = arg.derived(at->second);
    return derived == DType::invalid ? DType::f32 : derived;
  }

  void add_input(const ArgSpec& arg) {
    const DType t = type(arg);
    if (t == DType::resource) return drawn_.inputs.push_back(handle(arg));
    if (t == DType::list) return drawn_.inputs.push_back(list_input());
    Shape made = near_base();
    // Mostly a list of sizes, axes or indices.
    const bool host = arg.host && (t == DType::i32 || t == DType::i64);
    if (host && !odd())
      made = rarely(3) ? Shape{} : Shape{rarely(4) ? dim() : std::int64_t(base_.rank())};
    input(arg, draw_tensor(random_, t, made));
  }

  void input(const ArgSpec& arg, Tensor value) {
    HostileInput in;
    in.from = random_.below(arg.host ? 2 : 6) == 0 ? HostileInput::From::constant
                                                   : HostileInput::From::feed;
    PartialShape declared(value.shape());
    switch (random_.below(4)) {
      case 0:
        break;
      case 1:
        for (int i = 0; i < declared.rank(); ++i)
          if (random_.below(2)) declared.set_dim(i, -1);
        break;
      default:
        declared = {};
    }
    if (rarely(60)) declared = partial();  // which the value may contradict
    in.value = std::move(value);
    in.declared = declared;
    drawn_.inputs.push_back(std::move(in));
  }

  HostileInput list_input() {
    HostileInput in{.from = HostileInput::From::list};
    auto found = drawn_.attrs.find("T");
    const DType* given = found == drawn_.attrs.end() ? nullptr : found->second.get<DType>();
    const DType t = given && !rarely(10) ? *given : DType::f32;
    if (dtype_size(t) != 0)
      for (std::uint64_t n = random_.below(4); n > 0; --n)
        in.elements.push_back(draw_tensor(random_, t, odd() ? near_base() : base_));
    in.value = Tensor::scalar(0.0F);
    if (!in.elements.empty()) in.value = in.elements[0];
    if (rarely(4)) in.declared = PartialShape(base_);
    return in;
  }

  HostileInput handle(const ArgSpec& arg) {
    HostileInput in{.from = HostileInput::From::handle};
    std::string kind = op_.def.external.resource;
    if (kind.empty() || rarely(20)) kind = "variable";
    std::vector<const OpInfo*> makers;
    for (const OpInfo* op : table_.ops.all())
      if (op->def.role == Role::handle && op->def.external.resource == kind) makers.push_back(op);
    if (makers.empty()) makers.push_back(table_.ops.find("Variable"));
    const OpInfo& maker = *makers[random_.below(makers.size())];
    in.handle = maker.def.name;
    DType held = op_.held_by(arg, drawn_.attrs);
    if (held == DType::invalid) held = type_of("T");
    for (const AttrSpec& spec : maker.attrs) {
      if (spec.name == "T")
        in.handle_attrs["T"] = held;
      else if (spec.name == "shape")
        in.handle_attrs["shape"] = rarely(3) ? partial() : PartialShape(base_);
      else if (!spec.fallback)
        in.handle_attrs[spec.name] = attr(spec);
    }
    return in;
  }

  // --- changes ---

  void change_input() {
    if (drawn_.inputs.empty()) return;
    HostileInput& in = drawn_.inputs[random_.below(drawn_.inputs.size())];
    if (!in.value.defined() || in.from == HostileInput::From::handle) return;
    Shape made = in.value.shape();
    switch (random_.below(5)) {
      case 0:
      case 1:
        break;  // other values alone
      case 2:
        if (made.rank() > 0)
          made.set_dim(int(random_.below(std::uint64_t(made.rank()))),
                       random_.below(3) ? dim() : 0);
        break;
      case 3:
        made = shape(int(random_.below(6)));
        break;
      default:
        if (made.rank() < kMaxRank && random_.below(2))
          made.append(dim());
        else
          made = Shape(made.dims().subspan(0, std::size_t(std::max(0, made.rank() - 1))));
    }
    const bool declared_it = in.declared.accepts(in.value.shape());
    in.value = draw_tensor(random_, in.value.dtype(), fitting(made));
    if (declared_it && !in.declared.accepts(in.value.shape()))
      in.declared = rarely(8) ? in.declared : PartialShape();
  }

  void change_attr() {
    if (op_.attrs.empty()) return;
    const AttrSpec& spec = op_.attrs[random_.below(op_.attrs.size())];
    if (spec.name == "T" && !rarely(4)) return;
    auto found = drawn_.attrs.find(spec.name);
    const auto* ints =
        found == drawn_.attrs.end() ? nullptr : found->second.get<std::vector<std::int64_t>>();
    if (ints && !ints->empty() && random_.below(2)) {  // one number of a list
      auto changed = *ints;
      changed[random_.below(changed.size())] = odd_number(random_);
      found->second = changed;
      return;
    }
    drawn_.attrs[spec.name] = attr(spec);
  }

  void hostile_touches() {
    if (rarely(80)) drawn_.attrs["no_such_attribute"] = wrong_kind();
    if (rarely(50) && !drawn_.inputs.empty()) drawn_.inputs.pop_back();
    if (rarely(50) && !drawn_.inputs.empty()) drawn_.inputs.push_back(drawn_.inputs.back());
    if (op_.def.grad || op_.def.composite) drawn_.gradients = int(random_.below(5)) - 2;
    drawn_.gradients = std::max(0, drawn_.gradients);
  }

  const OpTable& table_;
  const OpInfo& op_;
  Random random_;
  std::uint64_t one_in_ = 8;
  Shape base_;
  std::map<std::string, DType, std::less<>> types_;
  HostileCase drawn_;
};

const std::vector<OpCase>& rows_of(const std::string& op) {
  static const auto rows = [] {
    std::map<std::string, Cases> by_op;
    for (auto make : AddCases::all())
      for (OpCase& row : make()) {
        std::int64_t elements = 0;
        for (const Tensor& t : row.inputs) elements += t.elements();
        if (elements <= 4 * kMostElements) by_op[row.op].push_back(std::move(row));
      }
    return by_op;
  }();
  static const std::vector<OpCase> none;
  auto at = rows.find(op);
  return at == rows.end() ? none : at->second;
}

}  // namespace

void make_hostile_rows() { rows_of({}); }

DType HostileInput::dtype() const {
  if (from == From::list) return DType::list;
  if (from == From::handle) return DType::resource;
  return value.dtype();
}

std::string HostileInput::text() const {
  switch (from) {
    case From::constant:
      return "constant " + value.text(6);
    case From::feed:
      return value.text(6) + " fed as " + declared.text();
    case From::list: {
      std::string all = "list(" + declared.text();
      for (const Tensor& t : elements) all += ", " + t.text(2);
      return all + ")";
    }
    default: {
      std::string all = handle;
      for (const auto& [name, attr] : handle_attrs) all += " " + name + "=" + attr.text();
      return "(" + all + ")";
    }
  }
}

std::string HostileCase::text() const {
  std::string all = op + "(";
  for (std::size_t i = 0; i < inputs.size(); ++i) all += (i ? "; " : "") + inputs[i].text();
  all += ")";
  for (const auto& [name, attr] : attrs) all += " " + name + "=" + attr.text();
  if (gradients > 0) all += ", gradients of order " + std::to_string(gradients);
  for (char& c : all)
    if (std::uint8_t(c) < 32) c = '.';
  if (all.size() > 1'500) all = all.substr(0, 1'500) + "...";
  return all;
}

HostileCase draw_hostile_case(const OpTable& table, const OpInfo& op, std::uint64_t seed) {
  Draw draw(table, op, seed);
  const auto& rows = rows_of(op.def.name);
  if (rows.empty() || seed % 2 == 0) return draw.from_definition();
  return draw.from_row(rows[seed / 2 % rows.size()]);
}

}  // namespace troupe::test
