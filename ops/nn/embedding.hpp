// Lookup tables of vectors.
#pragma once

#include <cstdint>

#include "ops/nn/module.hpp"
#include "ops/nn/tables.hpp"

namespace troupe::nn {

// The rows of a table [rows, size] with these ids [...] (i32 or i64): [..., size]. An id outside
// [0, rows) fails the run.
Output embedding_lookup(const Table& table, Output ids, Site site = Site::here());

// Lists of ids of any length, one list for each example.
struct Bags {
  Output ids;    // [n], those of all bags
  Output bag;    // i64 [n]: the bag that each is in
  Output count;  // of bags, an i64 scalar
};
// Of ids [bags, most] with lengths [bags] (i32 or i64): as padded_batch() gives them. What stands
// behind the length of a bag is not looked at. A length outside [0, most] fails the run.
Bags bags(Output ids, Output lengths, Site site = Site::here());

// What becomes of the rows of a bag, each times its weight: their sum, divided by the sum of the
// weights, or by the root of the sum of their squares.
enum class Combiner : std::uint8_t { sum, mean, sqrtn };

struct LookupOptions {
  Combiner combiner = Combiner::mean;
  Output weights = {};  // [n], of the table's dtype; default: all 1
};
// One row for each bag: [bags, size]. Zeros for a bag without ids, and for one to be divided by 0.
// The gradient of the table is that of the rows that are looked up.
Output embedding_lookup(const Table& table, const Bags& bags, const LookupOptions& options = {},
                        Site site = Site::here());

// Looks up rows of a table [rows, size] by ids [...] (i32 or i64): [..., size]. Gradients of a row
// that is looked up several times are summed. An id outside [0, rows) fails the run.
class Embedding : public Module {
 public:
  struct Options {
    double stddev = 1;  // initial values are normal with this standard deviation
    DType dtype = DType::f32;
    std::int64_t shards = 1;         // of the table: see PartitionOptions
    Partition how = Partition::mod;  // parts draw their initial values by themselves
  };
  Embedding(Module& parent, std::string_view name, std::int64_t rows, std::int64_t size,
            const Options& options, Site site = Site::here());
  Embedding(Module& parent, std::string_view name, std::int64_t rows, std::int64_t size,
            Site site = Site::here())
      : Embedding(parent, name, rows, size, Options{}, std::move(site)) {}

  Output operator()(Output ids, Site site = Site::here()) const;
  Output operator()(const Bags& bags, const LookupOptions& options = {},
                    Site site = Site::here()) const;

  const PartitionedVariable& table() const { return table_; }

 private:
  PartitionedVariable table_;
};

}  // namespace troupe::nn
