// A mixture of experts over images of digits, of which each picks one (Shazeer et al., 2017; one
// expert for each example as in Fedus et al., 2022).
#pragma once

#include <deque>

#include "apps/models.hpp"

namespace troupe {

// mnist-moe: 64 features, a gate that says how likely each of four experts is, and for each image
// the most likely expert alone, a network of 32 hidden units, whose logits count as much as it is
// likely. The others compute nothing for the image: a Case in a loop over the batch. Training keeps
// the experts busy alike.
class MixtureOfExperts final : public ImageModel {
 public:
  static constexpr std::int64_t kExperts = 4;

  explicit MixtureOfExperts(Graph& g);
  Output operator()(Output images) override { return picked(gated(images)); }
  Output loss(Output images, Output labels) override;
  // The expert of each image: i64 [N].
  Output choice(Output images) const { return gated(images).choice; }

 private:
  struct Expert : nn::Module {
    Expert(nn::Module& parent, std::string_view name) : Module(parent, name) {}
    nn::Linear hidden{*this, "hidden", 64, 32}, out{*this, "out", 32, 10};
    Output operator()(Output x) const { return out(relu(hidden(x))); }
  };

  struct Gated {
    Output features;  // f32 [N,64]
    Output likely;    // f32 [N,experts]
    Output choice;    // i64 [N]
  };
  Gated gated(Output images) const;
  Output picked(const Gated& images) const;

  nn::Linear features_, gate_;
  std::deque<Expert> experts_;
};

}  // namespace troupe
