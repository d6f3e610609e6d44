// One function per command; each returns an exit code.
#pragma once

#include <string>
#include <vector>

#include "troupe/apps/training.hpp"

namespace troupe {

struct Printing {
  bool json = false;
  bool quiet = false;
};

// Prints `error: ...` to stderr, or {"error": ...} to stdout, and returns the exit code. With the
// newest good checkpoint (empty: there is none) of a run that writes some.
int report_error(const Status& status, const Printing& printing,
                 const std::string* checkpoint = nullptr);

int train_command(TrainOptions options, const Printing& printing);
int demo_command(const Printing& printing);

int worker_command(const std::string& master, const std::string& listen,
                   const std::string& secret_file);

struct GraphOptions {
  std::string example = "mnist-mlp";
  std::string stage = "plan";   // or a stage of compile()
  std::string format = "text";  // or dot
  std::int64_t batch = 64;
  int replicas = 1;
  std::vector<std::string> devices = {"/job:worker/task:0/cpu:0"};
  bool explain = false;
};
int graph_command(const GraphOptions& options, const Printing& printing);

int checkpoint_list_command(const std::string& directory, const Printing& printing);
int checkpoint_verify_command(const std::string& path, const Printing& printing);

struct BenchOptions {
  std::vector<std::string>
      groups;        // executor, step, channel, kernels, train, soak; empty: all but the last
  std::string only;  // rows whose name contains this
  std::string peer;  // "torch": run that peer in the same call
  int rounds = 5;
  // Of the rows train.*: one for each number of threads, on this cluster.
  std::vector<int> threads = {1, 2};
  Cluster cluster;
};
int bench_command(const BenchOptions& options, const Printing& printing);

}  // namespace troupe
