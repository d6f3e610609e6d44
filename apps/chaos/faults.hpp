// What `troupe chaos` does to a job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/chaos/chaos_job.hpp"
#include "core/hash.hpp"
#include "core/status.hpp"

namespace troupe {

struct Fault {
  // What a job is to make of it.
  enum class Outcome : std::uint8_t {
    goes_on,  // to its end, with the result of an undisturbed run
    ends,     // with a cause
    either,
  };

  const char* name;
  const char* about;
  // Begins it, in a job that has a checkpoint; what lasts goes on in ChaosJob::meanwhile. An error:
  // it could not be done, e.g. because the job was over, or this machine does not allow it.
  std::function<Status(ChaosJob& job, Random& random)> inject;
  Outcome outcome = Outcome::goes_on;
  std::vector<std::string> causes = {};  // one of which a job that ends names
  bool of_all = true;                    // among those of a command that chooses none
  bool hold_syncs = false;               // ChaosJob::Options
};

std::vector<Fault> faults();

// Each in a file of its own.
std::vector<Fault> process_faults();  // the processes of a job, and what they may use
std::vector<Fault> link_faults();     // the connections between them
std::vector<Fault> file_faults();     // what they write

// Ok, or that the process (0: none) is not there any more.
Status send_signal(pid_t process, int number);
// One of them; 0 if there are none.
pid_t any_of(const std::vector<pid_t>& processes, Random& random);

}  // namespace troupe
