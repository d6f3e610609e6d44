// AudioSummary: sound.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "ops/kernels/summary/summary.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status audio_rank(const std::string& shape) {
  return invalid_argument("x is [batch,frames] or [batch,frames,channels], not " + shape);
}

Status audio_summary_shape(InferenceContext& c) {
  if (c.shape(0).known_rank() && c.shape(0).rank() != 2 && c.shape(0).rank() != 3)
    return audio_rank(c.shape(0).text());
  TROUPE_TRY(check_max_outputs(c));
  TROUPE_TRY(detail::encode_wav({}, c.float_attr("sample_rate"), 1).status());
  return tagged_summary_shape(c);
}

template <class T>
struct AudioSummary final : Kernel {
  explicit AudioSummary(const KernelSpec& s)
      : tag(s.string_attr("tag")),
        rate(s.float_attr("sample_rate")),
        most(s.int_attr("max_outputs")) {}

  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Shape& shape = x.shape();
    if (shape.rank() != 2 && shape.rank() != 3) return audio_rank(shape.text());
    const std::int64_t channels = shape.rank() == 3 ? shape[2] : 1;
    const std::int64_t size = shape.elements(1, shape.rank());
    detail::SummaryBytes summary;
    std::vector<float> samples;
    for (std::int64_t i = 0; i < std::min(most, shape[0]); ++i) {
      const T* from = x.data<T>() + i * size;
      samples.assign(std::size_t(size), 0.0f);
      for (std::size_t k = 0; k < samples.size(); ++k) samples[k] = float(from[k]);
      TROUPE_TRY(const std::string wav, detail::encode_wav(samples, rate, channels));
      summary.add_audio(detail::numbered_tag(tag, "audio", i, most), rate, channels, shape[1], wav);
    }
    return set_summary(ctx, std::move(summary));
  }

  std::string tag;
  double rate;
  std::int64_t most;
};

}  // namespace

TROUPE_OPS(audio_summary) {
  r.add({.name = "AudioSummary",
         .in = {"x"},
         .out = {"summary: string"},
         .types = kFloats,
         .attrs = {"tag: string", "sample_rate: float", "max_outputs: int = 3"},
         .shape = audio_summary_shape,
         .no_gradient = kNoSummaryGradient,
         .doc = "A serialized Summary protocol buffer with the first `max_outputs` sounds of x, "
                "[batch,frames] or [batch,frames,channels] in [-1,1], as 16-bit WAV. `sample_rate` "
                "is in hertz. The tags are tag/audio/0, tag/audio/1..., or tag/audio if "
                "max_outputs is 1. Samples out of range are clipped; NaN is silence."})
      .cpu(typed_kernel<AudioSummary, Floats>);
}
