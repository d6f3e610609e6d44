// What `troupe bench` measures, one row a figure.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster.hpp"
#include "apps/bench/statistics.hpp"
#include "core/status.hpp"

namespace troupe {

// What was asked of `troupe bench`.
struct BenchOptions {
  std::vector<std::string> groups;  // executor, step, channel, kernels, train, async, embedding,
                                    // input, soak, gpu; empty: the first five
  std::string only;                 // rows whose name contains this
  std::vector<std::string>
      peers;  // "torch", "tensorflow": run these in the same call, where they have the row
  int rounds = 5;
  // Of the rows train.*, embedding.* and input.*: one for each number of threads, on this cluster.
  std::vector<int> threads = {1, 2};
  Cluster cluster;

  bool beside(std::string_view peer) const {
    return std::find(peers.begin(), peers.end(), peer) != peers.end();
  }
};

struct BenchRow {
  std::string name;
  double value = 0;
  std::string unit;
  std::string peer = {};  // what it is compared with; empty: nothing
  double peer_value = 0;
  double ratio = 0;                                 // value / peer_value; of train.* see below
  std::map<std::string, std::string> details = {};  // of the value, in JSON only
  std::string label = {};                           // what must be known of it to read it
};

// A row is wanted when its name contains `options.only`.
bool wanted(const BenchOptions& options, const std::string& name);

// Rows step.{local,two_process}.{p50,p99,cold_p50} in us: a step of ten nodes that do nothing,
// through Session. p50 and p99 back to back; cold: each after a pause in which all threads fall
// asleep. step.*.messages: what actors of the client's process handle for one of them. With
// the peer tensorflow p50 and p99 in one process stand beside its own, in turns.
Expected<std::vector<BenchRow>> bench_step(const BenchOptions& options);

// Rows executor.loop.* in ns/iteration of the wall clock, of a loop over two devices that counts on
// one of them:
//   two_partitions   of one process; the other device counts, too, and sends nothing but that
//   two_partitions_there_and_back   a value goes to the other device and comes back
//   two_processes, there_and_back   the same of two worker processes
Expected<std::vector<BenchRow>> bench_spread_loops(const BenchOptions& options);

// Rows executor.loop.end_by_{deadline,close}, and the same with _two_processes, in ms: from the
// deadline of a run with an endless loop, or from where another thread begins to close its session,
// until the run returns. `worst_ms` in JSON is the largest of them.
Expected<std::vector<BenchRow>> bench_loop_ends(const BenchOptions& options);

// Rows soak.{local,two_process}.{cpu_per_step,resident}: the last tenth of 200,000 training steps,
// CPU time in us and memory in bytes of all processes. Nothing may grow: the time stands beside
// that of another job's first steps, taken in turns, the memory beside that of the first tenth.
// Takes some minutes; runs only when it is named.
Expected<std::vector<BenchRow>> bench_soak(const BenchOptions& options);

// Rows embedding.{1000,100000,1000000}.t{1,2} in ms: a step of gradient descent over two embeddings
// of so many rows of 128 columns, which looks up 1,024 ids in each. With the peer torch beside its
// step with sparse gradients, in turns. Runs only when it is named: it takes 1 GB, twice with a
// peer.
Expected<std::vector<BenchRow>> bench_embedding(const BenchOptions& options);

// Rows input.tfrecord.{large,small} in MB/s: a file of records of 110,000 or 1,000 bytes, in the
// page cache, beside read(2) of it; input.jpeg in images/s: pictures of 500 x 375 pixels, beside
// libjpeg-turbo. Here a larger ratio is better. Rows input.{images,records}.t{1,2} in us an
// example: pictures in folders, resized to 224 x 224, in batches of 32, and tf.Example messages of
// 784 pixels in batches of 128, through a session; with peers beside the fastest mode of PyTorch's
// DataLoader and of tf.data on the same files, in turns. Runs only when it is named.
Expected<std::vector<BenchRow>> bench_input(const BenchOptions& options);

// Rows async.{two_clients,pipelined}.{checked,immediate} in steps/s: training steps of two clients
// on two workers beside those of one, and up to four at once over two FAKE devices beside one after
// another, with Commit::checked and Commit::immediate; `staleness` in JSON. Runs only when it is
// named.
Expected<std::vector<BenchRow>> bench_async(const BenchOptions& options);

// Rows train.{mlp,lenet,resnet20,char_lstm,char_lstm_unrolled,char_lstm_loop}.t{1,2} in ms a step,
// with the params_sha256 after the steps before the clock starts, and train.lenet.peak_bytes beside
// the bound that `troupe graph` prints. With peers the same models run there, a round of
// each in turn with ours: beside the fastest the ratio is the median of those of the rounds.
// not_found when no python3 here can import it.
Expected<std::vector<BenchRow>> bench_train(const BenchOptions& options);

// Rows gpu.* of the first GPU: copy, add, chain, upload and download in GB/s, matmul.{bf16,f32} in
// TFLOP/s, launch, launch_and_wait and step in us, and train.{mlp,lenet,resnet20,char_lstm} in ms,
// with the peer torch beside its products (larger is better) and training steps on that GPU.
// docs/cuda.md says how each is measured. Those of an emulated GPU are small and labelled.
// failed_precondition in the words of `troupe doctor` without a GPU or NVRTC. Runs only when it is
// named.
Expected<std::vector<BenchRow>> bench_gpu(const BenchOptions& options);

}  // namespace troupe
