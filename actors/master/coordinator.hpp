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

// A client's request for run number `run.n`, by way of its session. May be sent repeatedly.
struct RunRequest {
  RunId run;
  std::shared_ptr<const StepShape> step;
  Instant deadline = kNever;
  Acknowledged acknowledged;  // answers that have arrived
  // For the session itself: the answer contains the job's place when the run started.
  bool with_place = false;
  std::shared_ptr<const std::string> note = {};  // kept with its commit; null: none
  OnNan on_nan = OnNan::commit;
  // The run restores a job's state. When it commits, the job goes on from this place, including the
  // commit number; if it fails, nothing has changed. Only before all other runs, which wait for it.
  // REQUIRES: a commit number of at least 1.
  std::shared_ptr<const JobPlace> resume = {};
  Commit commit = Commit::checked;
};

// The state machine that turns run requests into attempts, assigns commit numbers, decides commits,
// and answers.
//
// Owned by one actor of the master. Inputs append the messages to send to `out`; `now` is the
// caller's monotonic time. The caller calls tick() at next_wakeup(), and keeps the feeds under the
// RunId until Answer. Messages to and from other processes may be lost, duplicated and reordered:
// requests are sent again until answered.
//
// A run takes a commit number if it wrote something, has a note, or drew random numbers in a step
// that may write. One number at a time is being prepared; a run's fetches are released only when
// every shard that it wrote to has staged it. Until then the run can fail, by its client or by a
// shard that cannot stage: its number is then reused once these shards have dropped what they
// staged. A shard that does not answer is lost.
//
// Changes outside the job (ResourceWrites::outside) are applied after the decision and before the
// answer. If that fails, the answer is an error with a commit number.
//
// A run whose step has the fast path is granted the next number at its start if no other run is
// under way; until it reports whether it used the number, no other run gets one. When another run
// needs a number, the grant is revoked, so that it need not wait for the granted run.
//
// A run with Commit::immediate has no conflicts over what it read: it gets a number when it has
// computed its updates, and its answer says how far behind its snapshot was.
//
// A run with `patience` conflicts has the numbers to itself until it is over or waits for a queue:
// it is then repeated at most once for each run that had them before.
//
// A run of a step that reads datasets gets its elements when it first starts (DatasetPlaces). It
// does not start while another run holds such a dataset as a whole.
//
// A run of a step that acquires mutexes first starts when it can take all of them (MutexTurns), and
// holds them until it is answered. Its snapshot includes the commits of earlier holders.
//
// The state is in tables: the runs (RunTable), the current round of PREPARE (StageRound), attempts
// that wait at resources (BlockedReports), the last writers (LastWrites), and answers that clients
// may request again (KeptAnswers).
class Coordinator {
 public:
  struct Options {
    std::uint64_t view = 1;
    std::size_t max_active = 16;  // concurrent runs, without those that only wait for resources
    Instant resend_first = std::chrono::milliseconds(50), resend_max = std::chrono::seconds(1);
    Instant idle_commit = std::chrono::milliseconds(10);
    Instant deadlock_after = std::chrono::milliseconds(800);
    // A shard's part in a round is short: messages inside its process, and reserving memory. Time
    // in which the master itself was stopped does not count.
    Instant stage_within = std::chrono::seconds(10);
    // The same for a run that changes something outside the job: a disk may be slow and busy.
    Instant outside_within = std::chrono::seconds(120);
    // Conflicts of one run before others wait for it. Each costs an attempt, so this limits what a
    // slow run loses to fast ones; runs that conflict by chance rarely reach it.
    std::uint32_t patience = 3;
    // How long before its deadline the owner is asked what a run waits for (ExplainDeadline), so
    // that the error can say it, and how long after it the run stays for the answer. 0: it ends at
    // its deadline, as does a run that is younger than `explain_from` then.
    Instant explain_before = std::chrono::milliseconds(2), explain_within{},
            explain_from = std::chrono::milliseconds(10);
  };

  // To the executor of one partition. Ignored for a known or ended attempt.
  struct StartAttempt {
    TaskId task{};
    std::uint32_t partition = 0;
    AttemptInfo attempt;
    std::uint64_t random_index = 0;    // k of the random number counter
    CommitNumber grant = 0;            // the fast path's number, or 0
    DatasetPlaces::Elements elements;  // parallel to StepShape::Partition::datasets
  };
  // To the executor of one partition: stop, and answer PartitionDone with the cause unless it is
  // done already. While a write with a granted number is under way, the executor waits for its
  // answer. For an unknown attempt it answers the same and remembers it, so that a later START is
  // ignored. It forgets the attempt when a LiveList reports it over.
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
  // To the executor with a granted number: another run needs it. Unless the write with the number
  // is under way, or the attempt over, the executor returns it (grant_returned).
  struct RevokeGrant {
    TaskId task{};
    std::uint32_t partition = 0;
    AttemptId attempt;
    RunId run;
  };
  // The task blocks the job: its process must leave. The coordinator already treats it as lost.
  struct Expel {
    TaskId task{};
    Status why;
  };
  struct SendLive {
    TaskId task{};
    LiveList list;
  };
  // To the client. Kept, and repeated on request, until the session acknowledges it.
  using Answer = RunAnswer;
  // All runs of the session are answered.
  struct SessionClosed {
    std::uint64_t session = 0;
  };
  // A shard, and with it state, was lost: every run is answered with such a status from now on.
  struct JobStopped {
    Status status;
  };
  // The run's deadline is near: what does it wait for? Answered with explained().
  struct ExplainDeadline {
    RunId run;
  };
  using Output = std::variant<StartAttempt, AbortAttempt, SendPrepare, RevokeGrant, Expel, SendLive,
                              Answer, SessionClosed, JobStopped, ExplainDeadline>;
  using Outputs = std::vector<Output>;

  explicit Coordinator(Options options, CoordinatorRules rules = {});

  // Adds a member: it gets every LiveList, and with `shard` every PREPARE. `name` is for errors.
  void add_task(TaskId task, std::string name, bool shard);
  // The task's process is gone. If the task is a shard, the job stops with `unavailable`, which
  // names worker, cause, device and step. Otherwise runs with a partition there fail, unless all
  // their partitions are done.
  void task_lost(TaskId task, const Status& why, Instant now, Outputs& out);

  void open_session(std::uint64_t session) { sessions_.open(session); }
  // Cancels the session's runs; SessionClosed follows when all are answered, also if repeated.
  void close_session(std::uint64_t session, Instant now, Outputs& out);

  // The client has received these answers; they are dropped.
  void acknowledge(std::uint64_t session, const Acknowledged& arrived) {
    sessions_.acknowledge(session, arrived);
  }
  // A run of a session that is not open is answered failed_precondition; a run whose answer is
  // acknowledged is ignored.
  void run(RunRequest request, Instant now, Outputs& out);
  // Has no effect once the run's number is decided.
  void cancel(RunId run, Status cause, Instant now, Outputs& out);
  // What runs wait for (ExplainDeadline), for their errors; "" if one waits for nothing.
  void explained(const std::map<RunId, std::string>& waits, Instant now, Outputs& out);
  void partition_done(PartitionDone message, Instant now, Outputs& out);
  void staged(const Staged& message, Instant now, Outputs& out);
  void grant_returned(const GrantReturned& message, Instant now, Outputs& out);
  void blocked(const BlockedReport& message, Instant now, Outputs& out);
  void tick(Instant now, Outputs& out);
  Instant next_wakeup() const;

  // What a client asks beside runs (to rewind a dataset, to reset a container) has a number among
  // its runs, so that it is done once however often it is asked for. True: it is to be done now,
  // and end_action() follows. False: it is under way, or its Answer is in `out`, or acknowledged.
  bool begin_action(const RunId& action, const Acknowledged& acknowledged, Outputs& out);
  // Its Answer says after which commit it was done: RunAnswer::seen.
  void end_action(const RunId& action, Status status, Outputs& out);
  bool is_under_way(const RunId& action) const { return actions_.contains(action); }

  CommitNumber decided() const { return decided_; }
  // The place as of the last commit if the program writes notes, else the current one. The program
  // of that session has now asked for it.
  JobPlace ask_place(std::uint64_t session) {
    journal_.asked();
    return place(session);
  }
  // failed_precondition if the job was restored and the program has not yet asked for its place.
  Status knows_place() const;
  // The program of that session notes its progress without a commit: the last commit's place now
  // includes all runs that are over. failed_precondition as for knows_place().
  Status mark_place(std::uint64_t session, std::string note);
  // The program of that session has done something once for the whole job. The place moves on, too:
  // what the action read and drew is not read and drawn again.
  void done_once(std::uint64_t session, std::string name);
  // Restarts the datasets of these containers. REQUIRES: no run that reads one is under way.
  void rewind_datasets(const std::set<std::string>& containers) { places_.rewind(containers); }
  // Restarts the datasets that the step reads (DatasetPlaces::rewind).
  Status rewind_datasets(const StepShape& step) { return places_.rewind(step.datasets); }

  struct Counters {
    std::uint64_t commits = 0, fast_commits = 0, read_only = 0, failed = 0, conflicts = 0,
                  withdrawn = 0, attempts = 0, taken_back = 0, revoked = 0;
  };
  const Counters& counters() const { return counters_; }
  // What each unanswered run waits for, as far as the coordinator knows.
  std::vector<RunLook> looks(Instant now) const;
  // A task does not know an attempt that was started there: a message between the processes was
  // lost. The task is treated as lost, and its process must leave (Expel).
  void lost_message(const RunId& run, const AttemptId& attempt, std::uint32_t partition,
                    const Status& why, Instant now, Outputs& out);
  // One line for each unanswered run: what it waits for (for reports and failing tests).
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

  // A run arrives and starts.
  Status may_run(const RunRequest& request) const;
  void refuse(const RunId& run, Status why, Outputs& out);
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
  bool must_repeat(const Run& run) const;
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
  Instant tell_commit_within() const;
  void note_commit(Run& run);
  // Its end.
  void fail(Run& run, Status cause, Instant now, Outputs& out);
  void answer(Run& run, Status status, CommitNumber committed, Instant now, Outputs& out);
  void stop_job(const std::string& lost, TaskId task, Instant now, Outputs& out);
  void end_closed_sessions(Outputs& out);
  bool may_explain(const Run& run) const;
  Instant next_for_deadline(const Run& run) const;
  void deadline_near(Run& run, Instant now, Outputs& out);
  void deadline_passed(Run& run, Instant now, Outputs& out);
  struct MutexTurn {
    const MutexUse* use = nullptr;
    std::string text;
  };
  // What queued runs wait for.
  struct Turns {
    std::map<RunId, MutexTurn> mutexes;  // those that wait for one
    std::size_t computing = 0;
    const Run* alone = nullptr;
  };
  Turns turns() const;
  std::vector<TaskId> unanswered() const;
  std::string turn_of(const Run& run, const Turns& turns) const;
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
  std::vector<RunId> queued_;  // of admit(); its memory is reused
  std::set<RunId> actions_;    // under way
  DatasetPlaces places_;
  MutexTurns mutexes_;
  Journal journal_;
  std::map<std::uint64_t, std::uint64_t> drawn_;  // by session: read-only draws since a commit
  std::uint64_t dropped_ = 0;  // since a commit: random indices below it are used up
  bool begun_ = false;         // a run other than a restore has started
  LastWrites last_writes_;
  BlockedReports blocked_;
  StageRound round_;
  Run* granted_ = nullptr;  // the run with a granted number
  LiveSchedule live_;
  CommitNumber decided_ = 0;
  std::uint64_t next_a_ = 1;
  Instant last_progress_{};
  Status stopped_;
  Counters counters_;
};

}  // namespace troupe
