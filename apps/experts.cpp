#include "apps/experts.hpp"

#include <fmt/format.h>

namespace troupe {

MixtureOfExperts::MixtureOfExperts(Graph& g)
    : ImageModel(g.scope("moe")),
      features_(*this, "features", 784, 64),
      gate_(*this, "gate", 64, kExperts) {
  for (std::int64_t k = 0; k < kExperts; ++k)
    experts_.emplace_back(*this, fmt::format("expert{}", k));
}

MixtureOfExperts::Gated MixtureOfExperts::gated(Output images) const {
  Output features = relu(features_(images));
  Output likely = softmax(gate_(features));
  return {features, likely, argmax(likely, 1)};
}

Output MixtureOfExperts::picked(const Gated& images) const {
  return map(std::tuple{images.features, images.likely, images.choice},
             [&](Output features, Output likely, Output choice) {
               std::vector<std::function<Output()>> experts;
               for (const Expert& expert : experts_)
                 experts.emplace_back([&] { return expert(reshape(features, {1, 64})); });
               return reshape(switch_case(choice, experts) * gather(likely, choice), {10});
             });
}

// Fedus et al., 2022, (4): least, 1, where each expert is picked as often as the others.
Output MixtureOfExperts::loss(Output images, Output labels) {
  const Gated of = gated(images);
  Output share = mean(one_hot(of.choice, kExperts), {.axes = {0}});
  Output balance = sum(share * mean(of.likely, {.axes = {0}})) * float(kExperts);
  return mean(softmax_cross_entropy(picked(of), labels)) + balance * 0.1f;
}

}  // namespace troupe
