#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "actors/processes/proc.hpp"
#include "apps/chaos/faults.hpp"
#include "serialization/checkpoint.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kFullFor{1500}, kBrokenFor{1500}, kLookAtSyncs{20};
constexpr std::chrono::seconds kSyncWithin{20};
constexpr std::uint64_t kSyncsThatFail = 3;

// No file of the program and its workers, who write what they have, grows for a while.
Status fill_disk(ChaosJob& job, Random&) {
  const pid_t program = job.program();
  rlimit before{};
  if (program <= 0 || prlimit(program, RLIMIT_FSIZE, nullptr, &before) != 0)
    return failed_precondition("there is no such process");
  rlimit none = before;
  none.rlim_cur = 0;
  if (prlimit(program, RLIMIT_FSIZE, &none, nullptr) != 0)
    return failed_precondition("its limit of a file's size cannot be set");
  for (const pid_t worker : job.workers()) (void)prlimit(worker, RLIMIT_FSIZE, &none, nullptr);
  job.meanwhile([program, before](const std::stop_token& stop) {
    pause_for(stop, kFullFor);
    (void)prlimit(program, RLIMIT_FSIZE, &before, nullptr);
    for (const pid_t worker : children_of(program))  // one that was started meanwhile
      (void)prlimit(worker, RLIMIT_FSIZE, &before, nullptr);
  });
  return ok_status();
}

// What the program and its workers write does not get to the disk a few times, in a while and once
// at least. No longer: a last checkpoint that cannot be written ends a job.
Status break_disk(ChaosJob& job, Random&) {
  FailingSyncs* syncs = job.syncs();
  if (syncs == nullptr) return failed_precondition("its fsync cannot be made to fail");
  const std::uint64_t before = syncs->failed();
  syncs->fail(FailingSyncs::kBelow);
  const auto begin = ChaosJob::Clock::now();
  if (!job.wait_until([&] {
        return syncs->failed() > before || ChaosJob::Clock::now() > begin + kSyncWithin;
      }) ||
      syncs->failed() == before) {
    syncs->fail(0);
    return failed_precondition("the job made no fsync");
  }
  job.meanwhile([syncs, before](const std::stop_token& stop) {
    const auto until = ChaosJob::Clock::now() + kBrokenFor;
    while (!stop.stop_requested() && ChaosJob::Clock::now() < until &&
           syncs->failed() < before + kSyncsThatFail)
      pause_for(stop, kLookAtSyncs);
    syncs->fail(0);
  });
  return ok_status();
}

// A byte in the middle of the newest checkpoint's largest file.
bool corrupt_newest(const ChaosJob& job) {
  const std::string checkpoint = JobFolder::position(job.job()).checkpoint;
  fs::path largest;
  std::uintmax_t size = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(checkpoint, none))
    if (const auto bytes = entry.file_size(none); !none && bytes > size) {
      size = bytes;
      largest = entry.path();
    }
  if (size == 0) return false;
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(std::streamoff(size / 2));
  const int byte = file.get();
  file.seekp(std::streamoff(size / 2));
  file.put(char(byte ^ 0x40));
  return bool(file);
}

Status corrupt_checkpoint(ChaosJob& job, Random&) {
  // With an older one to go back to.
  const auto several = [&] {
    const auto all = list_checkpoints(job.job() + "/" + JobFolder::kCheckpoints);
    return all.ok() && all->size() > 1;
  };
  if (!job.wait_until(several)) return failed_precondition("it did not write two checkpoints");
  const pid_t program = job.program();
  if (!corrupt_newest(job)) return failed_precondition("its newest checkpoint cannot be changed");
  return send_signal(program, SIGKILL);
}

}  // namespace

std::vector<Fault> file_faults() {
  return {
      {"disk-full", "the program and its workers can write no file for 1.5 s", fill_disk},
      {.name = "io-error",
       .about = "three fsyncs of the program and its workers fail with an I/O error, or all within "
                "1.5 s",
       .inject = break_disk,
       .hold_syncs = true},
      {"corrupt-checkpoint", "the newest checkpoint is damaged and the program is killed",
       corrupt_checkpoint},
  };
}

}  // namespace troupe
