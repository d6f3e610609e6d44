// A table of vectors.
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

// Row ids[i, j, ...] of a table [rows, size] for each of the ids (i32 or i64): [..., size]. The
// gradient adds up what comes back for each row, however often it was asked for. A run with an id
// outside [0, rows) fails.
class Embedding : public Module {
 public:
  struct Options {
    double stddev = 1;  // of the first values, which are normal
    DType dtype = DType::f32;
  };
  Embedding(Module& parent, std::string_view name, std::int64_t rows, std::int64_t size,
            const Options& options, Site site = Site::here());
  Embedding(Module& parent, std::string_view name, std::int64_t rows, std::int64_t size,
            Site site = Site::here())
      : Embedding(parent, name, rows, size, Options{}, std::move(site)) {}

  Output operator()(Output ids, Site site = Site::here()) const;

  const Variable& table() const { return table_; }

 private:
  Variable table_;
};

}  // namespace troupe::nn
