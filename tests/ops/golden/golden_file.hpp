// The files of tests/golden/ops, whose form tests/golden/make.py describes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe::test {

// The attributes of a case, as text until somebody knows their kinds.
class GoldenAttrs {
 public:
  explicit GoldenAttrs(std::string_view text);
  const std::map<std::string, std::string, std::less<>>& all() const { return all_; }
  bool has(std::string_view name) const { return all_.count(name) != 0; }
  const std::string& text(std::string_view name) const { return all_.find(name)->second; }
  // What is not there: 0, false, no elements.
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  std::vector<std::int64_t> integers(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> all_;
};

// A tensor as it stands in the file. Texts are parts of the file's.
struct GoldenTensor {
  char letter = 0;  // i, l, b: i32, i64, bool; 0: the dtype of the block
  std::vector<std::int64_t> dims;
  std::vector<std::string_view> values;

  Tensor make(DType dtype) const;
};

struct GoldenCase {
  int line = 0;
  std::string_view attrs;
  std::vector<GoldenTensor> inputs, outputs, gradients;
  bool refused = false;
};

struct GoldenBlock {
  std::string name;
  DType dtype = DType::invalid;
  enum class Rule : std::uint8_t { exact, each, sum, near } rule = Rule::exact;
  std::vector<GoldenCase> cases;
};

struct GoldenFile {
  std::string text;
  std::vector<GoldenBlock> blocks;
};
// Throws Error for a file that is not there or not of that form.
GoldenFile read_goldens(const std::string& path);

// The real numbers that the text of a value stands for: one, or the two parts of a complex one.
std::vector<std::string_view> golden_parts(std::string_view value);
// The size of the largest finite number, or part of one.
double largest(const GoldenTensor& t);
// Whether `got` is what the file says: "" or where it is not. `tolerance` is for floats, `scale`
// the size of the largest input.
std::string difference(const Tensor& got, const GoldenTensor& want, GoldenBlock::Rule rule,
                       double tolerance, double scale);

}  // namespace troupe::test
