// A network of two layers, trained on digits that the program draws; data::idx("folder") instead of
// data::digits() reads MNIST. Takes --threads N, --replicas N and --cluster local:W, and with
// --job-dir DIR it goes on where it was when it was last stopped or killed.
#include <troupe/troupe.hpp>
using namespace troupe;

struct Mlp : nn::Module {
  using Module::Module;
  nn::Linear hidden{*this, "hidden", 784, 128}, out{*this, "out", 128, 10};
  Output operator()(Output x) const { return out(relu(hidden(x))); }
};

int main(int argc, char** argv) {
  const auto options = JobOptions::from_args(argc, argv);
  Graph g;
  auto [x, y] = data::digits().shuffle(60'000).batch(128).repeat().prefetch(2).outputs(g);
  Mlp net{g.scope("mlp")};
  Output logits = net(x);
  Output loss = mean(softmax_cross_entropy(logits, y));
  Output accuracy = mean(cast<float>(argmax(logits, 1) == y));
  Op train = optim::Adam{.lr = 1e-3}.minimize(loss);
  Session session{g, Cluster::from_args(argc, argv)};  // this process, unless told otherwise
  Job job{session, options};  // restores the newest checkpoint, or initialises
  auto step = session.compile({loss, accuracy}, {train});  // pruned, placed, partitioned once
  for (const JobStep& s : job.steps(500)) {
    auto [l, a] = step.run<float, float>(s);
    if (s.every(100)) job.report({{"loss", l}, {"accuracy", a}});
  }
  return job.exit_code();
}
