#include "actors/supervision/supervision.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tests/contains.hpp"

using namespace troupe;
using test::contains;
using namespace std::chrono_literals;

namespace {

using State = Supervision::State;

// A supervisor whose children do what the test says. Writes down what it is told.
struct Troop {
  Supervision machine;
  Supervision::Outputs out;
  Instant now = 0s;
  std::string log;  // "+a -a !a": starts, stops, kills since the last look
  std::map<std::string, std::uint64_t> alive;
  std::optional<Status> over;
  bool starts = true, leaves = true;  // children start, and end when they are asked, at once
  std::set<std::string> broken;       // cannot be started

  explicit Troop(SupervisorSpec spec, std::vector<ChildSpec> children, std::uint64_t seed = 1)
      : machine(spec, std::move(children), seed) {}

  void carry_out() {
    while (!out.empty()) {
      const auto output = out.front();
      out.pop_front();
      if (const auto* start = std::get_if<Supervision::Start>(&output)) {
        log += "+" + start->child + " ";
        if (broken.contains(start->child)) {
          machine.ended(start->child, start->incarnation, {false, "cannot be run"}, now, out);
          continue;
        }
        REQUIRE(alive.emplace(start->child, start->incarnation).second);
        if (starts) machine.started(start->child, start->incarnation, now, out);
      } else if (const auto* stop = std::get_if<Supervision::Stop>(&output)) {
        log += "-" + stop->child + " ";
        REQUIRE(alive.at(stop->child) == stop->incarnation);
        if (leaves) end(stop->child, true);
      } else if (const auto* kill = std::get_if<Supervision::Kill>(&output)) {
        log += "!" + kill->child + " ";
        end(kill->child, false);
      } else {
        REQUIRE_FALSE(over.has_value());
        over = std::get<Supervision::Over>(output).why;
        REQUIRE(alive.empty());
      }
    }
  }
  void end(const std::string& child, bool normal, std::string how = "crashed") {
    const std::uint64_t incarnation = alive.at(child);
    alive.erase(child);
    machine.ended(child, incarnation, {normal, std::move(how)}, now, out);
  }
  std::string after(auto&& input) {
    log.clear();
    input();
    carry_out();
    return log;
  }
  std::string begin() {
    return after([&] { machine.begin(now, out); });
  }
  std::string crash(const std::string& child) {
    return after([&] { end(child, false); });
  }
  std::string leave(const std::string& child) {
    return after([&] { end(child, true); });
  }
  std::string stop() {
    return after([&] { machine.stop(now, out); });
  }
  std::string wait(Instant time) {
    now += time;
    return after([&] { machine.tick(now, out); });
  }
  State state(const std::string& child) const {
    for (const auto& c : machine.children())
      if (c.spec.id == child) return c.state;
    FAIL("no child " << child);
    return State::idle;
  }
};

std::vector<ChildSpec> abc(Restart restart = Restart::permanent) {
  return {{"a", restart}, {"b", restart}, {"c", restart}};
}

}  // namespace

TEST_CASE("children start in order and stop in reverse") {
  Troop t({}, abc());
  CHECK(t.begin() == "+a +b +c ");
  CHECK(t.machine.running());
  CHECK(t.stop() == "-c -b -a ");
  REQUIRE(t.over.has_value());
  CHECK(t.over->ok());
}

TEST_CASE("a child starts when those before it run") {
  Troop t({}, abc());
  t.starts = false;
  CHECK(t.begin() == "+a ");
  CHECK(t.after([&] { t.machine.started("a", 1, t.now, t.out); }) == "+b ");
  CHECK_FALSE(t.machine.running());
  CHECK(t.stop() == "-b -a ");
}

TEST_CASE("a child that cannot be started ends a supervisor that starts") {
  Troop t({}, abc());
  t.broken = {"c"};
  CHECK(t.begin() == "+a +b +c -b -a ");
  REQUIRE(t.over.has_value());
  CHECK(t.over->code() == Code::unavailable);
  CHECK(contains(t.over->text(), "child 'c' cannot be run before it was started"));
}

TEST_CASE("a child that could not be started is not asked to end") {
  // Both are due at once, and the first one exceeds the intensity.
  Troop t({.intensity = 2, .period = 60s, .first_pause = 1s, .longest_pause = 1s},
          {{"a", Restart::permanent}, {"b", Restart::permanent}});
  CHECK(t.begin() == "+a +b ");
  CHECK(t.crash("a").empty());
  CHECK(t.crash("b").empty());
  t.broken = {"a", "b"};
  CHECK(t.wait(1s) == "+a +b ");
  REQUIRE(t.over.has_value());
  CHECK(contains(t.over->text(), "child 'a' cannot be run, after 2 restarts within 60 s"));
}

TEST_CASE("the strategy says who is restarted with the child that ended") {
  const auto after_b = [](Strategy strategy) {
    Troop t({.strategy = strategy, .intensity = 3}, abc());
    t.begin();
    return t.crash("b");
  };
  CHECK(after_b(Strategy::one_for_one) == "+b ");
  CHECK(after_b(Strategy::one_for_all) == "-c -a +a +b +c ");
  CHECK(after_b(Strategy::rest_for_one) == "-c +b +c ");
}

TEST_CASE("permanent children are always restarted, transient ones after a crash, others never") {
  for (auto [restart, left, crashed] : {std::tuple{Restart::permanent, true, true},
                                        {Restart::transient, false, true},
                                        {Restart::temporary, false, false}}) {
    const auto name = name_of(restart);
    CAPTURE(name);
    Troop t({.intensity = 5}, abc(restart));
    t.begin();
    CHECK(t.leave("b") == (left ? "+b " : ""));
    CHECK(t.crash("c") == (crashed ? "+c " : ""));
    CHECK(t.state("b") == (left ? State::running : State::ended));
    CHECK(t.stop() == (left ? "-c -b -a " : crashed ? "-c -a " : "-a "));
  }
}

TEST_CASE("a temporary child that was stopped with another is not started again") {
  Troop t({.strategy = Strategy::one_for_all}, {{"a"}, {"b", Restart::temporary}, {"c"}});
  t.begin();
  CHECK(t.crash("a") == "-c -b +a +c ");
  CHECK(t.state("b") == State::ended);
}

TEST_CASE("more restarts than the intensity within the period end the supervisor with the cause") {
  Troop t({.intensity = 2, .period = 10s}, abc());
  t.begin();
  for (int k = 0; k < 50; ++k) {  // far enough apart
    t.now += 6s;
    CHECK(t.crash("b") == "+b ");
  }
  t.now += 10s;
  CHECK(t.crash("a") == "+a ");
  t.now += 9s;
  CHECK(t.crash("b") == "+b ");
  CHECK(t.crash("b") == "-c -a ");
  REQUIRE(t.over.has_value());
  CHECK(contains(t.over->text(), "child 'b' crashed, after 2 restarts within 10 s"));
  CHECK(t.machine.children()[1].restarts == 51);
  CHECK(t.machine.children()[1].last_exit == "crashed");
}

TEST_CASE("restarts before progress do not count") {
  Troop t({.intensity = 1, .period = 60s, .first_pause = 1s, .longest_pause = 8s}, abc());
  t.begin();
  for (int k = 0; k < 20; ++k) {
    CHECK(t.crash("b").empty());
    CHECK(t.wait(1s) == "+b ");
    t.machine.progressed();
  }
  CHECK(t.crash("b").empty());
  t.wait(1s);
  CHECK(t.crash("b") == "-c -a ");
}

TEST_CASE("the pause before a restart doubles, up to the longest") {
  Troop t({.intensity = 100, .period = 1h, .first_pause = 1s, .longest_pause = 8s}, abc());
  t.begin();
  for (const Instant most : {1s, 2s, 4s, 8s, 8s, 8s}) {
    CHECK(t.crash("b").empty());
    const Instant at = t.machine.next_wakeup();
    CHECK(at - t.now <= most);
    CHECK(at - t.now >= most / 2);
    CHECK(t.wait(at - t.now - 1ns).empty());
    CHECK(t.wait(1ns) == "+b ");
  }
  CHECK(t.crash("a").empty());  // its own pause
  CHECK(t.machine.next_wakeup() - t.now <= 1s);
}

TEST_CASE("a child that does not leave is killed at its time, or never") {
  Troop t({}, {{"patient", Restart::permanent, Shutdown::infinite()},
               {"timed", Restart::permanent, Shutdown::timed(3s)},
               {"brutal", Restart::permanent, Shutdown::brutal()}});
  t.leaves = false;
  t.begin();
  CHECK(t.stop() == "!brutal -timed ");
  CHECK(t.machine.next_wakeup() == t.now + 3s);
  CHECK(t.wait(2s).empty());
  CHECK(t.wait(1s) == "!timed -patient ");
  CHECK(t.machine.next_wakeup() == kNever);
  CHECK(t.wait(1000h).empty());
  CHECK(t.leave("patient").empty());
  CHECK(t.over.has_value());
}

TEST_CASE("whoever has no patience has all children killed") {
  Troop t({}, {{"a", Restart::permanent, Shutdown::infinite()}, {"b"}, {"c"}});
  t.leaves = false;
  t.begin();
  CHECK(t.stop() == "-c ");
  CHECK(t.after([&] { t.machine.kill_all(t.now, t.out); }) == "!c !b !a ");
  CHECK(t.over.has_value());
}

TEST_CASE("significant children that leave end their supervisor") {
  const std::vector<ChildSpec> children = {
      {"service"},
      {.id = "x", .restart = Restart::transient, .significant = true},
      {.id = "y", .restart = Restart::transient, .significant = true}};
  Troop any({.auto_shutdown = AutoShutdown::any_significant}, children);
  any.begin();
  CHECK(any.crash("x") == "+x ");
  CHECK(any.leave("x") == "-y -service ");
  CHECK(any.over->ok());

  Troop all({.auto_shutdown = AutoShutdown::all_significant}, children);
  all.begin();
  CHECK(all.leave("x").empty());
  CHECK(all.leave("y") == "-service ");
  CHECK(all.over->ok());
}

TEST_CASE("children are added, stopped and restarted by name") {
  Troop t({.intensity = 0}, abc());
  t.begin();
  CHECK(t.after([&] { CHECK(t.machine.add({"d"}, t.now, t.out).ok()); }) == "+d ");
  CHECK(t.machine.add({"d"}, t.now, t.out).code() == Code::already_exists);
  CHECK(t.machine.add({""}, t.now, t.out).code() == Code::invalid_argument);
  CHECK(t.after([&] { CHECK(t.machine.stop_child("b", t.now, t.out).ok()); }) == "-b ");
  CHECK(t.state("b") == State::ended);
  CHECK(t.machine.stop_child("e", t.now, t.out).code() == Code::not_found);
  for (const char* child : {"a", "b", "c", "d"}) {  // costs no restart
    const std::string was = child == std::string("b") ? "" : fmt::format("-{} ", child);
    CHECK(t.after([&] { CHECK(t.machine.restart_child(child, t.now, t.out).ok()); }) ==
          was + fmt::format("+{} ", child));
  }
  CHECK(t.stop() == "-d -c -b -a ");
  CHECK(t.machine.add({"e"}, t.now, t.out).code() == Code::failed_precondition);
}

TEST_CASE("what a supervisor cannot do is refused by name") {
  const auto refused = [](SupervisorSpec spec, std::vector<ChildSpec> children) {
    return spec.check(children).text();
  };
  CHECK(contains(refused({.intensity = -1}, {}), "intensity is -1"));
  CHECK(contains(refused({.period = 0s}, {}), "period"));
  CHECK(contains(refused({.first_pause = 2s, .longest_pause = 1s}, {}), "first_pause"));
  CHECK(contains(refused({}, {{""}}), "id that is not empty"));
  CHECK(contains(refused({}, {{"a"}, {"a"}}), "two children have the id 'a'"));
  CHECK(contains(refused({}, {{"a", Restart::permanent, Shutdown::timed(-1s)}}), "child 'a'"));
  CHECK(contains(refused({}, {{.id = "a", .significant = true}}), "cannot be significant"));
}

// Children that start late, crash, leave, ignore, and are stopped and restarted by name, in any
// order, against what must hold of every supervisor.
TEST_CASE("random children of random supervisors") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    SupervisorSpec spec{.strategy = Strategy(random.below(3)),
                        .intensity = int(random.below(6)),
                        .period = 1s * int(1 + random.below(20)),
                        .auto_shutdown = AutoShutdown(random.below(3))};
    if (random.below(2)) spec.longest_pause = 4 * (spec.first_pause = 1ms * int(random.below(900)));
    std::vector<ChildSpec> specs;
    for (std::uint64_t n = 1 + random.below(5); specs.size() < n;) {
      ChildSpec child{fmt::format("{}", specs.size()), Restart(random.below(3))};
      child.shutdown.within = random.below(4) == 0 ? kNever : 1ms * int(random.below(3000));
      child.significant = child.restart != Restart::permanent && random.below(4) == 0;
      specs.push_back(child);
    }
    REQUIRE(spec.check(specs).ok());
    Supervision machine(spec, specs, seed);
    Supervision::Outputs out;
    Instant now = 0s;
    struct Live {
      std::uint64_t incarnation;
      bool running = false, asked = false, killed = false;
      Instant asked_at{};
    };
    std::map<std::string, Live> live;
    std::map<std::string, std::uint64_t> last;
    std::deque<Instant> restarts;  // within the period
    int counted = 0;
    std::optional<Status> over;
    const auto index = [&](const std::string& child) { return std::stoul(child); };
    const auto look = [&] {
      for (; !out.empty(); out.pop_front()) {
        REQUIRE_FALSE(over.has_value());
        if (const auto* start = std::get_if<Supervision::Start>(&out.front())) {
          REQUIRE(start->incarnation == ++last[start->child]);
          REQUIRE(live.emplace(start->child, Live{start->incarnation}).second);
          for (const auto& [id, other] : live) REQUIRE_FALSE(other.asked);  // one thing at a time
          if (spec.strategy != Strategy::one_for_one)
            for (const auto& [id, other] : live)
              if (index(id) < index(start->child)) REQUIRE(other.running);
        } else if (const auto* stop = std::get_if<Supervision::Stop>(&out.front())) {
          Live& child = live.at(stop->child);
          REQUIRE_FALSE(child.asked);
          for (const auto& [id, other] : live) REQUIRE_FALSE((other.asked && !other.killed));
          child.asked = true;
          child.asked_at = now;
        } else if (const auto* kill = std::get_if<Supervision::Kill>(&out.front())) {
          Live& child = live.at(kill->child);
          REQUIRE_FALSE(child.killed);
          const Instant within = specs.at(index(kill->child)).shutdown.within;
          if (!child.asked) REQUIRE(within == 0s);
          if (child.asked) REQUIRE(now - child.asked_at == within);
          child.killed = child.asked = true;
        } else {
          over = std::get<Supervision::Over>(out.front()).why;
          REQUIRE(live.empty());
          REQUIRE(machine.over());
        }
      }
    };
    machine.begin(now, out);
    look();
    for (int step = 0; step < 200 && !over; ++step) {
      const Instant next = machine.next_wakeup();
      // A child that does something, if there is one.
      auto it = live.begin();
      if (!live.empty()) std::advance(it, std::ptrdiff_t(random.below(live.size())));
      const std::uint64_t deed = random.below(100);
      if (deed < 55 && !live.empty()) {
        const std::string id = it->first;
        Live& child = it->second;
        if (!child.running && !child.asked && deed < 45) {
          child.running = true;
          machine.started(id, child.incarnation, now, out);
        } else if (child.asked || deed > 35) {
          const std::uint64_t incarnation = child.incarnation;
          const bool infinite = specs.at(index(id)).shutdown.within == kNever;
          if (!child.asked || child.killed || infinite || deed < 30) {
            live.erase(it);
            machine.ended(id, incarnation, {deed % 2 == 0, "ended"}, now, out);
            if (deed % 3 == 0)  // told twice
              machine.ended(id, incarnation, {false, "ended"}, now, out);
          }
        }
      } else if (deed < 60) {
        (void)machine.restart_child(fmt::format("{}", random.below(specs.size())), now, out);
      } else if (deed < 62) {
        (void)machine.stop_child(fmt::format("{}", random.below(specs.size())), now, out);
      } else if (deed < 63) {
        machine.stop(now, out);
      } else if (next != kNever) {
        now = std::max(now, next);
        machine.tick(now, out);
      } else {
        now += 10ms;
      }
      look();
      int all = 0;
      for (const auto& child : machine.children()) all += child.restarts;
      if (all > counted) restarts.push_back(now);
      REQUIRE(all - std::exchange(counted, all) <= 1);
      while (!restarts.empty() && restarts.front() + spec.period <= now) restarts.pop_front();
      REQUIRE(int(restarts.size()) <= spec.intensity);
    }
    // Whatever happened: it ends when it is asked, and at the latest with its patience.
    machine.stop(now, out);
    look();
    for (int step = 0; !over; ++step) {
      REQUIRE(step < 100);
      const Instant next = machine.next_wakeup();
      const auto killed =
          std::find_if(live.begin(), live.end(), [](const auto& one) { return one.second.killed; });
      if (killed == live.end() && next != kNever) {
        now = std::max(now, next);
        machine.tick(now, out);
      } else {
        const auto gone = killed == live.end() ? std::prev(live.end()) : killed;
        const std::string id = gone->first;
        const std::uint64_t incarnation = gone->second.incarnation;
        live.erase(gone);
        machine.ended(id, incarnation, {true, "ended"}, now, out);
      }
      look();
    }
  }
}
