#include "tests/ops/golden/golden_functions.hpp"

#include <algorithm>
#include <map>

namespace troupe::test {
namespace {

using Call = GoldenCall;
using Ys = std::vector<Output>;

// Options that stand in the file, as members of the same names.
template <class Options>
Options stepping(const Call& c) {
  Options o;
  const GoldenAttrs& a = c.attrs;
  o.padding = a.text("padding");
  if constexpr (requires { o.stride; })
    o.stride = a.integer("stride");
  else
    o.strides = a.integers("strides");
  if constexpr (requires { o.explicit_paddings; })
    o.explicit_paddings = a.integers("explicit_paddings");
  if constexpr (requires { o.dilation; })
    o.dilation = a.integer("dilation");
  else if constexpr (requires { o.dilations; })
    o.dilations = a.integers("dilations");
  if constexpr (requires { o.groups; })
    if (a.has("groups")) o.groups = a.integer("groups");
  return o;
}
NormOptions norm(const Call& c) { return {.epsilon = c.attrs.number("epsilon")}; }

std::vector<std::pair<std::int64_t, std::int64_t>> sides(const Call& c, std::string_view name) {
  const auto flat = c.attrs.integers(name);
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (std::size_t i = 0; i + 1 < flat.size(); i += 2) all.emplace_back(flat[i], flat[i + 1]);
  return all;
}

// Vectors are compared up to their signs: u diag(1 / (1 + s)) v^T.
Ys svd_of(const Call& c) {
  const auto f = svd(c.x[0]);
  return {f.s, batch_mat_mul(f.u / (1 + expand_dims(f.s, -2)), f.v, {.transpose_b = true})};
}
Ys eig_of(const Call& c) {
  const auto f = self_adjoint_eig(c.x[0]);
  return {f.e, batch_mat_mul(f.v / (1 + square(expand_dims(f.e, -2))), f.v, {.transpose_b = true})};
}

Ys einsum_of(const Call& c) {
  std::string equation = c.attrs.text("equation");  // whose commas would end it
  std::replace(equation.begin(), equation.end(), '&', ',');
  return {einsum(equation, c.x)};
}

Ys response_of(const Call& c) {
  const GoldenAttrs& a = c.attrs;
  return {local_response_norm(c.x[0], {.radius = a.integer("radius"),
                                       .bias = a.number("bias"),
                                       .alpha = a.number("alpha"),
                                       .beta = a.number("beta")})};
}

Ys attention_of(const Call& c) {
  nn::AttentionOptions options;
  options.causal = c.attrs.flag("causal");
  if (c.x.size() == 4) options.mask = c.x[3];
  return {nn::scaled_dot_product_attention(c.x[0], c.x[1], c.x[2], options)};
}
// Step by step, with a cache: what causal attention computes of the whole.
Ys cached_attention(const Call& c) {
  const PartialShape& q = c.x[0].shape();
  auto cache = nn::KeyValueCache::empty(c.g, {constant<std::int64_t>(c.g, q[0])}, q[1], q[2],
                                        c.x[2].shape()[2], c.dtype);
  Ys ys;
  for (std::int64_t i = 0; i < q[1]; ++i) {
    const auto step = [&](const Output& all) { return slice(all, {0, i, 0}, {-1, 1, -1}); };
    const auto next =
        nn::scaled_dot_product_attention(step(c.x[0]), step(c.x[1]), step(c.x[2]), cache);
    cache = next.cache;
    ys.push_back(next.y);
  }
  return {concat(ys, 1)};
}

using Table = std::map<std::string_view, GoldenFunction>;

void add_math(Table& all) {
  all["log_sum_exp"] = [](const Call& c) -> Ys {
    return {log_sum_exp(
        c.x[0], {.axes = c.attrs.integers("axes"), .keep_dims = c.attrs.flag("keep_dims")})};
  };
  all["clip_by_value"] = [](const Call& c) -> Ys {
    return {clip_by_value(c.x[0], c.x[1], c.x[2])};
  };
  all["einsum"] = einsum_of;
  all["Svd"] = svd_of;
  all["SelfAdjointEig"] = eig_of;
}

void add_arrays(Table& all) {
  all["boolean_mask"] = [](const Call& c) -> Ys { return {boolean_mask(c.x[0], c.x[1])}; };
  all["diag"] = [](const Call& c) -> Ys { return {diag(c.x[0])}; };
  all["eye"] = [](const Call& c) -> Ys {
    return {eye(c.g, c.attrs.integer("rows"), c.attrs.integer("columns"), c.dtype)};
  };
  all["tril"] = [](const Call& c) -> Ys { return {tril(c.x[0])}; };
  all["triu"] = [](const Call& c) -> Ys { return {triu(c.x[0])}; };
  all["linspace"] = [](const Call& c) -> Ys {
    const GoldenAttrs& a = c.attrs;
    return {linspace(c.g, a.number("start"), a.number("stop"), a.integer("count"), c.dtype)};
  };
  all["meshgrid"] = [](const Call& c) { return meshgrid(c.x, c.attrs.text("indexing")); };
  all["mirror_pad"] = [](const Call& c) -> Ys {
    return {mirror_pad(c.x[0], sides(c, "paddings"), c.attrs.text("mode"))};
  };
  all["sequence_mask"] = [](const Call& c) -> Ys {
    return {sequence_mask(c.x[0], c.attrs.integer("size"))};
  };
  all["space_to_depth"] = [](const Call& c) -> Ys {
    return {space_to_depth(c.x[0], c.attrs.integer("block"))};
  };
  all["depth_to_space"] = [](const Call& c) -> Ys {
    return {depth_to_space(c.x[0], c.attrs.integer("block"))};
  };
  all["space_to_batch"] = [](const Call& c) -> Ys {
    return {space_to_batch(c.x[0], c.attrs.integers("block"), sides(c, "paddings"))};
  };
  all["batch_to_space"] = [](const Call& c) -> Ys {
    return {batch_to_space(c.x[0], c.attrs.integers("block"), sides(c, "crops"))};
  };
  all["segment_sqrt_n"] = [](const Call& c) -> Ys { return {segment_sqrt_n(c.x[0], c.x[1])}; };
  all["unsorted_segment_sqrt_n"] = [](const Call& c) -> Ys {
    return {unsorted_segment_sqrt_n(c.x[0], c.x[1], c.x[2])};
  };
}

void add_windows(Table& all) {
  all["conv1d"] = [](const Call& c) -> Ys {
    return {conv1d(c.x[0], c.x[1], stepping<Conv1dOptions>(c))};
  };
  all["conv3d"] = [](const Call& c) -> Ys {
    return {conv3d(c.x[0], c.x[1], stepping<Conv3dOptions>(c))};
  };
  all["conv1d_transpose"] = [](const Call& c) -> Ys {
    return {conv1d_transpose(c.x[0], c.x[1], stepping<ConvTranspose1dOptions>(c))};
  };
  all["conv2d_transpose"] = [](const Call& c) -> Ys {
    return {conv2d_transpose(c.x[0], c.x[1], stepping<ConvTranspose2dOptions>(c))};
  };
  all["conv3d_transpose"] = [](const Call& c) -> Ys {
    return {conv3d_transpose(c.x[0], c.x[1], stepping<ConvTranspose3dOptions>(c))};
  };
  all["depthwise_conv2d"] = [](const Call& c) -> Ys {
    return {depthwise_conv2d(c.x[0], c.x[1], stepping<DepthwiseConv2dOptions>(c))};
  };
  all["max_pool1d"] = [](const Call& c) -> Ys {
    return {max_pool1d(c.x[0], c.attrs.integer("size"), stepping<Pool1dOptions>(c))};
  };
  all["avg_pool1d"] = [](const Call& c) -> Ys {
    return {avg_pool1d(c.x[0], c.attrs.integer("size"), stepping<Pool1dOptions>(c))};
  };
  all["max_pool3d"] = [](const Call& c) -> Ys {
    return {max_pool3d(c.x[0], c.attrs.integers("size"), stepping<Pool3dOptions>(c))};
  };
  all["avg_pool3d"] = [](const Call& c) -> Ys {
    return {avg_pool3d(c.x[0], c.attrs.integers("size"), stepping<Pool3dOptions>(c))};
  };
}

void add_networks(Table& all) {
  all["gelu"] = [](const Call& c) -> Ys { return {gelu(c.x[0])}; };
  all["silu"] = [](const Call& c) -> Ys { return {silu(c.x[0])}; };
  all["leaky_relu"] = [](const Call& c) -> Ys { return {leaky_relu(c.x[0])}; };
  all["selu"] = [](const Call& c) -> Ys { return {selu(c.x[0])}; };
  all["local_response_norm"] = response_of;
  all["group_norm"] = [](const Call& c) -> Ys {
    return {group_norm(c.x[0], c.x[1], c.x[2], c.attrs.integer("groups"), norm(c))};
  };
  all["instance_norm"] = [](const Call& c) -> Ys {
    return {instance_norm(c.x[0], c.x[1], c.x[2], norm(c))};
  };
  all["rms_norm"] = [](const Call& c) -> Ys { return {rms_norm(c.x[0], c.x[1], norm(c))}; };
  all["crop"] = [](const Call& c) -> Ys {
    const GoldenAttrs& a = c.attrs;
    return {
        crop(c.x[0], a.integer("top"), a.integer("left"), a.integer("height"), a.integer("width"))};
  };
  all["crop_and_resize"] = [](const Call& c) -> Ys {
    const GoldenAttrs& a = c.attrs;
    return {crop_and_resize(c.x[0], c.x[1], c.x[2], a.integer("height"), a.integer("width"),
                            {.outside = a.number("outside")})};
  };
  all["scaled_dot_product_attention"] = attention_of;
  all["KeyValueCache"] = cached_attention;
}

void add_losses(Table& all) {
  all["sigmoid_cross_entropy"] = [](const Call& c) -> Ys {
    return {sigmoid_cross_entropy(c.x[0], c.x[1])};
  };
  all["mean_squared_error"] = [](const Call& c) -> Ys {
    return {mean_squared_error(c.x[0], c.x[1])};
  };
  all["huber"] = [](const Call& c) -> Ys {
    return {huber(c.x[0], c.x[1], c.attrs.number("delta"))};
  };
  all["hinge"] = [](const Call& c) -> Ys { return {hinge(c.x[0], c.x[1])}; };
  all["cosine_distance"] = [](const Call& c) -> Ys {
    return {cosine_distance(c.x[0], c.x[1], c.attrs.integer("axis"))};
  };
}

}  // namespace

GoldenFunction golden_function(std::string_view name) {
  static const Table all = [] {
    Table made;
    add_math(made);
    add_arrays(made);
    add_windows(made);
    add_networks(made);
    add_losses(made);
    return made;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace troupe::test
