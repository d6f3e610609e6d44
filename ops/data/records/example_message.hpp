// tf.Example messages (protocol buffers):
//
//   Example   { Features features = 1; }
//   Features  { map<string, Feature> feature = 1; }
//   Feature   { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2;
//                            Int64List int64_list = 3; } }
//   BytesList { repeated bytes value = 1; }
//   FloatList { repeated float value = 1; }      packed or not
//   Int64List { repeated int64 value = 1; }      packed or not
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tensor.hpp"
#include "ops/data/decoding.hpp"
#include "ops/data/source.hpp"

namespace troupe {

// Parses features of messages into tensors. Immutable.
class ExampleMessages {
 public:
  // invalid_argument for an impossible feature: a dtype or shape that is not supported, or a
  // default that does not fit.
  static Expected<ExampleMessages> make(std::vector<data::Feature> features);
  ExampleMessages(ExampleMessages&&) = default;

  const Signature& signature() const { return signature_; }  // one component per feature
  // data_loss for a malformed message. Also, with the name of the feature, for one that is missing,
  // has another kind or length, or has a number out of the dtype's range.
  Expected<std::vector<Tensor>> parse(std::string_view message) const;

 private:
  explicit ExampleMessages(std::vector<data::Feature> features);

  std::vector<data::Feature> features_;
  Signature signature_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_name_;  // views of features_
};

}  // namespace troupe
