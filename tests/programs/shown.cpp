// A program that writes all that a summary can hold, with values that are known: shown FOLDER.
// tests/accept/check_events.py reads it.
#include <cmath>
#include <limits>
#include <string>

#include "apps/troupe.hpp"
using namespace troupe;

int main(int argc, char** argv) {
  become_worker_if_started_as_one();
  if (argc < 2) return print("shown FOLDER\n"), 2;
  Graph g;
  const Output step = placeholder<float>(g, PartialShape::scalar(), "step");
  {
    auto inside = g.with_scope("known");
    summary::scalar("step", step);
    summary::scalar("nan", constant(g, std::numeric_limits<float>::quiet_NaN()));
    summary::scalar("infinity", constant(g, std::numeric_limits<float>::infinity()));
    summary::histogram("histogram", constant(g, {-0.5, 0.0, 0.25, 0.25, 3e20}));
    summary::histogram("empty", zeros(g, {0, 3}));
    std::vector<float> tone(2 * 8000);
    for (std::size_t i = 0; i < 8000; ++i) tone[2 * i] = float(std::sin(double(i) * 0.3));
    summary::audio("tone", reshape(constant(g, tone), {1, 8000, 2}), 8000, {.max_outputs = 1});
    std::vector<float> ramp(64);
    for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = float(i) / 63;
    summary::image("ramp", reshape(constant(g, ramp), {1, 4, 4, 4}), {.max_outputs = 1});
    Tensor table = Tensor::of<std::string>({2, 2}, {"a", "b", "gr\xC3\xBC\xC3\x9F", "\xff"});
    summary::text("table", constant(g, table));
  }
  // Functions in the graph that is shown.
  const Function square =
      function(g, "square", {f32_scalar}, {f32_scalar}, [](Function&, Output x) { return x * x; });
  auto [turns, power] = while_loop(
      std::tuple{constant(g, 0.0f), constant(g, 2.0f)}, [](Output i, Output) { return i < 3.0f; },
      [&](Output i, Output p) {
        return std::tuple{i + 1.0f, square(p)};
      });
  const Output chosen = cond(
      power > step, [power = power] { return power; }, [&] { return step; });
  const Output all = summary::merge(
      {summary::merge_all(g), summary::scalar("power", power), summary::scalar("chosen", chosen)});

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  const CompiledStep show = session.compile({all}, {}, {step});
  SummaryWriter writer = value_or_throw(SummaryWriter::open(argv[1]));
  writer.add_graph(g.def());
  for (int i = 1; i <= 5; ++i) {
    if (i == 5) throw_if_error(session.try_start_trace());
    const auto made = show.run({Tensor::scalar(float(i))});
    throw_if_error(writer.add_summary(i, made[0].item<std::string>()));
    throw_if_error(writer.add_scalar(i, "plain", i / 4.0));
  }
  writer.add_timeline(value_or_throw(session.try_stop_trace()), 5);
  writer.flush();
  return writer.lost() == 0 ? 0 : 1;
}
