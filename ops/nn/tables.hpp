// Tables of rows: values, variables, and variables in parts.
//
//   const nn::PartitionedVariable words = nn::partitioned_variable(
//       g, "words", random_standard_normal(g, {1'000'000, 128}), {.shards = 4});
//   const Output rows = nn::embedding_lookup(words, ids);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/api/variable.hpp"

namespace troupe::nn {

// Which rows a part has. mod: row i is in part i mod N, so rows that are looked up together are
// spread. div: the first part has the first rows, the next part those behind them.
enum class Partition : std::uint8_t { mod, div };

struct PartitionOptions {
  std::int64_t shards = 1;  // the number of parts
  Partition how = Partition::mod;
};

// Makes a part of that shape and name.
using MakePart = std::function<Variable(std::string_view name, const Shape& shape)>;

// A variable [rows, ...] in several: each is placed, trained and saved by itself, on the tasks of a
// cluster in turn (OSDI paper, 4.2). Parts are as large as each other, or by one row larger. Passed
// to layers it stands for all rows. Cheap to copy.
class PartitionedVariable {
 public:
  PartitionedVariable() = default;

  // "NAME/part_0" and so on, "NAME/block_0" for div, so that neither is restored as the other; the
  // variable itself where there is one.
  const std::vector<Variable>& parts() const { return parts_; }
  const PartialShape& shape() const { return shape_; }
  // All rows in their order, brought together.
  Output value(Site site = Site::here()) const;
  operator Output() const { return value(); }
  // The rows with these ids [...] (i32 or i64): [..., ...]. Each part is asked for its own, so a
  // gradient is that of the rows. An id outside [0, rows) fails the run.
  Output rows(Output ids, Site site = Site::here()) const;

 private:
  friend PartitionedVariable partitioned_variable(std::string_view, const Shape&, const MakePart&,
                                                  const PartitionOptions&, Site);
  PartitionedVariable(std::vector<Variable> parts, const Shape& shape, Partition how)
      : parts_(std::move(parts)), shape_(shape), how_(how) {}

  std::vector<Variable> parts_;
  PartialShape shape_;
  Partition how_ = Partition::mod;
};

// In the parts of `initial`, whose shape must be known. Throws Error where there are more parts
// than rows, or fewer than one.
PartitionedVariable partitioned_variable(GraphBuilder& g, std::string_view name, Output initial,
                                         const PartitionOptions& options = {},
                                         Site site = Site::here());

// The same for a table that nobody need hold as a whole: each part is made by itself, in order.
PartitionedVariable partitioned_variable(std::string_view name, const Shape& shape,
                                         const MakePart& make, const PartitionOptions& options = {},
                                         Site site = Site::here());

// Where variable `name` of a graph is a table, or a part of one, that a file has in other parts, or
// whole where the graph has it in parts: the variable in the file that shows it. "" where none
// does. Rows would be taken for others, or be lost, even where each part has the shape of its
// namesake.
using HasVariable = std::function<bool(const std::string& name)>;
std::string kept_otherwise(std::string_view name, const HasVariable& graph_has,
                           const HasVariable& file_has);

// What rows are looked up in: a value, a variable, or a variable in parts; [rows, ...].
class Table {
 public:
  Table(Output whole) : whole_(whole) {}
  Table(const Variable& whole) : whole_(whole.value()) {}
  Table(PartitionedVariable parts) : parts_(std::move(parts)) {}

  bool empty() const { return whole_.empty() && parts_.parts().empty(); }
  PartialShape shape() const { return whole_.empty() ? parts_.shape() : whole_.shape(); }
  DType dtype() const { return whole_.empty() ? parts_.parts().front().dtype() : whole_.dtype(); }
  Output rows(Output ids, Site site = Site::here()) const;

 private:
  Output whole_;
  PartitionedVariable parts_;
};

// Throws Error with `what` if the table is empty.
void check_given(std::string_view what, const Table& table, const Site& site);

}  // namespace troupe::nn
