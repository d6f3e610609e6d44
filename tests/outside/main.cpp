// outside [--cluster local:2] [--replicas N] [--npu]: trains a network with the program's own op,
// uses its own kind of queue, and prints what the test looks for.
#include "core/status.hpp"
#include "extension.hpp"
#include "graph/graph.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

struct Cubic : nn::Module {
  using Module::Module;
  nn::Linear hidden{*this, "hidden", 784, 32}, out{*this, "out", 32, 10};
  Output operator()(Output x) const { return out(outside::cube(tanh(hidden(x)))); }
};

}  // namespace

int main(int argc, char** argv) {
  outside::register_all();
  print("{}; {}; {}\n", outside::kStatus, outside::kGraph, outside::kOp);
  Cluster cluster = Cluster::from_args(argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--npu") cluster.devices = {"NPU"};

  Graph g{3};
  auto [x, y] = data::digits(2000).shuffle(2000).batch(64).repeat().outputs(g);
  Cubic net{g.scope("cubic")};
  Output loss = mean(softmax_cross_entropy(net(x), y));
  Op train = optim::Momentum{.lr = 0.05}.minimize(loss);
  Session session{g, cluster};
  session.init();
  auto step = session.compile({loss}, {train});
  float first = 0, last = 0;
  for (int i = 0; i < 200; ++i) {
    auto [l] = step.run<float>();
    (i == 0 ? first : last) = l;
  }
  Output number = placeholder<float>(g, PartialShape::scalar());
  Output numbers = outside::stack(g);
  auto push = session.compile({}, {outside::push(numbers, number)}, {number});
  Output top = outside::pop(numbers);
  for (float x : {1.0f, 2.0f, 3.0f}) push.run({Tensor::scalar(x)});
  auto pop = session.compile({top});
  // A job is saved with its stacks, and goes on from there.
  const JobState saved = value_or_throw(session.try_state());
  Session again{g, cluster};
  again.restore(saved);
  print("saved stack {}\n", again.run({top})[0].item<float>());
  again.close();
  auto [third] = pop.run<float>();
  auto [second] = pop.run<float>();
  auto [bottom] = pop.run<float>();
  print("stack {} {} then {}\n", third, second, bottom);
  print("stack: {}\n", session.try_run({top}).status().message());
  for (const std::string& line : session.describe()) print("{}\n", line);
  print("passes {}\n", outside::passes_run > 0 ? "ran" : "did not run");
  print("loss {:.6f} -> {:.6f}\n", first, last);
  return last < 0.5f * first ? 0 : 1;
}
