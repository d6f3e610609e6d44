// What a rule of one's own may write.
#include <doctest/doctest.h>

#include "ops/optim/optim.hpp"
#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using test::check_refused;
using test::Interpreter;

namespace {

// Plain descent, by one of its author's own writes.
struct Own {
  enum class By { write, assign, old_node, nothing } by = By::write;
  Op old = {};
  Op update(const optim::Parameter& p) const {
    if (by == By::nothing) return {};
    if (by == By::old_node) return old;
    if (by == By::assign) return assign(p.variable(), p.variable() - 0.05f * p.gradient());
    return p.write({.op = "ApplyGradientDescent",
                    .inputs = {p.variable().handle(), p.rate(0.05, "lr"), p.gradient()}});
  }
  Op apply(const optim::Gradients& gradients, Site site = Site::here()) const {
    return optim::apply_rule(*this, gradients, site);
  }
};

}  // namespace

TEST_CASE("a rule's own write is refused under accumulate, by the line that writes") {
  Graph g;
  const Variable w = variable(g, "w", Tensor::scalar(1.0f));
  const optim::Gradients each = optim::gradients(w * 2.0f);
  const Op old = assign(w, w + 1.0f);
  const std::string writes = "in every run, also in those that accumulate() leaves out";
  const auto twice = [&](Site site = Site::here()) { return optim::accumulate(each, 2, site); };
  check_refused({
      {"the update of 'w' is an empty Op", [&] { Own{Own::By::nothing}.apply(each); }},
      {"the update of 'w' is an empty Op", [&] { Own{Own::By::nothing}.apply(twice()); }},
  });
  for (const Own& own : {Own{Own::By::assign}, Own{Own::By::old_node, old}}) {
    try {
      own.apply(twice());
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& e) {
      CHECK_MESSAGE(e.status().message().find(writes) != std::string::npos, e.what());
      CHECK(e.status().site().file.ends_with("own_rule_test.cpp"));
    }
  }
  Own{Own::By::assign}.apply(each);  // where every run counts, that is a rule's own affair
}

TEST_CASE("a rule that writes by the parameter leaves out the runs between") {
  Graph g;
  const Variable w = variable(g, "w", Tensor::scalar(1.0f));
  const Op train = Own{}.apply(optim::accumulate(optim::gradients(w * 2.0f), 2));
  Interpreter run(g);
  run.init();
  for (float after : {1.0f, 0.9f, 0.9f, 0.8f}) {
    run.run({}, {train});
    CHECK(run.variable(w).item<float>() == doctest::Approx(after));
  }
}
