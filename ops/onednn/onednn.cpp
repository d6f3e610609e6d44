#include "ops/onednn/onednn.hpp"

#include <fmt/format.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>

// Declared here rather than through <omp.h>, which wants -fopenmp of some compilers.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
}

namespace troupe::onednn {
namespace {

// The OpenMP thread count is a setting of each thread, and a new thread starts with all cores. With
// one, libgomp forms no team and calls run inline. What a client set for its thread is its own.
class SingleThreaded {
 public:
  SingleThreaded() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~SingleThreaded() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  const int before_;
};

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

const dnnl::stream& stream() {
  thread_local const dnnl::stream own(engine());
  return own;
}

// Runs `work`, which may throw what oneDNN throws: the only place of ours that catches it.
template <class F>
Status guarded(const char* what, F&& work) {
  const SingleThreaded here;
  try {
    work();
    return ok_status();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented)
      return unimplemented(fmt::format("oneDNN has no such primitive: {}", what));
    if (e.status == dnnl_out_of_memory)
      return resource_exhausted(fmt::format("oneDNN is out of memory: {}", what));
    return internal_error(fmt::format("oneDNN: {}: {} (status {})", what, e.what(), int(e.status)));
  } catch (const std::bad_alloc&) {
    return resource_exhausted(fmt::format("oneDNN is out of memory: {}", what));
  }
}

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto kF32 = dnnl::memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// oneDNN takes its memories by handle and never writes those that are inputs.
dnnl::memory memory_of(const Desc& desc, const void* data) {
  return {desc, engine(), const_cast<void*>(data)};
}

// The filter's dimensions as oneDNN has them: groups come first, where there are any.
dnnl::memory::dims filter_dims(const ConvShape& s) {
  if (s.groups == 1) return {s.out_c, s.in_c, s.filter_h, s.filter_w};
  return {s.groups, s.out_c / s.groups, s.in_c / s.groups, s.filter_h, s.filter_w};
}

// oneDNN's plain loops, which it has for every shape, are slower than patches by far.
template <class Primitive>
void refuse_reference(const Primitive& pd) {
  if (std::string_view(pd.impl_info_str()).find("ref") != std::string_view::npos)
    throw dnnl::error(dnnl_unimplemented, "a grouped convolution without a kernel of its own");
}

// What describes a convolution to any of the three directions.
struct ConvDescs {
  Desc x, filter, y;
  dnnl::memory::dims strides, dilations, pad_begin, pad_end;

  ConvDescs(const ConvShape& s, const Desc* packed)
      : x({s.batch, s.in_c, s.in_h, s.in_w}, kF32, Tag::nhwc),
        filter(packed ? *packed : Desc(filter_dims(s), kF32, Tag::any)),
        y({s.batch, s.out_c, s.out_h, s.out_w}, kF32, Tag::nhwc),
        strides{s.stride_h, s.stride_w},
        dilations{s.dilation_h - 1, s.dilation_w - 1},
        pad_begin{s.pad_top, s.pad_left},
        pad_end{s.pad_bottom, s.pad_right} {}
};

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// Version 3 dropped the operation descriptors of version 2; nothing else differs for us.
dnnl::convolution_forward::primitive_desc forward_desc(const ConvDescs& d) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),  kind,        kDirect,     d.x,       d.filter,         d.y,
          d.strides, d.dilations, d.pad_begin, d.pad_end, user_scratchpad()};
#else
  return {{kind, kDirect, d.x, d.filter, d.y, d.strides, d.dilations, d.pad_begin, d.pad_end},
          user_scratchpad(),
          engine()};
#endif
}

dnnl::convolution_backward_data::primitive_desc backward_data_desc(
    const ConvDescs& d, const dnnl::convolution_forward::primitive_desc& hint) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),    kDirect,   d.x,  d.filter,         d.y, d.strides, d.dilations,
          d.pad_begin, d.pad_end, hint, user_scratchpad()};
#else
  return {{kDirect, d.x, d.filter, d.y, d.strides, d.dilations, d.pad_begin, d.pad_end},
          user_scratchpad(),
          engine(),
          hint};
#endif
}

dnnl::convolution_backward_weights::primitive_desc backward_filter_desc(
    const ConvDescs& d, const dnnl::convolution_forward::primitive_desc& hint) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(),    kDirect,   d.x,  d.filter,         d.y, d.strides, d.dilations,
          d.pad_begin, d.pad_end, hint, user_scratchpad()};
#else
  return {{kDirect, d.x, d.filter, d.y, d.strides, d.dilations, d.pad_begin, d.pad_end},
          user_scratchpad(),
          engine(),
          hint};
#endif
}

}  // namespace

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

Status limit_isa(int level) {
  auto cap = level <= 2   ? dnnl::cpu_isa::sse41
             : level == 3 ? dnnl::cpu_isa::avx2
                          : dnnl::cpu_isa::avx512_core;
  if (dnnl::set_max_cpu_isa(cap) != dnnl::status::success)
    return failed_precondition("the instruction set of oneDNN is fixed once it has run");
  return ok_status();
}

Status sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
             const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
             float* c, std::int64_t ldc) {
  const SingleThreaded here;
  dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f,
                                    a, lda, b, ldb, beta, c, ldc);
  if (status == dnnl_success) return ok_status();
  if (status == dnnl_out_of_memory) return resource_exhausted("oneDNN is out of memory in sgemm");
  return internal_error(
      fmt::format("oneDNN sgemm {}x{}x{} failed with status {}", m, k, n, int(status)));
}

struct Product::State {
  dnnl::matmul primitive;
  dnnl::memory::dims of_b;
  Desc a, packed, c, scratch;
};

Product::Product(std::unique_ptr<State> state) : state_(std::move(state)) {}
Product::~Product() = default;

Expected<std::unique_ptr<Product>> Product::make(const Sizes& s, const Product* like) {
  auto state = std::make_unique<State>();
  TROUPE_TRY(guarded("a product of these sizes", [&] {
    state->a = Desc({s.m, s.k}, kF32, dnnl::memory::dims{s.lda, 1});
    state->c = Desc({s.m, s.n}, kF32, dnnl::memory::dims{s.ldc, 1});
    state->of_b = {s.k, s.n};
    const Desc b = like ? like->state_->packed : Desc(state->of_b, kF32, Tag::any);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc pd(engine(), state->a, b, state->c, user_scratchpad());
#else
    const dnnl::matmul::primitive_desc pd({state->a, b, state->c}, user_scratchpad(), engine());
#endif
    state->packed = pd.weights_desc();
    state->scratch = pd.scratchpad_desc();
    state->primitive = dnnl::matmul(pd);
  }));
  return std::unique_ptr<Product>(new Product(std::move(state)));
}

std::size_t Product::packed_bytes() const { return state_->packed.get_size(); }
std::size_t Product::scratch_bytes() const { return state_->scratch.get_size(); }

Status Product::pack(const float* b, std::int64_t ldb, bool transpose, void* packed) const {
  return guarded("packing a matrix", [&] {
    const auto strides = transpose ? dnnl::memory::dims{1, ldb} : dnnl::memory::dims{ldb, 1};
    dnnl::memory from = memory_of({state_->of_b, kF32, strides}, b);
    dnnl::memory to = memory_of(state_->packed, packed);
    dnnl::reorder(from, to).execute(stream(), from, to);
  });
}

Status Product::run(const float* a, const void* packed, float* c, void* scratch) const {
  return guarded("a product", [&] {
    state_->primitive.execute(stream(),
                              {{DNNL_ARG_SRC, memory_of(state_->a, a)},
                               {DNNL_ARG_WEIGHTS, memory_of(state_->packed, packed)},
                               {DNNL_ARG_DST, memory_of(state_->c, c)},
                               {DNNL_ARG_SCRATCHPAD, memory_of(state_->scratch, scratch)}});
  });
}

struct Conv::State {
  dnnl::primitive primitive;
  Desc x, y, packed, hwio, scratch;
  dnnl::reorder to_packed, to_hwio;

  // An operand of the primitive: its part in this direction, and where it is.
  struct Operand {
    int part;
    const void* at;
  };
  void execute(Operand in, Operand filter, Operand out, void* scratch_at) const {
    primitive.execute(stream(), {{in.part, memory_of(x, in.at)},
                                 {filter.part, memory_of(packed, filter.at)},
                                 {out.part, memory_of(y, out.at)},
                                 {DNNL_ARG_SCRATCHPAD, memory_of(scratch, scratch_at)}});
  }
};

Conv::Conv(std::unique_ptr<State> state) : state_(std::move(state)) {}
Conv::~Conv() = default;

Expected<std::unique_ptr<Conv>> Conv::make(ConvKind kind, const ConvShape& shape,
                                           const Conv* like) {
  auto state = std::make_unique<State>();
  TROUPE_TRY(guarded("a convolution of this shape", [&] {
    ConvDescs descs(shape, like ? &like->state_->packed : nullptr);
    // The directions of training need a forward descriptor as hint, with a filter layout of its
    // own.
    auto forward = forward_desc(kind == ConvKind::forward ? descs : ConvDescs(shape, nullptr));
    auto keep = [&](const auto& pd, const Desc& packed, dnnl::primitive primitive) {
      if (shape.groups != 1) refuse_reference(pd);
      state->primitive = std::move(primitive);
      state->scratch = pd.scratchpad_desc();
      state->packed = packed;
    };
    if (kind == ConvKind::forward) {
      keep(forward, forward.weights_desc(), dnnl::convolution_forward(forward));
    } else if (kind == ConvKind::backward_data) {
      auto pd = backward_data_desc(descs, forward);
      keep(pd, pd.weights_desc(), dnnl::convolution_backward_data(pd));
    } else {
      auto pd = backward_filter_desc(descs, forward);
      keep(pd, pd.diff_weights_desc(), dnnl::convolution_backward_weights(pd));
    }
    state->x = descs.x;
    state->y = descs.y;
    state->hwio = Desc(filter_dims(shape), kF32, shape.groups == 1 ? Tag::hwio : Tag::hwigo);
    auto reorder = [&](const Desc& from, const Desc& to) {
      dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, user_scratchpad());
      // No layout of a filter needs one; if one ever does, pack and unpack must bring it along.
      if (pd.scratchpad_desc().get_size() != 0)
        throw dnnl::error(dnnl_unimplemented, "a reorder that wants scratch");
      return dnnl::reorder(pd);
    };
    if (kind == ConvKind::backward_filter)
      state->to_hwio = reorder(state->packed, state->hwio);
    else
      state->to_packed = reorder(state->hwio, state->packed);
  }));
  return std::unique_ptr<Conv>(new Conv(std::move(state)));
}

std::size_t Conv::packed_bytes() const { return state_->packed.get_size(); }
std::size_t Conv::scratch_bytes() const { return state_->scratch.get_size(); }

Status Conv::pack(const float* hwio, void* packed) const {
  return guarded("packing a filter", [&] {
    dnnl::memory from = memory_of(state_->hwio, hwio), to = memory_of(state_->packed, packed);
    state_->to_packed.execute(stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  });
}

Status Conv::unpack(const void* packed, float* hwio) const {
  return guarded("unpacking a filter", [&] {
    dnnl::memory from = memory_of(state_->packed, packed), to = memory_of(state_->hwio, hwio);
    state_->to_hwio.execute(stream(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  });
}

Status Conv::run_forward(const float* x, const void* packed_filter, float* y, void* scratch) const {
  return guarded("a convolution", [&] {
    state_->execute({DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, packed_filter}, {DNNL_ARG_DST, y},
                    scratch);
  });
}

Status Conv::run_backward_data(const float* dy, const void* packed_filter, float* dx,
                               void* scratch) const {
  return guarded("a convolution's input gradient", [&] {
    state_->execute({DNNL_ARG_DIFF_SRC, dx}, {DNNL_ARG_WEIGHTS, packed_filter},
                    {DNNL_ARG_DIFF_DST, dy}, scratch);
  });
}

Status Conv::run_backward_filter(const float* x, const float* dy, void* packed_filter,
                                 void* scratch) const {
  return guarded("a convolution's filter gradient", [&] {
    state_->execute({DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_WEIGHTS, packed_filter},
                    {DNNL_ARG_DIFF_DST, dy}, scratch);
  });
}

}  // namespace troupe::onednn
