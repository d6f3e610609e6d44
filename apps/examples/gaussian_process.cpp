// Regression by a Gaussian process (Rasmussen and Williams, 2006): a function of four numbers from
// noisy samples, of which it uses two. The length scale of each input, the amplitude and the noise
// are what maximises the marginal likelihood of the samples, by the gradient through the Cholesky
// factor of their covariance. Prints how far the predictions are off, and the length scales: those
// of the inputs that do not matter become large.
#include <numbers>
#include <random>

#include "first_step.hpp"
using namespace troupe;

constexpr std::int64_t kInputs = 4, kSamples = 400, kTests = 400;
constexpr double kNoise = 0.1;

// The logarithms of what describes a process with a squared exponential kernel.
struct Process : nn::Module {
  using Module::Module;
  Variable length = parameter("log_length", vector(kInputs, 0), Site::here());
  Variable amplitude = parameter("log_amplitude", Tensor::scalar(0.0), Site::here());
  Variable noise = parameter("log_noise", Tensor::scalar(0.0), Site::here());

  static Tensor vector(std::int64_t size, double value) {
    return Tensor::of<double>({size}, std::vector<double>(std::size_t(size), value));
  }
  // The covariance of the function at a [n,inputs] and b [m,inputs]: [n,m].
  Output covariance(Output a, Output b) const {
    const Output scale = exp(-length);
    a = a * scale, b = b * scale;
    const Output distance = sum(square(a), {1}, true) +
                            matrix_transpose(sum(square(b), {1}, true)) -
                            2 * matmul(a, b, {.transpose_b = true});
    return exp(2 * amplitude - 0.5 * distance);
  }
};

// A process that knows samples: y [n,1] at x [n,inputs].
struct Posterior {
  Posterior(const Process& process, Output x, Output y, std::int64_t n)
      : process(process),
        x(x),
        factor(cholesky(process.covariance(x, x) +
                        eye(x.graph(), n, DType::f64) * exp(2 * process.noise))),
        white(matrix_triangular_solve(factor, y)),
        negative_log_likelihood(0.5 * sum(square(white)) + sum(log(matrix_diag_part(factor))) +
                                0.5 * double(n) * std::log(2 * std::numbers::pi)) {}
  // The mean of what is expected at t [m,inputs], and its standard deviation: [m,1] each.
  std::pair<Output, Output> at(Output t) const {
    const Output from = matrix_triangular_solve(factor, process.covariance(x, t));
    const Output mean = matmul(from, white, {.transpose_a = true});
    const Output variance =
        exp(2 * process.amplitude) + exp(2 * process.noise) - sum(square(from), {0}, true);
    return {mean, sqrt(matrix_transpose(variance))};
  }
  const Process& process;
  Output x, factor, white, negative_log_likelihood;
};

struct Samples {
  Tensor x, y;
};
Samples draw(std::int64_t count, std::mt19937_64& random) {
  std::uniform_real_distribution<double> place(-2, 2);
  std::normal_distribution<double> error(0, kNoise);
  std::vector<double> x(std::size_t(count * kInputs)), y;
  for (double& value : x) value = place(random);
  for (std::size_t i = 0; i < x.size(); i += kInputs)
    y.push_back(std::sin(2 * x[i]) * std::cos(x[i + 1]) + error(random));
  return {Tensor::of<double>({count, kInputs}, x), Tensor::of<double>({count, 1}, y)};
}

int first_step() {
  constexpr std::int64_t n = 12;
  std::vector<double> x, y;
  for (int i = 0; i < n * kInputs; ++i) x.push_back(std::sin(0.7 * i));
  for (int i = 0; i < n; ++i) y.push_back(std::cos(1.3 * i));
  Graph g;
  Process process{g.scope("process")};
  Posterior known{process, constant(g, Tensor::of<double>({n, kInputs}, x)),
                  constant(g, Tensor::of<double>({n, 1}, y)), n};
  return example::print_first_step(g, known.negative_log_likelihood);
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 150);
  std::mt19937_64 random(1);
  const Samples given = draw(kSamples, random), asked = draw(kTests, random);
  Graph g;
  Process process{g.scope("process")};
  Posterior known{process, constant(g, given.x), constant(g, given.y), kSamples};
  auto [mean, deviation] = known.at(constant(g, asked.x));
  const Output error = mean - constant(g, asked.y);
  const Output rmse = sqrt(troupe::mean(square(error)));
  const Output inside = troupe::mean(cast<double>(abs(error) < 1.96 * deviation));
  Op train = optim::Adam{.lr = 0.1}.minimize(known.negative_log_likelihood);

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({known.negative_log_likelihood}, {train});
  example::StepTimes times;
  for (std::int64_t i = 1; i <= steps; ++i) {
    auto [loss] = times.time([&] { return step.run<double>(); });
    if (i % 50 == 0) print("{} negative log likelihood {:.2f}\n", i, loss);
  }
  const auto learned = session.run({rmse, inside, exp(process.length), exp(process.noise)});
  const auto lengths = learned[2].span<double>();
  print("error {:.3f}, in the 95 % interval {:.1f} %\n", learned[0].item<double>(),
        100 * learned[1].item<double>());
  print("length scales {:.2f} {:.2f} {:.2f} {:.2f}, noise {:.3f}\n", lengths[0], lengths[1],
        lengths[2], lengths[3], learned[3].item<double>());
  return times.conclude(learned[0].item<double>() < 1.5 * kNoise &&
                        std::min(lengths[2], lengths[3]) > 2 * std::max(lengths[0], lengths[1]));
}
