// A job whose master and whose other worker are played by a test, over sockets, against the code of
// a worker process as it is: what a peer that holds the secret may say, true or not.
#pragma once

#include <deque>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "actors/runtime/worker_process.hpp"
#include "graph/compile.hpp"
#include "serialization/messages.hpp"
#include "serialization/tensor_tag.hpp"
#include "tests/actors/support/line.hpp"

namespace troupe::testing {

inline constexpr const char* kSecret = "a secret of some length";
inline constexpr ProcessId kVictim = 1, kMember = 2;
inline constexpr TaskId kVictimTask{0}, kMemberTask{1};  // which they host

// A graph with variables on both workers, a queue, a feed, random numbers and a list that goes from
// one to the other, and what a master sends for it.
struct JobProgram {
  JobProgram();
  struct Step {
    LoadStep load;
    CompiledGraph graph;
    std::vector<TaskId> tasks;  // of each partition
  };
  std::shared_ptr<const GraphDef> graph;
  LoadGraph load_graph() const { return {1, graph->nodes.size(), graph}; }
  std::vector<Step> steps;  // compiled 1, 2, ...; the first initialises
  // How many feeds partition `p` of a step takes.
  static std::size_t feeds(const Step& step, std::size_t p) {
    return step.graph.plans[p].feeds.size();
  }

 private:
  void add_step(const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
                const std::vector<std::string>& feeds, int replicas);
};

// Connects to whoever listens there, as the process that `join` speaks of. What it says to that:
// ready, or bye; nothing when it just closes.
std::optional<FrameType> introduce(std::uint16_t port, const Join& join,
                                   std::unique_ptr<Line>& control, std::unique_ptr<Line>& data);

// One life of a worker. The worker runs on a thread of this process, so that whatever goes wrong in
// it ends the test. It does not mind that nobody sends heartbeats, unless it is told to.
class HostileJob {
 public:
  // `parent`: the process that it takes for its master's.
  explicit HostileJob(std::chrono::milliseconds silence = std::chrono::hours(1), pid_t parent = 0);
  ~HostileJob();  // lost without a word; the worker must be gone in time

  // Welcome to the mesh: the worker has its devices and is connected to both of us. False when
  // `welcome` was refused.
  bool join(const Welcome& welcome);
  static Welcome welcome();
  // Loads the program and initialises its variables, as a master does.
  void load(const JobProgram& program);

  Line& control() { return *control_; }
  Line& data() { return *data_; }
  // The other worker's connections; made again when the victim closed them.
  bool member();
  void lose_member() { member_control_.reset(), member_data_.reset(); }
  Line& member_control() { return *member_control_; }
  Line& member_data() { return *member_data_; }
  std::uint64_t next_transfer(bool of_member) { return of_member ? member_sent_++ : sent_++; }

  bool send(const WireMessage& message);
  // The answers that fit, past everything else; none when the connection ended.
  std::optional<WireMessage> await(const std::function<bool(const WireMessage&)>& fits);
  // A question that every worker answers: not_found. False when it closed the connection.
  bool answers();
  // The reason that the worker gave before it closed.
  const std::string& goodbye() const { return goodbye_; }
  // The worker's result, once it has closed its connections.
  Status ended();
  std::uint16_t port() const { return join_.listen_port; }
  std::uint64_t incarnation() const { return join_.incarnation; }

 private:
  void accept();

  std::future<Status> worker_;
  std::unique_ptr<Line> control_, data_, member_control_, member_data_;
  Join join_;
  std::string goodbye_;
  std::uint64_t sent_ = 0, member_sent_ = 0, questions_ = 0;
};

const TlsContext& secret_context();
// The frame of one whole tensor.
std::string tensor_frame(std::uint64_t transfer, std::string_view tag, std::string_view bytes);
std::string tag_text(const TensorTag& tag);
std::string message_text(const WireMessage& message);

}  // namespace troupe::testing
