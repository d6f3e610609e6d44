// Learns to guess the character that follows sixteen others, from nine tenths of a text file, and
// is asked about the last tenth: letters FILE [--threads N] [--cluster local:W]. What it has
// learned is in letters.safetensors.
#include <troupe/troupe.hpp>
using namespace troupe;

constexpr int kWindow = 16, kBatch = 64;

struct Guesser : nn::Module {
  Guesser(Scope scope, std::int64_t letters)
      : Module(std::move(scope)),
        meaning(*this, "meaning", letters, 24),
        hidden(*this, "hidden", kWindow * 24, 128),
        out(*this, "out", 128, letters) {}
  Output operator()(Output x) const {
    return out(relu(hidden(reshape(meaning(x), {-1, kWindow * 24}))));
  }
  nn::Embedding meaning;
  nn::Linear hidden, out;
};

int main(int argc, char** argv) {
  become_worker_if_started_as_one();  // a worker of --cluster has no FILE among its arguments
  if (argc < 2) return print("letters FILE\n"), 2;
  const auto vocabulary = data::Vocabulary::of_file(argv[1]);
  auto part = [&](double from, double to) {
    return data::text(
        argv[1],
        {.window = kWindow, .stride = 3, .from = from, .to = to, .vocabulary = vocabulary});
  };
  Graph g;
  auto [x, y] =
      part(0, 0.9).shuffle(50'000).repeat().batch(kBatch).prefetch(2).outputs<2>(g, "train");
  auto [tested, follows] =
      part(0.9, 1).batch(kBatch, data::Remainder::drop).prefetch(2).outputs<2>(g, "test");
  Guesser net{g.scope("net"), vocabulary.size()};
  Output loss = mean(softmax_cross_entropy(net(x), y[{whole, -1}]));
  Output right = mean(cast<float>(argmax(net(tested), 1) == follows[{whole, -1}]));
  Op train = optim::Adam{.lr = 1e-3}.minimize(loss);

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train});
  auto evaluate = session.compile({right});
  for (int i = 1; i <= 3000; ++i) {
    auto [l] = step.run<float>();
    if (i % 500 != 0) continue;
    double sum = 0, batches = 0;
    for (auto [share] : evaluate.pass<float>()) sum += share, ++batches;
    print("{} loss {:.3f}, of the last tenth {:.1f} % right\n", i, l, 100 * sum / batches);
  }
  session.save("letters.safetensors");
}
