// A master's Membership and the Meshes of its workers on a network of the simulation: connections
// that are slow, break and end in any order, processes that die or say nothing at any moment, and
// strangers who claim to be somebody else. What happens follows from a seed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/processes/membership.hpp"
#include "actors/processes/mesh.hpp"
#include "core/hash.hpp"

namespace troupe::testing {

class JobSim {
 public:
  struct Plan {
    std::size_t wanted = 2;
    bool children = false;         // the workers were started by the master: nobody replaces them
    std::size_t extra = 0;         // that come beside those wanted
    std::size_t spares = 0;        // of these may wait while the job runs
    std::size_t deaths = 0;        // of workers, at any moment of the first two seconds
    std::size_t mute = 0;          // workers that never answer
    std::size_t misfits = 0;       // workers that cannot make their devices
    std::size_t broken_links = 0;  // between workers, at any moment of the first two seconds
    std::size_t impostors = 0;     // peers of workers that claim another's number
    static Plan draw(Random& random);
    std::string text() const;
  };
  JobSim(std::uint64_t seed, const Plan& plan);
  ~JobSim();

  // Until nothing can happen any more; workers come again as long as the job waits for them, and
  // the job is left in the end. What went wrong, or nothing.
  std::vector<std::string> run();

  std::uint64_t events() const { return events_; }
  const std::optional<Status>& started() const { return started_; }
  std::size_t spared() const { return spared_; }  // waited when the job ended
  std::size_t lost() const { return lost_.size(); }

 private:
  struct Connection;
  struct Process;
  struct Worker;

  void at(Instant when, std::function<void()> what);
  Instant soon() { return Instant(std::int64_t(1 + random_.below(slowest_))); }
  void wrong(std::string what);
  Worker& add_worker();
  void connect(Process& from, const std::string& to, Join words, PeerId peer);
  void deliver(std::shared_ptr<Connection> c, int to, std::function<void(Process&, PeerId)> what);
  void end(const std::shared_ptr<Connection>& c, int side, Status why);
  void close(Process& process, PeerId peer, const Status& why);
  void say(Process& from, PeerId peer, const WireMessage& message);
  void die(Worker& worker);
  void break_some_link();
  void add_impostor();
  void master_input(const std::function<void()>& input);
  void carry_out(Membership::Output& output);
  void worker_input(Worker& worker, const std::function<void()>& input);
  void carry_out(Worker& worker, Mesh::Output& output);
  void arm();
  void hear(Process& process, PeerId peer, const WireMessage& message);
  void check_running();
  void check_links();
  std::vector<Worker*> spares() const;
  Worker* holder(ProcessId process) const;

  Random random_;
  const std::uint64_t slowest_;  // of deliveries, in ns
  const Plan plan_;
  Instant now_{0};
  std::uint64_t events_ = 0, order_ = 0;
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> queue_;
  std::unique_ptr<Process> master_;
  Membership membership_;
  Membership::Outputs out_;
  Instant armed_ = kNever;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::set<std::uint64_t> impostors_;           // incarnations
  std::map<ProcessId, std::uint64_t> numbers_;  // of peers that are somebody at the master
  std::set<ProcessId> up_, lost_;
  std::size_t spared_ = 0;
  std::map<ProcessId, Instant> died_;
  std::vector<std::pair<std::pair<ProcessId, ProcessId>, Instant>> broke_;
  std::optional<Status> started_;
  bool over_ = false, leaving_ = false;
  std::vector<std::string> wrong_;
};

}  // namespace troupe::testing
