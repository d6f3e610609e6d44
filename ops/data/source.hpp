// Where examples come from: one file a kind, in sources/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

// One of the tensors that an example, or a batch, consists of.
struct Component {
  DType dtype = DType::invalid;
  PartialShape shape;
  friend bool operator==(const Component&, const Component&) = default;
};
using Signature = std::vector<Component>;
std::string signature_text(const Signature& signature);  // "f32[28,28,1], i64[]"
Signature signature_of(const std::vector<Tensor>& values);
// Whether something can be of both.
bool may_fit(const Signature& a, const Signature& b);
// Whether these tensors are of that signature.
bool fits(const Signature& signature, const std::vector<Tensor>& values);

// A place in a source that is read from start to end. One user at a time.
class Cursor {
 public:
  virtual ~Cursor() = default;
  // The next example; nullopt at the end. After an error it is of no use any more.
  virtual Expected<std::optional<std::vector<Tensor>>> next() = 0;
  // One that goes on by itself from here.
  virtual std::unique_ptr<Cursor> clone() const = 0;
  virtual std::size_t bytes_held() const = 0;  // about: what a clone costs
};

// An open source. Examples have the source's signature, and example i is always the same. What it
// keeps in memory does not grow with the files, unless the source says so. Immutable.
//
// One that can be read at any place knows its number of examples, and all of them have one shape.
// Another is read through cursors.
class Source {
 public:
  explicit Source(Signature signature) : signature_(std::move(signature)) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const Signature& signature() const { return signature_; }
  // nullopt: it is read through cursors.
  virtual std::optional<std::uint64_t> count() const { return std::nullopt; }
  // Writes examples [first, first + n) to rows [row, row + n) of `out`, one tensor a component with
  // the example in dimension 0. REQUIRES: count(), and they are there, in both.
  virtual Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
                      std::int64_t row) const;
  // At the first example. REQUIRES: no count().
  virtual Expected<std::unique_ptr<Cursor>> start() const;

 private:
  Signature signature_;
};

}  // namespace troupe
