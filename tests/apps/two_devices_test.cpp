// mnist-conv cut between the CPU and a device whose work is late and whose memory the host cannot
// read: the bits are the CPU's.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "apps/models.hpp"
#include "tests/same_bits.hpp"

using namespace troupe;
using troupe::test::same_bits;

namespace {

constexpr int kBatch = 4, kSteps = 3;

// The layers by turns on `there` and on the CPU, which keeps data, variables and updates.
Output logits_over(MnistConv& net, Graph& g, Output x, const char* there) {
  {
    auto far = g.with_device(there);
    x = net.pool(relu(net.c1(x)));
  }
  x = relu(net.c2(x));
  {
    auto far = g.with_device(there);
    x = relu(net.hidden(net.pool(x)));
  }
  return net.out(x);
}

// The loss of each step, then parameters and velocities.
std::vector<Tensor> train(bool split, std::uint64_t seed) {
  Graph g(5);
  auto home = g.with_device("/cpu:0");
  MnistConv net(g);
  auto [images, labels] =
      data::digits(16, data::Split::train).shuffle(16, 1).batch(kBatch).repeat().outputs(g);
  Output logits = logits_over(net, g, images, split ? "/fake:0" : "/cpu:0");
  Output loss = mean(softmax_cross_entropy(logits, labels));
  Op update = optim::Momentum{.lr = 0.02, .momentum = 0.9}.minimize(loss);

  Cluster cluster;
  cluster.threads = 1;
  cluster.devices = {"CPU", "FAKE"};
  cluster.fake_seed = seed;
  cluster.soft_placement = false;  // or a missing kernel would go unnoticed
  Session session(g, cluster);
  session.init();
  auto step = session.compile({loss}, {update});
  std::vector<Tensor> all;
  for (int i = 0; i < kSteps; ++i) all.push_back(step.run(std::vector<Tensor>{})[0]);
  for (const DeviceMemory& device : session.memory())
    if (device.device.find("fake") != std::string::npos) CHECK((device.peak > 0) == split);
  for (auto& [name, value] : value_or_throw(session.try_variables())) all.push_back(value);
  return all;
}

void same_bits_over(std::uint64_t seeds) {
  const std::vector<Tensor> expected = train(false, 0);
  REQUIRE(expected.size() == kSteps + 16);  // eight parameters, each with a velocity
  CHECK(expected[0].item<float>() != expected[1].item<float>());
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed of the delays: ", seed);
    REQUIRE(same_bits(train(true, seed), expected));
  }
  MESSAGE("seeds of delays, all with the bits of the CPU: ", seeds);
}

}  // namespace

TEST_CASE("mnist-conv over CPU:0 and FAKE:0 gives the bits of the CPU") { same_bits_over(5); }

TEST_CASE("mnist-conv over CPU:0 and FAKE:0 gives the bits of the CPU, long [slow]") {
  // TROUPE_SEEDS in the environment asks for another number of them.
  const char* text = std::getenv("TROUPE_SEEDS");
  same_bits_over(text ? std::strtoull(text, nullptr, 10) : 1000);
}
