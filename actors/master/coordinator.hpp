// Runs, attempts, snapshots, numbers, decisions: the master's half of a transaction.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/master/blocked_reports.hpp"
#include "actors/master/coordinator_rules.hpp"
#include "actors/master/dataset_places.hpp"
#include "actors/master/journal.hpp"
#include "actors/master/kept_answers.hpp"
#include "actors/master/last_writes.hpp"
#include "actors/master/live_schedule.hpp"
#include "actors/master/mutex_turns.hpp"
#include "actors/master/run_look.hpp"
#include "actors/master/run_table.hpp"
#include "actors/master/stage_round.hpp"
#include "core/transaction.hpp"

namespace troupe {

// From a client, by way of its session: run number `run.n`. Re-sending it is harmless.
struct RunRequest {
  RunId run;
  std::shared_ptr<const StepShape> step;
  Instant deadline = kNever;
  Acknowledged acknowledged;  // answers that have arrived
  // Of the session itself, as for its state: the answer says where the job stood when the run
  // started.
  bool with_place = false;
  std::shared_ptr<const std::string> note = {};  // what is kept with its commit; null: none
  OnNan on_nan = OnNan::commit;
  // The run puts the state of a job back, which goes on from this place once it commits: with the
  // number and the rest of the place. If it fails, nothing has happened. Only before other runs,
  // which wait for it; REQUIRES: a number of at least 1.
  std::shared_ptr<const JobPlace> resume = {};
};

// The machine that turns run requests into attempts, gives commit numbers, decides, and answers.
//
// Owned by one actor of the master. Inputs append to `out` what has to be sent; `now` is the
// caller's monotonic time and never goes back. The caller calls tick() at next_wakeup(). Feeds stay
// with the caller, under the RunId, until Answer. Messages to and from other processes may be
// lost, doubled and reordered: requests are sent again until answered.
//
// A run that wrote nothing and has no note takes no number. One number at a time is being prepared;
// the fetches of a run are released when every shard has staged it, not before. Until then the run
// can still be called off, by its client or by a shard that cannot stage: its number is taken back,
// and given again once every shard has dropped what it staged. A shard that does not answer is
// lost.
//
// What a run changes outside of the job (ResourceWrites::outside) is applied once it is decided,
// and before it is answered: with an error, beside its number, when that fails.
//
// A run whose step has the fast path is granted the next number at its start if no other run is
// under way; until it says whether it used the number, no other run gets one. As soon as one wants
// a number, the grant is asked back, so that nobody waits for the rest of the granted run.
//
// A run that others have overtaken `patience` times has the numbers to itself until it is over, or
// waits for a queue: it is done once more at most for each run before it that is in that place.
//
// A run of a step that reads datasets is given its elements when it first starts (DatasetPlaces),
// and waits for that while another one holds such a dataset as a whole.
//
// A run of a step that acquires mutexes first starts when it holds all of them (MutexTurns), and
// holds them until it is answered. Its snapshot is that of its start, after what the holders before
// it have committed.
//
// What it knows stands in tables of their own: the runs (RunTable), the round of PREPARE that is
// under way (StageRound), who waits at resources (BlockedReports), who wrote what last
// (LastWrites), and answers that clients may ask for again (KeptAnswers).
class Coordinator {
 public:
  struct Options {
    std::uint64_t view = 1;
    std::size_t max_active =
        16;  // runs that compute at one time; those that only wait do not count
    Instant resend_first = std::chrono::milliseconds(50), resend_max = std::chrono::seconds(1);
    Instant idle_commit = std::chrono::milliseconds(10);
    Instant deadlock_after = std::chrono::milliseconds(800);
    // What a shard has to do is short: messages inside its process, and memory to reserve. Time in
    // which the master itself was stopped does not count.
    Instant stage_within = std::chrono::seconds(10);
    // The same of a run that changes something outside of the job: a disk may be slow, and busy
    // with another run's file.
    Instant outside_within = std::chrono::seconds(120);
    // Conflicts of one run before others wait for it. Each costs it one attempt, so this bounds
    // what a slow run loses beside fast ones; those that collide by chance seldom get as far.
    std::uint32_t patience = 3;
    // How long a run whose deadline has passed stays, so that its owner can find out what it waits
    // for (ExplainDeadline). 0: it ends at once, as does a run with less time than `explain_from`.
    Instant explain_within{}, explain_from = std::chrono::milliseconds(10);
  };

  // To the executor of one partition. Known or ended attempts ignore it.
  struct StartAttempt {
    TaskId task{};
    std::uint32_t partition = 0;
    AttemptInfo attempt;
    std::uint64_t random_index = 0;    // k of the random number counter
    CommitNumber grant = 0;            // the fast path's number, or 0
    DatasetPlaces::Elements elements;  // parallel to StepShape::Partition::datasets
  };
  // To the executor of one partition: stop, and answer PartitionDone with an error if it is
  // not done yet; with a write that carries a granted number under way, once that is answered. An
  // attempt it never heard of it answers the same and remembers, so that a START that comes later
  // is ignored. What it knows of the attempt goes when a LiveList says that it is over.
  struct AbortAttempt {
    TaskId task{};
    std::uint32_t partition = 0;
    AttemptId attempt;
    RunId run;
    Status cause;
  };
  struct SendPrepare {
    TaskId shard{};
    Prepare prepare;
  };
  // To the executor that was granted a number: it is wanted. Unless the write that carries it is
  // under way, or the attempt over, the executor goes on without it and says so (grant_returned).
  struct RevokeGrant {
    TaskId task{};
    std::uint32_t partition = 0;
    AttemptId attempt;
    RunId run;
  };
  // The task lets the job wait: its process is to be taken for lost, which the coordinator has
  // done.
  struct Expel {
    TaskId task{};
    Status why;
  };
  struct SendLive {
    TaskId task{};
    LiveList list;
  };
  // To the client. Kept and repeated on request until the session acknowledges it.
  using Answer = RunAnswer;
  // Every run of the session has been answered.
  struct SessionClosed {
    std::uint64_t session = 0;
  };
  // A shard was lost and with it state: every run is answered with such a status from now on.
  struct JobStopped {
    Status status;
  };
  // The run's deadline has passed. Unless it is cancelled meanwhile, or ends, it is failed
  // Options::explain_within later.
  struct ExplainDeadline {
    RunId run;
  };
  using Output = std::variant<StartAttempt, AbortAttempt, SendPrepare, RevokeGrant, Expel, SendLive,
                              Answer, SessionClosed, JobStopped, ExplainDeadline>;
  using Outputs = std::vector<Output>;

  explicit Coordinator(Options options, CoordinatorRules rules = {});

  // A member: it gets every LiveList; with `shard`, every PREPARE too. `name` is for errors.
  void add_task(TaskId task, std::string name, bool shard);
  // Proof that the process which hosts it is gone, and why. A task that is a shard stops the job
  // with `unavailable`, naming worker, cause, device and step; any other fails the running attempts
  // that had a partition there.
  void task_lost(TaskId task, const Status& why, Instant now, Outputs& out);

  void open_session(std::uint64_t session) { sessions_.open(session); }
  // Cancels the session's runs; SessionClosed follows when all are answered (again, if asked
  // again).
  void close_session(std::uint64_t session, Instant now, Outputs& out);

  // The client has these answers; they are dropped.
  void acknowledge(std::uint64_t session, const Acknowledged& arrived) {
    sessions_.acknowledge(session, arrived);
  }
  // failed_precondition answers a run of a session that is not open; one whose answer has arrived
  // is ignored.
  void run(const RunRequest& request, Instant now, Outputs& out);
  // Too late once its number is decided: it then ends as it would have.
  void cancel(RunId run, Status cause, Instant now, Outputs& out);
  void partition_done(PartitionDone message, Instant now, Outputs& out);
  void staged(const Staged& message, Instant now, Outputs& out);
  void grant_returned(const GrantReturned& message, Instant now, Outputs& out);
  void blocked(const BlockedReport& message, Instant now, Outputs& out);
  void tick(Instant now, Outputs& out);
  Instant next_wakeup() const;

  CommitNumber decided() const { return decided_; }
  // As of the last commit, if it has a note; else as of now. From now on the program of that
  // session knows it.
  JobPlace ask_place(std::uint64_t session) {
    journal_.asked();
    return place(session);
  }
  // failed_precondition while the program of a job that was restored has not asked for its place.
  Status knows_place() const;
  // The program of that session has come as far as `note` says, without a commit: the last commit's
  // place is from now on that after all runs that are over. failed_precondition while it must ask.
  Status mark_place(std::uint64_t session, std::string note);
  // The program of that session has done this, once in the life of the job. The place moves on,
  // too: what was done is not done again, so neither is what it read and drew.
  void done_once(std::uint64_t session, std::string name);
  // The datasets of these containers begin anew. REQUIRES: no run that reads one is under way.
  void rewind_datasets(const std::set<std::string>& containers) { places_.rewind(containers); }
  // Those that runs of the step read (DatasetPlaces::rewind).
  Status rewind_datasets(const StepShape& step) { return places_.rewind(step.datasets); }

  struct Counters {
    std::uint64_t commits = 0, fast_commits = 0, read_only = 0, failed = 0, conflicts = 0,
                  withdrawn = 0, attempts = 0, taken_back = 0, revoked = 0;
  };
  const Counters& counters() const { return counters_; }
  // What each run that is not answered waits for, as far as is known here.
  std::vector<RunLook> looks(Instant now) const;
  // An attempt of which a task knows nothing, and that was started there: a message between the
  // processes was lost. The task's process is taken for lost, as one that lets the job wait.
  void lost_message(const RunId& run, const AttemptId& attempt, std::uint32_t partition,
                    const Status& why, Instant now, Outputs& out);
  // One line for each run that is not answered: why it is not (for reports and failing tests).
  std::string text() const;
  struct Tables {
    std::size_t runs = 0, answers = 0, last_writers = 0, blocked = 0, elements = 0, undecided = 0,
                mutexes = 0;
    bool empty() const {
      return runs + answers + last_writers + blocked + elements + undecided + mutexes == 0;
    }
  };
  Tables tables() const;

 private:
  using Run = RunTable::Run;
  using Phase = RunTable::Phase;
  struct Member {
    std::string name;
    bool shard = false;
  };

  // A run comes in, and gets its turn.
  Status may_run(const RunRequest& request) const;
  Status workers_present(const StepShape& step) const;
  JobPlace place(std::uint64_t session) const;
  void admit(Instant now, Outputs& out);
  std::uint64_t random_index(const Run& run);
  std::uint64_t draws_of(std::uint64_t session) const;
  CommitNumber number_of(const Run& run) const;
  void start(Run& run, bool keep_marks, Instant now, Outputs& out);
  bool may_grant(const Run& run) const;
  void send_starts(const Run& run, Outputs& out) const;
  void send_aborts(const Run& run, const Status& cause, Outputs& out) const;
  void resend(Run& run, Instant now, Outputs& out);
  // Its partitions are done.
  void all_done(Run& run, Instant now, Outputs& out);
  bool ended_by_nan(Run& run, Instant now, Outputs& out);
  void done_while_aborting(Run& run, const PartitionDone& message, Instant now, Outputs& out);
  // Its number.
  CommitNumber min_live() const;
  bool number_is_free() const;
  bool conflicts(const Run& run) const;
  const Run* alone() const;
  void give_numbers(Instant now, Outputs& out);
  void revoke(Run& run, Outputs& out) const;
  void begin_round(StageOrder order, const Run& run, Instant now, Outputs& out);
  void send_prepares(Outputs& out) const;
  void prepare(Run& run, Instant now, Outputs& out);
  void take_back(Run& run, Status cause, Instant now, Outputs& out);
  void end_round_if_complete(Instant now, Outputs& out);
  void expel_late_shards(Instant now, Outputs& out);
  void decide(Run& run, bool fast, Instant now, Outputs& out);
  void note_commit(Run& run);
  // Its end.
  void fail(Run& run, Status cause, Instant now, Outputs& out);
  void answer(Run& run, Status status, CommitNumber committed, Instant now, Outputs& out);
  void stop_job(const std::string& lost, TaskId task, Instant now, Outputs& out);
  void end_closed_sessions(Outputs& out);
  void deadline_passed(Run& run, Instant now, Outputs& out);
  std::string turn_of(const Run& run) const;
  struct MutexTurn {
    const MutexUse* use = nullptr;  // null: it waits for no mutex
    std::string text;
  };
  MutexTurn mutex_turn(const Run& run) const;
  // Runs that wait for each other, and what goes on by itself.
  void note_waiting();
  void break_deadlock(Instant now, Outputs& out);
  void release_victim(Instant now, Outputs& out);
  void settle(Instant now, Outputs& out);
  void send_live(Instant now, Outputs& out);

  const Options options_;
  const CoordinatorRules rules_;
  std::map<TaskId, Member> members_;
  std::set<TaskId> shards_;
  KeptAnswers sessions_;
  RunTable runs_;
  DatasetPlaces places_;
  MutexTurns mutexes_;
  Journal journal_;
  std::map<std::uint64_t, std::uint64_t> drawn_;  // by session: read-only draws since a commit
  std::uint64_t dropped_ = 0;  // since a commit: no random index below it is drawn by again
  bool begun_ = false;         // a run has started, and not only to restore the job
  LastWrites last_writes_;
  BlockedReports blocked_;
  StageRound round_;
  Run* granted_ = nullptr;  // the one that holds a granted number
  LiveSchedule live_;
  CommitNumber decided_ = 0;
  std::uint64_t next_a_ = 1;
  Instant last_progress_{};
  Status stopped_;
  Counters counters_;
};

}  // namespace troupe
