// Trains a network of GPT-2's size for some steps, and prints the most memory, in MiB, that each
// process held: gpt [STEPS] [LAYERS], then cluster options. tests/accept/gpt_peer.py does the same
// in PyTorch.
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "apps/troupe.hpp"
using namespace troupe;

namespace {

constexpr std::int64_t kVocabulary = 50257, kContext = 1024, kWidth = 768, kHeads = 12;
constexpr std::int64_t kBatch = 2, kTime = 128;

Tensor positions() {
  std::vector<std::int64_t> all(kTime);
  std::iota(all.begin(), all.end(), 0);
  return Tensor::of(Shape{kTime}, std::span<const std::int64_t>(all));
}

// The most that a process has held, in MiB.
std::uint64_t peak_of(const std::string& process) {
  std::ifstream status("/proc/" + process + "/status");
  unsigned long long kilobytes = 0;
  for (std::string line; std::getline(status, line);)
    if (std::sscanf(line.c_str(), "VmHWM: %llu", &kilobytes) == 1) break;
  return kilobytes >> 10;
}

// The normalisation is before each half, and the output's matrix is not that of the input.
struct Block : nn::Module {
  Block(Module& parent, std::string_view name) : Module(parent, name) {}
  nn::LayerNorm before{*this, "ln_1", kWidth};
  nn::MultiHeadAttention attention{*this, "attn", kWidth, kHeads};
  nn::LayerNorm between{*this, "ln_2", kWidth};
  nn::Linear wide{*this, "fc", kWidth, 4 * kWidth}, narrow{*this, "proj", 4 * kWidth, kWidth};

  Output operator()(Output x) const {
    const Output h = before(x);
    x = x + attention(h, h, h, {.causal = true});
    return x + narrow(gelu(wide(between(x))));
  }
};

struct Gpt : nn::Module {
  Gpt(Scope scope, int layers) : Module(std::move(scope)) {
    for (int i = 0; i < layers; ++i)
      blocks.push_back(std::make_unique<Block>(*this, "h" + std::to_string(i)));
  }
  nn::Embedding tokens{*this, "wte", kVocabulary, kWidth, {.stddev = 0.02}};
  nn::Embedding places{*this, "wpe", kContext, kWidth, {.stddev = 0.02}};
  std::vector<std::unique_ptr<Block>> blocks;
  nn::LayerNorm last{*this, "ln_f", kWidth};
  nn::Linear head{*this, "head", kWidth, kVocabulary, {.bias = false}};

  Output operator()(Output ids) const {
    Output x = tokens(ids) + places(constant(graph(), positions()));
    for (const auto& block : blocks) x = (*block)(x);
    return head(last(x));
  }
};

}  // namespace

int main(int argc, char** argv) {
  become_worker_if_started_as_one();
  const int steps = argc > 1 ? std::atoi(argv[1]) : 3, layers = argc > 2 ? std::atoi(argv[2]) : 12;
  Graph g;
  std::vector<std::int64_t> drawn(kBatch * kTime + 1);
  for (std::size_t i = 0; i < drawn.size(); ++i)
    drawn[i] = std::int64_t(i * 7919 % std::size_t(kVocabulary));
  const std::span<const std::int64_t> all(drawn);
  const Shape rows{kBatch, kTime};
  auto [ids, next] = data::tensors({Tensor::of(rows, all.first(kBatch * kTime)),
                                    Tensor::of(rows, all.subspan(1, kBatch * kTime))})
                         .repeat()
                         .batch(kBatch)
                         .outputs<2>(g);
  Gpt net{g.scope("gpt"), layers};
  std::int64_t parameters = 0;
  for (const Variable& v : net.parameters()) parameters += v.shape().shape().elements();
  Output loss = mean(softmax_cross_entropy(net(ids), next));
  Op train = optim::Adam{.lr = 1e-4}.minimize(loss);

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train});
  for (int i = 0; i < steps; ++i) {
    auto [l] = step.run<float>();
    print("{} loss {:.5f}\n", i, l);
  }
  print("parameters {}\n", parameters);
  print("peak {}\n", peak_of("self"));
  std::ifstream workers("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (std::string pid; workers >> pid;) print("peak of a worker {}\n", peak_of(pid));
}
