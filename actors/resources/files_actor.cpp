#include "troupe/actors/resources/files_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "troupe/actors/spawn.hpp"
#include "troupe/serialization/safetensors.hpp"

namespace troupe {
namespace {

Expected<std::vector<std::string>> names_of(const NodeDef& node) {
  auto it = node.attrs.find("names");
  if (it == node.attrs.end() || !it->second.get<std::vector<std::string>>())
    return invalid_argument("node '" + node.name + "' has no list of names");
  return *it->second.get<std::vector<std::string>>();
}

// What was fed for the prefix may have any shape when its node's is not known.
Expected<std::string> path_of(const Tensor& prefix) {
  if (prefix.dtype() != DType::string || prefix.rank() != 0)
    return invalid_argument(std::string("prefix is ") + std::string(dtype_name(prefix.dtype())) +
                            prefix.shape().text() + ", not one string");
  return prefix.item<std::string>() + ".safetensors";
}

Expected<std::vector<Tensor>> save(const NodeDef& node, const std::vector<Tensor>& inputs) {
  TROUPE_TRY(std::vector<std::string> names, names_of(node));
  if (inputs.size() != names.size() + 1)
    return invalid_argument("node '" + node.name + "' saves " + std::to_string(names.size()) +
                            " names and was given " + std::to_string(inputs.size() - 1));
  Safetensors content;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!content.tensors.emplace(names[i], inputs[i + 1]).second)
      return invalid_argument("node '" + node.name + "' saves two tensors as '" + names[i] + "'");
  TROUPE_TRY(std::string path, path_of(inputs[0]));
  TROUPE_TRY(write_safetensors(path, content).in("writing '" + path + "'"));
  return std::vector<Tensor>{};
}

Expected<std::vector<Tensor>> restore(const NodeDef& node, const std::vector<Tensor>& inputs) {
  TROUPE_TRY(std::vector<std::string> names, names_of(node));
  TROUPE_TRY(std::string path, path_of(inputs[0]));
  TROUPE_TRY(Safetensors content, read_safetensors(path));
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto found = content.tensors.find(names[i]);
    if (found == content.tensors.end())
      return not_found("'" + path + "' has no tensor '" + names[i] + "'");
    if (i < node.out_types.size() && found->second.dtype() != node.out_types[i])
      return invalid_argument("'" + names[i] + "' in '" + path + "' is " +
                              std::string(dtype_name(found->second.dtype())) + ", not " +
                              std::string(dtype_name(node.out_types[i])));
    if (i < node.out_shapes.size() && !node.out_shapes[i].accepts(found->second.shape()))
      return invalid_argument("'" + names[i] + "' in '" + path + "' has shape " +
                              found->second.shape().text() + ", not " + node.out_shapes[i].text());
    outputs.push_back(found->second);
  }
  return outputs;
}

// External::verb of the ops in ops/kernels/save_restore.cpp.
Expected<std::vector<Tensor>> carry_out(const ResourceRequest& request) {
  const ResourceRequest::Item& item = request.items.front();
  const std::string& verb = request.external().verb;
  if (verb == "save") return save(item.node->def, item.operands);
  if (verb == "restore") return restore(item.node->def, item.operands);
  return unimplemented("files cannot be asked to '" + verb + "'");
}

ServiceActor::behavior_type files_behavior(ServiceActor::pointer self) {
  return {[self](const ResourceCall& message) {
    auto result = carry_out(message.request);
    ResourceAnswer answer{message.request.attempt.id, message.request.id, result.status()};
    if (result.ok()) answer.values = std::move(result).value();
    self->send(message.reply_to, std::move(answer));
  }};
}

}  // namespace

ServiceActor spawn_files(caf::actor_system& system) {
  return spawn_actor<ServiceActor>(system, "files", files_behavior);
}

}  // namespace troupe
