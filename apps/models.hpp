// The networks that `troupe train` knows.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/troupe.hpp"

namespace troupe {

// Images to logits f32 [N,10].
class ImageModel : public nn::Module {
 public:
  using Module::Module;
  virtual ~ImageModel() = default;
  virtual Output operator()(Output images) = 0;
  // What training makes small: f32 []. The mean cross-entropy with labels i64 [N], unless told.
  virtual Output loss(Output images, Output labels) {
    return mean(softmax_cross_entropy((*this)(images), labels));
  }
};

// mnist-conv with its layers in the open, for those who place them one by one.
struct MnistConv final : ImageModel {
  explicit MnistConv(Graph& g) : ImageModel(g.scope("conv")) {}
  nn::Conv2d c1{*this, "c1", 1, 32, 5}, c2{*this, "c2", 32, 64, 5};
  nn::MaxPool pool{2};
  nn::Linear hidden{*this, "hidden", 7 * 7 * 64, 512}, out{*this, "out", 512, 10};
  Output operator()(Output x) override {
    return out(relu(hidden(pool(relu(c2(pool(relu(c1(x)))))))));
  }
};

// mnist-softmax: one linear layer. mnist-mlp: 784-512-512-10 with relu. mnist-conv: two 5x5
// convolutions of 32 and 64 channels with 2x2 pooling, 512 hidden units (LeNet's shape).
// mnist-moe: experts.hpp.
// cifar-softmax: one linear layer over 32x32x3; cifar-resnet20: resnet.hpp.
// not_found with near names for anything else.
Expected<std::unique_ptr<ImageModel>> make_model(std::string_view name, Graph& graph);

// Those, and char-lstm, which learns from text (char_lstm.hpp).
std::vector<std::string> model_names();
// not_found with near names for anything but these.
Status known_model(std::string_view name);

}  // namespace troupe
