// The ops that programs of others use, beside PyTorch, NumPy and SciPy: values and gradients of
// inputs with NaN, infinities, -0, extremes, ties and no elements, from tests/golden/ops, which
// tests/golden/make.py writes.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "core/number.hpp"
#include "graph/gradients.hpp"
#include "ops/catalogue.hpp"
#include "ops/evaluate.hpp"
#include "tests/contains.hpp"
#include "tests/ops/golden/golden_exceptions.hpp"
#include "tests/ops/golden/golden_functions.hpp"
#include "tests/ops/nn/nn_kernels.hpp"
#include "tests/paths.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const char* const kGroups[] = {"math",     "arrays", "segments",   "linalg",
                               "networks", "losses", "optimizers", "complex"};

GoldenFile goldens(const std::string& group) {
  return read_goldens(source_dir() + "/tests/golden/ops/" + group + ".txt");
}

// Of the largest element, or of each (make.py); two roundings for the narrow types.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128:
      return 1e-11;
    case DType::f32:
    case DType::c64:
      return 1e-5;
    case DType::f16:
      return 0x1p-9;
    default:
      return 0x1p-6;
  }
}

// Those of tests/accept/op_names.tsv that compute with numbers: the op, or the function's name.
// What draws is not among them, as no peer draws the same (random_laws_test.cpp), nor are layers,
// which are made of ops, and queues.
std::set<std::string> ops_of_others() {
  const std::set<std::string> groups{"math",     "arrays", "segments",  "linear algebra",
                                     "networks", "losses", "optimizers"};
  std::set<std::string> names;
  std::ifstream in(source_dir() + "/tests/accept/op_names.tsv");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find('\t'), last = line.rfind('\t');
    if (first == line.npos || !groups.count(line.substr(0, first))) continue;
    const std::string here = line.substr(last + 1);
    const std::size_t colon = here.find(':');
    names.insert(colon == here.npos ? here : here.substr(colon + 1));
  }
  return names;
}

// Why an op that takes complex numbers has no goldens of them; nullptr if it has some.
const char* without_complex_golden(std::string_view name) {
  for (const WithoutComplexGolden& op : kWithoutComplexGolden)
    if (op.name == name) return op.reason;
  return nullptr;
}

// What a case computes: outputs, and gradients by input.
struct Computed {
  std::vector<Tensor> outputs, gradients;
};

AttrMap attrs_of(const OpInfo& op, const GoldenAttrs& given) {
  AttrMap attrs;
  for (const auto& [key, text] : given.all()) {
    const std::string& name = key;
    const AttrSpec* spec = op.attr(name);
    REQUIRE_MESSAGE(spec != nullptr, op.def.name << " has no attribute " << name);
    if (spec->kind == "int")
      attrs.emplace(name, given.integer(name));
    else if (spec->kind == "float")
      attrs.emplace(name, given.number(name));
    else if (spec->kind == "bool")
      attrs.emplace(name, given.flag(name));
    else if (spec->kind == "type")
      attrs.emplace(name, parse_dtype(text).value());
    else if (spec->kind == "list(int)")
      attrs.emplace(name, given.integers(name));
    else
      attrs.emplace(name, text);
  }
  return attrs;
}

// The graph of the cases of a block, each of which runs the nodes that it adds.
class Cases {
 public:
  explicit Cases(const GoldenBlock& block)
      : block_(block),
        function_(golden_function(block.name)),
        op_(ops::builtin().ops.find(block.name)) {
    REQUIRE_MESSAGE((function_ || op_), "nothing is named " << block.name);
  }

  // Throws Error where the case is refused.
  Computed compute(const GoldenCase& c) {
    values_.resize(g_.def().nodes.size());  // what is left of a case that was refused
    const GoldenAttrs attrs(c.attrs);
    std::vector<Tensor> inputs;
    for (const GoldenTensor& t : c.inputs) inputs.push_back(t.make(block_.dtype));
    if (!function_ && op_->takes_handles()) return {updated(std::move(inputs)), {}};

    std::vector<Output> xs, ys, dys, differentiated;
    for (const Tensor& t : inputs) xs.push_back(constant(g_, t));
    if (function_) {
      ys = function_({g_, xs, attrs, block_.dtype});
    } else {
      ys = value_or_throw(
               g_.try_add({.op = block_.name, .inputs = xs, .attrs = attrs_of(*op_, attrs)}))
               .outputs();
    }
    run();
    Computed computed;
    std::vector<Output> floats;
    for (const Output& y : ys) {
      computed.outputs.push_back(of(y));
      if (!is_trainable(y.dtype())) continue;
      floats.push_back(y);
      dys.push_back(constant(g_, weights(of(y))));
    }
    if (c.gradients.empty()) return computed;
    for (const Output& x : xs)
      if (x.dtype() == block_.dtype) differentiated.push_back(x);
    const auto slopes = value_or_throw(gradients(floats, differentiated, dys));
    run();
    for (std::size_t i = 0; i < slopes.size(); ++i)
      computed.gradients.push_back(
          slopes[i].empty()
              ? value_or_throw(Tensor::zeros(block_.dtype, of(differentiated[i]).shape()))
              : of(slopes[i]));
    return computed;
  }

 private:
  const Tensor& of(const Output& y) { return values_[y.node()][y.port().index]; }

  // Element k arrives times 1/2 + (k mod 7) / 8; a complex one times 1 + i/2 of that.
  static Tensor weights(const Tensor& y) {
    static const char* const kWeights[] = {"0.5", "0.625", "0.75", "0.875", "1", "1.125", "1.25"};
    static const char* const kComplex[] = {"0.5,0.25", "0.625,0.3125", "0.75,0.375", "0.875,0.4375",
                                           "1,0.5",    "1.125,0.5625", "1.25,0.625"};
    // A pointer: g++ 12 with its sanitizer of undefined behaviour takes another element of
    // `(a ? b : c)[k]` where b and c are arrays.
    const char* const* const all = is_complex(y.dtype()) ? kComplex : kWeights;
    GoldenTensor t;
    t.dims.assign(y.shape().dims().begin(), y.shape().dims().end());
    for (std::int64_t k = 0; k < y.elements(); ++k) t.values.push_back(all[k % 7]);
    return t.make(y.dtype());
  }

  void run() {
    const auto& nodes = g_.def().nodes;
    while (values_.size() < nodes.size()) {
      const NodeDef& def = nodes[values_.size()];
      std::vector<Tensor> in;
      for (Port p : def.inputs) in.push_back(values_[p.node][p.index]);
      values_.push_back(
          value_or_throw(evaluate(ops::builtin(), def, std::move(in), inline_device())));
    }
  }

  // The new values of variables.
  std::vector<Tensor> updated(std::vector<Tensor> inputs) {
    std::vector<Tensor> typed = inputs;
    NodeDef node = make_node(block_.name, typed, {{"T", block_.dtype}});
    for (std::size_t i = 0; i < op_->in.size() && op_->in[i].dtype == DType::resource; ++i)
      node.out_types.push_back(inputs[i].dtype());
    return value_or_throw(evaluate(ops::builtin(), node, std::move(inputs), inline_device()));
  }

  const GoldenBlock& block_;
  const GoldenFunction function_;
  const OpInfo* op_;
  Graph g_;
  std::vector<std::vector<Tensor>> values_;
};

// --- hostile inputs ---

struct Range {
  double largest = 0, least_normal = 0, epsilon = 0;  // of floats
  std::string lowest, highest;                        // of integers, as they stand in the file
};
template <class T>
Range range_of_integer() {
  return {0, 0, 0, fmt::format("{}", std::numeric_limits<T>::lowest()),
          fmt::format("{}", std::numeric_limits<T>::max())};
}
Range range_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128:
      return {std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-52, {}, {}};
    case DType::f32:
    case DType::c64:
      return {double(std::numeric_limits<float>::max()), 0x1p-126, 0x1p-23, {}, {}};
    case DType::f16:
      return {65504, 0x1p-14, 0x1p-10, {}, {}};
    case DType::bf16:
      return {0x1.FEp127, 0x1p-126, 0x1p-7, {}, {}};
    case DType::i8:
      return range_of_integer<std::int8_t>();
    case DType::i16:
      return range_of_integer<std::int16_t>();
    case DType::i32:
      return range_of_integer<std::int32_t>();
    case DType::i64:
      return range_of_integer<std::int64_t>();
    case DType::u8:
      return range_of_integer<std::uint8_t>();
    case DType::u16:
      return range_of_integer<std::uint16_t>();
    case DType::u32:
      return range_of_integer<std::uint32_t>();
    case DType::u64:
      return range_of_integer<std::uint64_t>();
    default:
      return {0, 0, 0, "0", "1"};
  }
}

// What numbers of the block's dtype, or parts of such, a case has among its inputs.
std::set<std::string> hostile_in(const GoldenBlock& block, const GoldenCase& c) {
  std::set<std::string> found;
  const Range range = range_of(block.dtype);
  for (const GoldenTensor& t : c.inputs) {
    if (t.values.empty()) found.insert("empty");
    if (t.letter) continue;
    const std::set<std::string_view> distinct(t.values.begin(), t.values.end());
    if (distinct.size() < t.values.size()) found.insert("ties");
    std::set<std::string_view> parts;
    for (std::string_view text : distinct)
      for (std::string_view part : golden_parts(text)) parts.insert(part);
    for (std::string_view text : parts) {
      if (text == range.lowest) found.insert("lowest");
      if (text == range.highest) found.insert("highest");
      if (!is_trainable(block.dtype)) continue;
      auto value = parse_number<double>(text);
      if (block.dtype != DType::f64 && block.dtype != DType::c128) value = double(float(*value));
      if (std::isnan(*value)) found.insert("nan");
      if (std::isinf(*value)) found.insert("inf");
      if (text == "-0") found.insert("-0");
      if (std::abs(*value) == range.largest) found.insert("largest");
      if (*value != 0 && std::abs(*value) <= range.least_normal) found.insert("least");
      if (std::abs(*value) == range.epsilon) found.insert("epsilon");
    }
  }
  return found;
}

const GoldenException* exception_for(const GoldenBlock& block, const GoldenCase& c,
                                     std::string_view part) {
  const auto hostile = hostile_in(block, c);
  for (const GoldenException& e : kGoldenExceptions)
    if (e.name == block.name && (!*e.dtype || e.dtype == dtype_name(block.dtype)) &&
        e.part == part && (!*e.holding || hostile.count(e.holding)))
      return &e;
  return nullptr;
}

// Of a case: what differs, as "PART: what", or nothing.
std::string difference(const GoldenBlock& block, const GoldenCase& c, Cases& cases) {
  Computed got;
  try {
    got = cases.compute(c);
  } catch (const Error& e) {
    return c.refused ? "" : std::string("refusal: ") + e.what();
  }
  if (c.refused) return "refusal: computed";
  const double near = tolerance(block.dtype);
  double scale = 0;
  for (const GoldenTensor& t : c.inputs)
    if (!t.letter) scale = std::max(scale, largest(t));
  const auto compare = [&](const char* part, const std::vector<Tensor>& values,
                           const std::vector<GoldenTensor>& want) -> std::string {
    if (values.size() != want.size())
      return fmt::format("{}: {} tensors for {}", part, values.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      if (const std::string text = difference(values[i], want[i], block.rule, near, scale);
          !text.empty())
        return fmt::format("{}: {}, {}", part, i, text);
    return {};
  };
  const std::string values = compare("values", got.outputs, c.outputs);
  return !values.empty() ? values : compare("gradients", got.gradients, c.gradients);
}

void check_group(const std::string& group) {
  const GoldenFile file = goldens(group);
  std::set<const GoldenException*> used;
  for (const GoldenBlock& block : file.blocks) {
    Cases cases(block);
    int told = 0;
    for (const GoldenCase& c : block.cases) {
      const std::string text = difference(block, c, cases);
      if (text.empty()) continue;
      if (const auto* e = exception_for(block, c, text.substr(0, text.find(':')))) {
        used.insert(e);
      } else if (++told <= 3) {
        FAIL_CHECK(block.name << " " << dtype_name(block.dtype) << ", " << group
                              << ".txt:" << c.line << ": " << text);
      }
    }
    CHECK_MESSAGE(told <= 3, told << " cases of " << block.name << " differ");
  }
  const auto meant = [&](const GoldenException& e) {
    return std::ranges::any_of(file.blocks, [&](const GoldenBlock& b) {
      return b.name == e.name && (!*e.dtype || e.dtype == dtype_name(b.dtype));
    });
  };
  for (const GoldenException& e : kGoldenExceptions)
    // How a machine adds up decides what overflows, and which zeros it multiplies.
    if (meant(e) && e.reason != kOverflow && e.reason != kPadding)
      CHECK_MESSAGE(used.count(&e) == 1, fmt::format("no case of {} needs: {}, {}, {}", e.name,
                                                     e.dtype, e.part, e.holding));
}

}  // namespace

TEST_CASE("functions of numbers, scans and orders compute what PyTorch and NumPy do") {
  check_group("math");
}
TEST_CASE("arrays are rearranged as PyTorch and NumPy do") { check_group("arrays"); }
TEST_CASE("segments are folded as TensorFlow and PyTorch do") { check_group("segments"); }
TEST_CASE("linear algebra computes what PyTorch and LAPACK do") { check_group("linalg"); }
TEST_CASE("networks and pictures compute what PyTorch and TensorFlow do") {
  check_group("networks");
}
TEST_CASE("losses compute what PyTorch does") { check_group("losses"); }
TEST_CASE("optimizers make the steps of PyTorch and TensorFlow") { check_group("optimizers"); }

TEST_CASE("complex numbers compute what PyTorch and NumPy do") { check_group("complex"); }

TEST_CASE("each op that takes complex numbers has goldens of them, or a reason to have none") {
  std::map<std::string, std::set<DType>> with_goldens;
  const GoldenFile file = goldens("complex");
  for (const GoldenBlock& block : file.blocks) with_goldens[block.name].insert(block.dtype);
  std::set<std::string> takes;
  for (const auto& entry : ops::catalogue(ops::builtin())) {
    const std::string& name = entry.op->def.name;
    if (entry.internal || !contains(" " + entry.op->def.types + " ", " c64 ")) continue;
    takes.insert(name);
    CAPTURE(name);
    if (without_complex_golden(name) != nullptr)
      CHECK(with_goldens.count(name) == 0);
    else
      CHECK(with_goldens[name] == std::set{DType::c64, DType::c128});
  }
  for (const WithoutComplexGolden& op : kWithoutComplexGolden)
    CHECK_MESSAGE(takes.count(std::string(op.name)) == 1, op.name << " takes no complex numbers");
}

TEST_CASE("each op that programs of others use has goldens with every hostile number") {
  std::map<std::string, std::set<DType>> with_goldens;
  std::uintmax_t bytes = 0;
  for (const char* group : kGroups) {
    const GoldenFile file = goldens(group);
    bytes += file.text.size();
    for (const GoldenBlock& block : file.blocks) {
      INFO(block.name << " " << dtype_name(block.dtype));
      with_goldens[block.name].insert(block.dtype);
      CHECK(block.cases.size() >= 40);
      std::set<std::string> found;
      bool takes_numbers = false;
      for (const GoldenCase& c : block.cases) {
        found.merge(hostile_in(block, c));
        for (const GoldenTensor& t : c.inputs) takes_numbers = takes_numbers || !t.letter;
      }
      if (!takes_numbers) continue;  // eye, linspace
      CHECK(found.count("empty") == 1);
      CHECK(found.count("ties") == 1);
      for (const char* number : is_trainable(block.dtype)
                                    ? std::vector{"nan", "inf", "-0", "largest", "least"}
                                    : std::vector{"lowest", "highest"})
        CHECK_MESSAGE(found.count(number) == 1, fmt::format("no input has {}", number));
    }
  }
  CHECK(bytes <= 5'000'000);
  for (const std::string& name : ops_of_others())
    CHECK_MESSAGE(with_goldens.count(name) == 1, name << " has no goldens");
}
