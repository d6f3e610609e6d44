// mnist-moe: which expert an image picks, and what it learns.
#include <doctest/doctest.h>

#include <set>

#include "apps/experts.hpp"

using namespace troupe;

TEST_CASE("a mixture of experts learns digits, and they pick different experts") {
  Graph g(3);
  auto [images, labels] = data::digits(2'000).shuffle(2'000).batch(50).repeat().outputs(g);
  MixtureOfExperts net(g);
  Output right = mean(cast<float>(argmax(net(images), 1) == labels));
  Op train = optim::Adam{.lr = 3e-3}.minimize(net.loss(images, labels));
  Output chosen = net.choice(images);
  Cluster cluster;
  cluster.threads = 1;
  Session s(g, cluster);
  s.init();
  auto step = s.compile({right}, {train});
  for (int i = 0; i < 150; ++i) step.run(std::vector<Tensor>{});
  float share = 0;
  std::set<std::int64_t> experts;
  auto evaluate = s.compile({right, chosen});
  for (int i = 0; i < 10; ++i) {
    const auto out = evaluate.run(std::vector<Tensor>{});
    share += out[0].item<float>() / 10;
    for (std::int64_t k : out[1].span<std::int64_t>()) experts.insert(k);
  }
  CHECK(share >= 0.8f);
  CHECK(experts.size() >= 3);
}

TEST_CASE("an expert that no image picks learns nothing") {
  Graph g;
  Output images = placeholder<float>(g, {-1, 784}, "images");
  MixtureOfExperts net(g);
  Output loss = sum(net(images));
  Op train = optim::Sgd{.lr = 0.1}.minimize(loss);
  Output chosen = net.choice(images);
  Cluster cluster;
  cluster.threads = 1;
  Session s(g, cluster);
  s.init();
  std::vector<float> pixels(784);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = float(i % 7) / 7;
  const Tensor one = Tensor::of<float>({1, 784}, pixels);
  const auto before = s.try_variables().value();
  const std::int64_t expert = s.run({chosen}, {}, {{images, one}})[0].span<std::int64_t>()[0];
  s.run({}, {train}, {{images, one}});
  const auto after = s.try_variables().value();
  for (std::size_t v = 0; v < before.size(); ++v) {
    const std::string& name = before[v].first;
    CAPTURE(name);
    if (name.find("expert") == std::string::npos) continue;
    const bool picked = name.find("expert" + std::to_string(expert)) != std::string::npos;
    // Where relu lets nothing through, not even what it was made of.
    if (!picked || name.find("/out/") != std::string::npos)
      CHECK(Tensor::same(before[v].second, after[v].second) == !picked);
  }
}
