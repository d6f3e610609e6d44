// Lookup table of vectors.
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

// Looks up rows of a table [rows, size] by ids [...] (i32 or i64): [..., size]. Gradients of a row
// that is looked up several times are summed. An id outside [0, rows) fails the run.
class Embedding : public Module {
 public:
  struct Options {
    double stddev = 1;  // initial values are normal with this standard deviation
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
