// vae: pictures of digits as points in a space of a few dimensions, and pictures from points drawn
// there (a variational autoencoder; Kingma and Welling, 2014). The loss is a bound on the code
// length of a picture, in nats. vae [--data FOLDER] [--steps N] [--threads N] [--first-step];
// FOLDER has MNIST's four files.
#include "first_step.hpp"

#include <troupe/troupe.hpp>
using namespace troupe;

constexpr int kPixels = 784, kHidden = 256, kCode = 10, kBatch = 128;

struct Vae : nn::Module {
  Vae(Scope scope, std::int64_t pixels, std::int64_t units, std::int64_t code, DType dtype)
      : Module(std::move(scope)),
        seen(*this, "seen", pixels, units, {.dtype = dtype}),
        mean(*this, "mean", units, code, {.dtype = dtype}),
        log_variance(*this, "log_variance", units, code, {.dtype = dtype}),
        drawn(*this, "drawn", code, units, {.dtype = dtype}),
        picture(*this, "picture", units, pixels, {.dtype = dtype}) {}

  Output decode(Output code) const { return picture(relu(drawn(code))); }
  // The nats of each picture x [batch, pixels], with `noise` [batch, code] of normal numbers.
  Output nats(Output x, Output noise) const {
    const Output hidden = relu(seen(x)), mu = mean(hidden), log_var = log_variance(hidden);
    const Output logits = decode(mu + exp(log_var * 0.5f) * noise);
    const Output apart = 0.5f * sum(square(mu) + exp(log_var) - log_var - 1.0f, {1});
    return sum(sigmoid_cross_entropy(logits, x), {1}) + apart;
  }

  nn::Linear seen, mean, log_variance, drawn, picture;
};

// rows x columns numbers that are no pattern, in [low, low + 1).
Output numbers(Graph& g, std::int64_t rows, std::int64_t columns, double low) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < rows * columns; ++i)
    all.push_back(low + 0.5 + 0.5 * std::sin(double(3 * i * i + i)));
  return constant(g, Tensor::of<double>(Shape{rows, columns}, all));
}

int first_step() {
  Graph g;
  Vae net{g.scope("vae"), 12, 8, 3, DType::f64};
  return example::print_first_step(g, mean(net.nats(numbers(g, 5, 12, 0), numbers(g, 5, 3, -0.5))));
}

// Four pictures side by side, of a character for each second pixel.
void show(const Tensor& pictures) {
  const auto at = pictures.span<float>();
  for (std::size_t y = 2; y < 26; y += 2) {
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t x = 2; x < 26; ++x)
        print("{}", " .:*#"[int(at[i * kPixels + y * 28 + x] * 4.99f)]);
    print("\n");
  }
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 1000);
  const std::string folder = arguments.text("--data");
  const auto digits = [&](data::Split split, std::int64_t count) {
    return folder.empty() ? data::digits(count, split).cache() : data::idx(folder, split);
  };
  Graph g;
  auto [x, label] = digits(data::Split::train, 10'000)
                        .shuffle(60'000)
                        .repeat()
                        .batch(kBatch)
                        .prefetch(2)
                        .outputs(g, "train");
  auto [tested, tested_label] = digits(data::Split::test, 2'000).batch(500).outputs(g, "test");
  Vae net{g.scope("vae"), kPixels, kHidden, kCode, DType::f32};
  const auto black_and_white = [](Output pictures) {
    return cast<float>(flatten(pictures) > 0.5f);
  };
  const auto loss_of = [&](Output pictures) {
    const Output flat = black_and_white(pictures);
    return mean(net.nats(flat, random_normal_like(flat[{whole, range(0, kCode)}])));
  };
  const Output loss = loss_of(x), test_loss = loss_of(tested);
  const Op train = optim::Adam{.lr = 1e-3}.minimize(loss);
  // What a picture costs if each pixel is drawn alone, by its mean over the pictures.
  const Output all = black_and_white(tested), share = mean(all, {0}, true) * 0.999f + 0.0005f;
  const Output alone =
      mean(sum(sigmoid_cross_entropy(log(share / (1.0f - share)) + all * 0.0f, all), {1}));
  const Output dreams = sigmoid(net.decode(random_normal(g, {4, kCode})));

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train});
  example::StepTimes times;
  for (std::int64_t i = 1; i <= steps; ++i) {
    const float nats = std::get<0>(times.time([&] { return step.run<float>(); }));
    if (i % 250 == 0) print("{} loss {:.1f}\n", i, nats);
  }
  double nats = 0, apart = 0, batches = 0;
  for (auto [of_net, of_pixels] : session.compile({test_loss, alone}).pass<float, float>())
    nats += of_net, apart += of_pixels, ++batches;
  show(session.run({dreams})[0]);
  print("nats of a test picture {:.1f}; pixel by pixel {:.1f}\n", nats / batches, apart / batches);
  return times.conclude(nats < 0.7 * apart);
}
