// Random programs of branches, loops, calls, lists and effects compute, write, print, draw, take
// and put, and have the gradients that an obvious interpreter says; over several devices they have
// the bits of one. One that does not is made smaller and printed as C++.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "core/hash.hpp"
#include "tests/actors/control/control_graph.hpp"
#include "tests/actors/support/heard.hpp"
#include "tests/actors/support/sessions.hpp"

namespace troupe::test::control {
namespace {

// Where programs run, one after the other in one session.
struct Cell {
  const char* name;
  int workers;  // 0: this process alone
  std::vector<std::string> types;
  Placement placement;
};
const Cell kOneDevice{"one device", 0, {"CPU"}, {{"/cpu:0"}}};
const Cell kLate{"a device that is late", 0, {"CPU", "FAKE"}, {{"/cpu:0", "/fake:0"}}};
const Cell kTwoDevices{"two devices", 0, {"CPU", "CPU"}, {{"/cpu:0", "/cpu:1"}, true}};
const Cell kThreeDevices{
    "three devices", 0, {"CPU", "CPU", "CPU"}, {{"/cpu:0", "/cpu:1", "/cpu:2"}, true}};
const Cell kTwoWorkers{
    "two workers", 2, {"CPU"}, {{"/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0"}, true}};
const Cell kThreeWorkers{
    "three workers",
    3,
    {"CPU"},
    {{"/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0", "/job:worker/task:2/cpu:0"}, true}};

class Runs {
 public:
  Runs(const Cell& cell, std::uint64_t seed) : cell(cell) {
    Cluster cluster = one_thread();
    cluster.devices = cell.types;
    cluster.fake_seed = seed;
    if (cell.workers) cluster = workers_.emplace(cell.workers).cluster();
    session_.emplace(graph, cluster);
  }
  Session& session() { return *session_; }

  const Cell& cell;
  Graph graph;

 private:
  std::optional<TcpWorkers> workers_;
  std::optional<Session> session_;
};

constexpr std::chrono::seconds kLongest{60};  // for what should take milliseconds

struct Case {
  std::vector<Inputs> inputs;  // of runs one after the other
  Variables first;
};

Case draw_case(std::uint64_t seed) {
  Random random(mix64(seed));
  auto number = [&] { return std::ldexp(double(random.below(257)) - 128, -6); };  // in [-2, 2]
  Case drawn;
  for (double& w : drawn.first.weights) w = number();
  for (double& s : drawn.first.states) s = number();
  for (int k = 0; k < 10; ++k) drawn.first.queue.push_back(number());
  for (int run = 0; run < 3; ++run) {
    Inputs& in = drawn.inputs.emplace_back();
    for (double& x : in.x) x = number();
    for (std::int32_t& n : in.n) n = std::int32_t(random.below(16));
    for (std::uint64_t k = 1 + random.below(4); k > 0; --k) in.xs.push_back(number());
  }
  return drawn;
}

std::vector<Tensor> fed(const Inputs& in) {
  return {Tensor::scalar(in.x[0]), Tensor::scalar(in.x[1]), Tensor::scalar(in.n[0]),
          Tensor::scalar(in.n[1]), Tensor::of<double>({std::int64_t(in.xs.size())}, in.xs)};
}

std::vector<double> plain(const Tensor& t) {
  if (t.dtype() == DType::i32) return {double(t.item<std::int32_t>())};
  return {t.data<double>(), t.data<double>() + t.elements()};
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

std::string text_of(const std::vector<double>& all) {
  std::string text;
  for (double x : all) text += " " + Tensor::scalar(x).text();
  return text;
}

std::string text_of(const Heard::Lines& all) {
  std::string text;
  for (const auto& [message, lines] : all) {
    text += " " + message + ":";
    for (const std::string& line : lines) text += " " + line;
  }
  return text;
}

// What is different; empty: nothing.
struct Difference {
  std::string what, program;
};

// What the interpreter does not tell to the bit: it is the same wherever a program runs.
struct Evidence {
  std::vector<std::vector<double>> slopes;
  std::vector<Heard::Lines> draws;  // of each run
};

class Comparison {
 public:
  Comparison(Runs& runs, const Program& program, const Case& drawn, Fault fault, bool slopes = true)
      : runs_(runs),
        program_(program),
        drawn_(drawn),
        variables_(drawn.first),
        fault_(fault),
        slopes_(slopes) {}

  Difference difference() {
    Difference found;
    try {
      found.what = compare(found.program);
    } catch (const Error& error) {
      found.what = error.status().text();
    }
    return found;
  }

  const Built& built() const { return built_; }
  const Evidence& evidence() const { return evidence_; }

 private:
  std::string compare(std::string& text) {
    const std::size_t initialized = runs_.graph.initializers().size();
    built_ = build(runs_.graph, program_, drawn_.first, runs_.cell.placement, text);
    std::vector<Op> initial;
    for (std::size_t i = initialized; i < runs_.graph.initializers().size(); ++i)
      initial.emplace_back(&runs_.graph, runs_.graph.initializers()[i]);
    runs_.session().run({}, initial);
    if (built_.uses_queues)
      for (double x : drawn_.first.queue)
        runs_.session().run({}, {built_.add}, {{built_.added, Tensor::scalar(x)}});

    std::vector<Output> left(built_.states.begin(), built_.states.end());
    if (built_.uses_queues) left.insert(left.end(), {built_.waiting, built_.put_count});
    left_ = runs_.session().compile(left);
    std::vector<Output> fetches = built_.results;
    fetches.insert(fetches.end(), built_.also_needed.begin(), built_.also_needed.end());
    auto plain_step = runs_.session().compile(fetches, built_.effects, built_.feeds);
    if (std::string what = run(plain_step, 0, {}); !what.empty())
      return "without gradients: " + what;

    std::vector<Output> xs{built_.feeds[0], built_.feeds[1], built_.feeds[4]};
    for (const Variable& w : built_.weights) xs.push_back(w.handle());
    std::vector<Output> slopes;
    if (slopes_) slopes = value_or_throw(gradients(std::vector{built_.y}, xs));
    for (const Output& slope : slopes)
      if (!slope.empty()) fetches.push_back(slope);
    auto step = runs_.session().compile(fetches, built_.effects, built_.feeds);
    for (std::size_t r = 1; r < drawn_.inputs.size(); ++r)
      if (std::string what = run(step, r, slopes); !what.empty()) return what;
    return {};
  }

  // One run on both sides.
  std::string run(CompiledStep& step, std::size_t r, const std::vector<Output>& slopes) {
    const Inputs& in = drawn_.inputs[r];
    const Ran want = interpret(program_, in, variables_, fault_);
    Heard::Lines said;
    std::vector<Tensor> got;
    {
      Heard heard;
      got = step.run(fed(in), {.timeout = kLongest});
      said = heard.lines();
    }
    for (std::size_t k = 0; k < want.results.size(); ++k)
      if (!same_bits(plain(got[k]), want.results[k]))
        return in_run(r, "result " + std::to_string(k), plain(got[k]), want.results[k]);
    const std::vector<Tensor> after = left_.run();
    for (std::size_t k = 0; k < kStates; ++k)
      if (!same_bits(plain(after[k]), {variables_.states[k]}))
        return in_run(r, "state" + std::to_string(k), plain(after[k]), {variables_.states[k]});
    if (std::string what = compare_said(r, want, std::move(said)); !what.empty()) return what;
    if (built_.uses_queues)
      if (std::string what = compare_queues(r, want, after); !what.empty()) return what;
    for (std::size_t k = want.results.size() + 5; k < got.size(); ++k)
      evidence_.slopes.push_back(plain(got[k]));
    return slopes.empty() ? "" : compare_slopes(r, want, got, slopes);
  }

  // What was printed is what should be, each as often; what was drawn, too, and each time anew.
  std::string compare_said(std::size_t r, const Ran& want, Heard::Lines said) {
    Heard::Lines wanted, draws;
    for (const auto& [number, lines] : want.prints) wanted[message_of(number, false)] = lines;
    for (auto& [message, lines] : wanted) std::sort(lines.begin(), lines.end());
    for (const auto& [number, times] : want.draws) {
      const std::string message = message_of(number, true);
      auto drawn = said.extract(message);
      const std::size_t got = drawn ? drawn.mapped().size() : 0;
      if (got != std::size_t(times))
        return in_run(r, message + "drawn", {double(got)}, {double(times)});
      if (!drawn) continue;
      for (const std::string& number : drawn.mapped())
        if (!drawn_before_.insert(number).second)
          return "in run " + std::to_string(r) + " " + message + "draws again what was drawn";
      draws.insert(std::move(drawn));
    }
    evidence_.draws.push_back(std::move(draws));
    if (said == wanted) return "";
    return "in run " + std::to_string(r) + " is said" + text_of(said) + ", and should be" +
           text_of(wanted);
  }
  // What was put is taken out again.
  std::string compare_queues(std::size_t r, const Ran& want, const std::vector<Tensor>& after) {
    const auto count = [&](std::size_t k) {
      return double(after[kStates + k].item<std::int64_t>());
    };
    if (count(0) != double(variables_.queue.size()))
      return in_run(r, "the number of elements that wait", {count(0)},
                    {double(variables_.queue.size())});
    if (count(1) != double(want.puts.size()))
      return in_run(r, "the number of elements put", {count(1)}, {double(want.puts.size())});
    const std::vector<double> puts = taken(built_.put_one, want.puts.size());
    if (!same_bits(puts, want.puts)) return in_run(r, "what was put", puts, want.puts);
    if (r + 1 < drawn_.inputs.size()) return "";
    const std::vector<double> waiting = taken(built_.take_one, variables_.queue.size());
    return same_bits(waiting, variables_.queue)
               ? ""
               : in_run(r, "what is left", waiting, variables_.queue);
  }
  std::vector<double> taken(const Output& one, std::size_t n) {
    std::vector<double> all;
    while (all.size() < n) all.push_back(runs_.session().run({one})[0].item<double>());
    return all;
  }

  // Sums in another order are not the same to the bit.
  static std::string compare_slopes(std::size_t r, const Ran& want, const std::vector<Tensor>& got,
                                    const std::vector<Output>& slopes) {
    const std::vector<Slope> wanted[] = {
        {want.x[0]}, {want.x[1]}, want.xs, {want.weights[0]}, {want.weights[1]}};
    constexpr const char* kNames[] = {"x0", "x1", "xs", "weight0", "weight1"};
    std::size_t at = want.results.size() + 5;
    for (std::size_t k = 0; k < 5; ++k) {
      std::vector<double> is(wanted[k].size(), 0), should;
      for (const Slope& s : wanted[k]) should.push_back(s.value);
      if (!slopes[k].empty()) is = plain(got[at++]);
      bool near = is.size() == should.size();
      for (std::size_t i = 0; near && i < is.size(); ++i)
        near = std::abs(is[i] - should[i]) <= 1e-11 * wanted[k][i].size;
      if (!near) return in_run(r, std::string("the gradient of ") + kNames[k], is, should);
    }
    return {};
  }

  static std::string in_run(std::size_t r, const std::string& what, const std::vector<double>& is,
                            const std::vector<double>& should) {
    return "in run " + std::to_string(r) + " " + what + " is" + text_of(is) + ", and should be" +
           text_of(should);
  }

  Runs& runs_;
  const Program& program_;
  const Case& drawn_;
  Variables variables_;
  const Fault fault_;
  const bool slopes_;  // compared, too
  Built built_;
  CompiledStep left_;  // reads what the effects have left
  Evidence evidence_;
  std::set<std::string> drawn_before_;
};

// A program on the devices of a cell; where that has several, beside the same on one of them.
class Try {
 public:
  Try(const Cell& cell, std::uint64_t seed) : runs_(cell, seed) {
    if (cell.placement.devices.size() > 1) alone_.emplace(kOneDevice, seed);
  }

  Difference difference(const Program& program, const Case& drawn, Fault fault,
                        bool slopes = true) {
    Comparison here(runs_, program, drawn, fault, slopes);
    Difference found = here.difference();
    lists_on_channels_ = here.built().lists_on_channels;
    if (!found.what.empty() || !alone_) return found;
    Comparison there(*alone_, program, drawn, fault, slopes);
    Difference other = there.difference();
    if (!other.what.empty()) return {"on one device: " + other.what, other.program};
    for (std::size_t k = 0; k < here.evidence().slopes.size(); ++k) {
      const std::vector<double>&is = here.evidence().slopes[k],
            &should = there.evidence().slopes[k];
      if (!same_bits(is, should))
        found.what = "gradient " + std::to_string(k) + " is" + text_of(is) +
                     ", and on one device it is" + text_of(should);
    }
    if (here.evidence().draws != there.evidence().draws)
      found.what = "it draws other numbers than on one device";
    return found;
  }
  bool lists_on_channels() const { return lists_on_channels_; }

 private:
  Runs runs_;
  std::optional<Runs> alone_;
  bool lists_on_channels_ = false;
};

// The case is one that can be compared. Adds what happens in it to `seen` where it is given.
bool is_sound(const Program& program, const Case& drawn, std::vector<Seen>* seen = nullptr) {
  Variables variables = drawn.first;
  std::vector<Seen> all;
  for (const Inputs& in : drawn.inputs) {
    Ran ran = interpret(program, in, variables);
    if (!ran.sound) return false;
    all.push_back(ran.seen);
  }
  if (seen) seen->insert(seen->end(), all.begin(), all.end());
  return true;
}

// The same difference in as little of the program as can be.
Difference smallest(Program& program, const Case& drawn, const Cell& cell, std::uint64_t seed,
                    Difference found, Fault fault) {
  for (int n = 0, tries = 0; tries < 2000; ++tries) {
    Program smaller = program;
    if (!make_smaller(smaller, n)) break;
    Difference still;
    if (is_sound(smaller, drawn)) still = Try(cell, seed).difference(smaller, drawn, fault);
    if (still.what.empty()) {
      ++n;
    } else {
      program = std::move(smaller);
      found = std::move(still);
    }
  }
  return found;
}

// Programs in which something happened.
struct Probes {
  std::uint64_t three_frames = 0;      // of loops over three devices
  std::uint64_t four_open = 0;         // iterations of a loop over several devices
  std::uint64_t dead_branches = 0;     // with a loop, where there are several devices
  std::uint64_t gradients_across = 0;  // processes
  std::uint64_t lists_on_channels = 0;

  static constexpr std::pair<const char*, std::uint64_t Probes::*> kAll[] = {
      {"three frames over three devices", &Probes::three_frames},
      {"four iterations open", &Probes::four_open},
      {"a loop in a dead branch", &Probes::dead_branches},
      {"gradients across processes", &Probes::gradients_across},
      {"lists on channels", &Probes::lists_on_channels}};
};

struct Tried {
  int different = 0;  // from the interpreter
  std::uint64_t programs = 0;
  Probes probes;
  std::vector<Seen> seen;  // of each run
  int count(int Seen::*what) const {
    int n = 0;
    for (const Seen& s : seen) n += s.*what > 0;
    return n;
  }
  int deep(int least) const {
    int n = 0;
    for (const Seen& s : seen) n += s.deepest_loop >= least;
    return n;
  }
};

void add(Probes& probes, const Cell& cell, const Program& program, const std::vector<Seen>& seen,
         bool lists_on_channels) {
  if (cell.placement.devices.size() == 1) return;
  bool three_frames = false, four_open = false, dead_branch = false, across = false;
  for (const Seen& run : seen) {
    dead_branch |= run.dead_loops > 0;
    for (const auto& [loop, is] : run.loops) {
      const std::size_t devices =
          devices_of(program, is.standing.functions, *loop, is.standing.in_function, cell.placement)
              .size();
      three_frames |= is.nested >= 3 && devices >= 3;
      four_open |= is.trips >= 4 && devices >= 2;
    }
    // y is a sum on the first one.
    for (const auto& [statement, standing] : run.differentiated)
      across |= cell.workers > 0 && device_of(program, standing.functions, *statement,
                                              standing.in_function, cell.placement) > 0;
  }
  probes.three_frames += three_frames;
  probes.four_open += four_open;
  probes.dead_branches += dead_branch;
  probes.gradients_across += across;
  probes.lists_on_channels += lists_on_channels;
}

constexpr std::uint64_t kProgramsOfWorkers = 5;  // which take long to start
constexpr int kMostDifferent = 3;                // each takes long to be made small

// Of `every` programs one has its gradients compared, which take most of the time.
void try_programs(const Cell& cell, std::uint64_t from, std::uint64_t programs, Tried& tried,
                  std::uint64_t every = 1) {
  std::unique_ptr<Try> runs;
  const bool deep = cell.workers > 0 || cell.placement.devices.size() == 3;
  for (std::uint64_t seed = from; programs > 0; ++seed) {
    CAPTURE(seed);
    Program program = draw_program(seed, deep);
    const Case drawn = draw_case(seed);
    std::vector<Seen> seen;
    if (!is_sound(program, drawn, &seen)) continue;
    const bool slopes = programs % every == 0;
    for (Seen& s : seen)
      if (!slopes) {
        s.gradients_through_loops = 0;
        s.differentiated.clear();
      }
    if (!runs || cell.workers == 0 || programs % kProgramsOfWorkers == 0) {
      runs.reset();
      runs = std::make_unique<Try>(cell, seed);
    }
    Difference found = runs->difference(program, drawn, Fault::none, slopes);
    if (!found.what.empty()) {
      const Difference small = smallest(program, drawn, cell, seed, found, Fault::none);
      FAIL_CHECK("seed ", seed, ", ", cell.name, ": ", found.what,
                 "\nat its smallest: ", small.what, "\n", small.program);
      if (++tried.different == kMostDifferent) FAIL("that is enough: no more programs are tried");
      runs.reset();
    } else {
      add(tried.probes, cell, program, seen, runs->lists_on_channels());
      tried.seen.insert(tried.seen.end(), seen.begin(), seen.end());
    }
    ++tried.programs;
    --programs;
  }
}

std::size_t statements_in(const Block& block) {
  std::size_t n = block.statements.size();
  for (const Statement& s : block.statements)
    for (const Block& inner : s.blocks) n += statements_in(inner);
  return n;
}

bool same(const std::vector<Slope>& a, const std::vector<Slope>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::abs(a[i].value - b[i].value) > 1e-9 * (1 + a[i].size)) return false;
  return a.size() == b.size();
}

// The interpreter itself sees no difference that the fault makes. Gradients are not compared in the
// first run.
bool same_with(Fault fault, const Program& program, const Case& drawn) {
  Variables right = drawn.first, wrong = drawn.first;
  for (std::size_t r = 0; r < drawn.inputs.size(); ++r) {
    const Ran a = interpret(program, drawn.inputs[r], right);
    const Ran b = interpret(program, drawn.inputs[r], wrong, fault);
    if (a.results.size() != b.results.size()) return false;
    for (std::size_t k = 0; k < a.results.size(); ++k)
      if (!same_bits(a.results[k], b.results[k])) return false;
    if (std::memcmp(right.states, wrong.states, sizeof right.states) != 0) return false;
    if (right.queue != wrong.queue || a.puts != b.puts) return false;
    if (a.prints != b.prints || a.draws != b.draws) return false;
    if (r > 0 && !(same({a.x[0], a.x[1], a.weights[0], a.weights[1]},
                        {b.x[0], b.x[1], b.weights[0], b.weights[1]}) &&
                   same(a.xs, b.xs)))
      return false;
  }
  return true;
}

// The first program from a seed on in which the fault makes a difference.
std::uint64_t first_with(Fault fault, std::uint64_t seed) {
  const std::uint64_t last = seed + 5'000;
  for (; seed < last; ++seed) {
    const Program program = draw_program(seed);
    const Case drawn = draw_case(seed);
    if (is_sound(program, drawn) && !same_with(fault, program, drawn)) break;
  }
  REQUIRE(seed < last);
  return seed;
}

// Of so many runs, those in which that happened: a generator that has gone blind proves nothing.
void check_seen(const Tried& tried, std::uint64_t programs, std::uint64_t each) {
  REQUIRE(tried.programs >= programs);
  for (const auto& probe : Probes::kAll) {
    const std::string name(probe.first);
    const std::uint64_t found = tried.probes.*probe.second;
    MESSAGE(name << ": " << found << " of " << tried.programs);
    CHECK_MESSAGE(found >= each, name);
  }
  auto percent = [&](int count) { return 100.0 * count / double(tried.seen.size()); };
  CHECK(percent(tried.deep(3)) >= 3);
  CHECK(percent(tried.deep(2)) >= 20);
  CHECK(percent(tried.count(&Seen::dead_loops)) >= 5);
  CHECK(percent(tried.count(&Seen::no_trips)) >= 5);
  CHECK(percent(tried.count(&Seen::lists_in_loops)) >= 5);
  CHECK(percent(tried.count(&Seen::branches_in_loops)) >= 5);
  CHECK(percent(tried.count(&Seen::calls_in_loops)) >= 2);
  CHECK(percent(tried.count(&Seen::writes_in_branches)) >= 5);
  CHECK(percent(tried.count(&Seen::writes_in_loops)) >= 5);
  CHECK(percent(tried.count(&Seen::reads_after_writes)) >= 4);
  CHECK(percent(tried.count(&Seen::reads_in_loops)) >= 2);
  CHECK(percent(tried.count(&Seen::out_of_range)) >= 5);
  CHECK(percent(tried.count(&Seen::gradients_through_loops)) >= 3);
  CHECK(percent(tried.count(&Seen::prints_in_loops)) >= 3);
  CHECK(percent(tried.count(&Seen::draws_in_loops)) >= 3);
  CHECK(percent(tried.count(&Seen::queues_in_loops)) >= 3);
  CHECK(percent(tried.count(&Seen::takes)) >= 3);
  CHECK(percent(tried.count(&Seen::deepest_call)) >= 3);
  CHECK(percent(tried.count(&Seen::fours_in_loops)) >= 5);
  CHECK(percent(tried.count(&Seen::fours_in_calls)) >= 5);
}

}  // namespace

TEST_CASE("random programs do what an obvious interpreter does") {
  constexpr std::uint64_t kEvery = 5;
  Tried tried;
  try_programs(kOneDevice, 11'000, 36, tried, 3);
  try_programs(kLate, 2'000, 5, tried, kEvery);
  try_programs(kTwoDevices, 5'000, 8, tried, kEvery);
  try_programs(kThreeDevices, 6'000, 7, tried, kEvery);
  try_programs(kTwoWorkers, 3'000, 4, tried, 2);
  try_programs(kThreeWorkers, 4'000, 4, tried, 2);
  check_seen(tried, 60, 1);
}

TEST_CASE("10,000 random programs do what an obvious interpreter does [slow]") {
  Tried tried;
  try_programs(kOneDevice, 1'000'000, 3'000, tried);
  try_programs(kLate, 2'000'000, 1'000, tried);
  try_programs(kTwoDevices, 5'000'000, 2'000, tried);
  try_programs(kThreeDevices, 6'000'000, 2'000, tried);
  try_programs(kTwoWorkers, 3'000'000, 1'200, tried);
  try_programs(kThreeWorkers, 4'000'000, 800, tried);
  check_seen(tried, 10'000, 500);
}

TEST_CASE("a mistake in what a random program should do is found wherever it makes a difference") {
  for (Fault fault : kFaults) {
    CAPTURE(int(fault));
    const std::uint64_t seed = first_with(fault, 500'001);
    CAPTURE(seed);
    const Program program = draw_program(seed);
    const Case drawn = draw_case(seed);
    CHECK(!Try(kOneDevice, seed).difference(program, drawn, fault).what.empty());
  }
}

TEST_CASE("a random program that does something else is made small, and printed as C++") {
  const std::uint64_t seed = first_with(Fault::one_iteration_more, 610'000);
  CAPTURE(seed);
  Program program = draw_program(seed);
  const Case drawn = draw_case(seed);
  const Difference found =
      Try(kOneDevice, seed).difference(program, drawn, Fault::one_iteration_more);
  REQUIRE(!found.what.empty());
  const Difference small =
      smallest(program, drawn, kOneDevice, seed, found, Fault::one_iteration_more);
  CHECK(!small.what.empty());
  CHECK(statements_in(program.main) <= 2);
  CHECK_MESSAGE(small.program.find("while_loop(") != std::string::npos, small.program);
}

}  // namespace troupe::test::control
