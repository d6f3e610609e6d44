#include "actors/client/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "actors/client/detail/aside.hpp"
#include "actors/client/detail/recovery.hpp"
#include "actors/client/detail/state.hpp"
#include "actors/client/job_state.hpp"
#include "actors/client/session_graph.hpp"
#include "actors/client/takes_elements.hpp"
#include "actors/job/control_socket.hpp"
#include "actors/resources/request.hpp"
#include "actors/runtime/platform.hpp"
#include "actors/runtime/worker_process.hpp"
#include "core/log.hpp"
#include "core/uncaught.hpp"
#include "graph/node_query.hpp"
#include "serialization/checkpoint.hpp"
#include "serialization/checkpoint_lock.hpp"
#include "serialization/safetensors.hpp"

namespace troupe {

using detail::add_targets;
using detail::Alone;
using detail::check_note;
using detail::compile_request;
using detail::in_rounds;
using detail::Initializer;
using detail::initializers_of;
using detail::keys_of;
using detail::NamedHandle;
using detail::note_order;
using detail::other_resources;
using detail::others;
using detail::RunFor;
using detail::session_closed;
using detail::SessionCore;
using detail::state_reads;
using detail::take_place;
using detail::variable_reads;
using detail::VariableRead;
using detail::write_variables;

namespace {

// How long a new session waits for the actors of failed sessions in its system to end.
constexpr std::chrono::seconds kOverFaultWithin{10};

// Callbacks are held back until the session is closed.
Status end_session(SessionCore& core) {
  core.closing = true;
  const detail::CallbacksHeld held(core.callbacks);
  std::unique_lock nobody_recovers(core.gate);
  {
    std::lock_guard lock(core.mutex);
    if (core.closed) return ok_status();
    core.closed = true;
  }
  if (core.asked_about != 0) ControlSocket::of_this_process()->remove_session(core.asked_about);
  core.log.broke("the session is closed");  // drops its steps, which own the session
  Status status;
  if (core.master) status = ask_master(core, CloseSession{core.id, nullptr}).status;
  std::unique_ptr<Runtime> old;
  std::unique_lock<std::shared_mutex> nobody_sends;
  {
    std::lock_guard pointer(core.runtime_mutex);  // the control socket may be looking at it
    nobody_sends = std::unique_lock(core.sending);
    old = std::move(core.runtime);
  }
  if (core.calls->fault().ok())
    old.reset();
  else
    Runtime::abandon(std::move(old), core.residents != nullptr);
  if (core.residents) core.residents->forget(core.resident);
  core.durable.ended(session_closed());
  if (core.calls->fault().ok())  // and it has not ended by itself, which was told
    core.watchers->tell({SessionEvent::Kind::ended, core.committed, ok_status()});
  return status;
}

// The answers to `troupe status` and `troupe why-blocked` (ControlSocket), made on its thread.
nlohmann::ordered_json json_of(const Wait& wait) {
  nlohmann::ordered_json json = {{"on", name_of(wait.on)}, {"run", wait.run}};
  const std::pair<const char*, const std::string*> texts[] = {
      {"node", &wait.node},     {"op", &wait.op},     {"line", &wait.site},
      {"device", &wait.device}, {"task", &wait.task}, {"waits_for", &wait.what}};
  for (const auto& [name, text] : texts)
    if (!text->empty()) json[name] = *text;
  json["seconds"] = wait.seconds;
  json["run_seconds"] = wait.age;
  if (wait.left) json["timeout_in_seconds"] = *wait.left;
  json["text"] = wait.text();
  return json;
}

nlohmann::ordered_json answer_control(SessionCore& core, std::string_view question) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  CallResult result = ask(core, AskJobWaits{});
  if (!result.status.ok()) json["error"] = result.status.text();
  json["waits"] = nlohmann::ordered_json::array();
  const std::string own = fmt::format(" of session {}", core.id);  // left out: all are of it
  for (Wait& wait : result.waits) {
    if (wait.run.ends_with(own)) wait.run.resize(wait.run.size() - own.size());
    json["waits"].push_back(json_of(wait));
  }
  if (question != ControlSocket::kStatus) return json;
  json["tasks"] = ask(core, DescribeJob{}).text;
  json["committed"] = core.committed.load();
  json["recoveries"] = std::uint64_t(core.generation);
  // There is no runtime while it is being replaced.
  std::unique_lock lock(core.runtime_mutex, std::try_to_lock);
  if (!lock.owns_lock() || !core.runtime) return json;
  json["memory"] = nlohmann::ordered_json::array();
  for (const DeviceMemory& each : core.runtime->memory(false))
    json["memory"].push_back(
        {{"device", each.device}, {"bytes", each.in_use}, {"peak", each.peak}});
  return json;
}

std::shared_ptr<SessionCore> open(GraphBuilder& graph, Cluster cluster, caf::actor_system* system) {
  end_with_code_if_uncaught();
  auto core = std::make_shared<SessionCore>(graph, std::move(cluster), system);
  auto& told = core->told;
  told.fault = [calls = core->calls, watchers = core->watchers](const std::string& what) {
    const Status fault = internal_error("a fault of the runtime: " + what);
    const bool first = calls->fault().ok();
    if (first) TROUPE_LOG(error, "session", fault.message());
    calls->fail(fault);
    if (first) watchers->tell({SessionEvent::Kind::ended, 0, fault});
  };
  told.lost = [watchers = core->watchers](const Status& what) {
    watchers->tell({SessionEvent::Kind::lost, 0, what});
  };
  if (system) {
    core->residents = Residents::in(*system);
    throw_if_error(may_wait(*core, "Session::Session"));
    if (!core->residents->over_fault(kOverFaultWithin))
      throw Error(internal_error("actors of sessions that failed do not leave the actor system"));
    core->resident = core->residents->opens(told.fault);
  }
  try {
    core->runtime = value_or_throw(Runtime::start(core->cluster, system, told));
    core->master = core->runtime->master();
    core->id = machine_random();
    throw_if_error(ask_master(*core, OpenSession{core->id, nullptr}).status);
  } catch (...) {
    if (core->residents) core->residents->forget(core->resident);
    throw;
  }
  if (core->residents)
    core->residents->at_end(core->resident, [weak = std::weak_ptr(core)] {
      if (auto open = weak.lock()) (void)end_session(*open);
    });
  if (ControlSocket* socket = ControlSocket::of_this_process())
    core->asked_about =
        socket->add_session([weak = std::weak_ptr(core)](std::string_view question) {
          const auto open = weak.lock();
          return open && !open->closed ? answer_control(*open, question) : nlohmann::ordered_json();
        });
  return core;
}

}  // namespace

Session::Session(GraphBuilder& graph, Cluster cluster)
    : core_(open(graph, std::move(cluster), nullptr)) {}

Session::Session(GraphBuilder& graph, caf::actor_system& system, Cluster cluster)
    : core_(open(graph, std::move(cluster), &system)) {}

Session::Session(GraphDef graph, Cluster cluster)
    : core_([&] {
        auto owned = std::make_unique<Graph>(std::move(graph));
        auto core = open(*owned, std::move(cluster), nullptr);
        core->owned = std::move(owned);
        return core;
      }()) {}

GraphBuilder& Session::graph() {
  throw_if_error(graph_there(*core_));
  return core_->graph;
}

// On a thread that must not wait (the session is owned by an event-based actor or a callback),
// another thread closes it. In a forked process, or if there may be no more threads, nobody can,
// and it stays: to free it is to wait for threads that are not there, or for this one.
Session::~Session() {
  const bool here = in_its_process(*core_, "Session::~Session").ok();
  if (here && may_wait(*core_, "Session::~Session").ok()) {
    (void)end_session(*core_);
    return;
  }
  const auto close = [core = core_] { (void)end_session(*core); };
  const bool closes =
      here && (core_->residents ? core_->residents->aside(close) : detail::close_aside(close));
  if (closes) return;
  static auto* const mutex = new std::mutex;
  static auto* const left = new std::vector<std::shared_ptr<SessionCore>>;
  std::lock_guard lock(*mutex);
  left->push_back(std::move(core_));
}

Expected<CompiledStep> Session::try_compile(const std::vector<Output>& fetches,
                                            const std::vector<Op>& targets,
                                            const std::vector<Output>& feeds,
                                            const CompileOptions& options) {
  TROUPE_TRY(may_wait(*core_, "Session::compile"));
  TROUPE_TRY(CompileRequest request, make_request(*core_, fetches, targets, feeds));
  if (options.replicas < 0)
    return invalid_argument(
        fmt::format("CompileOptions::replicas is a number from 0 (the cluster's) to 1024, not {}",
                    options.replicas));
  tell_of_growth(*core_);
  if (options.replicas != 0) request.replicas = options.replicas;
  CompiledStep step;
  step.state_ = std::make_shared<CompiledStep::State>();
  step.state_->core = core_;
  step.state_->request = std::move(request);
  if (core_->logs) {
    std::vector<NodeId> wanted;
    for (const Output& fetch : fetches) wanted.push_back(fetch.node());
    for (const Op& target : targets) wanted.push_back(target.node());
    step.state_->takes = takes_elements(core_->graph, std::move(wanted));
  }
  TROUPE_TRY(compile_first(*step.state_, compile_request));
  for (const Output& feed : feeds)
    step.state_->feeds.push_back({feed.name(), feed.dtype(), feed.shape()});
  return step;
}

Expected<std::vector<Tensor>> Session::try_run(const std::vector<Output>& fetches,
                                               const std::vector<Op>& targets,
                                               const std::vector<Feed>& feeds,
                                               const RunOptions& options) {
  TROUPE_TRY(may_wait(*core_, "Session::run"));
  const auto began = std::chrono::steady_clock::now();
  std::vector<Output> ports;
  std::vector<Tensor> values;
  for (const Feed& feed : feeds) {
    ports.push_back(feed.port);
    values.push_back(feed.value);
  }
  TROUPE_TRY(CompiledStep step, try_compile(fetches, targets, ports));
  return step.try_run(std::move(values), detail::rest_of(options, began));
}

Status Session::try_init(const InitOptions& options) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::init"));
  for (NodeId node : core_->graph.initializers())
    if (node >= core_->graph.def().nodes.size() || core_->graph.node(node).inputs.empty())
      return invalid_argument("an initializer is no node of the graph that assigns a variable");
  std::lock_guard lock(core_->initialising);
  std::vector<Initializer> assigned = initializers_of(core_->graph);
  if (!options.reset) {
    TROUPE_TRY(assigned, without_value(core_, std::move(assigned)));
  }
  // Overwriting values may undo work of the program; initialising the others does not.
  const RunFor whom = options.reset ? RunFor::program : RunFor::session;
  for (const std::vector<Initializer>& round : in_rounds(core_->graph, assigned, {})) {
    CompileRequest request;
    add_targets(core_->graph, round, request);
    if (request.targets.empty()) continue;
    TROUPE_TRY(run_single(core_, std::move(request), {}, whom));
  }
  return ok_status();
}

Expected<std::vector<std::pair<std::string, Tensor>>> Session::try_variables() {
  TROUPE_TRY(may_ask_graph(*core_, "Session::variables"));
  const std::scoped_lock whole(core_->doing_once, core_->initialising);
  TROUPE_TRY(const auto reads, state_reads(core_->graph));
  TROUPE_TRY(JobState state, read_state(core_, reads));
  return std::move(state.variables);
}

struct PendingState::State {
  detail::Step step;
  detail::Run run;
  std::set<std::string> variables;                // still to be written
  WrittenState written;                           // as far as known
  bool whole = false;                             // `written` is complete
  std::optional<CommitNumber> resources_of = {};  // the commit that these are of; none: no such
};

Expected<WrittenState> PendingState::try_get() {
  State& s = *state_;
  if (s.whole) return std::move(s.written);
  CallResult& result = s.run.wait(/*spin=*/false);
  TROUPE_TRY(result.status);
  for (const Tensor& answer : result.fetches) {
    if (answer.dtype() != DType::string || answer.rank() != 0)
      return internal_error("who wrote a shard did not say what it wrote");
    TROUPE_TRY(const auto shards, parse_shards(answer.item<std::string>()));
    for (const CheckpointFile& shard : shards) {
      for (const StoredTensor& each : shard.tensors)
        if (s.variables.erase(each.name) == 0)
          return internal_error("a shard has '" + each.name + "', which it was not asked for");
      s.written.shards.push_back(shard);
    }
  }
  if (!s.variables.empty()) return internal_error("no shard has '" + *s.variables.begin() + "'");
  if (s.resources_of && result.place->committed != *s.resources_of)
    return aborted("another run committed while the state was taken");
  take_place(*result.place, s.written.state);
  s.whole = true;
  return std::move(s.written);
}

Expected<PendingState> Session::start_state(const std::string& folder, const std::string& token,
                                            bool refuse_nan) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::start_state"));
  const std::scoped_lock whole(core_->doing_once, core_->initialising);
  PendingState pending;
  pending.state_ = std::make_shared<PendingState::State>();
  PendingState::State& s = *pending.state_;
  const std::vector<NamedHandle> resources = other_resources(core_->graph);
  const GraphDef& graph = core_->graph.def();
  TROUPE_TRY(const auto reads, state_reads(core_->graph));
  if (reads.empty() && resources.empty())
    return failed_precondition("the graph reads no variable: there is no state to save");
  if (reads.empty()) {
    TROUPE_TRY(s.written.state, try_state());
    s.whole = true;
    return pending;
  }
  if (!resources.empty()) {
    TROUPE_TRY(s.written.state, read_state(core_, {}, resources));
    s.resources_of = s.written.state.committed;
  }
  std::vector<const NodeDef*> variables;
  for (const VariableRead& each : reads) variables.push_back(each.variable);
  TROUPE_TRY(const std::vector<std::string> hosts, hosts_of(*core_, variables));
  std::map<std::string, ShippedGraph::ShardSave> saves;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    ShippedGraph::ShardSave& save = saves[hosts[i]];
    save.device = hosts[i];
    save.names.push_back(state_name(*variables[i]));
    save.reads.push_back(NodeId(reads[i].read - graph.nodes.data()));
    s.variables.insert(save.names.back());
  }
  std::vector<ShippedGraph::ShardSave> all;
  for (auto& [_, save] : saves) all.push_back(std::move(save));
  {
    std::lock_guard lock(core_->mutex);
    TROUPE_TRY(s.step.request, core_->shipping.add_shard_saves(all, refuse_nan));
    s.written.state.graph = core_->marks.of(graph);
    s.written.state.seed = graph.seed;
  }
  s.step.request.replicas = 1;
  s.step.core = core_;
  s.step.with_place = s.step.only_reads = true;
  for (const PortName& feed : s.step.request.feeds)
    s.step.feeds.push_back({feed.text(), DType::string, PartialShape{}});
  TROUPE_TRY(compile_first(s.step, compile_request));
  detail::start(s.step, {Tensor::scalar(folder), Tensor::scalar(token)}, {}, s.run);
  if (!s.resources_of) return pending;
  // The variables are of a commit up to this one: the same as the resources, unless other threads
  // of the program commit meanwhile.
  const CallResult now = ask(*core_, AskHomes{});
  if (now.seen == *s.resources_of) return pending;
  to_master(*core_, CancelRun{s.run.id, cancelled("the state is taken in another way")});
  (void)s.run.wait(/*spin=*/false);
  TROUPE_TRY(s.written.state, try_state());
  s.whole = true;
  return pending;
}

Expected<JobState> Session::try_state(const StateOptions& options) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::try_state"));
  const std::scoped_lock whole(core_->doing_once, core_->initialising);
  std::vector<NamedHandle> resources;
  if (options.resources) resources = other_resources(core_->graph);
  TROUPE_TRY(const auto variables, state_reads(core_->graph));
  TROUPE_TRY(JobState state, read_state(core_, variables, resources));
  if (state.variables.empty() && state.resources.empty())
    return failed_precondition("the graph reads no variable: there is no state to save");
  std::lock_guard lock(core_->mutex);
  state.graph = core_->marks.of(core_->graph.def());
  state.seed = core_->graph.def().seed;
  return state;
}

DurableRuns& Session::durable_runs() { return core_->durable; }

std::size_t Session::graph_size() const {
  return graph_there(*core_).ok() ? core_->graph.def().nodes.size() : 0;
}

std::shared_ptr<const GraphDef> detail::graph_of(SessionCore& core) {
  std::lock_guard lock(core.mutex);
  return graph_there(core).ok() ? core.graph.snapshot() : std::make_shared<const GraphDef>();
}

Status Session::check_state_within(std::size_t nodes) const {
  TROUPE_TRY(graph_there(*core_));
  const GraphDef& graph = core_->graph.def();
  std::set<std::string> read;
  for (const VariableRead& each : variable_reads(graph, core_->graph.registry()))
    read.insert(state_name(*each.variable));
  std::set<ResourceName> known;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    const OpInfo* op = core_->graph.registry().find(node.op);
    if (!op || op->def.role != Role::handle) continue;
    const std::string& kind = op->def.external.resource;
    if (kind == kMutexKind) continue;  // without contents
    const ResourceName name{kind, resource_container(node), resource_name(node)};
    if (id < nodes) known.insert(name);
    if (known.contains(name) || (kind == "variable" && !read.contains(state_name(node)))) continue;
    return failed_precondition(
               fmt::format("{} was made after the Job, whose next life could not restore it: make "
                           "what has state before the Job",
                           name.text()))
        .at(node.site);
  }
  return ok_status();
}

Expected<std::string> Session::try_save_job(const std::string& dir, const SaveJobOptions& options) {
  TROUPE_TRY(may_wait(*core_, "Session::save_job"));
  return in_some_runtime(core_, [&]() -> Expected<std::string> {
    TROUPE_TRY(disk().make_dirs(dir));
    TROUPE_TRY(const CheckpointLock lock, CheckpointLock::take(dir));
    TROUPE_TRY(CheckpointDraft draft, CheckpointDraft::begin(dir));
    TROUPE_TRY(PendingState pending,
               start_state(std::filesystem::absolute(draft.folder()), draft.token(), false));
    Expected<WrittenState> got = pending.try_get();
    if (got.status().code() == Code::aborted) {  // others have committed meanwhile
      TROUPE_TRY(JobState whole, try_state());
      got = WrittenState{std::move(whole), {}};
    }
    TROUPE_TRY(WrittenState written, std::move(got));
    if (written.state.committed == 0)
      return failed_precondition("nothing was committed yet: there is no state to save");
    CheckpointData data = checkpoint_of(std::move(written.state));
    TROUPE_TRY(check_is_latest(dir, data.step));
    TROUPE_TRY(const CheckpointInfo info,
               draft.finish(data, std::move(written.shards), {.keep = options.keep}));
    return info.path;
  });
}

namespace {

// Checks the graph against the marks, as far as it exists.
Status check_same_graph(SessionCore& core, const std::vector<GraphMark>& marks) {
  std::lock_guard lock(core.mutex);
  return check_marks(core.graph.def(), marks);
}

// Keeps the marks, to check later nodes.
void await_graph(SessionCore& core, const std::vector<GraphMark>& marks) {
  std::lock_guard lock(core.mutex);
  core.awaited = marks;
}

}  // namespace

Status Session::try_restore_job(const std::string& dir, const RestoreJobOptions& options) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::restore_job"));
  TROUPE_TRY(const CheckpointInfo newest, latest_checkpoint(dir));
  TROUPE_TRY(StoredCheckpoint stored, open_checkpoint(newest.path));
  return try_restore(state_of(std::move(stored)), options).in("restoring '" + newest.path + "'");
}

Status Session::try_restore(const std::vector<std::pair<std::string, Tensor>>& values,
                            CommitNumber committed, const std::vector<DatasetPlace>& datasets) {
  return try_restore(JobState{committed, values, datasets, {}});
}

Status Session::try_restore(const JobState& state, const RestoreJobOptions& options) {
  TROUPE_TRY(may_wait(*core_, "Session::restore"));
  if (state.committed == 0) return invalid_argument("a checkpoint is of commit 1 or later");
  TROUPE_TRY(graph_there(*core_));
  TROUPE_TRY(graph_is_whole(*core_));
  const std::uint64_t seed = core_->graph.def().seed;
  if (state.seed.value_or(seed) != seed)
    return invalid_argument(
        fmt::format("the checkpoint is of seed {}, the graph of {}", *state.seed, seed));
  if (options.same_graph) TROUPE_TRY(check_same_graph(*core_, state.graph));
  core_->log.broke("a job was restored since the state was kept");
  TROUPE_TRY(resume(core_, state));
  if (options.same_graph) await_graph(*core_, state.graph);
  return ok_status();
}

Expected<JobState> Session::try_keep(const std::optional<std::string>& note) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::keep"));
  if (note) TROUPE_TRY(check_note(*note));
  SessionCore& core = *core_;
  const auto take = [&]() -> Expected<JobState> {
    TROUPE_TRY(const JobPlace place, try_place());
    if (place.committed == 0) return JobState{};
    TROUPE_TRY(move_place_alone(core_, note.value_or(place.note)));
    return try_state();
  };
  if (!core.logs) return take();
  return taken_alone<JobState>(core_, [&](bool quiet) -> Expected<JobState> {
    TROUPE_TRY(JobState state, take());
    core.keeps = true;
    // The state may or may not contain runs under way.
    if (!quiet || (state.committed == 0 && core.any_run)) return state;
    core.kept.reset();
    if (state.committed != 0) core.kept = state;
    note_order(core);
    core.log.kept();
    core.recoveries.progressed();
    return state;
  });
}

Expected<PendingState> Session::start_kept_state(const std::string& note, const std::string& folder,
                                                 const std::string& token, bool refuse_nan,
                                                 bool keeps) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::start_kept_state"));
  TROUPE_TRY(check_note(note));
  SessionCore& core = *core_;
  return taken_alone<PendingState>(core_, [&](bool quiet) -> Expected<PendingState> {
    TROUPE_TRY(move_place_alone(core_, note));
    TROUPE_TRY(PendingState pending, start_state(folder, token, refuse_nan));
    core.keeps = true;
    note_order(core);
    if (keeps) quiet ? core.log.taken() : core.log.not_taken();
    return pending;
  });
}

bool Session::keep_written(JobState state) {
  const Alone nobody_else(*core_);
  if (!core_->log.taken_is_kept()) return false;
  core_->kept = std::move(state);
  core_->recoveries.progressed();
  return true;
}

void Session::keep_restored(JobState state) {
  const Alone nobody_else(*core_);
  core_->keeps = true;
  note_order(*core_);
  core_->log.kept();
  core_->kept = std::move(state);
}

std::set<std::string> Session::files_to_recover() const {
  std::set<std::string> files;
  const Alone nobody_else(*core_);
  for (const std::string& file : core_->log.files()) files.insert(file);
  if (core_->kept)
    for (const StoredVariable& each : core_->kept->stored) files.insert(each.file);
  return files;
}

void Session::forget_files_in(const std::string& folder, const std::string& why) {
  const std::set<std::string> files = files_to_recover();
  if (std::any_of(files.begin(), files.end(),
                  [&](const std::string& file) { return file.starts_with(folder + "/"); }))
    core_->log.broke(why);
}

bool Session::all_here() const { return core_->cluster.wait_for == 0; }

Status Session::failure() const {
  if (const auto ended = core_->watchers->ended()) return ended->status;
  // Whoever has the gate alone may be about to go on.
  const std::shared_lock open(core_->gate, std::try_to_lock);
  const auto lost = open ? core_->watchers->lost() : std::nullopt;
  if (!lost) return ok_status();
  const Status recovers = can_recover();
  if (recovers.ok()) return ok_status();
  return unavailable(fmt::format("a part of the job was lost: {}; the session cannot go on: {}",
                                 lost->status.message(), recovers.message()));
}

void Session::stop_waiting_if(std::function<bool()> stop) {
  if (stop) throw_if_error(may_wait(*core_, "Job::Job"));  // nor may what follows
  const Alone nobody_else(*core_);
  core_->stop_waiting = std::move(stop);
}

std::uint64_t Session::bytes_in_shards() const {
  if (!graph_there(*core_).ok()) return 0;
  std::uint64_t bytes = 0;
  for (const VariableRead& each : variable_reads(core_->graph.def(), core_->graph.registry())) {
    const PartialShape& shape = each.variable->out_shapes.at(0);
    const DType dtype = *each.variable->attrs.at("T").get<DType>();
    if (shape.fully_known() && dtype != DType::string)
      bytes += std::uint64_t(shape.shape().elements()) * dtype_size(dtype);
  }
  return bytes;
}

Status Session::try_save(const std::string& path) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::save"));
  TROUPE_TRY(const auto variables, try_variables());
  return write_variables(path, variables);
}

Status Session::try_save(const std::string& path, const std::vector<Variable>& variables) {
  if (variables.empty()) return failed_precondition("no variable is named to be saved");
  TROUPE_TRY(may_ask_graph(*core_, "Session::save"));
  const std::scoped_lock whole(core_->doing_once, core_->initialising);
  TROUPE_TRY(const auto reads, reads_of(*core_, variables));
  TROUPE_TRY(const JobState state, read_state(core_, reads));
  return write_variables(path, state.variables);
}

Status Session::try_restore(const std::string& path, const RestoreFileOptions& options) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::restore"));
  TROUPE_TRY(const SafetensorsFile file, SafetensorsFile::open(place_to_read(disk(), path)));
  TROUPE_TRY(const std::vector<VariableRead> wanted,
             options.only.empty() ? state_reads(core_->graph) : reads_of(*core_, options.only));
  if (wanted.empty()) return failed_precondition("the graph reads no variable to restore");
  const bool all = !options.init_others || !options.only.empty();
  auto values = match_variables(core_->graph.def(), wanted, file, all, options.name_in_file);
  if (!values.ok()) return values.status().in("restoring '" + path + "'");
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : *values) feeds.push_back(value);
  TROUPE_TRY(CompileRequest request, assignments_of(*core_, *values));
  const auto run = [&](CompileRequest step, std::vector<Tensor> fed) {
    return run_single(core_, std::move(step), std::move(fed), RunFor::program).status();
  };
  if (!options.init_others) return run(std::move(request), std::move(feeds));
  std::lock_guard lock(core_->initialising);
  TROUPE_TRY(const auto missing, without_value(core_, others(core_->graph, *values)));
  const auto rounds = in_rounds(core_->graph, missing, keys_of(core_->graph, *values));
  add_targets(core_->graph, rounds[0], request);
  TROUPE_TRY(run(std::move(request), std::move(feeds)));
  for (std::size_t i = 1; i < rounds.size(); ++i) {
    CompileRequest next;
    add_targets(core_->graph, rounds[i], next);
    TROUPE_TRY(run(std::move(next), {}));
  }
  return ok_status();
}

Status Session::try_assign(const std::vector<std::pair<std::string, Tensor>>& values) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::assign"));
  if (values.empty()) return ok_status();
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : values) {
    if (!value.defined()) return invalid_argument("an empty Tensor as the value of '" + name + "'");
    feeds.push_back(value);
  }
  TROUPE_TRY(CompileRequest request, assignments_of(*core_, values));
  return run_single(core_, std::move(request), std::move(feeds), RunFor::program).status();
}

Status Session::try_assign_stored(const std::vector<StoredVariable>& values) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::assign"));
  if (values.empty()) return ok_status();
  TROUPE_TRY(CompileRequest request, restores_of(core_, values));
  std::vector<std::string> files;
  for (const StoredVariable& each : values)
    if (files.empty() || files.back() != each.file) files.push_back(each.file);
  return run_single(core_, std::move(request), {}, RunFor::program, /*only_reads=*/false, nullptr,
                    std::move(files))
      .status();
}

Status Session::try_reset(const std::vector<std::string>& containers) {
  TROUPE_TRY(may_wait(*core_, "Session::reset"));
  ResetContainers message;
  message.containers = containers;
  if (containers.empty()) message.containers.emplace_back();
  const auto reset = [core = core_, message] { return ask_numbered(*core, message); };
  const auto logged = [&]() -> Status {
    // What it cuts short would not be, where all is done again in turn.
    const bool alone = core_->log.quiet();
    const CallResult result = reset();
    if (!is_logged(*core_)) return result.status;
    const Code code = result.status.code();
    if (code == Code::ok && alone)
      core_->log.enter_done(
          [reset] {
            return RunLog::Outcome{reset().status.code(), 0, 0};
          },
          0, result.seen);
    else if (code != Code::unavailable && code != Code::failed_precondition)  // it has done nothing
      core_->log.broke("containers were reset since the state was kept");
    return result.status;
  };
  return in_some_runtime(core_, [&] { return at_gate(*core_, logged); });
}

bool Session::replaces_workers() const { return core_->logs; }

Status Session::can_recover() const {
  if (!core_->logs) return failed_precondition("the session has no workers that it could replace");
  if (const auto ended = core_->watchers->ended(); ended && !ended->status.ok())
    return failed_precondition("it has ended: " + ended->status.message());
  return core_->log.whole();
}

std::uint64_t Session::recoveries() const { return core_->generation; }

std::uint64_t Session::watch(std::function<void(const SessionEvent&)> f) {
  if (!f) throw Error(invalid_argument("Session::watch with nothing to call"));
  return core_->watchers->add(std::move(f));
}

void Session::unwatch(std::uint64_t watcher) { core_->watchers->remove(watcher); }

CommitNumber Session::committed() const { return core_->committed.load(); }

Expected<JobPlace> Session::try_place() {
  TROUPE_TRY(may_wait(*core_, "Session::place"));
  CallResult result = at_gate(*core_, [&] { return ask(*core_, AskPlace{core_->id, nullptr}); });
  TROUPE_TRY(result.status);
  return *result.place;
}

Status Session::try_mark_place(const std::string& note) {
  TROUPE_TRY(may_wait(*core_, "Session::mark_place"));
  TROUPE_TRY(check_note(note));
  return move_place(core_, note);
}

Expected<bool> Session::try_once(const std::string& name, const std::function<Status()>& f) {
  TROUPE_TRY(may_wait(*core_, "Session::once"));
  std::lock_guard one_at_a_time(core_->doing_once);
  TROUPE_TRY(const JobPlace place, try_place());
  if (place.once.contains(name)) return false;
  const std::thread::id outer = core_->once_by.exchange(std::this_thread::get_id());
  const auto leave = [outer](SessionCore* core) { core->once_by = outer; };
  std::unique_ptr<SessionCore, decltype(leave)> here(core_.get(), leave);  // also when `f` throws
  TROUPE_TRY(f());
  here.reset();
  TROUPE_TRY(move_at_gate(
      *core_,
      [core = core_, name] {
        return ask(*core, DoneOnce{core->id, name, nullptr});
      },
      name.size()));
  return true;
}

bool Session::once(const std::string& name, const std::function<void()>& f) {
  return value_or_throw(try_once(name, [&] {
    f();
    return ok_status();
  }));
}

std::vector<std::string> Session::describe() {
  throw_if_error(may_wait(*core_, "Session::describe"));
  return ask(*core_, DescribeJob{}).text;
}

Expected<std::vector<Wait>> Session::try_waits() {
  TROUPE_TRY(may_wait(*core_, "Session::waits"));
  CallResult result = ask(*core_, AskJobWaits{});
  TROUPE_TRY(result.status);
  return std::move(result.waits);
}

std::vector<DeviceMemory> Session::memory(bool reset_peak) {
  throw_if_error(may_wait(*core_, "Session::memory"));
  std::lock_guard lock(core_->mutex);
  std::lock_guard pointer(core_->runtime_mutex);
  if (core_->closed || !core_->runtime) return {};
  return core_->runtime->memory(reset_peak);
}

Status Session::try_start_trace() {
  TROUPE_TRY(may_wait(*core_, "Session::try_start_trace"));
  std::lock_guard lock(core_->mutex);
  if (core_->closed) return session_closed();
  TROUPE_TRY(core_->calls->fault());
  std::lock_guard pointer(core_->runtime_mutex);
  if (!core_->runtime) return core_->calls->unread();
  if (core_->tracing) return failed_precondition("a trace is being recorded already");
  core_->runtime->start_trace();
  core_->tracing = true;
  return ok_status();
}

Expected<Timeline> Session::try_stop_trace() {
  TROUPE_TRY(may_wait(*core_, "Session::try_stop_trace"));
  std::lock_guard lock(core_->mutex);
  if (core_->closed) return session_closed();
  TROUPE_TRY(core_->calls->fault());
  std::lock_guard pointer(core_->runtime_mutex);
  if (!core_->tracing || !core_->runtime)
    return failed_precondition("no trace is being recorded, or the worker was lost that was");
  core_->tracing = false;
  return core_->runtime->stop_trace();
}

Status Session::try_close() {
  TROUPE_TRY(may_wait(*core_, "Session::close"));
  return end_session(*core_);
}

}  // namespace troupe
