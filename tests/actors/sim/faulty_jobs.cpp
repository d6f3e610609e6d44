#include "tests/actors/sim/faulty_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr Instant kSilence = 2s;
// After the last fault is over, everything has been answered, or ended, within this.
constexpr Instant kSettled = 60s;
// Where nothing is in the way, a job ends within this.
constexpr Instant kPrompt = 1s;
// Of cuts and pauses together, as long as nobody can be taken for lost by them.
constexpr Instant kHarmless = kSilence - 500ms;

// Two variables on two workers that move together, and a file of both.
struct Program {
  Program() {
    a = variable_on(g, kTask0, "a", Tensor::scalar(0.0f));
    b = variable_on(g, kTask1, "b", Tensor::scalar(0.0f));
    fetches = {a.value(), b.value()};
    // What each adds needs the other one's value.
    Output both = a.value() - b.value();
    {
      auto there = g.with_device(kTask0);
      step.push_back(assign_add(a, (b.value() - a.value()) + 1.0f));
    }
    {
      auto there = g.with_device(kTask1);
      step.push_back(assign_add(b, both + 1.0f));
    }
    std::vector<Output> read;
    {
      auto there = g.with_device(kTask0);
      Output prefix = constant(g, Tensor::scalar<std::string>("saved"));
      write = {save(prefix, fetches, {"a", "b"})};
      read = restore(prefix, {"a", "b"}, {DType::f32, DType::f32},
                     {.shapes = {PartialShape::scalar(), PartialShape::scalar()}});
    }
    restored = {assign(a, read[0]), assign(b, read[1])};
  }
  Graph g;
  Variable a, b;
  std::vector<Output> fetches;
  std::vector<Op> step, write, restored;
};

// What a file of the program may hold, as far as its writers were told.
struct Saved {
  bool certain = false;           // a save was answered ok
  std::vector<float> candidates;  // the last such, and those after it that nobody answered for
};

class Job {
 public:
  Job(std::uint64_t seed, FileSystem& files, Saved& saved, FaultyJobs& all)
      : random_(hash_combine(seed, 1)),
        saved_(saved),
        all_(all),
        world_(seed, {.files = &files, .come_again = true}) {}

  void play();

 private:
  void wrong(const std::string& what) {
    all_.wrong.push_back(
        fmt::format("job {}: {} ({}); {}", all_.jobs, what, faults_, world_.text()));
  }
  bool undisturbed() const { return !crashed_ && disturbed_ < kHarmless; }

  void inflict();
  void inflict(Fault fault);
  Instant draw(Instant shortest, std::uint64_t doublings) {
    return shortest * (1 + random_.below(std::uint64_t{1} << random_.below(doublings)));
  }
  void last(Instant duration) { faults_until_ = std::max(faults_until_, world_.now() + duration); }
  std::vector<std::size_t> running() const;

  void write_script(Client& client);
  void record(Client& client);
  void wait_for_recording();
  void check_runs(const Client& client);
  void check_answer(const Status& status, const char* what);
  void end();

  Random random_;
  Saved& saved_;
  FaultyJobs& all_;
  World world_;
  Program program_;
  std::vector<Fault> kinds_;
  std::uint64_t every_ = 0, left_ = 0;
  Instant faults_until_{0}, disturbed_{0};
  bool crashed_ = false;
  std::string faults_;
  bool resumed_ = false;
  std::optional<Instant> recording_asked_;  // for what was recorded
  bool recording_told_ = false, recording_gathered_ = false;
  std::vector<char> script_;  // of the client's runs: which of its steps
};

std::vector<std::size_t> Job::running() const {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < world_.processes(); ++i)
    if (world_.process(i).running()) some.push_back(i);
  return some;
}

void Job::inflict() {
  if (left_ == 0 || random_.below(every_) > 0) return;
  --left_;
  inflict(kinds_[random_.below(kinds_.size())]);
}

void Job::inflict(Fault fault) {
  const auto some = running();
  if (some.empty()) return;
  const std::size_t one = some[random_.below(some.size())];
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < world_.processes(); ++i)
    if (i != one && world_.alive(i)) others.push_back(i);
  if (others.empty()) return;
  const std::size_t other = others[random_.below(others.size())];
  Instant duration = draw(1ms, 14);
  faults_ += fmt::format("{}{} of {}", faults_.empty() ? "" : ", ", kFaultNames[std::size_t(fault)],
                         world_.process(one).name());
  if (fault == Fault::crash) {
    crashed_ = true;
    world_.crash(one);
  } else if (fault == Fault::pause) {
    faults_ += fmt::format(" for {} ms", duration / 1ms);
    world_.pause(one, duration);
    last(duration);
    // The master's own workers see that it is stopped.
    if (one != 0 || !world_.has_children()) disturbed_ += duration;
  } else if (fault == Fault::slow_link) {
    const Instant more = draw(1ms, 7), while_ = draw(10ms, 10);
    faults_ += fmt::format(" to {} by {} ms", world_.process(other).name(), more / 1ms);
    world_.slow(one, other, more, while_);
    last(while_);
  } else {
    // Some stay as long as the job does; one that only waits for workers would wait on.
    const auto& started = world_.process(0).master()->started();
    if (started && started->ok() && random_.below(8) == 0) duration = 1h;
    faults_ += fmt::format(" from {} for {} ms", world_.process(other).name(), duration / 1ms);
    world_.cut(one, other, duration, fault == Fault::cut);
    last(std::min<Instant>(duration, 10s));
    disturbed_ += duration;
  }
  ++all_.faults[std::size_t(fault)];
}

void Job::write_script(Client& client) {
  Program& p = program_;
  auto run = [&](char what, const std::string& name) {
    client.run(name);
    script_.push_back(what);
  };
  resumed_ = saved_.certain;
  if (resumed_) {
    client.compile("restore", {}, p.restored);
    run('r', "restore");
  } else {
    client.init();
    script_.push_back('i');
  }
  client.compile("read", p.fetches, {})
      .compile("step", p.fetches, p.step)
      .compile("save", p.fetches, p.write);
  run('f', "read");
  const std::uint64_t rounds = 4 + random_.below(10);
  const std::uint64_t recorded = random_.below(3 * rounds);  // in one of three
  for (std::uint64_t i = 0; i < rounds; ++i) {
    if (i == recorded) record(client);
    if (random_.below(4) == 0)
      run('s', "save");
    else
      run('t', "step");
    if (i == recorded)
      client.then([this] {
        recording_asked_ = world_.now();
        world_.process(0).master()->gather([this](std::vector<ProcessTimeline> all) {
          recording_gathered_ = true;
          for (const ProcessTimeline& worker : all)
            if (worker.name.empty()) wrong("a recording of nobody");
        });
      });
  }
  run('s', "save");
  client.close();
}

// One run of all processes, whoever is lost meanwhile.
void Job::record(Client& client) {
  client.then(
      [this] { world_.process(0).master()->start_recording([this] { recording_told_ = true; }); });
}

// As Session::stop_trace.
void Job::wait_for_recording() {
  if (!recording_asked_ || !world_.alive(0)) return;
  const Instant until =
      std::max(world_.now(), faults_until_) + (undisturbed() ? kPrompt : kSettled);
  while (!recording_gathered_ && world_.now() < until) world_.pass(100ms);
  if (!recording_told_ || !recording_gathered_) wrong("what was recorded does not come");
}

// Of the runs in order, up to one that was not answered ok.
void Job::check_runs(const Client& client) {
  float now = 0;
  for (std::size_t i = 0; i < script_.size(); ++i) {
    const bool ok = i < client.ended().size() && client.ended()[i].ok();
    if (!ok) {
      // Nobody knows what became of it, if it was asked for.
      if (script_[i] == 's') saved_.candidates.push_back(now);
      return;
    }
    const auto& values = client.fetched()[i];
    const float at = values.empty() ? 0 : values[0].item<float>();
    if (!values.empty() && values[1].item<float>() != at)
      wrong(fmt::format("run {} finds {} and {}", i, at, values[1].item<float>()));
    switch (script_[i]) {
      case 'i':
      case 'r':
        break;
      case 'f':
        now = at;
        if (resumed_ && std::find(saved_.candidates.begin(), saved_.candidates.end(), at) ==
                            saved_.candidates.end())
          wrong(fmt::format("the file holds {}", at));
        if (resumed_) saved_.candidates = {at};
        if (!resumed_ && at != 0) wrong(fmt::format("the initial value is {}", at));
        break;
      case 't':
        if (at != now) wrong(fmt::format("run {} finds {}, not {}", i, at, now));
        now = at + 1;
        break;
      case 's':
        if (at != now) wrong(fmt::format("run {} finds {}, not {}", i, at, now));
        saved_.certain = true;
        saved_.candidates = {now};
        break;
    }
  }
}

void Job::check_answer(const Status& status, const char* what) {
  if (undisturbed())
    wrong(fmt::format("{} although nobody can have been lost: {}", what, status.text()));
  if (status.code() != Code::unavailable && status.code() != Code::deadline_exceeded)
    wrong(fmt::format("{} for another reason than a loss: {}", what, status.text()));
}

void Job::play() {
  ++all_.jobs;
  all_.inlined += world_.handles_inline();
  for (Fault fault : {Fault::crash, Fault::pause, Fault::cut, Fault::one_way_cut, Fault::slow_link})
    if (random_.below(5) < (fault == Fault::crash ? 4 : 3)) kinds_.push_back(fault);
  if (!kinds_.empty()) {
    left_ = 1 + random_.below(12);
    every_ = 8 << random_.below(5);
    world_.before_each_event([this] { inflict(); });
  }
  const Status started = world_.start();
  Status told = started;
  std::string answers = started.text();
  if (started.ok()) {
    Client client(world_.master(), 1, program_.g);
    write_script(client);
    // In portions, so that one that hangs is found by its time as well.
    for (int portions = 0;; ++portions) {
      const Status status = world_.run({&client}, 500);
      if (client.finished() || !world_.alive(0)) break;
      if (status.code() != Code::deadline_exceeded || portions > 200 ||
          world_.now() > faults_until_ + kSettled) {
        wrong("a client waits for ever: " + status.text());
        break;
      }
    }
    check_runs(client);
    told = client.status();
    answers += client.status().text();
    if (!client.status().ok()) check_answer(client.status(), "the job ends");
    if (resumed_ && client.fetched().size() > 1) ++all_.resumed;
    if (world_.alive(0) && client.status().ok()) {
      ++all_.finished;
      all_.undisturbed += undisturbed() && !faults_.empty();
    }
    if (world_.alive(0) && !client.status().ok()) ++all_.gave_up;
  } else if (world_.alive(0)) {
    ++all_.not_begun;
    // Nobody waits for a worker that is known to be dead.
    if (world_.has_children() && disturbed_ == 0s && started.code() != Code::unavailable)
      wrong("the job does not start, and does not say why: " + started.text());
    check_answer(started, "the job does not start");
  }
  all_.masters += !world_.alive(0);
  end();
  all_.events += world_.events();
  for (std::uint64_t part :
       {world_.trace(), world_.network_trace(), world_.events(), hash_text(answers)})
    all_.history = hash_combine(all_.history, part);
}

void Job::end() {
  left_ = 0;
  wait_for_recording();
  const Instant before = std::max(world_.now(), faults_until_);
  const Status ended = world_.shut_down();
  if (!ended.ok()) return wrong("the end: " + ended.text());
  if (world_.now() > before + kSettled || (undisturbed() && world_.now() > before + kPrompt))
    wrong(fmt::format("the end takes {} ms", (world_.now() - before) / 1ms));
  for (std::size_t i = 0; i < world_.processes(); ++i) {
    const SimProcess& process = world_.process(i);
    const ChildEnd& end = process.end();
    if (end.signal == SIGKILL) continue;  // a fault, or counted below
    // One that came again too late.
    const bool refused =
        end.last_words.find("the master refused this worker: the job ") != std::string::npos;
    const bool as_said = end.code == 0 || (i > 0 && end.code == (refused ? 1 : kTryAgain));
    if (!as_said || (undisturbed() && end.code != 0))
      wrong(fmt::format("{} {}", process.name(), end.text()));
  }
  if (undisturbed() && world_.process(0).killed() > 0)
    wrong(fmt::format("{} workers do not leave", world_.process(0).killed()));
}

}  // namespace

FaultyJobs play(std::uint64_t seed, std::uint64_t events) {
  FaultyJobs all;
  testing::FaultyFiles files(seed);
  Saved saved;
  for (std::uint64_t job = 0; all.events < events && all.wrong.empty(); ++job)
    Job(hash_combine(seed, job), files, saved, all).play();
  return all;
}

}  // namespace troupe::test
