// A job for `troupe chaos` to disturb, right or with a mistake:
//   subject right             each step adds a number of its own to a variable
//   subject forgets-position  a later life counts its steps anew
//   subject older-state       a later life goes on with the variable of an older checkpoint
//   subject step-twice        a later life does its last step again
//   subject ends-early        a later life says that all is done
//   subject loses-step        what a NaN has undone is not done again
//   subject rests             right, and leaves most of the time to others
// SIGUSR2 makes the next number a NaN. Options of a Job and of a Cluster come last.
#include <chrono>
#include <csignal>
#include <limits>
#include <string_view>
#include <thread>

#include "apps/troupe.hpp"
#include "serialization/checkpoint.hpp"
using namespace troupe;

namespace {

constexpr std::int64_t kSteps = 8000;
volatile std::sig_atomic_t nan_asked = 0;

// That each step has, as a number of the job's.
float number_of(std::int64_t step) { return float(step % 97) / 97.f; }

Tensor next_number(std::int64_t step) {
  const bool nan = nan_asked != 0;
  nan_asked = 0;
  return Tensor::scalar(nan ? std::numeric_limits<float>::quiet_NaN() : number_of(step));
}

// Or what it was at first.
void restore_older(Session& session, const std::string& folder) {
  const auto all = value_or_throw(list_checkpoints(folder));
  if (all.size() < 2) return session.assign({{"sum", Tensor::scalar(1.f)}});
  const CheckpointData older = value_or_throw(read_checkpoint(all[all.size() - 2].path));
  session.assign({older.tensors.begin(), older.tensors.end()});
}

}  // namespace

int main(int argc, char** argv) {
  become_worker_if_started_as_one();
  std::signal(SIGUSR2, [](int) { nan_asked = 1; });
  const std::string_view kind = argc > 1 ? argv[1] : "";
  JobOptions options = JobOptions::from_args(argc, argv);
  options.on_nan = JobOptions::NanPolicy::skip;
  Graph g;
  const Variable sum = variable(g, "sum", 1.f);
  const Output number = placeholder<float>(g, PartialShape::scalar());
  const Output next = sum.value() * 0.9999f + number;
  const Op update = assign(sum, next);
  Session session{g, Cluster::from_args(argc, argv)};
  Job job{session, options};
  auto step = session.compile({next}, {update}, {number});
  if (job.resumed()) {
    if (kind == "ends-early") return 0;
    if (kind == "older-state") restore_older(session, options.dir);
    if (kind == "step-twice") step.run({Tensor::scalar(number_of(job.step()))});
  }
  const std::int64_t first = kind == "forgets-position" ? job.step() : 0;
  for (const JobStep& s : job.steps(kSteps)) {
    bool done = false;
    while (!done) {
      done = !step.run({next_number(s.number() - first)}, s)[0].has_nan();
      if (kind == "loses-step") done = true;
    }
    if (kind == "rests") std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return job.exit_code();
}
