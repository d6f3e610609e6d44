// Sources of examples; each kind is one file in sources/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"
#include "ops/data/data_file.hpp"

namespace troupe {

// The type of one of the tensors of an example or batch.
struct Component {
  DType dtype = DType::invalid;
  PartialShape shape;
  friend bool operator==(const Component&, const Component&) = default;
};
using Signature = std::vector<Component>;
std::string signature_text(const Signature& signature);  // "f32[28,28,1], i64[]"
Signature signature_of(const std::vector<Tensor>& values);
// Whether an example could have both signatures.
bool may_fit(const Signature& a, const Signature& b);
// Whether the tensors match the signature.
bool fits(const Signature& signature, const std::vector<Tensor>& values);

class Source;

// Where an example was read, for errors.
struct Origin {
  const DataFile* file = nullptr;  // the source's
  std::uint64_t record = 0;        // of the file, from 0
  std::uint64_t offset = 0;        // its first byte, in the unpacked content
  // If there is no file: the source, of which `record` is the example's index; null: unknown.
  const Source* source = nullptr;
  bool known() const { return file != nullptr || source != nullptr; }
  std::string text() const;  // "record 5 at byte 120 of file 'x'"; "" when unknown
};

// Errors in the content of files, which recur whenever they are read; not errors such as a lack of
// memory or a failing disk.
bool is_of_data(const Status& status);

// Skips by next(), of a Cursor or a Pass: see Cursor::skip().
template <class Examples>
Expected<std::uint64_t> skip_by_next(Examples& examples, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto passed = examples.next();
    const bool counts = passed.ok() || (examples.goes_on() && is_of_data(passed.status()));
    if (!counts) return passed.status();
    if (passed.ok() && !*passed) return i;
  }
  return n;
}

// A position in a source that is read sequentially. Not thread-safe.
class Cursor {
 public:
  virtual ~Cursor() = default;
  // The next example; nullopt at the end. Unusable after an error unless goes_on().
  virtual Expected<std::optional<std::vector<Tensor>>> next() = 0;
  // Skips the next `n` examples, or all that are left; returns how many. It need not check them:
  // one for which next() would fail because of its content (is_of_data), and go on, counts as one.
  virtual Expected<std::uint64_t> skip(std::uint64_t n) { return skip_by_next(*this, n); }
  // After an error: whether only one example, or the rest of one file, is lost, and next()
  // continues after it.
  virtual bool goes_on() const { return false; }
  // The origin of the example that next() returned last, or failed to read.
  virtual Origin origin() const { return {}; }
  // An independent cursor at the same position.
  virtual std::unique_ptr<Cursor> clone() const = 0;
  virtual std::size_t bytes_held() const = 0;  // approximate memory of a clone
};

// An open source. Examples have the source's signature, and example i is always the same. Memory
// does not grow with the files unless the source says so. Immutable.
//
// A source with random access knows its number of examples, which all have the same shape. Any
// other source is read through cursors.
class Source {
 public:
  explicit Source(Signature signature) : signature_(std::move(signature)) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const Signature& signature() const { return signature_; }
  // The number of examples; nullopt: the source is read through cursors.
  virtual std::optional<std::uint64_t> count() const { return std::nullopt; }
  // Writes examples [first, first + n) to rows [row, row + n) of `out`, which has one tensor per
  // component, with examples along dimension 0. REQUIRES: count(), and both ranges are valid.
  virtual Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
                      std::int64_t row) const;
  // The origin of an example, and a description if it is not in a file. REQUIRES: count().
  virtual Origin origin(std::uint64_t) const { return {}; }
  virtual std::string where(std::uint64_t) const { return ""; }
  // A cursor at the first example. REQUIRES: no count().
  virtual Expected<std::unique_ptr<Cursor>> start() const;

 private:
  Signature signature_;
};

}  // namespace troupe
