// The functions that programs of others use, at sizes that they have; torch_functions.py has the
// same.
#include "apps/bench/function_bench.hpp"

namespace troupe {
namespace {

using Built = FunctionCase::Built;
using Xs = std::vector<Output>;

constexpr std::int64_t kMillion = 1 << 20;
const Shape kSquare{1024, 1024};

FunctionInput integers(const Shape& shape, std::int64_t limit, bool sorted = false) {
  return {shape, DType::i64, 0, double(limit), sorted};
}

void add_math(std::vector<FunctionCase>& all) {
  const FunctionInput x{{kMillion}};
  const auto unary = [&](const char* name, double low, double high,
                         Built (*build)(Graph&, const Xs&)) {
    all.push_back({name, {{{kMillion}, DType::f32, low, high}}, build});
  };
  unary("tan", -1, 1, [](Graph&, const Xs& x) -> Built { return {{tan(x[0])}}; });
  unary("asin", -1, 1, [](Graph&, const Xs& x) -> Built { return {{asin(x[0])}}; });
  unary("acos", -1, 1, [](Graph&, const Xs& x) -> Built { return {{acos(x[0])}}; });
  unary("atan", -1, 1, [](Graph&, const Xs& x) -> Built { return {{atan(x[0])}}; });
  unary("sinh", -1, 1, [](Graph&, const Xs& x) -> Built { return {{sinh(x[0])}}; });
  unary("cosh", -1, 1, [](Graph&, const Xs& x) -> Built { return {{cosh(x[0])}}; });
  unary("asinh", -1, 1, [](Graph&, const Xs& x) -> Built { return {{asinh(x[0])}}; });
  unary("acosh", 1, 2, [](Graph&, const Xs& x) -> Built { return {{acosh(x[0])}}; });
  unary("atanh", -1, 1, [](Graph&, const Xs& x) -> Built { return {{atanh(x[0])}}; });
  unary("lgamma", 0.1, 1.1, [](Graph&, const Xs& x) -> Built { return {{lgamma(x[0])}}; });
  unary("digamma", 0.1, 1.1, [](Graph&, const Xs& x) -> Built { return {{digamma(x[0])}}; });
  all.push_back(
      {"atan2", {x, x}, [](Graph&, const Xs& x) -> Built { return {{atan2(x[0], x[1])}}; }});
  all.push_back({"log_sum_exp", {{kSquare}}, [](Graph&, const Xs& x) -> Built {
                   return {{log_sum_exp(x[0], 1)}};
                 }});
  all.push_back({"cumsum_rows", {{kSquare}}, [](Graph&, const Xs& x) -> Built {
                   return {{cumsum(x[0], {.axis = 1})}};
                 }});
  all.push_back({"cumsum_columns", {{kSquare}}, [](Graph&, const Xs& x) -> Built {
                   return {{cumsum(x[0], {.axis = 0})}};
                 }});
  all.push_back({"cumprod_rows", {{kSquare}}, [](Graph&, const Xs& x) -> Built {
                   return {{cumprod(x[0], {.axis = 1})}};
                 }});
  all.push_back({"clip_by_value",
                 {x, {{kMillion}, DType::f32, -1, 0}, {{kMillion}, DType::f32, 0, 1}},
                 [](Graph&, const Xs& x) -> Built { return {{clip_by_value(x[0], x[1], x[2])}}; }});
  all.push_back({"einsum", {{{32, 64, 64}}, {{32, 64, 64}}}, [](Graph&, const Xs& x) -> Built {
                   return {{einsum("bqd,bkd->bqk", {x[0], x[1]})}};
                 }});
  all.push_back({"bincount", {integers({kMillion}, 1000)}, [](Graph&, const Xs& x) -> Built {
                   return {{bincount(x[0], 1000)}};
                 }});
  const FunctionInput bits{{kMillion}, DType::i32, 0, 1e9}, by{{kMillion}, DType::i32, 0, 31};
  all.push_back({"bitwise_and", {bits, bits}, [](Graph&, const Xs& x) -> Built {
                   return {{bitwise_and(x[0], x[1])}};
                 }});
  all.push_back({"left_shift", {bits, by}, [](Graph&, const Xs& x) -> Built {
                   return {{left_shift(x[0], x[1])}};
                 }});
}

void add_orders(std::vector<FunctionCase>& all) {
  all.push_back({"top_k", {{kSquare}}, [](Graph&, const Xs& x) -> Built {
                   const auto top = top_k(x[0], 10);
                   return {{top.values, top.indices}};
                 }});
  all.push_back({"sort_rows", {{kSquare}}, [](Graph&, const Xs& x) -> Built {
                   const auto sorted = sort(x[0]);
                   return {{sorted.y, sorted.indices}};
                 }});
  all.push_back({"sort_million", {{{kMillion}}}, [](Graph&, const Xs& x) -> Built {
                   const auto sorted = sort(x[0]);
                   return {{sorted.y, sorted.indices}};
                 }});
  all.push_back({"argsort_rows", {{kSquare}}, [](Graph&, const Xs& x) -> Built {
                   return {{argsort(x[0])}};
                 }});
  all.push_back({"search_sorted",
                 {{{10000}, DType::f32, -1, 1, true}, {{kMillion}}},
                 [](Graph&, const Xs& x) -> Built { return {{search_sorted(x[0], x[1])}}; }});
  all.push_back({"unique", {integers({kMillion}, 1000)}, [](Graph&, const Xs& x) -> Built {
                   const auto found = unique(x[0]);
                   return {{found.y, found.index, found.counts}};
                 }});
  all.push_back({"in_top_k",
                 {{{1024, 1000}}, integers({1024}, 1000)},
                 [](Graph&, const Xs& x) -> Built { return {{in_top_k(x[0], x[1], 5)}}; }});
}

void add_arrays(std::vector<FunctionCase>& all) {
  const FunctionInput mask{{kMillion}, DType::bool_};
  all.push_back({"where", {mask}, [](Graph&, const Xs& x) -> Built { return {{where(x[0])}}; }});
  all.push_back({"boolean_mask",
                 {{{65536, 16}}, {{65536}, DType::bool_}},
                 [](Graph&, const Xs& x) -> Built { return {{boolean_mask(x[0], x[1])}}; }});
  all.push_back({"gather_nd",
                 {{kSquare}, integers({100000, 2}, 1024)},
                 [](Graph&, const Xs& x) -> Built { return {{gather_nd(x[0], x[1])}}; }});
  all.push_back(
      {"scatter_nd", {integers({100000, 2}, 1024), {{100000}}}, [](Graph& g, const Xs& x) -> Built {
         return {{scatter_nd(x[0], x[1], constant<std::int64_t>(g, {1024, 1024}))}};
       }});
  all.push_back({"roll", {{kSquare}}, [](Graph&, const Xs& x) -> Built {
                   return {{roll(x[0], {3, 5}, {0, 1})}};
                 }});
  all.push_back(
      {"diag", {{{64, 256}}}, [](Graph&, const Xs& x) -> Built { return {{diag(x[0])}}; }});
  all.push_back({"tril", {{kSquare}}, [](Graph&, const Xs& x) -> Built { return {{tril(x[0])}}; }});
  all.push_back({"mirror_pad", {{{8, 64, 64, 16}}}, [](Graph&, const Xs& x) -> Built {
                   return {{mirror_pad(x[0], {{0, 0}, {2, 2}, {2, 2}, {0, 0}})}};
                 }});
  all.push_back({"sequence_mask", {integers({1024}, 1024)}, [](Graph&, const Xs& x) -> Built {
                   return {{sequence_mask(x[0], 1024)}};
                 }});
  all.push_back({"space_to_depth", {{{8, 64, 64, 32}}}, [](Graph&, const Xs& x) -> Built {
                   return {{space_to_depth(x[0], 2)}};
                 }});
  all.push_back({"depth_to_space", {{{8, 32, 32, 128}}}, [](Graph&, const Xs& x) -> Built {
                   return {{depth_to_space(x[0], 2)}};
                 }});
  const FunctionInput rows{{65536, 64}};
  const FunctionInput ids = integers({65536}, 1000), sorted = integers({65536}, 1000, true);
  all.push_back({"segment_sum", {rows, sorted}, [](Graph&, const Xs& x) -> Built {
                   return {{segment_sum(x[0], x[1])}};
                 }});
  all.push_back({"segment_max", {rows, sorted}, [](Graph&, const Xs& x) -> Built {
                   return {{segment_max(x[0], x[1])}};
                 }});
  all.push_back({"unsorted_segment_sum", {rows, ids}, [](Graph& g, const Xs& x) -> Built {
                   return {{unsorted_segment_sum(x[0], x[1], constant<std::int64_t>(g, 1000))}};
                 }});
  all.push_back({"unsorted_segment_mean", {rows, ids}, [](Graph& g, const Xs& x) -> Built {
                   return {{unsorted_segment_mean(x[0], x[1], constant<std::int64_t>(g, 1000))}};
                 }});
  all.push_back({"unsorted_segment_max", {rows, ids}, [](Graph& g, const Xs& x) -> Built {
                   return {{unsorted_segment_max(x[0], x[1], constant<std::int64_t>(g, 1000))}};
                 }});
}

// Positive definite: a A^T + n I.
Output definite(Graph& g, const Output& a, std::int64_t n) {
  return batch_mat_mul(a, a, {.transpose_b = true}) + double(n) * eye(g, n);
}

void add_linalg(std::vector<FunctionCase>& all) {
  const FunctionInput one{{256, 256}}, many{{64, 32, 32}}, b{{256, 16}};
  all.push_back(
      {"inverse", {one}, [](Graph&, const Xs& x) -> Built { return {{matrix_inverse(x[0])}}; }});
  all.push_back({"inverse_batch", {many}, [](Graph&, const Xs& x) -> Built {
                   return {{matrix_inverse(x[0])}};
                 }});
  all.push_back({"determinant", {many}, [](Graph&, const Xs& x) -> Built {
                   return {{matrix_determinant(x[0])}};
                 }});
  all.push_back({"log_determinant", {one}, [](Graph&, const Xs& x) -> Built {
                   const auto of = log_matrix_determinant(x[0]);
                   return {{of.sign, of.log_abs}};
                 }});
  all.push_back({"cholesky", {one}, [](Graph& g, const Xs& x) -> Built {
                   return {{cholesky(definite(g, x[0], 256))}};
                 }});
  all.push_back({"cholesky_batch", {many}, [](Graph& g, const Xs& x) -> Built {
                   return {{cholesky(definite(g, x[0], 32))}};
                 }});
  all.push_back({"solve", {one, b}, [](Graph&, const Xs& x) -> Built {
                   return {{matrix_solve(x[0], x[1])}};
                 }});
  all.push_back({"triangular_solve", {one, b}, [](Graph& g, const Xs& x) -> Built {
                   return {{matrix_triangular_solve(x[0] + 256.0 * eye(g, 256), x[1])}};
                 }});
  all.push_back({"least_squares", {{{256, 64}}, b}, [](Graph&, const Xs& x) -> Built {
                   return {{matrix_solve_ls(x[0], x[1])}};
                 }});
  all.push_back({"qr", {{{256, 64}}}, [](Graph&, const Xs& x) -> Built {
                   const auto of = qr(x[0]);
                   return {{of.q, of.r}};
                 }});
  all.push_back({"svd", {{{64, 64}}}, [](Graph&, const Xs& x) -> Built {
                   const auto of = svd(x[0]);
                   return {{of.s, of.u, of.v}};
                 }});
  all.push_back({"self_adjoint_eig", {{{64, 64}}}, [](Graph&, const Xs& x) -> Built {
                   const auto of = self_adjoint_eig(x[0]);
                   return {{of.e, of.v}};
                 }});
}

void add_windows(std::vector<FunctionCase>& all) {
  all.push_back({"conv1d", {{{16, 256, 32}}, {{5, 32, 64}}}, [](Graph&, const Xs& x) -> Built {
                   return {{conv1d(x[0], x[1])}};
                 }});
  all.push_back({"conv3d",
                 {{{4, 8, 16, 16, 8}}, {{3, 3, 3, 8, 16}}},
                 [](Graph&, const Xs& x) -> Built { return {{conv3d(x[0], x[1])}}; }});
  all.push_back(
      {"conv1d_transpose", {{{16, 128, 64}}, {{4, 32, 64}}}, [](Graph&, const Xs& x) -> Built {
         return {{conv1d_transpose(x[0], x[1], {.stride = 2})}};
       }});
  all.push_back({"conv2d_transpose",
                 {{{16, 16, 16, 32}}, {{4, 4, 16, 32}}},
                 [](Graph&, const Xs& x) -> Built {
                   return {{conv2d_transpose(x[0], x[1], {.strides = {2, 2}})}};
                 }});
  all.push_back({"conv3d_transpose",
                 {{{2, 4, 8, 8, 16}}, {{4, 4, 4, 8, 16}}},
                 [](Graph&, const Xs& x) -> Built {
                   return {{conv3d_transpose(x[0], x[1], {.strides = {2, 2, 2}})}};
                 }});
  all.push_back({"depthwise_conv2d",
                 {{{16, 32, 32, 64}}, {{3, 3, 64, 1}}},
                 [](Graph&, const Xs& x) -> Built { return {{depthwise_conv2d(x[0], x[1])}}; }});
  all.push_back(
      {"grouped_conv2d", {{{16, 32, 32, 64}}, {{3, 3, 16, 64}}}, [](Graph&, const Xs& x) -> Built {
         return {{conv2d(x[0], x[1], {.groups = 4})}};
       }});
  all.push_back({"max_pool1d", {{{32, 1024, 64}}}, [](Graph&, const Xs& x) -> Built {
                   return {{max_pool1d(x[0], 2)}};
                 }});
  all.push_back({"avg_pool1d", {{{32, 1024, 64}}}, [](Graph&, const Xs& x) -> Built {
                   return {{avg_pool1d(x[0], 2)}};
                 }});
  all.push_back({"max_pool3d", {{{4, 16, 16, 16, 32}}}, [](Graph&, const Xs& x) -> Built {
                   return {{max_pool3d(x[0], {2, 2, 2})}};
                 }});
  all.push_back({"avg_pool3d", {{{4, 16, 16, 16, 32}}}, [](Graph&, const Xs& x) -> Built {
                   return {{avg_pool3d(x[0], {2, 2, 2})}};
                 }});
  const FunctionInput pictures{{8, 64, 64, 16}};
  all.push_back({"resize_nearest", {pictures}, [](Graph&, const Xs& x) -> Built {
                   return {{resize(x[0], 128, 128, {.method = "nearest"})}};
                 }});
  all.push_back({"resize_bilinear", {pictures}, [](Graph&, const Xs& x) -> Built {
                   return {{resize(x[0], 128, 128)}};
                 }});
}

void add_networks(std::vector<FunctionCase>& all) {
  const FunctionInput x{{kMillion}}, pictures{{16, 32, 32, 64}}, channels{{64}};
  all.push_back({"gelu", {x}, [](Graph&, const Xs& x) -> Built { return {{gelu(x[0])}}; }});
  all.push_back({"silu", {x}, [](Graph&, const Xs& x) -> Built { return {{silu(x[0])}}; }});
  all.push_back(
      {"leaky_relu", {x}, [](Graph&, const Xs& x) -> Built { return {{leaky_relu(x[0])}}; }});
  all.push_back({"selu", {x}, [](Graph&, const Xs& x) -> Built { return {{selu(x[0])}}; }});
  all.push_back({"local_response_norm", {pictures}, [](Graph&, const Xs& x) -> Built {
                   return {{local_response_norm(x[0], {.radius = 2})}};
                 }});
  all.push_back({"group_norm", {pictures, channels, channels}, [](Graph&, const Xs& x) -> Built {
                   return {{group_norm(x[0], x[1], x[2], 8)}};
                 }});
  all.push_back({"instance_norm", {pictures, channels, channels}, [](Graph&, const Xs& x) -> Built {
                   return {{instance_norm(x[0], x[1], x[2])}};
                 }});
  all.push_back({"rms_norm", {{kSquare}, {{1024}}}, [](Graph&, const Xs& x) -> Built {
                   return {{rms_norm(x[0], x[1])}};
                 }});
  const FunctionInput heads{{32, 128, 64}};
  all.push_back({"attention", {heads, heads, heads}, [](Graph&, const Xs& x) -> Built {
                   return {{nn::scaled_dot_product_attention(x[0], x[1], x[2])}};
                 }});
}

Built ctc(Graph& g, const Xs& x, bool slope) {
  const Tensor sixteen = Tensor::of<std::int64_t>(Shape{16}, std::vector<std::int64_t>(16, 16));
  const Tensor frames = Tensor::of<std::int64_t>(Shape{16}, std::vector<std::int64_t>(16, 64));
  const Output loss = sum(ctc_loss(x[0], x[1], constant(g, sixteen), constant(g, frames)));
  if (!slope) return {{loss}};
  return {value_or_throw(gradients(std::vector{loss}, std::vector{x[0]}))};
}

template <class Rule>
Built update(Graph& g, const Xs& x) {
  const Variable v = variable(g, "v", zeros(g, {kMillion}));
  return {{}, {Rule{}.minimize(sum(v * x[0]))}};
}

void add_losses(std::vector<FunctionCase>& all) {
  const FunctionInput x{{kMillion}}, label{{kMillion}, DType::f32, 0, 1};
  all.push_back({"sigmoid_cross_entropy", {x, label}, [](Graph&, const Xs& x) -> Built {
                   return {{sigmoid_cross_entropy(x[0], x[1])}};
                 }});
  all.push_back({"mean_squared_error", {x, label}, [](Graph&, const Xs& x) -> Built {
                   return {{mean_squared_error(x[0], x[1])}};
                 }});
  all.push_back(
      {"huber", {x, label}, [](Graph&, const Xs& x) -> Built { return {{huber(x[0], x[1])}}; }});
  all.push_back({"cosine_distance", {{kSquare}, {kSquare}}, [](Graph&, const Xs& x) -> Built {
                   return {{cosine_distance(x[0], x[1])}};
                 }});
  const FunctionInput logits{{64, 16, 32}}, labels{{16, 16}, DType::i64, 1, 32};
  all.push_back({"ctc_loss", {logits, labels}, [](Graph& g, const Xs& x) -> Built {
                   return ctc(g, x, false);
                 }});
  all.push_back({"ctc_loss_grad", {logits, labels}, [](Graph& g, const Xs& x) -> Built {
                   return ctc(g, x, true);
                 }});
  all.push_back({"adagrad", {x}, update<optim::Adagrad>});
  all.push_back({"rmsprop", {x}, update<optim::RmsProp>});
  all.push_back({"adadelta", {x}, update<optim::Adadelta>});
}

}  // namespace

std::vector<FunctionCase> function_cases() {
  std::vector<FunctionCase> all;
  add_math(all);
  add_orders(all);
  add_arrays(all);
  add_linalg(all);
  add_windows(all);
  add_networks(all);
  add_losses(all);
  return all;
}

}  // namespace troupe
