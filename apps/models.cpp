#include "apps/models.hpp"

#include <algorithm>

#include "apps/experts.hpp"
#include "apps/resnet.hpp"
#include "core/name.hpp"

namespace troupe {
namespace {

struct Softmax final : ImageModel {
  explicit Softmax(Graph& g) : ImageModel(g.scope("softmax")) {}
  nn::Linear out{*this, "out", 784, 10};
  Output operator()(Output x) override { return out(x); }
};

struct Mlp final : ImageModel {
  explicit Mlp(Graph& g) : ImageModel(g.scope("mlp")) {}
  nn::Linear a{*this, "a", 784, 512}, b{*this, "b", 512, 512}, out{*this, "out", 512, 10};
  Output operator()(Output x) override { return out(relu(b(relu(a(x))))); }
};

struct CifarSoftmax final : ImageModel {
  explicit CifarSoftmax(Graph& g) : ImageModel(g.scope("softmax")) {}
  nn::Linear out{*this, "out", 32 * 32 * 3, 10};
  Output operator()(Output x) override { return out(x); }
};

}  // namespace

std::vector<std::string> model_names() {
  return {"mnist-softmax", "mnist-mlp",      "mnist-conv", "mnist-moe",
          "cifar-softmax", "cifar-resnet20", "char-lstm"};
}

Expected<std::unique_ptr<ImageModel>> make_model(std::string_view name, Graph& graph) {
  if (name == "mnist-softmax") return std::unique_ptr<ImageModel>(new Softmax(graph));
  if (name == "mnist-mlp") return std::unique_ptr<ImageModel>(new Mlp(graph));
  if (name == "mnist-conv") return std::unique_ptr<ImageModel>(new MnistConv(graph));
  if (name == "mnist-moe") return std::unique_ptr<ImageModel>(new MixtureOfExperts(graph));
  if (name == "cifar-softmax") return std::unique_ptr<ImageModel>(new CifarSoftmax(graph));
  if (name == "cifar-resnet20") return std::unique_ptr<ImageModel>(new ResNet20(graph));
  TROUPE_TRY(known_model(name));
  return invalid_argument("'" + std::string(name) + "' is no network for pictures");
}

Status known_model(std::string_view name) {
  const auto names = model_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return ok_status();
  std::string message = "there is no example '" + std::string(name) + "'; known are";
  for (const std::string& known : names) message += " " + known;
  // The beginning of a name stands for all that begin so.
  std::vector<std::string> near;
  for (const std::string& known : names)
    if (!name.empty() && known.starts_with(name)) near.push_back(known);
  if (near.empty()) near = near_names(name, names, 1);
  for (std::size_t i = 0; i < near.size(); ++i)
    message += (i == 0 ? "; did you mean " : i + 1 < near.size() ? ", " : " or ") + near[i];
  if (!near.empty()) message += "?";
  return not_found(message);
}

}  // namespace troupe
