// VocabularyIndex: the places of texts in a list of them.
#include <fmt/core.h>

#include <string_view>
#include <unordered_map>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

using WordPlaces = std::unordered_map<std::string_view, std::int64_t>;

Expected<WordPlaces> places_of_words(const Tensor& words) {
  if (words.dtype() != DType::string || words.rank() != 1)
    return invalid_argument("words must be string[n], not " +
                            std::string(dtype_name(words.dtype())) + words.shape().text());
  WordPlaces places;
  for (std::int64_t i = 0; i < words.elements(); ++i) {
    const std::string& word = words.data<std::string>()[i];
    const auto [at, is_new] = places.emplace(word, i);
    if (!is_new)
      return invalid_argument(
          fmt::format("words {} and {} are '{}' both", at->second, i, word.substr(0, 40)));
  }
  return places;
}

Status vocabulary_index_shape(InferenceContext& c) {
  TROUPE_TRY(places_of_words(c.tensor_attr("words")));
  c.set(0, c.shape(0));
  return ok_status();
}

struct VocabularyIndex final : Kernel {
  VocabularyIndex(Tensor w, WordPlaces p, std::int64_t m)
      : words(std::move(w)), places(std::move(p)), missing(m) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, x.shape()));
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const auto at = places.find(x.data<std::string>()[i]);
      y.mutable_data<std::int64_t>()[i] = at == places.end() ? missing : at->second;
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  const Tensor words;  // of which `places` has views
  const WordPlaces places;
  const std::int64_t missing;
};
Expected<std::unique_ptr<Kernel>> make_vocabulary_index(const KernelSpec& spec) {
  const Tensor& words = spec.tensor_attr("words");
  TROUPE_TRY(WordPlaces places, places_of_words(words));
  return std::unique_ptr<Kernel>(
      new VocabularyIndex(words, std::move(places), spec.int_attr("missing")));
}

}  // namespace

TROUPE_OPS(vocabulary_index) {
  r.add({.name = "VocabularyIndex",
         .in = {"x: string"},
         .out = {"y: i64"},
         .attrs = {"words: tensor", "missing: int = -1"},
         .shape = vocabulary_index_shape,
         .no_gradient = "text",
         .doc = "The index of each string of x in `words`, a vector of distinct strings; `missing` "
                "if it is not among them. Gather is the inverse."})
      .cpu(make_vocabulary_index);
}
