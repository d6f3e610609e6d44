// `map DTYPE SHAPE...`: applies a function of the graph to each example. The words are the types of
// its results. `map parallel N DTYPE SHAPE...`: N examples at once.
#include "ops/data/stage_kind.hpp"
#include "ops/data/stages/mapped.hpp"

namespace troupe {

namespace {

bool is_parallel(const StageText& stage) {
  return !stage.arguments.empty() && stage.arguments[0] == "parallel";
}

Expected<std::int64_t> parallel_of(const StageText& stage) {
  if (!is_parallel(stage)) return std::int64_t{1};
  TROUPE_TRY(const std::int64_t parallel, stage.number(1, 1));
  if (parallel <= kMostParallel) return parallel;
  return invalid_argument("map: " + std::to_string(parallel) + " examples at once; at most " +
                          std::to_string(kMostParallel) + " are possible");
}

Expected<Signature> signature_of_map(const StageText& stage, const std::vector<Signature>&) {
  const std::size_t first = is_parallel(stage) ? 2 : 0;
  TROUPE_TRY(stage.takes(first + 2, first + 128));
  TROUPE_TRY(parallel_of(stage));
  Signature results;
  for (std::size_t i = first; i < stage.arguments.size(); i += 2) {
    TROUPE_TRY(const DType dtype, stage.dtype(i));
    TROUPE_TRY(PartialShape shape, stage.shape(i + 1));
    results.push_back({dtype, std::move(shape)});
  }
  return results;
}

// The graph was built with the types in the words.
Expected<StagePtr> open_map(const StageText& stage, Signature results, Stages inputs,
                            StageOpening& opening) {
  TROUPE_TRY(const std::int64_t parallel, parallel_of(stage));
  TROUPE_TRY(StageOpening::Function function, opening.next_function());
  const Signature &takes = function.call->arguments(), &returns = function.call->results();
  const Signature& given = inputs[0]->signature();
  if (returns != results)
    return invalid_argument("the function of a map returns " + signature_text(returns) + ", not " +
                            signature_text(results));
  if (!may_fit(takes, given))
    return invalid_argument("the function of a map takes " + signature_text(takes) +
                            ", and examples are " + signature_text(given));
  return mapped_stage(std::move(inputs[0]), std::move(function.call), function.draws,
                      std::move(results), parallel);
}

}  // namespace

StageKind map_stage() { return {"map", 1, signature_of_map, open_map, 1}; }

}  // namespace troupe
