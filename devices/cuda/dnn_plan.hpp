// DnnPlan: how cuDNN computes one graph of operations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/function_ref.hpp"
#include "devices/cuda/cudnn.hpp"

namespace troupe::cuda {

// cuDNN's name of a float.
DnnType dnn_type(DType dtype);

// What a plan is made for: the GPU of a handle, or one that is only described.
class DnnTarget {
 public:
  explicit DnnTarget(DnnHandle handle) : handle_(handle) {}
  // What cuDNN tells of a GPU, as JSON: no GPU is needed. Since cuDNN 9.8.
  static Expected<DnnTarget> described(const Cudnn& library, std::string_view json);

  Status of_graph(DnnDescriptor& graph) const;
  Status of_heuristics(DnnDescriptor& heuristics) const;
  Status of_plan(DnnDescriptor& plan) const;

 private:
  DnnTarget() = default;
  DnnHandle handle_ = nullptr;
  DnnDescriptor properties_;
};

// Operations of a graph as they are described to cuDNN, in order, and the tensors between them.
class DnnGraph {
 public:
  explicit DnnGraph(const Cudnn& library) : library_(&library) {}

  // Of four dimensions. One that is `between` operations is nowhere in memory; one `by_value` is
  // a number that the host gives for each run.
  struct Tensor {
    DnnType type = kDnnF32;
    std::int64_t id = 0;  // what it is called among the pointers of a run
    std::array<std::int64_t, 4> dims{}, strides{};
    std::int64_t alignment = 16;
    enum Kind : std::uint8_t { in_memory, between, by_value } kind = in_memory;
  };
  // Tensors by number, for operations.
  using Number = std::size_t;
  Expected<Number> add(const Tensor& tensor);
  const DnnDescriptor& tensor(Number number) const { return tensors_[number]; }

  // An operation, and what it is made of beside tensors.
  void add_operation(DnnDescriptor operation, DnnDescriptor made_of);
  // y = f(x), f(x, b) or f(x, b, t), whose numbers are computed in `compute`. Relu keeps NaN.
  // `axis` is that of an index.
  struct Pointwise {
    DnnPointwiseMode mode;
    Number x, y;
    DnnType compute = kDnnF32;
    std::optional<Number> b = {}, t = {};
    std::optional<std::int64_t> axis = {};
    bool asks_for_nan = false;  // that it is kept
  };
  Status add(const Pointwise& operation);
  // y = a b, over the last two dimensions, added up in f32.
  Status add_product(Number a, Number b, Number y);
  // y, of one element along some dimensions, is made of x; in f32.
  Status add_reduction(DnnReduction by, Number x, Number y);
  // y is the memory of x, under another shape.
  Status add_view(Number x, Number y);

  // The graph, last, behind what it is made of.
  Expected<std::vector<DnnDescriptor>> finish(const DnnTarget& target) &&;

 private:
  const Cudnn* library_;
  std::vector<DnnDescriptor> tensors_, parts_, operations_;
};

// What plans may take and do.
struct DnnLimits {
  std::size_t workspace = 0;  // bytes at most
  bool tf32 = false;          // see settings.hpp
  std::string architecture;   // of the GPU: "sm_90"
};

// One of the ways that cuDNN's heuristics name, and then of all that it falls back to, whose
// numerical notes are allowed and whose workspace is not too large. Immutable. REQUIRES: the
// library outlives it.
class DnnPlan {
 public:
  // The first ones, `most` or fewer, but at least one. A way that the library refuses to make is
  // passed over, unless for want of memory or since the GPU has failed: that ends it.
  // unimplemented: the library knows no such way; `for_good` tells whether all refusals were that
  // the library does not do this. Errors name the function that failed. `graph` is what
  // DnnGraph::finish() gave.
  static Expected<std::vector<DnnPlan>> make_several(const Cudnn& library,
                                                     std::vector<DnnDescriptor> graph,
                                                     const DnnTarget& target, std::size_t workspace,
                                                     FunctionRef<bool(DnnNumericalNote)> allows,
                                                     std::size_t most, bool* for_good);

  // Bytes of device memory that a run needs, aligned to 256, until the stream is through with it.
  std::size_t workspace() const { return workspace_; }
  // cuDNN's number of the engine.
  std::int64_t engine() const { return engine_; }
  // Issues it on the handle's stream, with the tensors that are not between operations.
  Status run(DnnHandle handle, std::span<const std::int64_t> ids,
             std::span<const void* const> pointers, void* workspace) const;

 private:
  // What plans of one graph were made of: cuDNN does not say that they keep it.
  using Parts = std::shared_ptr<const std::vector<DnnDescriptor>>;

  DnnPlan(const Cudnn& library, Parts parts, DnnDescriptor configuration, DnnDescriptor plan,
          std::size_t workspace, std::int64_t engine)
      : library_(&library),
        parts_(std::move(parts)),
        configuration_(std::move(configuration)),
        plan_(std::move(plan)),
        workspace_(workspace),
        engine_(engine) {}

  const Cudnn* library_;
  Parts parts_;
  DnnDescriptor configuration_, plan_;
  std::size_t workspace_;
  std::int64_t engine_;
};

}  // namespace troupe::cuda
