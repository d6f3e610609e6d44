// Trains a convolutional network on digits, and with --save DIR writes what apps/examples/serve.cpp
// answers with: model.graph, in which placeholder `input` [n,28,28,1] becomes `output` [n,10], and
// model.safetensors, its weights. --data DIR reads MNIST instead of the digits that the program
// draws. Prints the accuracy on digits that it did not train on.
#include "first_step.hpp"
using namespace troupe;

struct Digits : nn::Module {
  Digits(Scope scope, DType t)
      : Module(std::move(scope)),
        first(*this, "first", 1, 8, 5, {.stride = 2, .dtype = t}),
        second(*this, "second", 8, 16, 5, {.stride = 2, .dtype = t}),
        out(*this, "out", 7 * 7 * 16, 10, {.dtype = t}) {}
  Output operator()(Output x) const { return out(relu(second(relu(first(x))))); }
  nn::Conv2d first, second;
  nn::Linear out;
};

int first_step() {
  std::vector<double> pictures;
  for (int i = 0; i < 2 * 28 * 28; ++i) pictures.push_back(std::sin(0.3 * i));
  Graph g;
  Digits net{g.scope("digits"), DType::f64};
  const Output x = constant(g, Tensor::of<double>({2, 28, 28, 1}, pictures));
  return example::print_first_step(
      g, mean(softmax_cross_entropy(net(x), constant(g, std::vector<std::int64_t>{3, 8}))));
}

// The graph that answers, without what trains.
void save(Session& session, const Digits& trained, const std::string& folder) {
  Graph g;
  Digits net{g.scope("digits"), DType::f32};
  const Output input = placeholder<float>(g, {-1, 28, 28, 1}, "input");
  g.add(NodeSpec{.op = "Identity", .inputs = {softmax(net(input))}, .name = "output"});
  session.save(folder + "/model.safetensors", trained.parameters());
  throw_if_error(write_graph(folder + "/model.graph", g.def()));
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 300);
  const std::string folder = arguments.text("--data"), to = arguments.text("--save");
  auto digits = [&](data::Split split, std::int64_t count) {
    return folder.empty() ? data::digits(count, split) : data::idx(folder, split);
  };
  Graph g(std::uint64_t(arguments.number("--seed", 0)));
  auto [x, y] =
      digits(data::Split::train, 20'000).shuffle(20'000).batch(64).repeat().prefetch(2).outputs(g);
  auto [tested, label] = digits(data::Split::test, 2'000).batch(200).prefetch(2).outputs(g);
  Digits net{g.scope("digits"), DType::f32};
  Output loss = mean(softmax_cross_entropy(net(x), y));
  Output right = mean(cast<float>(argmax(net(tested), 1) == label));
  Op train = optim::Adam{.lr = 2e-3}.minimize(loss);

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train});
  example::StepTimes times;
  for (std::int64_t i = 1; i <= steps; ++i) {
    auto [l] = times.time([&] { return step.run<float>(); });
    if (i % 100 == 0) print("{} loss {:.3f}\n", i, l);
  }
  double sum = 0, batches = 0;
  for (auto [share] : session.compile({right}).pass<float>()) sum += share, ++batches;
  print("accuracy {:.4f}\n", sum / batches);
  if (!to.empty()) save(session, net, to);
  return times.conclude(sum / batches > 0.9);
}
