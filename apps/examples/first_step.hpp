// What the programs of docs/programs.md share: their arguments, the time that a step takes, and the
// numbers of their first step, which tests/golden/programs.tsv has from another framework.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <troupe/troupe.hpp>
#include <vector>

namespace troupe::example {

// The program's own arguments; Cluster::from_args reads --threads and others.
class Arguments {
 public:
  Arguments(int argc, char** argv) : all_(argv + 1, argv + argc) {}

  bool has(std::string_view name) const { return find(name) != all_.end(); }
  // What stands behind `name`, or in `name=...`; `otherwise` without it. Throws Error if nothing
  // stands there.
  std::string text(std::string_view name, std::string_view otherwise = {}) const {
    auto at = find(name);
    if (at == all_.end()) return std::string(otherwise);
    if (*at != name) return std::string(at->substr(name.size() + 1));
    if (++at == all_.end()) throw Error(invalid_argument(std::string(name) + " needs a value"));
    return std::string(*at);
  }
  std::int64_t number(std::string_view name, std::int64_t otherwise) const {
    if (!has(name)) return otherwise;
    const std::string value = text(name);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      throw Error(invalid_argument(std::string(name) + ": a number, not '" + value + "'"));
    return number;
  }

 private:
  std::vector<std::string_view>::const_iterator find(std::string_view name) const {
    return std::find_if(all_.begin(), all_.end(), [&](std::string_view word) {
      return word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '=');
    });
  }
  std::vector<std::string_view> all_;
};

// The times of steps.
class StepTimes {
 public:
  // Calls `step`, and returns what it returns.
  template <class F>
  auto time(F&& step) {
    const auto began = std::chrono::steady_clock::now();
    auto result = step();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    milliseconds_.push_back(took.count());
    return result;
  }
  // Prints the median, and the verdict; returns the exit code of the program.
  int conclude(bool learned) {
    if (!milliseconds_.empty()) {
      const auto middle = milliseconds_.begin() + std::ptrdiff_t(milliseconds_.size() / 2);
      std::nth_element(milliseconds_.begin(), middle, milliseconds_.end());
      print("{:.3f} ms per step\n", *middle);
    }
    print("{}\n", learned ? "learned" : "did not learn");
    return learned ? 0 : 1;
  }

 private:
  std::vector<double> milliseconds_;
};

// A loss of a first step, with the parameters whose gradients are printed; empty: all trainable
// ones that it depends on.
struct FirstLoss {
  std::string_view name = "loss";
  Output loss;
  std::vector<Variable> parameters = {};
};

// Gives element i of trainable variable p, in order of creation, the value 0.1 sin(1 + i + 7 p),
// and runs `prepare`. Then prints each loss, and the sum and Euclidean norm of each gradient, of
// networks in f64. Returns the exit code of the program.
inline int print_first_step(Graph& g, const std::vector<FirstLoss>& losses,
                            const std::vector<Op>& prepare = {},
                            const std::vector<Feed>& feeds = {}) {
  std::vector<Op> assigned;
  const std::vector<Variable> parameters = trainable_variables(g);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Shape shape = parameters[p].shape().shape();
    std::vector<double> values(std::size_t(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 0.1 * std::sin(double(1 + i + 7 * p));
    assigned.push_back(
        assign(parameters[p], constant(g, Tensor::of<double>(shape, std::span(values)))));
  }
  Session session{g, Cluster{.threads = 1}};
  session.init();
  session.run({}, assigned);
  if (!prepare.empty()) session.run({}, prepare);
  for (const FirstLoss& each : losses) {
    const optim::Gradients gradients = each.parameters.empty()
                                           ? optim::gradients(each.loss)
                                           : optim::gradients(each.loss, each.parameters);
    std::vector<Output> fetches{each.loss};
    for (const optim::Gradient& gradient : gradients.each) fetches.push_back(gradient.value);
    const std::vector<Tensor> values = session.run(fetches, {}, feeds);
    print("{} {:.17g}\n", each.name, values[0].item<double>());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      double sum = 0, squares = 0;
      for (const double x : values[i + 1].span<double>()) sum += x, squares += x * x;
      print("{} {:.17g} {:.17g}\n", gradients[i].variable.name(), sum, std::sqrt(squares));
    }
  }
  return 0;
}
inline int print_first_step(Graph& g, Output loss) { return print_first_step(g, {{.loss = loss}}); }

}  // namespace troupe::example
