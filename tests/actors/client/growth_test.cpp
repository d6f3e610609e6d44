// Sessions of graphs that grow in any way: what they answer is what a new session would.
#include <doctest/doctest.h>

#include <iterator>
#include <list>
#include <random>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/graph/paper_loop.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// A loop that counts to three and makes something of a value, at any stage of being built.
struct GrowingLoop {
  GrowingLoop(Graph& g, const std::string& name, const Output& first) : loop(g, name) {
    limit = loop.constant(constant(g, 3));
    counter = loop.variable(constant(g, 0));
    loop.variable(first);
  }
  // True when nothing is missing.
  bool grow() {
    switch (stage++) {
      case 0:
        loop.again(counter < limit);
        last = loop.last(1);
        return false;
      case 1:
        loop.next(0, loop.passed(0) + 1);
        return false;
      default:
        loop.next(1, loop.passed(1) * 2.0f - 1.0f);
        return true;
    }
  }
  PaperLoop loop;
  Output limit, counter, last;
  int stage = 0;
};

class Growth {
 public:
  Growth(std::uint64_t seed, const Place& place) : random_(seed), place_(place), live_(g_, place) {
    values_.push_back(constant(g_, 0.5f));
    x_ = placeholder<float>(g_, PartialShape::scalar(), "x");
    values_.push_back(x_ + 0.25f);
  }

  void step() {
    switch (below(10)) {
      case 0: {
        auto there = g_.with_device(below(2) == 0 ? place_.first : place_.second);
        values_.push_back(any() * 0.5f + any());
        break;
      }
      case 1: {
        const std::string name = "v" + std::to_string(variables_.size());
        const Variable v = variable(g_, name, float(below(5)));
        live_->init();
        variables_.push_back(name);
        values_.push_back(v.value());
        break;
      }
      case 2:
        loops_.emplace_back(g_, "loop" + std::to_string(frames_++), any());
        break;
      case 3:
      case 4:
        if (loops_.empty()) break;
        grow(below(loops_.size()));
        break;
      case 5: {
        const Output a = any(), b = any();
        values_.push_back(cond(
            x_ > 0.0f, [&] { return a + b; }, [&] { return a * 0.25f; }));
        break;
      }
      case 6: {  // what is taken back was never there
        GraphBuilder::Attempt attempt(g_);
        GrowingLoop loop(g_, "attempt", any());
        while (!loop.grow()) {
        }
        if (!loops_.empty() && loops_.back().stage > 0) {
          GrowingLoop copy = loops_.back();
          copy.grow();
        }
        CHECK_FALSE(live_->try_run({values_[0]}).ok());
        break;
      }
      case 7:
        if (variables_.empty()) break;
        live_->assign({{variables_[below(variables_.size())], Tensor::scalar(float(below(9)))}});
        break;
      default:
        compare();
    }
  }

  void compare() {
    std::vector<Output> fetches{any(), any()};
    const std::vector<Feed> fed{{x_, Tensor::scalar(float(below(3)) - 1.0f)}};
    const auto got = live_->run(fetches, {}, fed);
    PlacedSession fresh(g_, place_);
    if (!variables_.empty()) fresh->assign(live_->variables());
    const auto want = fresh->run(fetches, {}, fed);
    for (std::size_t i = 0; i < fetches.size(); ++i)
      CHECK(got[i].item<float>() == want[i].item<float>());
    if (loops_.empty() || loops_.back().last.empty()) return;
    CHECK_FALSE(live_->try_run({loops_.back().last}, {}, fed).ok());  // it is open
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  Output any() { return values_[below(values_.size())]; }
  void grow(std::size_t i) {
    const auto loop = std::next(loops_.begin(), std::ptrdiff_t(i));
    if (!loop->grow()) return;
    values_.push_back(loop->last);
    loops_.erase(loop);
  }

  std::mt19937_64 random_;
  const Place& place_;
  Graph g_;
  PlacedSession live_;
  Output x_;
  std::vector<Output> values_;
  std::vector<std::string> variables_;
  std::list<GrowingLoop> loops_;
  int frames_ = 0;
};

}  // namespace

TEST_CASE("a session of a graph that grows in any way answers as a new one does") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    const std::uint64_t seeds = place.first == place.second ? 6 : 1;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      CAPTURE(seed);
      Growth growth(seed, place);
      for (int i = 0; i < 40; ++i) growth.step();
      growth.compare();
    }
  }
}
