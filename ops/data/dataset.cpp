#include "ops/data/dataset.hpp"

#include "core/hash.hpp"
#include "graph/node_query.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

template <class T>
Expected<T> attr(const NodeDef& def, std::string_view name) {
  auto found = def.attrs.find(name);
  const T* value = found == def.attrs.end() ? nullptr : found->second.get<T>();
  if (value == nullptr)
    return invalid_argument("dataset '" + def.name + "' has no attribute '" + std::string(name) +
                            "' of the right kind");
  return *value;
}

Expected<std::string> number(const NodeDef& def, std::string_view name) {
  TROUPE_TRY(const std::int64_t value, attr<std::int64_t>(def, name));
  return std::to_string(value);
}

// The stages of a Dataset node, which are in attributes and have a fixed order.
Expected<std::vector<std::string>> stages_of_dataset(const NodeDef& def) {
  TROUPE_TRY(const std::string source, attr<std::string>(def, "source"));
  TROUPE_TRY(const std::string first, number(def, "first"));
  TROUPE_TRY(const std::int64_t limit, attr<std::int64_t>(def, "limit"));
  TROUPE_TRY(const std::string shuffle, number(def, "shuffle"));
  TROUPE_TRY(const std::int64_t seed, attr<std::int64_t>(def, "seed"));
  TROUPE_TRY(const std::string batch, number(def, "batch"));
  TROUPE_TRY(const bool drop, attr<bool>(def, "drop_remainder"));
  TROUPE_TRY(const std::string repeat, number(def, "repeat"));
  std::vector<std::string> stages;
  if (source == "digits") {
    if (limit < 1) return invalid_argument("drawn digits need a `limit`: the set has no end");
    TROUPE_TRY(const std::int64_t digits_seed, attr<std::int64_t>(def, "digits_seed"));
    stages = {"digits " + std::to_string(std::uint64_t(digits_seed)) + " " + first + " " +
              std::to_string(limit)};
  } else {
    TROUPE_TRY(const auto files, attr<std::vector<std::string>>(def, "files"));
    if (files.empty()) return invalid_argument("a pipeline needs at least one component");
    std::string idx = "idx";
    for (std::size_t i = 0; i < files.size(); ++i) idx += " ?";
    stages = {idx, "skip " + first};
    if (limit > 0) stages.push_back("take " + std::to_string(limit));
  }
  stages.push_back("shuffle " + shuffle + " " + std::to_string(std::uint64_t(seed)));
  stages.push_back("batch " + batch + (drop ? " drop" : " keep"));
  stages.push_back("repeat " + repeat);
  return stages;
}

struct Described {
  std::vector<std::string> stages, files;
  Tensor tensors;  // bytes
  Signature declared;
};

Expected<Described> describe_dataset(const NodeDef& def) {
  Described out;
  TROUPE_TRY(out.stages, stages_of_dataset(def));
  if (def.attrs.contains("files")) {
    TROUPE_TRY(out.files, attr<std::vector<std::string>>(def, "files"));
  }
  TROUPE_TRY(const auto types, attr<std::vector<DType>>(def, "types"));
  TROUPE_TRY(const auto shapes, attr<std::vector<PartialShape>>(def, "shapes"));
  for (std::size_t i = 0; i < types.size(); ++i)
    out.declared.push_back({types[i], i < shapes.size() ? shapes[i] : PartialShape::unknown()});
  return out;
}

Expected<Described> describe_pipeline(const NodeDef& def) {
  Described out;
  TROUPE_TRY(out.stages, attr<std::vector<std::string>>(def, "stages"));
  TROUPE_TRY(out.files, attr<std::vector<std::string>>(def, "files"));
  TROUPE_TRY(out.tensors, attr<Tensor>(def, "tensors"));
  if (out.tensors.dtype() != DType::string)
    return invalid_argument("dataset '" + def.name + "' has tensors that are no bytes");
  TROUPE_TRY(out.declared, pipeline_signature(out.stages));
  return out;
}

// The graph was built on the declared dtypes and shapes, so elements must have them.
Status check_declared(const NodeDef& def, const Signature& declared, const Signature& held) {
  if (may_fit(declared, held)) return ok_status();
  return invalid_argument("dataset '" + def.name + "' declares elements of " +
                          signature_text(declared) + ", but its files hold " +
                          signature_text(held));
}

}  // namespace

Expected<Pipeline> open_dataset(const NodeDef& def, OpenDataFile open, ExampleFunctions functions) {
  TROUPE_TRY(Described described,
             def.op == "DataPipeline" ? describe_pipeline(def) : describe_dataset(def));
  const Tensor& tensors = described.tensors;
  StageOpening opening(
      open, described.files,
      tensors.defined() ? tensors.span<std::string>() : std::span<const std::string>(), functions,
      hash_text(resource_name(def)));
  TROUPE_TRY(StagePtr last, open_stages(described.stages, opening));
  TROUPE_TRY(check_declared(def, described.declared, last->signature()));
  return Pipeline(std::move(last), std::move(described.declared));
}

std::vector<std::string> functions_of_dataset(const NodeDef& def) {
  const auto found = def.attrs.find("functions");
  const auto* names =
      found == def.attrs.end() ? nullptr : found->second.get<std::vector<std::string>>();
  return names ? *names : std::vector<std::string>();
}

}  // namespace troupe
