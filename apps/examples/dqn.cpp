// Learns to balance a pole on a cart by trying (DQN: Mnih and others, 2015): a network estimates
// what each push is worth, from a memory of transitions, and a target network, which is a copy of
// it now and then, what comes after. Each move of the cart is a run with a small feed, and so is
// each step of training. Prints how long the pole stays up.
#include <array>
#include <random>

#include "first_step.hpp"
using namespace troupe;

constexpr std::int64_t kBatch = 64, kLongest = 200;
constexpr std::size_t kMemory = 10'000, kBeforeTraining = 500;
using State = std::array<float, 4>;

// A cart of 1 kg and a pole of 0.1 kg, 1 m long, pushed with 10 N to one side or the other every
// 20 ms (Barto, Sutton and Anderson, 1983).
class CartPole {
 public:
  explicit CartPole(std::uint64_t seed) : random_(seed) { restart(); }
  const State& state() const { return s_; }
  void restart() {
    for (float& x : s_) x = std::uniform_real_distribution<float>(-0.05f, 0.05f)(random_);
  }
  // False: the pole has fallen, or the cart has left its track.
  bool push(std::int64_t side) {
    const float sine = std::sin(s_[2]), cosine = std::cos(s_[2]);
    const float force = ((side == 1 ? 10.f : -10.f) + 0.05f * s_[3] * s_[3] * sine) / 1.1f;
    const float turn =
        (9.8f * sine - cosine * force) / (0.5f * (4.f / 3 - 0.1f * cosine * cosine / 1.1f));
    const State change{s_[1], force - 0.05f * turn * cosine / 1.1f, s_[3], turn};
    for (std::size_t i = 0; i < 4; ++i) s_[i] += 0.02f * change[i];
    return std::abs(s_[0]) < 2.4f && std::abs(s_[2]) < 0.2095f;
  }

 private:
  std::mt19937_64 random_;
  State s_{};
};

struct Values : nn::Module {
  Values(Scope scope, DType t)
      : Module(std::move(scope)),
        first(*this, "first", 4, 64, {.dtype = t}),
        second(*this, "second", 64, 64, {.dtype = t}),
        out(*this, "out", 64, 2, {.dtype = t}) {}
  Output operator()(Output states) const { return out(relu(second(relu(first(states))))); }
  nn::Linear first, second, out;
};

struct Learner {
  Learner(Graph& g, DType t, std::int64_t batch)
      : states(placeholder(g, t, {batch, 4})),
        moves(placeholder(g, DType::i64, {batch})),
        next(placeholder(g, t, {batch, 4})),
        goes_on(placeholder(g, t, {batch})),
        values(g.scope("values"), t),
        target(g.scope("target"), t) {
    const Output reached = 1 + 0.99 * goes_on * max(target(next), {1});
    const Output guess = sum(values(states) * one_hot(moves, 2, {.dtype = t}), {1});
    loss = mean(huber(guess, stop_gradient(reached)));
    copy = assign(target.parameters(), values.parameters());
  }
  Output states, moves, next, goes_on;
  Values values, target;
  Output loss;
  Op copy;
};

int first_step() {
  Graph g;
  Learner learner{g, DType::f64, 3};
  std::array<double, 12> s{}, n{};
  for (std::size_t i = 0; i < 12; ++i) s[i] = std::sin(double(i)), n[i] = std::cos(double(i));
  return example::print_first_step(
      g, {{.loss = learner.loss, .parameters = learner.values.parameters()}}, {},
      {{learner.states, Tensor::of<double>({3, 4}, s)},
       {learner.moves, Tensor::of<std::int64_t>({3}, {0, 1, 1})},
       {learner.next, Tensor::of<double>({3, 4}, n)},
       {learner.goes_on, Tensor::of<double>({3}, {1, 0, 1})}});
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 20'000);
  Graph g;
  Learner learner{g, DType::f32, kBatch};
  Output seen = placeholder<float>(g, {1, 4});
  Output best = argmax(learner.values(seen), 1)[0];
  Op train = optim::Adam{.lr = 2.5e-4}.minimize(learner.loss, learner.values.parameters());
  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto act = session.compile({best}, {}, {seen});
  auto copy = session.compile({}, {learner.copy});
  auto step = session.compile({learner.loss}, {train},
                              {learner.states, learner.moves, learner.next, learner.goes_on});
  auto decide = [&](const State& s) {
    auto [move] = act.run<std::int64_t>({Tensor::of<float>({1, 4}, s)});
    return move;
  };

  struct Transition {
    State before, after;
    std::int64_t move;
    float goes_on;
  };
  std::vector<Transition> memory;
  CartPole cart(1);
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> chance(0, 1);
  std::int64_t length = 0;
  example::StepTimes times;
  for (std::int64_t i = 0; i < steps; ++i) {
    const double curious = std::max(0.05, 1 - double(i) / 3000);
    const State before = cart.state();
    const std::int64_t move = chance(random) < curious ? chance(random) < 0.5 : decide(before);
    const bool up = cart.push(move);
    const Transition made{before, cart.state(), move, up ? 1.f : 0.f};
    memory.size() < kMemory ? memory.push_back(made)
                            : void(memory[std::size_t(i) % kMemory] = made);
    if (!up || ++length == kLongest) cart.restart(), length = 0;
    if (i % 250 == 0) copy.run();
    if (memory.size() < kBeforeTraining) continue;
    std::vector<float> states, next, goes_on;
    std::vector<std::int64_t> moves;
    for (std::int64_t k = 0; k < kBatch; ++k) {
      const Transition& t = memory[std::size_t(chance(random) * double(memory.size()))];
      states.insert(states.end(), t.before.begin(), t.before.end());
      next.insert(next.end(), t.after.begin(), t.after.end());
      moves.push_back(t.move), goes_on.push_back(t.goes_on);
    }
    auto [loss] = times.time([&] {
      return step.run<float>(
          {Tensor::of<float>({kBatch, 4}, states), Tensor::of<std::int64_t>({kBatch}, moves),
           Tensor::of<float>({kBatch, 4}, next), Tensor::of<float>({kBatch}, goes_on)});
    });
    if ((i + 1) % 5000 == 0) print("{} loss {:.4f}\n", i + 1, loss);
  }
  std::int64_t pushes = 0;
  constexpr int kGames = 20;
  CartPole tried(3);
  for (int game = 0; game < kGames; ++game, tried.restart())
    for (std::int64_t k = 0; k < kLongest; ++k, ++pushes)
      if (!tried.push(decide(tried.state()))) break;
  print("the pole stays up for {:.1f} of {} pushes\n", double(pushes) / kGames, kLongest);
  return times.conclude(pushes > kGames * 75);
}
