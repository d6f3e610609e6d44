#include "actors/job/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "actors/client/durable_runs.hpp"
#include "actors/client/job_state.hpp"
#include "actors/client/session_graph.hpp"
#include "actors/job/checkpoints.hpp"
#include "actors/job/control_socket.hpp"
#include "actors/job/job_folder.hpp"
#include "actors/job/json_text.hpp"
#include "actors/job/memory_folder.hpp"
#include "actors/job/pace.hpp"
#include "actors/job/position.hpp"
#include "actors/runtime/worker_process.hpp"
#include "core/coarse_clock.hpp"
#include "core/log.hpp"
#include "core/no_signals.hpp"
#include "core/stop_signal.hpp"
#include "core/utf8.hpp"
#include "serialization/checkpoint.hpp"
#include "serialization/checkpoint_lock.hpp"
#include "serialization/summary_writer.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kShare = 1.0 / 30;  // of the time, for checkpoints, if nothing is said
// In memory: as often, and at most once so many times what it takes.
constexpr std::chrono::milliseconds kKeepEvery{200};
constexpr int kKeepAt = 30;
// How often serve() looks: at signals, which can wake nobody, and at JobOptions::stop.
constexpr std::chrono::milliseconds kLookEvery{50};
constexpr CommitNumber kAnyCommit = ~CommitNumber{0};
constexpr std::size_t kMostOwnNote = std::size_t{60} << 10;  // the rest is the job's

// Who is told of SIGINT and SIGTERM: all jobs of the program, in whatever order they begin and end.
// The first one sets the handlers, and the last one sets those that were there before. Any thread.
class StopListeners {
 public:
  void add() {
    std::lock_guard lock(mutex_);
    if (jobs_++ > 0) return;
    forget_stop_signal();
    old_term_ = listen(SIGTERM);
    old_int_ = listen(SIGINT);
  }
  void remove() {
    std::lock_guard lock(mutex_);
    if (--jobs_ > 0) return;
    std::signal(SIGTERM, old_term_);
    std::signal(SIGINT, old_int_);
  }

 private:
  using Handler = void (*)(int);
  // One that is ignored, as SIGINT in the background of a script, stays so.
  static Handler listen(int number) {
    const Handler old = std::signal(number, on_stop_signal);
    if (old == SIG_IGN) std::signal(number, SIG_IGN);
    return old;
  }

  std::mutex mutex_;
  int jobs_ = 0;
  Handler old_term_ = SIG_DFL, old_int_ = SIG_DFL;
};
StopListeners stop_listeners;

// A state above this is kept in files, and not in the memory of this process.
constexpr std::uint64_t kMostInMemory = std::uint64_t{64} << 20;

Checkpoints::Policy policy_of(const JobOptions& options, bool kept_in_files) {
  return {.directory = options.dir,
          .steps = options.checkpoint_steps,
          .seconds = options.checkpoint_seconds,
          .share = kShare,
          // While one is removed the session may have to go back to it.
          .keep = kept_in_files && options.keep == 1 ? 2 : options.keep,
          .nan = options.on_nan == JobOptions::NanPolicy::ignore};
}

OnNan of_runs(JobOptions::NanPolicy policy) {
  switch (policy) {
    case JobOptions::NanPolicy::fail:
      return OnNan::fail;
    case JobOptions::NanPolicy::skip:
    case JobOptions::NanPolicy::back:
      return OnNan::drop;
    case JobOptions::NanPolicy::ignore:
      break;
  }
  return OnNan::commit;
}

void warn_of_profile(const CheckpointHeader& header) {
  const std::string here = profile_text(numeric_profile());
  if (header.numeric_profile.empty() || header.numeric_profile == here) return;
  TROUPE_LOG(warning, "job",
             fmt::format("the checkpoint was computed with {}; here it is {}: the bits will differ "
                         "from those of a run without a stop",
                         header.numeric_profile, here));
}

constexpr std::string_view kBest = "best.safetensors";

// What a life was writing when it was killed. REQUIRES: the folder's lock.
void remove_unfinished_best(const std::string& dir) {
  const auto names = disk().list(dir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>())
    if (name.starts_with(fmt::format(".{}.", kBest)) && name.ends_with(".tmp"))
      (void)disk().remove(dir + "/" + name);
}

// What wakes serve(). Shared with whoever may ring when the job is gone.
class Bell {
 public:
  void ring() {
    {
      std::lock_guard lock(mutex_);
      rung_ = true;
    }
    changed_.notify_one();
  }
  // Returns when it was rung since the last time.
  void wait_until(Clock::time_point until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

// A checkpoint that another thread writes.
class Writing {
 public:
  ~Writing() { join(); }
  // Throws std::system_error: there is no thread. Rings when it is done.
  void begin(std::function<Checkpoints::Written()> write, std::shared_ptr<Bell> bell) {
    join();
    std::promise<Checkpoints::Written> written;
    auto result = written.get_future();
    const NoSignals none;
    thread_ = std::thread(
        [write = std::move(write), written = std::move(written), bell = std::move(bell)]() mutable {
          written.set_value(write());
          bell->ring();
        });
    result_ = std::move(result);
  }
  bool under_way() const { return result_.valid(); }
  bool done() const {
    return result_.valid() &&
           result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  Checkpoints::Written get() { return result_.get(); }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  std::future<Checkpoints::Written> result_;  // valid: under way, or not taken yet
  std::thread thread_;
};

// Checkpoints in the memory of this machine, for the session to go back to.
struct InMemory {
  const std::unique_ptr<MemoryFolder> folder;
  Checkpoints checkpoints;
  Writing writing = {};
  std::int64_t step = 0;                     // of the one under way
  std::shared_ptr<WrittenState> state = {};  // set when it is written
  bool told = false;                         // that the last one failed

  InMemory(std::unique_ptr<MemoryFolder> f, double seconds)
      : folder(std::move(f)),
        // The session may have to go back to the one before.
        checkpoints({.directory = folder->path(), .seconds = seconds, .keep = 2}) {}
};

}  // namespace

struct Job::State {
  Session& session;
  const JobOptions options;
  const bool large_state;                  // for this process's memory
  const std::unique_ptr<InMemory> memory;  // null: none are written there
  // It goes on after a lost worker from a checkpoint, not from this process's memory.
  const bool kept_in_files;
  JobPosition position;
  Checkpoints checkpoints;
  std::unique_ptr<ProgressPage> page;      // for whoever looks; null: nobody asked
  Pace pace;                               // for that page
  std::optional<CheckpointLock> lock;      // of options.dir
  std::optional<SummaryWriter> summaries;  // with options.logdir
  Status told_of_summaries;
  std::int64_t told_speed = 0;  // the last step with a speed among the summaries
  Writing writing;
  std::int64_t writing_step = 0;
  CommitNumber writing_commit = 0;              // all up to it are in that checkpoint
  bool write_again = false;                     // a lost worker took it with it, or:
  bool overtaken = false;                       // others committed while shards were written
  bool gathers = false;                         // its variables came through this process
  bool writing_keeps = false;                   // the session may go back to that checkpoint
  std::shared_ptr<WrittenState> written_state;  // of the one under way; set when it is written
  std::uint64_t keeper = 0;                     // of durable runs; 0: it is not
  const std::shared_ptr<Bell> bell = std::make_shared<Bell>();
  const std::shared_ptr<std::atomic<std::int64_t>> dropped =
      std::make_shared<std::atomic<std::int64_t>>(0);
  std::atomic<bool> stop{false};
  bool resumed = false, over = false;
  bool told_of_keeping = false;
  bool stopped = false;                          // before its last step; once it is over
  std::size_t graph_began = 0, graph_known = 0;  // nodes: at the beginning; that were looked at
  std::int64_t seen_dropped = 0;
  int nans = 0;  // steps in a row, or returns to the newest checkpoint
  std::string returned_to;
  JobStep step;
  std::int64_t until = 0, first = 0, kept_step = 0;
  CommitNumber in_newest = 0;  // the commit of the newest checkpoint
  CommitNumber followed = 0;   // serve(): the commit that `position.step` stands for
  Clock::time_point began, kept_at;
  Clock::duration keeping_took{};

  State(Session& s, JobOptions o)
      : session(s),
        options(std::move(o)),
        large_state(recovers() && !options.gather && session.bytes_in_shards() > kMostInMemory),
        memory(make_memory()),
        kept_in_files(large_state && (memory || (!options.dir.empty() && writes_often()))),
        checkpoints(policy_of(options, kept_in_files)) {
    session.stop_waiting_if([this] { return stop_asked(); });
  }
  ~State() {
    if (summaries) summaries->flush();
    session.stop_waiting_if(nullptr);
    if (memory)
      session.forget_files_in(memory->folder->path(),
                              "its state was kept in memory by a Job that has ended");
    close_durable("its Job has ended");
  }

  DurableRuns& durable() { return session.durable_runs(); }
  // Durable runs wait for this thread from now on.
  void keep_durable() {
    if (checkpoints.wanted()) keeper = durable().opened([bell = bell] { bell->ring(); });
  }
  // Nobody would answer those that wait, nor later ones.
  void close_durable(const char* why) {
    if (const auto number = std::exchange(keeper, 0)) durable().closed(number, aborted(why));
  }
  void serve_once();
  bool follow_commits();

  void begin();
  void begin_summaries();
  void show_graph();
  void tell_of_summaries();
  // The step that what the program says belongs to.
  std::int64_t said_in() const { return std::max(step.number_, position.step); }
  double steps_per_second() const;
  void check_graph();
  void show();
  void write_behind();
  void take(const Checkpoints::Written& written);
  void wait();
  std::unique_ptr<InMemory> make_memory();
  void write_to_memory();
  void take_from_memory(const Checkpoints::Written& written);
  bool memory_fails() const { return !memory->checkpoints.last().ok(); }
  Expected<std::function<Checkpoints::Written()>> begin_writing();
  Expected<std::function<Checkpoints::Written()>> begin_writing_shards(
      const Checkpoints& to, CheckpointDraft draft, bool keeps,
      std::shared_ptr<WrittenState>& known);
  void keep_written(const Checkpoints& in, WrittenState& written);
  void spare_what_is_needed(Checkpoints& in);
  Expected<Checkpoints::Contents> gathered();
  CheckpointHeader described() const;
  // With what the processes read that will have it, or with all of it.
  Expected<StoredCheckpoint> opened(const std::string& path) const {
    if (!options.gather) return open_checkpoint(path);
    TROUPE_TRY(CheckpointData data, read_checkpoint(path));
    return StoredCheckpoint{std::move(data), path, {}};
  }
  bool recovers() const { return options.recover && session.replaces_workers(); }
  bool writes_often() const {
    return options.checkpoint_steps > 0 || options.checkpoint_seconds != JobOptions::kNever;
  }
  bool keeping_is_due() const {
    const auto asked = std::chrono::duration<double>(std::min(options.memory_seconds, 1e6));
    return recovers() && !kept_in_files &&
           Clock::now() - kept_at >=
               std::max({std::chrono::duration_cast<Clock::duration>(asked),
                         Clock::duration(kKeepEvery), keeping_took * kKeepAt});
  }
  void keep();
  void finish();
  bool after_nan();
  void count_nan(const std::string& what);
  void after_nan_in(const Status& tried);
  void go_back(const std::string& what);
  bool stop_asked() const { return stop || (options.signals && stop_signal() != 0); }
};

// ------------------------------------------------------------------ beginning

void Job::State::begin() {
  std::string path;
  CommitNumber committed = 0;
  if (!options.dir.empty()) {
    throw_if_error(disk().make_dirs(options.dir));  // before hours of computing
    lock.emplace(value_or_throw(CheckpointLock::take(options.dir)));
    if (const Status tidied = tidy_checkpoints(options.dir); !tidied.ok())
      TROUPE_LOG(warning, "job", tidied.text());
    remove_unfinished_best(options.dir);
    // What cannot be listed is no empty folder: the job would begin anew beside its checkpoints.
    if (!value_or_throw(list_checkpoints(options.dir)).empty())
      path = value_or_throw(latest_checkpoint(options.dir)).path;
  }
  if (!path.empty()) {
    const std::string where = "going on from '" + path + "'";
    const auto checked = [&](const Status& status) { throw_if_error(status.in(where)); };
    auto stored = opened(path);
    checked(stored.status());
    const CheckpointData& data = stored->data;
    if (options.accept) checked(options.accept(data));
    warn_of_profile(data);
    const std::string note = data.note;
    const bool older = note.empty() && data.graph.empty();  // of a version without positions
    position.step = std::int64_t(data.step);
    committed = data.commit;
    const JobState state = state_of(*stored);
    checked(session.try_restore(state, {.same_graph = !options.other_graph}));
    if (kept_in_files) session.keep_restored(state);
    durable().restored(committed);
    if (!older) {
      auto was = JobPosition::parse(note);
      checked(was.status());
      position = *std::move(was);
    }
    throw_if_error(session.try_place().status());  // asked
    resumed = true;
  }
  // Before the first run there is nothing to keep: the session would do all again.
  if (kept_in_files && !resumed && session.committed() == 0) keep();
  session.init();
  graph_began = graph_known = session.graph_size();
  checkpoints.begin(position.step, path, Clock::now());
  in_newest = committed;
  if (memory) memory->checkpoints.begin(position.step, "", Clock::now());
  keep_durable();
  if (recovers() && !kept_in_files) keep();
  if (const std::string folder = JobFolder::of_this_process(); !folder.empty())
    page = ProgressPage::write(folder);
  if (page) {
    show();
    pace = {};  // it begins with the first step
  }
  if (resumed) JobFolder::tell_position({std::uint64_t(position.step), path});
}

// Of what earlier lives wrote, readers keep what this one will not do again.
void Job::State::begin_summaries() {
  if (options.logdir.empty()) return;
  summaries = value_or_throw(SummaryWriter::open(options.logdir, resumed ? position.step + 1 : 0));
}

// As late as it can be, as programs add nodes until they train.
void Job::State::show_graph() {
  if (summaries && !summaries->has_graph()) summaries->add_graph(*detail::graph_of(*session.core_));
}

// For `troupe status`; the log has a line already.
void Job::State::tell_of_summaries() {
  if (told_of_summaries == summaries->failure()) return;
  told_of_summaries = summaries->failure();
  if (ControlSocket* socket = ControlSocket::of_this_process())
    socket->note("summaries", told_of_summaries.ok() ? "" : told_of_summaries.text());
}

Job::Job(Session& session, JobOptions options) {
  if (options.dir.empty()) options.dir = JobOptions::supervised_dir();
  throw_if_error(options.check());
  const double seconds = options.checkpoint_seconds;
  const bool interval =
      options.checkpoint_steps > 0 || (seconds > 0 && seconds < JobOptions::kNever);
  if (options.dir.empty() && interval)
    TROUPE_LOG(warning, "job",
               "no checkpoints are written, although there is an interval for them: give a folder, "
               "by --job-dir DIR or JobOptions::dir, or start the program by troupe run");
  // The program may go to another folder.
  for (std::string* each : {&options.dir, &options.logdir}) {
    std::error_code none;
    if (const auto whole = std::filesystem::absolute(*each, none); !each->empty() && !none)
      *each = whole.string();
  }
  state_ = std::make_unique<State>(session, std::move(options));
  state_->begin();
  state_->begin_summaries();
  if (state_->resumed && !state_->options.quiet)
    TROUPE_LOG(info, "job", fmt::format("goes on after step {}, from '{}'", step(), checkpoint()));
  if (state_->options.signals) stop_listeners.add();
}

Job::~Job() {
  if (state_->options.signals) stop_listeners.remove();
}

void Job::State::show() {
  (*page)->step.store(std::uint64_t(position.step), std::memory_order_relaxed);
  (*page)->until.store(std::uint64_t(until), std::memory_order_relaxed);
  (*page)->recoveries.store(session.recoveries(), std::memory_order_relaxed);
  const std::int64_t now_ms = coarse_now_ns() / 1'000'000;
  pace.step(std::uint64_t(position.step), now_ms);
  (*page)->pace.store(pace.packed(), std::memory_order_relaxed);
  (*page)->moved_ms.store(std::uint64_t(now_ms), std::memory_order_relaxed);
}

// The next life restores when its graph is as this one's was at the beginning.
void Job::State::check_graph() {
  if (!checkpoints.wanted() || session.graph_size() <= graph_known) return;
  graph_known = session.graph_size();
  throw_if_error(session.check_state_within(graph_began));
}

// ------------------------------------------------------------------ steps

Job::Steps Job::steps(std::int64_t until) {
  State& s = *state_;
  s.check_graph();
  s.keep_durable();
  s.show_graph();
  s.until = until;
  s.over = false;
  s.began = Clock::now();
  s.first = s.position.step;
  return Steps(*this);
}

Job::Steps::~Steps() { job_->state_->close_durable("the loop of its Job is over"); }

bool Job::next() {
  State& s = *state_;
  const bool done = s.position.step >= s.until ||
                    (s.options.patience > 0 && s.position.worse >= s.options.patience);
  if (!done && s.options.stop && s.options.stop()) s.stop = true;
  if (done || s.stop_asked()) {
    s.stopped = !done;
    if (!std::exchange(s.over, true)) s.finish();
    return false;
  }
  s.step.number_ = s.position.step + 1;
  s.step.last_ = s.step.number_ == s.until;
  s.step.options_ = {.on_nan = of_runs(s.options.on_nan), .dropped = s.dropped};
  if (s.checkpoints.wanted()) {  // else the position ends with the process
    JobPosition during = s.position;
    ++during.step;
    s.step.options_.note = during.text();
  }
  return true;
}

const JobStep& Job::current() const { return state_->step; }

void Job::step_over() {
  State& s = *state_;
  if (s.position.step == s.first) s.began = Clock::now();
  s.position.step = s.step.number_;
  if (s.page) s.show();
  s.check_graph();
  const bool nan = s.after_nan();
  if (s.writing.done()) s.take(s.writing.get());
  if (nan) return;
  if (s.memory) s.write_to_memory();
  (void)s.durable().expire(Clock::now());
  if (!s.checkpoints.due(s.position.step, Clock::now()) && !s.durable().wanted() &&
      !s.write_again) {
    if (s.keeping_is_due()) s.keep();
    return;
  }
  // Every so many steps is a promise, every so many seconds is not.
  if (s.options.checkpoint_steps > 0) s.wait();
  if (!s.writing.under_way()) s.write_behind();
}

void Job::serve() {
  State& s = *state_;
  if (!s.checkpoints.wanted())
    throw Error(failed_precondition("Job::serve needs a folder: JobOptions::dir, --job-dir"));
  s.check_graph();
  s.keep_durable();
  s.show_graph();
  s.over = false;
  s.wait();  // a loop that was left may have begun one, of this step but not of all commits
  s.followed =
      s.checkpoints.have(s.position.step) ? s.in_newest : CommitNumber(s.session.committed());
  // Also when it throws.
  const auto close = [](State* state) { state->close_durable("Job::serve() is over"); };
  const std::unique_ptr<State, decltype(close)> closes(&s, close);
  while (!s.stop_asked() && !(s.options.stop && s.options.stop())) s.serve_once();
  s.stopped = s.over = true;
  (void)s.follow_commits();
  s.finish();
}

// Whether there was one. The step is the commit's number, or a later one after steps that committed
// nothing: never one of which there is a checkpoint without that commit.
bool Job::State::follow_commits() {
  const CommitNumber commit = session.committed();
  const std::int64_t before = position.step;
  if (commit > std::exchange(followed, commit)) ++position.step;
  position.step = std::max(position.step, std::int64_t(commit));
  return position.step > before;
}

void Job::State::serve_once() {
  // Those who answer requests may take it for an error of each of them, and go on for ever.
  if (const Status failure = session.failure(); !failure.ok() && !stop_asked())
    throw Error(failure);
  if (writing.done()) take(writing.get());
  if (follow_commits()) {
    check_graph();
    if (page) show();
  }
  if (memory && position.step > 0) write_to_memory();
  const Clock::time_point now = Clock::now();
  // A state that is kept in a checkpoint is kept again by another one, be it of the same step.
  const bool forgotten = kept_in_files && !memory && !session.can_recover().ok();
  const bool due = position.step > 0 && (forgotten || !checkpoints.have(position.step)) &&
                   checkpoints.due(position.step, now);
  if ((due || durable().wanted() || write_again) && !writing.under_way())
    write_behind();
  else if (keeping_is_due() && (position.step > kept_step || !session.can_recover().ok()))
    keep();
  const auto next = durable().expire(now);
  bell->wait_until(std::min(next.value_or(Clock::time_point::max()), Clock::now() + kLookEvery));
}

// ------------------------------------------------------------------ checkpoints

namespace {

// With what the program says of its checkpoints.
Checkpoints::Contents contents_of(WrittenState written, const CheckpointHeader& described) {
  Checkpoints::Contents all{checkpoint_of(std::move(written.state)), std::move(written.shards)};
  all.data.step = described.step;
  all.data.graph_hash = described.graph_hash;
  all.data.metadata = described.metadata;
  return all;
}

}  // namespace

// As of the end of the step, with all that it did. Each process writes what it has, meanwhile the
// job goes on.
Expected<std::function<Checkpoints::Written()>> Job::State::begin_writing() {
  durable().begin_state();
  TROUPE_TRY(CheckpointDraft draft, checkpoints.draft());
  spare_what_is_needed(checkpoints);
  gathers = options.gather || std::exchange(overtaken, false);
  if (gathers) {
    TROUPE_TRY(Checkpoints::Contents all, gathered());
    return checkpoints.writing(std::move(draft),
                               [all]() -> Expected<Checkpoints::Contents> { return all; });
  }
  writing_commit = session.committed();
  // The session goes back to those in memory, unless that fails.
  writing_keeps = kept_in_files && (!memory || (memory_fails() && !memory->writing.under_way()));
  return begin_writing_shards(checkpoints, std::move(draft), writing_keeps, written_state);
}

Expected<std::function<Checkpoints::Written()>> Job::State::begin_writing_shards(
    const Checkpoints& to, CheckpointDraft draft, bool keeps,
    std::shared_ptr<WrittenState>& known) {
  const std::string folder = std::filesystem::absolute(draft.folder());
  const bool no_nan = to.refuses_nan();
  // The first one goes on after a loss.
  const auto start = [&]() -> Expected<PendingState> {
    if (recovers())
      return session.start_kept_state(position.text(), folder, draft.token(), no_nan, keeps);
    TROUPE_TRY(session.try_mark_place(position.text()));
    return session.start_state(folder, draft.token(), no_nan);
  };
  TROUPE_TRY(PendingState pending, start());
  known = std::make_shared<WrittenState>();
  const CheckpointHeader header = described();
  return to.writing(std::move(draft),
                    [pending, header, note = position.text(),
                     known]() mutable -> Expected<Checkpoints::Contents> {
                      TROUPE_TRY(WrittenState written, pending.try_get());
                      // Nothing runs between the two, unless the program has threads that do.
                      if (written.state.note != note)
                        return aborted("another run moved the job on while its state was taken");
                      if (written.state.variables.empty()) *known = written;
                      return contents_of(std::move(written), header);
                    });
}

CheckpointHeader Job::State::described() const {
  CheckpointHeader header;
  header.step = std::uint64_t(position.step);
  if (options.describe) options.describe(header);
  return header;
}

// The same with all variables.
Expected<Checkpoints::Contents> Job::State::gathered() {
  writing_commit = session.committed();
  JobState state;
  if (recovers()) {
    TROUPE_TRY(state, session.try_keep(position.text()));
  } else {
    TROUPE_TRY(session.try_mark_place(position.text()));
    TROUPE_TRY(state, session.try_state());
  }
  written_state = std::make_shared<WrittenState>();
  return contents_of({std::move(state), {}}, described());
}

// The session goes on from here if a worker is lost.
void Job::State::keep() {
  kept_at = Clock::now();
  kept_step = position.step;
  const auto state = session.try_keep(position.text());
  keeping_took = Clock::now() - kept_at;
  if (state.status().code() == Code::unavailable) throw Error(state.status());
  if (!state.ok() && !std::exchange(told_of_keeping, true))
    TROUPE_LOG(
        warning, "job",
        fmt::format("{}: a worker that is lost will end this process", state.status().text()));
}

void Job::State::write_behind() {
  writing_step = position.step;
  writing_commit = kAnyCommit;
  write_again = false;
  const Clock::time_point began = Clock::now();
  if (keeping_is_due()) keep();
  auto write = begin_writing();
  const Clock::time_point now = Clock::now();
  checkpoints.begin_try(position.step, now, now - began);
  Status status = write.status();
  // A session that lost a part cannot go on; whatever else has no state may have one later.
  if (status.code() == Code::unavailable) throw Error(status);
  const bool replaces = writing_keeps && checkpoints.have(position.step);
  if (status.ok()) try {
      durable().taking(writing_commit);
      writing.begin(*std::move(write), bell);
    } catch (const std::system_error& error) {  // no thread
      status = resource_exhausted(error.what());
    }
  // Once the checkpoint to which the session goes back is replaced, it goes back to the new one.
  if (status.ok()) return replaces ? wait() : void();
  take({status.in("while the state was taken for a checkpoint")});
}

void Job::State::take(const Checkpoints::Written& written) {
  // A part was lost meanwhile, and the session goes on: so does whoever waits for a checkpoint.
  write_again = written.info.status().code() == Code::unavailable && recovers();
  // Then the next one is read in one run, whose turn comes before what it reads is old.
  overtaken = written.info.status().code() == Code::aborted && !gathers;
  write_again |= overtaken;
  if (write_again) return;
  const Status tried = checkpoints.end_try(writing_step, written);
  durable().written(tried.ok() ? written.commit : writing_commit, tried);
  if (tried.ok()) in_newest = written.commit;
  if (tried.ok()) JobFolder::tell_position({std::uint64_t(writing_step), checkpoints.newest()});
  if (tried.ok() && writing_keeps) keep_written(checkpoints, *written_state);
  if (ControlSocket* socket = ControlSocket::of_this_process())
    socket->note("checkpoint", tried.ok() ? ""
                                          : fmt::format("the checkpoint after step {} failed: {}",
                                                        writing_step, tried.text()));
  if (tried.code() == Code::out_of_range) return after_nan_in(tried);
  if (options.checkpointed) return options.checkpointed(checkpoints.newest(), tried);
  if (!tried.ok())
    TROUPE_LOG(warning, "job",
               fmt::format("{}; {}", tried.text(),
                           checkpoints.newest().empty()
                               ? "there is no checkpoint yet"
                               : "the newest good one is " + checkpoints.newest()));
}

void Job::State::keep_written(const Checkpoints& in, WrittenState& written) {
  if (written.shards.empty()) return;
  written.state.stored = stored_variables({{}, in.newest(), written.shards});
  session.keep_written(std::move(written.state));
}

// If a worker is lost the session reads some checkpoints again: that which it keeps as its state,
// and those to which a NaN led back since. They stay.
void Job::State::spare_what_is_needed(Checkpoints& in) {
  if (recovers()) in.spare(session.files_to_recover());
}

std::unique_ptr<InMemory> Job::State::make_memory() {
  if (!large_state || options.memory_seconds == 0) return nullptr;
  auto folder = session.all_here() ? MemoryFolder::make()
                                   : failed_precondition("its workers are on other machines");
  if (folder.ok()) return std::make_unique<InMemory>(std::move(*folder), options.memory_seconds);
  TROUPE_LOG(warning, "job", "the state is not kept in memory: " + folder.status().text());
  return nullptr;
}

// Takes what was written there, and begins the next one when it is due.
void Job::State::write_to_memory() {
  InMemory& m = *memory;
  if (m.writing.done()) take_from_memory(m.writing.get());
  const Clock::time_point began = Clock::now();
  const bool other = writing.under_way() && writing_keeps;
  if (m.writing.under_way() || other || !m.checkpoints.due(position.step, began)) return;
  m.step = position.step;
  const auto begin = [&]() -> Expected<std::function<Checkpoints::Written()>> {
    TROUPE_TRY(CheckpointDraft draft, m.checkpoints.draft());
    spare_what_is_needed(m.checkpoints);
    return begin_writing_shards(m.checkpoints, std::move(draft), true, m.state);
  };
  auto write = begin();
  const Clock::time_point now = Clock::now();
  m.checkpoints.begin_try(position.step, now, now - began);
  Status status = write.status();
  if (status.code() == Code::unavailable) throw Error(status);
  if (status.ok()) try {
      return m.writing.begin(*std::move(write), bell);
    } catch (const std::system_error& error) {  // no thread
      status = resource_exhausted(error.what());
    }
  take_from_memory({status});
}

void Job::State::take_from_memory(const Checkpoints::Written& written) {
  const Status tried = memory->checkpoints.end_try(memory->step, written);
  if (tried.ok()) {
    memory->told = false;
    return keep_written(memory->checkpoints, *memory->state);
  }
  // A part that was lost meanwhile is there again.
  if (tried.code() == Code::unavailable || std::exchange(memory->told, true)) return;
  TROUPE_LOG(
      warning, "job",
      fmt::format("the state after step {} is not kept in memory: {}", memory->step, tried.text()));
}

void Job::State::wait() {
  if (writing.under_way()) take(writing.get());
}

void Job::State::finish() {
  wait();
  if (summaries) summaries->flush();
  if (!checkpoints.wanted() || session.committed() == 0) return;
  if (checkpoints.have(position.step) && !durable().wanted() && !write_again) return;
  do {
    write_behind();
    wait();
  } while (write_again);
  // A worker was lost with the last one: whoever starts the program again has it done.
  if (checkpoints.last().code() == Code::unavailable) throw Error(checkpoints.last());
}

// ------------------------------------------------------------------ NaN

// Whether the step had one. Such a step makes no checkpoint, to which a job would return.
bool Job::State::after_nan() {
  using Policy = JobOptions::NanPolicy;
  if (options.on_nan == Policy::fail || options.on_nan == Policy::ignore) return false;
  const bool nan = dropped->load() > seen_dropped;
  seen_dropped = dropped->load();
  if (!nan) {
    if (options.on_nan == Policy::skip) nans = 0;
    return false;
  }
  if (options.on_nan == Policy::back) wait();
  const std::string what = fmt::format("step {} has a NaN", position.step);
  count_nan(what);
  TROUPE_LOG(warning, "job", what + ": nothing of it was committed");
  if (options.on_nan == Policy::back) go_back(what);
  return true;
}

// Throws if it was one too many.
void Job::State::count_nan(const std::string& what) {
  const bool skips = options.on_nan == JobOptions::NanPolicy::skip;
  if (!skips && std::exchange(returned_to, checkpoints.newest()) != checkpoints.newest()) nans = 0;
  if (++nans > options.nan_limit)
    throw Error(out_of_range(
        skips ? fmt::format("{}, as had the {} before it", what, nans - 1)
              : fmt::format("{}, after {} returns to '{}'", what, nans - 1, returned_to)));
}

// The variables have one, which no run fetched: they are of no use any more.
void Job::State::after_nan_in(const Status& tried) {
  const std::string what = fmt::format("{} after step {}", tried.message(), writing_step);
  if (options.on_nan != JobOptions::NanPolicy::back || over)
    throw Error(out_of_range(fmt::format(
        "{}; {}", what,
        checkpoints.newest().empty() ? "there is no checkpoint of an earlier step"
                                     : "the newest checkpoint is " + checkpoints.newest())));
  count_nan(what);
  go_back(what);
}

void Job::State::go_back(const std::string& what) {
  if (checkpoints.newest().empty())
    throw Error(out_of_range(what + ", and there is no checkpoint to go back to"));
  const StoredCheckpoint checkpoint = value_or_throw(opened(checkpoints.newest()));
  const auto& older = checkpoint.data.tensors;
  session.assign({older.begin(), older.end()});
  throw_if_error(session.try_assign_stored(stored_variables(checkpoint)));
  durable().undone(checkpoint.data.commit, session.committed());
  TROUPE_LOG(warning, "job",
             fmt::format("{}: the variables are those of {} again", what, checkpoints.newest()));
}

// ------------------------------------------------------------------ what the program says and asks

std::int64_t Job::step() const { return state_->position.step; }
bool Job::resumed() const { return state_->resumed; }
std::optional<double> Job::best() const { return state_->position.best; }
std::int64_t Job::best_step() const { return state_->position.best_step; }
const std::string& Job::note() const { return state_->position.note; }
std::string Job::checkpoint() const { return state_->checkpoints.newest(); }
Status Job::last_checkpoint() const { return state_->checkpoints.last(); }
std::int64_t Job::dropped() const { return state_->dropped->load(); }
// The thread that serves may see it and destroy the job before the bell has rung.
void Job::stop() {
  const std::shared_ptr<Bell> bell = state_->bell;
  state_->stop = true;
  bell->ring();
}
bool Job::stopped() const { return state_->over ? state_->stopped : state_->stop_asked(); }

bool Job::judge(double loss) {
  JobPosition& position = state_->position;
  const bool better = loss < position.best.value_or(HUGE_VAL);  // which NaN is not
  position.worse = better ? 0 : position.worse + 1;
  if (!better) return false;
  position.best = loss;
  position.best_step = state_->said_in();
  if (state_->options.dir.empty() || !state_->options.keep_best) return true;
  const Status saved = state_->session.try_save(fmt::format("{}/{}", state_->options.dir, kBest));
  if (saved.code() == Code::unavailable) throw Error(saved);
  if (!saved.ok())
    TROUPE_LOG(warning, "job",
               fmt::format("{} is not of step {}: {}", kBest, state_->said_in(), saved.text()));
  return true;
}

void Job::set_note(std::string note) {
  if (note.size() > kMostOwnNote)
    throw Error(invalid_argument(
        fmt::format("the note has {} bytes, and may have {}", note.size(), kMostOwnNote)));
  state_->position.note = std::move(note);
}

double Job::State::steps_per_second() const {
  const std::int64_t here = step.number_ - first - 1;  // without the first step
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return here > 0 && seconds > 0 ? double(here) / seconds : 0;
}

void Job::report(std::initializer_list<std::pair<std::string_view, double>> values) const {
  State& s = *state_;
  if (ControlSocket* socket = ControlSocket::of_this_process())
    for (const auto& [name, value] : values) socket->figure(std::string(name), value);
  const double speed = s.steps_per_second();
  if (s.summaries) {
    EventFile::Scalars scalars;
    for (const auto& [name, value] : values)
      if (!name.empty()) scalars.emplace_back(as_utf8(name), value);
    const bool new_step = std::exchange(s.told_speed, s.said_in()) != s.said_in();
    if (speed > 0 && new_step) scalars.emplace_back("steps_per_second", speed);
    throw_if_error(s.summaries->add_scalars(s.said_in(), scalars));
    s.tell_of_summaries();
  }
  if (s.options.quiet) return;
  std::string line;
  if (s.options.json) {
    nlohmann::ordered_json json = {{"step", s.said_in()}, {"steps", s.until}};
    for (const auto& [name, value] : values) json[std::string(name)] = value;  // NaN is null
    if (speed > 0) json["steps_per_second"] = speed;
    line = json_text(json);
  } else {
    line = fmt::format("step {}/{}", s.said_in(), s.until);
    for (const auto& [name, value] : values) line += fmt::format("  {} {:.4f}", name, value);
    if (speed > 0) line += fmt::format("  {:.1f} steps/s", speed);
  }
  line += "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stdout);
  (void)std::fflush(stdout);
}

void Job::summarize(std::string_view summary) const {
  State& s = *state_;
  if (!s.summaries) return;
  throw_if_error(s.summaries->add_summary(s.said_in(), summary));
  s.tell_of_summaries();
}

SummaryWriter* Job::summaries() const { return state_->summaries ? &*state_->summaries : nullptr; }

int Job::exit_code() const {
  if (!state_->checkpoints.last().ok()) return 1;
  return stopped() && stop_signal() != 0 ? exit_code_of_signal(stop_signal()) : 0;
}

}  // namespace troupe
