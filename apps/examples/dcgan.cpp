// Learns to draw digits (DCGAN: Radford, Metz and Chintala, 2016): a generator makes pictures of
// noise, a discriminator tells them from true ones, and each has an optimizer of its own for its
// variables. --data DIR reads MNIST instead of the digits that the program draws. Prints how far
// the mean and the deviation of each pixel are from those of true pictures, and a picture.
#include "first_step.hpp"
using namespace troupe;

constexpr std::int64_t kNoise = 32, kBatch = 64, kTested = 512;

struct Generator : nn::Module {
  Generator(Scope scope, DType t)
      : Module(std::move(scope)),
        seed(*this, "seed", kNoise, 7 * 7 * 32, {.bias = false, .dtype = t}),
        norm1(*this, "norm1", 32, {.momentum = 0.9, .dtype = t}),
        middle(*this, "middle", 32, 16, 4, {.stride = 2, .bias = false, .dtype = t}),
        norm2(*this, "norm2", 16, {.momentum = 0.9, .dtype = t}),
        out(*this, "out", 16, 1, 4, {.stride = 2, .dtype = t}) {}
  // From noise [n,kNoise] to pictures [n,28,28,1] in (-1,1).
  Output operator()(Output z) const {
    const Output x = relu(norm1(reshape(seed(z), {-1, 7, 7, 32})));
    return tanh(out(relu(norm2(middle(x)))));
  }
  nn::Linear seed;
  nn::BatchNorm norm1;
  nn::ConvTranspose2d middle;
  nn::BatchNorm norm2;
  nn::ConvTranspose2d out;
};

struct Discriminator : nn::Module {
  Discriminator(Scope scope, DType t)
      : Module(std::move(scope)),
        first(*this, "first", 1, 16, 4, {.stride = 2, .dtype = t}),
        second(*this, "second", 16, 32, 4, {.stride = 2, .bias = false, .dtype = t}),
        norm(*this, "norm", 32, {.momentum = 0.9, .dtype = t}),
        out(*this, "out", 7 * 7 * 32, 1, {.dtype = t}) {}
  // From pictures to logits [n,1]: how sure it is that they are true.
  Output operator()(Output x) const {
    return out(leaky_relu(norm(second(leaky_relu(first(x), 0.2))), 0.2));
  }
  nn::Conv2d first, second;
  nn::BatchNorm norm;
  nn::Linear out;
};

struct Losses {
  // Of pictures x in [0,1], and of as many that are made of z.
  Losses(Generator& generator, Discriminator& discriminator, Output x, Output z) {
    auto training = generator.train();
    auto too = discriminator.train();
    const Output believed = discriminator(generator(z));
    of_discriminator = mean(sigmoid_cross_entropy(discriminator(2 * x - 1), 1)) +
                       mean(sigmoid_cross_entropy(believed, 0));
    of_generator = mean(sigmoid_cross_entropy(believed, 1));
  }
  Output of_discriminator, of_generator;
};

int first_step() {
  auto waves = [](const Shape& shape, double step) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      values.push_back(0.5 + 0.5 * std::sin(step * double(i)));
    return Tensor::of<double>(shape, values);
  };
  Graph g;
  Generator generator{g.scope("generator"), DType::f64};
  Discriminator discriminator{g.scope("discriminator"), DType::f64};
  Losses losses{generator, discriminator, constant(g, waves({3, 28, 28, 1}, 0.3)),
                constant(g, waves({3, kNoise}, 0.9))};
  return example::print_first_step(g,
                                   {{"loss_d", losses.of_discriminator, discriminator.parameters()},
                                    {"loss_g", losses.of_generator, generator.parameters()}});
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 300);
  const std::string folder = arguments.text("--data");
  const auto digits = folder.empty() ? data::digits(20'000) : data::idx(folder);
  Graph g;
  auto [x, label] = digits.shuffle(10'000).batch(kBatch).repeat().prefetch(2).outputs(g);
  auto [tested, tested_label] = digits.batch(kTested).repeat().outputs(g);
  Generator generator{g.scope("generator"), DType::f32};
  Discriminator discriminator{g.scope("discriminator"), DType::f32};
  auto noise = [&](std::int64_t n) { return random_normal(g, {n, kNoise}); };
  Losses losses{generator, discriminator, x, noise(kBatch)};
  const optim::Adam adam{.lr = 1e-3, .beta1 = 0.5};
  Op train_discriminator = adam.minimize(losses.of_discriminator, discriminator.parameters());
  Op train_generator = adam.minimize(losses.of_generator, generator.parameters());
  const Output drawn = generator(noise(kTested)) * 0.5 + 0.5;
  // Of the mean and the standard deviation of each pixel.
  const Output distance = sqrt(mean(square(mean(drawn, 0) - mean(tested, 0)))) +
                          sqrt(mean(square(stddev(drawn, 0) - stddev(tested, 0))));

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto discriminate = session.compile({losses.of_discriminator}, {train_discriminator});
  auto generate = session.compile({losses.of_generator}, {train_generator});
  example::StepTimes times;
  for (std::int64_t i = 1; i <= steps; ++i) {
    auto [d, made] = times.time([&] {
      return std::pair{std::get<0>(discriminate.run<float>()), std::get<0>(generate.run<float>())};
    });
    if (i % 100 == 0 || i == steps) print("{} discriminator {:.3f} generator {:.3f}\n", i, d, made);
  }
  const auto result = session.run({distance, drawn[0]});
  const auto ink = result[1].span<float>();
  for (std::size_t row = 0; row < 28; row += 2) {
    for (std::size_t column = 0; column < 28; ++column)
      print(
          "{}",
          " .:*#"[std::min(4, int(2.5f * (ink[row * 28 + column] + ink[row * 28 + 28 + column])))]);
    print("\n");
  }
  const float apart = result[0].item<float>();
  print("distance of the pixels' moments {:.4f}\n", apart);
  return times.conclude(apart < 0.1);
}
