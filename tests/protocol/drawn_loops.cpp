#include "tests/protocol/drawn_loops.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

namespace troupe::test::loops {
namespace {

constexpr int kFrames = 3;
constexpr std::size_t kQueuesOfKind = 4;  // of each kind, on each device

std::string with_number(std::string_view what, std::size_t k) {
  return std::string(what) + " " + std::to_string(k);
}

std::string by_device(std::string_view what, std::size_t k) {
  return std::string(what) + "_" + std::to_string(k);
}

std::string queue_name(std::string_view kind, std::size_t device, std::size_t k) {
  return by_device(kind, device) + "_" + std::to_string(k);
}

// Draws one program. All that is drawn is a function of the seed alone, never of the devices.
class Drawer {
 public:
  Drawer(Graph& g, const Devices& devices, std::uint64_t seed, std::set<std::string>& has)
      : g_(g), devices_(devices), random_(seed), has_(has) {}

  std::vector<Output> draw() {
    count_ = 2 + random_.below(2);
    note(std::to_string(count_) + " devices");
    for (std::size_t k = 0; k < count_; ++k) {
      for (const char* kind : {"in", "out", "both"})
        for (std::size_t q = 0; q < kQueuesOfKind; ++q)
          queues_[kind].push_back(
              {.handle = queue_on(g_, devices_[k], queue_name(kind, k, q)), .device = k});
      on(g_, devices_[k], [&] {
        written_.push_back(variable(g_, by_device("written", k), Tensor::scalar(0.0)));
        read_.push_back(variable(g_, by_device("read", k), Tensor::scalar(0.0)).value());
        times_.push_back(variable(g_, by_device("times", k), Tensor::scalar(0)).value());
      });
    }
    deep_ = function(g_, "deep", {f64_scalar, f64_scalar}, {f64_scalar},
                     [](Function& self, Output k, Output x) {
                       return cond(
                           k < 1.0, [&] { return x * 0.5; },
                           [&] { return sin(self(k - 1.0, x * 0.75)) + x * 0.25; });
                     });
    Scope scope;
    scope.values = read_;
    const std::vector<Output> results = loop_or_branch(scope);
    note(deepest_ == 1 ? "1 frame" : std::to_string(deepest_) + " frames");
    std::vector<Output> fetches = results;
    fetches.push_back(somewhere([&] { return results[0] * 0.5 + results.back(); }));
    return fetches;
  }

 private:
  // What a body may use.
  struct Scope {
    std::vector<Output> values;  // f64
    std::vector<Output> counts;  // counters of the loops around, i32
    int frames = 0;
    std::size_t body = 0;  // its number
  };

  // Asked by one body alone, since what two of them ask has no order.
  struct Queue {
    Output handle;
    std::size_t device = 0;
    std::optional<std::size_t> body = {};
  };

  void note(const std::string& what) { has_.insert(what); }
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  template <class T>
  const T& any(const std::vector<T>& of) {
    return of[random_.below(of.size())];
  }
  std::size_t place() { return random_.below(count_); }
  template <class F>
  Output somewhere(F&& make) {
    return on(g_, devices_[place()], make);
  }

  // Never far from zero, however often it is done.
  Output computed(const Scope& scope) {
    const Output a = any(scope.values), b = any(scope.values);
    const std::uint64_t which = random_.below(4);
    return somewhere([&] {
      switch (which) {
        case 0:
          return sin(a) + b * 0.5;
        case 1:
          return cos(a * b);
        case 2:
          return a * 0.5 - b * 0.25;
        default:
          return maximum(a, b) * 0.75;
      }
    });
  }

  Output truth(const Scope& scope) {
    const Output a = any(scope.values), b = any(scope.values);
    if (!scope.counts.empty() && one_in(2)) {
      const Output i = any(scope.counts);
      return somewhere([&] { return mod(i, constant(g_, 2)) == 0; });
    }
    return somewhere([&] { return a < b; });
  }

  // On a branch that is taken, on one that is not, or on none.
  std::vector<Output> loop_or_branch(const Scope& scope) {
    const std::uint64_t which = random_.below(10);
    if (which > 1) return loop(scope);
    note(which == 0 ? "the outermost loop is dead" : "the outermost loop is on a branch");
    const Output least = times_[0];
    const Output taken = which == 0 ? least < -1 : least > -1;
    const Output otherwise = scope.values[0];
    return {cond(
        taken, [&] { return loop(scope)[0]; }, [&] { return otherwise; })};
  }

  // Its last values.
  std::vector<Output> loop(const Scope& around) {
    const std::size_t number = loops_++;
    const int frames = around.frames + 1;
    deepest_ = std::max(deepest_, frames);
    const std::size_t home = place();
    return on(g_, devices_[home], [&] {
      const std::size_t variables = 1 + random_.below(3);
      std::vector<Output> first{constant(g_, 0)};
      for (std::size_t v = 0; v < variables; ++v) first.push_back(any(around.values));
      const Output bound = bound_of(around);
      const bool by_value = one_in(3);
      const std::size_t looks = place();
      const std::size_t window = std::array<std::size_t, 4>{1, 2, 3, 10}[random_.below(4)];
      note(with_number("window", window));
      std::vector<Output> last = while_loop(
          first,
          [&](const std::vector<Output>& v) {
            const Output more = v[0] < bound;
            if (!by_value) return more;
            note("values say how often");
            return logical_and(more, on(g_, devices_[looks], [&] { return v[1] < 0.9; }));
          },
          [&](const std::vector<Output>& v) {
            print(v[0], {.message = with_number("loop", number)});
            Scope scope = around;
            scope.frames = frames;
            scope.body = ++bodies_;
            scope.counts.push_back(v[0]);
            scope.values.insert(scope.values.end(), v.begin() + 1, v.end());
            const std::uint64_t statements = 2 + random_.below(3);
            for (std::uint64_t s = 0; s < statements; ++s) statement(scope);
            // Some of the body's own, so that what it does matters; some that change places.
            std::vector<Output> next{v[0] + 1};
            for (std::size_t k = 0; k < variables; ++k)
              next.push_back(k == 0 ? scope.values.back() : any(scope.values));
            return next;
          },
          {.window = std::int64_t(window)});
      last.erase(last.begin());
      return last;
    });
  }

  Output bound_of(const Scope& around) {
    const int most = around.frames == 0 ? 5 : 3;
    switch (random_.below(around.counts.empty() ? 2 : 3)) {
      case 0:
        return constant(g_, one_in(8) ? 0 : 1 + int(random_.below(std::uint64_t(most))));
      case 1: {
        note("a variable says how often");
        const Output n = any(times_);
        return mod(n, constant(g_, most + 1));
      }
      default:
        note("a loop around says how often");
        return mod(any(around.counts), constant(g_, most));
    }
  }

  void statement(Scope& scope) {
    const std::uint64_t which = random_.below(20);
    if (which < 5) {
      scope.values.push_back(computed(scope));
    } else if (which < 9) {
      scope.values.push_back(branch(scope));
    } else if (which < 14) {
      if (scope.frames < kFrames) scope.values.push_back(loop(scope)[0]);
    } else if (which < 15) {
      note("a function that calls itself");
      const Output x = any(scope.values);
      scope.values.push_back(somewhere([&] { return deep_->call({constant(g_, 2.0), x})[0]; }));
    } else {
      effect(scope);
    }
  }

  Output branch(const Scope& scope) {
    note("a branch");
    const auto side = [&]() -> Output {
      Scope own = scope;
      own.body = ++bodies_;
      if (one_in(2)) effect(own);
      if (own.frames < kFrames && one_in(5)) {
        note("a loop on a branch");
        own.values.push_back(loop(own)[0]);
      }
      return one_in(3) ? any(own.values) : computed(own);
    };
    const Output taken = truth(scope);
    return cond(taken, side, side);
  }

  // One that this body may ask.
  Queue* queue(const char* kind, const Scope& scope) {
    Queue& queue = queues_[kind][random_.below(queues_[kind].size())];
    if (queue.body.value_or(scope.body) != scope.body) return nullptr;
    queue.body = scope.body;
    return &queue;
  }
  void fill(const Queue& queue, const Output& x) {
    on(g_, devices_[queue.device], [&] { return enqueue(queue.handle, {x}); });
  }
  Output taken(const Queue& queue) {
    return on(g_, devices_[queue.device], [&] { return taken_from(queue.handle); });
  }

  // What is done in an order that can be told.
  void effect(Scope& scope) {
    const Output x = any(scope.values);
    const std::uint64_t which = random_.below(5);
    if (which == 0) {
      note("a Print");
      somewhere([&] { return print(x, {.message = with_number("value", prints_++)}); });
    } else if (which == 1) {
      const Queue* to = queue("out", scope);
      if (!to) return;
      note("a queue is filled");
      fill(*to, x);
    } else if (which == 2) {
      const Queue* from = queue("in", scope);
      if (!from) return;
      note("a queue is emptied");
      scope.values.push_back(taken(*from));
    } else if (which == 3) {
      const Queue* both = queue("both", scope);
      if (!both) return;
      note("a queue is filled and emptied");
      fill(*both, x);
      scope.values.push_back(taken(*both));
    } else {
      note("a variable is written");
      const std::size_t k = place();
      on(g_, devices_[k], [&] { return assign_add(written_[k], sin(x)); });
      if (one_in(2))
        scope.values.push_back(on(g_, devices_[k], [&] { return cos(read(written_[k])); }));
    }
  }

  Graph& g_;
  const Devices& devices_;
  Random random_;
  std::set<std::string>& has_;
  std::size_t count_ = 0, loops_ = 0, prints_ = 0, bodies_ = 0;
  int deepest_ = 0;
  std::map<std::string, std::vector<Queue>> queues_;  // by what they are for
  std::vector<Variable> written_;                     // by device
  std::vector<Output> read_, times_;                  // by device
  std::optional<Function> deep_;
};

}  // namespace

DrawnLoop drawn_loop(std::uint64_t seed) {
  DrawnLoop drawn;
  drawn.seed = seed;
  drawn.make = [seed](Graph& g, const Devices& devices) {
    std::set<std::string> unused;
    return Drawer(g, devices, seed, unused).draw();
  };
  Random random(mix64(seed));
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t q = 0; q < kQueuesOfKind; ++q) {
      drawn.world.queues[queue_name("in", k, q)].endless = true;
      drawn.world.queues[queue_name("out", k, q)];
      drawn.world.queues[queue_name("both", k, q)].elements = {Tensor::scalar(0.5),
                                                               Tensor::scalar(-0.5)};
    }
    drawn.world.variables[by_device("written", k)] = Tensor::scalar(random.uniform(-1, 1));
    drawn.world.variables[by_device("read", k)] = Tensor::scalar(random.uniform(-1, 1));
    drawn.world.variables[by_device("times", k)] =
        Tensor::scalar(random.below(8) == 0 ? 0 : 1 + int(random.below(3)));
  }
  Graph g;
  Drawer(g, kAlone, seed, drawn.has).draw();
  return drawn;
}

}  // namespace troupe::test::loops
