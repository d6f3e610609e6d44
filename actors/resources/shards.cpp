#include "actors/resources/shards.hpp"

#include <fmt/format.h>

#include <new>

#include "serialization/checkpoint.hpp"

namespace troupe {
namespace {

template <class T>
Expected<T> attr_of(const NodeDef& node, const char* name) {
  auto it = node.attrs.find(name);
  if (it == node.attrs.end() || !it->second.get<T>())
    return invalid_argument(fmt::format("node '{}' has no `{}`", node.name, name));
  return *it->second.get<T>();
}

Expected<std::string> text_of(const Tensor& value) {
  if (value.dtype() == DType::string && value.rank() == 0) return value.item<std::string>();
  return invalid_argument(fmt::format("the folder or its token is {}{}, not one string",
                                      dtype_name(value.dtype()), value.shape().text()));
}

}  // namespace

// External::verb of the ops in ops/kernels/io/checkpoint_shard.cpp.
Expected<std::vector<Tensor>> Shards::perform(ResourceRequest& request) try {
  const std::string& verb = request.external().verb;
  if (verb != "save" && verb != "restore")
    return unimplemented("checkpoints cannot be asked to '" + verb + "'");
  std::vector<Tensor> answers;
  for (const Item& item : request.items) {
    if (verb == "save") {
      TROUPE_TRY(Tensor files, write(item));
      answers.push_back(std::move(files));
      continue;
    }
    TROUPE_TRY(std::vector<Tensor> read, restore(item));
    answers.insert(answers.end(), read.begin(), read.end());
  }
  return answers;
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for a checkpoint");
}

Expected<Tensor> Shards::write(const Item& item) {
  const NodeDef& node = item.node->def;
  TROUPE_TRY(const auto names, attr_of<std::vector<std::string>>(node, "names"));
  TROUPE_TRY(const std::string file, attr_of<std::string>(node, "file"));
  TROUPE_TRY(const bool refuse_nan, attr_of<bool>(node, "refuse_nan"));
  if (item.operands.size() != names.size() + 2)
    return invalid_argument(fmt::format("node '{}' saves {} names and was given {} tensors",
                                        node.name, names.size(), item.operands.size()));
  TROUPE_TRY(const std::string folder, text_of(item.operands[0]));
  TROUPE_TRY(const std::string token, text_of(item.operands[1]));
  TROUPE_TRY(check_draft(files_, folder, token));
  std::map<std::string, Tensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Tensor& value = item.operands[i + 2];
    if (refuse_nan && value.has_nan())
      return out_of_range(fmt::format("variable '{}' has a NaN", names[i]));
    if (!tensors.emplace(names[i], value).second)
      return invalid_argument(
          fmt::format("node '{}' saves two tensors as '{}'", node.name, names[i]));
  }
  const std::string begin = fmt::format("{}-{:08x}{}", file, std::uint32_t(unique_), written_++);
  TROUPE_TRY(const auto written, write_shards(files_, folder, begin, tensors));
  TROUPE_TRY(const std::string text, troupe::text_of(written));
  return Tensor::scalar(text);
}

Expected<std::vector<Tensor>> Shards::restore(const Item& item) const {
  const NodeDef& node = item.node->def;
  TROUPE_TRY(const std::string file, attr_of<std::string>(node, "file"));
  TROUPE_TRY(const auto names, attr_of<std::vector<std::string>>(node, "names"));
  TROUPE_TRY(const auto hashes, attr_of<std::vector<std::string>>(node, "sha256"));
  if (hashes.size() != names.size() || node.out_types.size() != names.size() ||
      node.out_shapes.size() != names.size())
    return invalid_argument(fmt::format("node '{}' has lists of different lengths", node.name));
  std::vector<StoredTensor> wanted;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!node.out_shapes[i].fully_known())
      return invalid_argument(fmt::format("node '{}' has an unknown shape", node.name));
    wanted.push_back({names[i], node.out_types[i], node.out_shapes[i].shape(), hashes[i]});
  }
  return read_stored(files_, file, wanted);
}

ResourceKind shards_kind() {
  return {.name = "shards",
          .make_with_files =
              [](FileSystem& files, std::uint64_t unique) {
                return std::make_unique<Shards>(files, unique);
              },
          .own_thread = true};
}

}  // namespace troupe
