// Learns to catch falling balls: a paddle moves left, right or not at all, and all that is ever
// said of its moves is whether it was under the ball in the end (REINFORCE: Williams, 1992). Whole
// games with the policy's random moves are a loop in the graph, and a step plays 64 of them and
// learns.
#include <troupe/troupe.hpp>
using namespace troupe;

constexpr int kGames = 64, kColumns = 9, kRows = 8;

struct Policy : nn::Module {
  using Module::Module;
  nn::Linear hidden{*this, "hidden", 2, 32}, out{*this, "out", 32, 3};
  Output operator()(Output seen) const { return out(tanh(hidden(seen))); }
};

struct Games {
  Output caught;  // f32 [games]: 1 or 0
  Output likely;  // the log of how likely the moves of each game were
};

// How often `policy`, from what is seen f32 [games,2] to logits of the three moves, catches a ball.
template <class F>
Games play(Graph& g, const F& policy) {
  auto numbers = [&](float x) {
    return constant(g, Tensor::of<float>({kGames}, std::vector(kGames, x)));
  };
  Output ball = cast<float>(random_uniform_int(g, {kGames}, kColumns));
  auto [row, paddle, likely] = while_loop(
      std::tuple{constant(g, 0.0f), numbers(kColumns / 2), numbers(0)},
      [&](Output row, Output, Output) { return row < float(kRows); },
      [&](Output row, Output paddle, Output likely) {
        Output away = (ball - paddle) / float(kColumns),
               time = zeros_like(away) + row / float(kRows);
        Output logits =
            policy(concat({reshape(away, {kGames, 1}), reshape(time, {kGames, 1})}, {.axis = 1}));
        // The largest of numbers with Gumbel's noise is each as often as their softmax says.
        Output noise = -log(-log(random_uniform(g, {kGames, 3}, {.low = 1e-7})));
        Output move = argmax(logits + noise, 1);
        Output to = paddle + cast<float>(move) - 1.0f;
        return std::tuple{row + 1.0f, minimum(maximum(to, numbers(0)), numbers(kColumns - 1)),
                          likely - softmax_cross_entropy(logits, move)};
      });
  return {cast<float>(paddle == ball), likely};
}

int main(int argc, char** argv) {
  Graph g;
  Policy policy{g.scope("policy")};
  const Games games = play(g, policy);
  const Games random = play(g, [&](Output) {
    return constant(g, Tensor::zeros(DType::f32, {kGames, 3}).value());
  });
  Output share = mean(games.caught), by_chance = mean(random.caught);
  Op train = optim::Adam{.lr = 1e-2}.minimize(-mean((games.caught - share) * games.likely));

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({share}, {train});
  for (int i = 1; i <= 400; ++i) {
    auto [caught] = step.run<float>();
    if (i % 100 == 0) print("{} caught {:.2f}\n", i, caught);
  }
  auto both = session.compile({share, by_chance});
  float learned = 0, chance = 0;
  for (int i = 0; i < 20; ++i) {
    auto [a, b] = both.run<float, float>();
    learned += a / 20, chance += b / 20;
  }
  print("random moves {:.3f} learned {:.3f}\n", chance, learned);
}
