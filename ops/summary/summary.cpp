#include "ops/summary/summary.hpp"

#include <fmt/core.h>

#include <map>
#include <set>

#include "ops/api/constant.hpp"
#include "ops/api/node.hpp"
#include "ops/optim/clip.hpp"

namespace troupe::summary {
namespace {

std::string tag_in_scope(const Output& x, std::string_view what, std::string_view name,
                         const Site& site) {
  check_given(fmt::format("summary::{}: x", what), x, site);
  if (name.empty())
    throw Error(invalid_argument(fmt::format("summary::{}: the name is empty", what)).at(site));
  return x.graph().scope_prefix() + std::string(name);
}

bool makes_summary(const NodeDef& node) {
  static const std::set<std::string_view> ops = {"AudioSummary", "HistogramSummary", "ImageSummary",
                                                 "ScalarSummary", "TextSummary"};
  return ops.contains(node.op);
}

// The tags of what such a node makes, but for numbers behind them; of another node none.
std::vector<std::string> tags_of(const NodeDef& node) {
  if (!makes_summary(node)) return {};
  if (const auto at = node.attrs.find("tags"); at != node.attrs.end())
    return *at->second.get<std::vector<std::string>>();
  const char* kind = node.op == "ImageSummary"   ? "/image"
                     : node.op == "AudioSummary" ? "/audio"
                                                 : "";
  return {*node.attrs.find("tag")->second.get<std::string>() + kind};
}

// Where each of these tags is made, once.
void check_tags(const std::vector<Output>& summaries, const Site& site) {
  std::map<std::string, const NodeDef*> made;
  for (const Output& one : summaries) {
    const NodeDef& node = one.graph().node(one.node());
    for (const std::string& tag : tags_of(node)) {
      const auto [at, added] = made.emplace(tag, &node);
      if (added || at->second == &node) continue;
      throw Error(already_exists(fmt::format("the summaries '{}' and '{}' both have the tag '{}'",
                                             at->second->name, node.name, tag))
                      .at(site));
    }
  }
}

}  // namespace

Output scalar(std::string_view name, Output x, Site site) {
  std::string tag = tag_in_scope(x, "scalar", name, site);
  return scalar_summary(x, {std::move(tag)}, std::move(site));
}

Output histogram(std::string_view name, Output x, Site site) {
  std::string tag = tag_in_scope(x, "histogram", name, site);
  return histogram_summary(x, std::move(tag), std::move(site));
}

Output image(std::string_view name, Output x, const ImageSummaryOptions& options, Site site) {
  std::string tag = tag_in_scope(x, "image", name, site);
  return image_summary(x, std::move(tag), options, std::move(site));
}

Output audio(std::string_view name, Output x, double sample_rate,
             const AudioSummaryOptions& options, Site site) {
  std::string tag = tag_in_scope(x, "audio", name, site);
  return audio_summary(x, std::move(tag), sample_rate, options, std::move(site));
}

Output text(std::string_view name, Output x, Site site) {
  std::string tag = tag_in_scope(x, "text", name, site);
  return text_summary(x, std::move(tag), std::move(site));
}

Output text(GraphBuilder& g, std::string_view name, std::string markdown, Site site) {
  return text(name, constant(g, Tensor::scalar(std::string_view(markdown)), site), site);
}

Output parameters(const std::vector<Variable>& variables, Site site) {
  std::vector<Output> all;
  for (const Variable& v : distinct(variables, site)) {
    all.push_back(histogram_summary(v.value(), "parameters/" + v.name(), site));
    all.push_back(scalar_summary(euclidean_norm(v.value(), site), {"norms/" + v.name()}, site));
  }
  if (all.empty())
    throw Error(invalid_argument("summary::parameters: there are no variables").at(site));
  return merge(all, std::move(site));
}

Output parameters(GraphBuilder& g, Site site) {
  return parameters(trainable_variables(g), std::move(site));
}

Output gradients(const optim::Gradients& gradients, Site site) {
  optim::check_gradients("summary::gradients", gradients, site);
  std::vector<Output> all;
  for (const optim::Gradient& each : gradients.each)
    all.push_back(histogram_summary(each.value, "gradients/" + each.variable.name(), site));
  all.push_back(scalar_summary(optim::global_norm(gradients, site), {"norms/gradients"}, site));
  return merge(all, std::move(site));
}

Output merge(const std::vector<Output>& summaries, Site site) {
  if (summaries.empty())
    throw Error(invalid_argument("summary::merge: there are no summaries").at(site));
  for (const Output& one : summaries) check_given("summary::merge: a summary", one, site);
  check_tags(summaries, site);
  return merge_summary(summaries, std::move(site));
}

Output merge_all(GraphBuilder& g, Site site) {
  GraphBuilder& root = g.root();
  std::vector<Output> all;
  for (NodeId id = 0; id < root.def().nodes.size(); ++id)
    if (makes_summary(root.def().nodes[id])) all.emplace_back(&root, Port{id, 0});
  if (all.empty())
    throw Error(failed_precondition("summary::merge_all: the graph has no summaries").at(site));
  return merge(all, std::move(site));
}

}  // namespace troupe::summary
