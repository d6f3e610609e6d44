// Requests of several threads, computed together.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

struct BatchOptions {
  std::int64_t most = 32;  // rows of a batch, at least 1
  // No request waits for others for longer. At most a day counts.
  std::chrono::nanoseconds wait = std::chrono::milliseconds{2};
};

// Joins requests to batches, for a step whose feeds and fetches have a row for each example along
// dimension 0. Has no thread of its own: the thread whose request begins a batch waits for others,
// then runs the step for all of them, while the next batch fills. Thread-safe.
//
//   Batcher batcher([&](std::vector<Tensor> feeds) { return step.try_run(std::move(feeds)); });
//   Tensor answer = batcher.ask({question})[0];  // on any thread
class Batcher {
 public:
  // Computes the fetches of these feeds. What it throws is an error of the requests, too.
  using Run = std::function<Expected<std::vector<Tensor>>(std::vector<Tensor> feeds)>;

  // Throws Error (invalid_argument) for `most` below 1, a negative time, or an empty `run`.
  explicit Batcher(Run run, const BatchOptions& options = {});
  ~Batcher();  // REQUIRES: no thread asks
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // The rows of each fetch that belong to these feeds, which have k >= 1 rows each; those of more
  // than `most` rows are computed alone. Requests whose dtypes or shapes of a row differ are never
  // in one batch, so that a wrong one fails alone. Errors: those of `run`; invalid_argument for
  // feeds without rows, or of different numbers of them, and where a fetch has another number of
  // rows than the feeds.
  Expected<std::vector<Tensor>> try_ask(std::vector<Tensor> feeds);
  std::vector<Tensor> ask(std::vector<Tensor> feeds) {
    return value_or_throw(try_ask(std::move(feeds)));
  }
  // What computes batches that start from now on. What computes others stays until they are done.
  void use(Run run);

  struct Counts {
    std::uint64_t rows = 0, batches = 0;
  };
  Counts counts() const;  // of batches that were started

 private:
  struct Batch;
  void close(Batch& batch);

  const BatchOptions options_;
  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<const Run> run_;
  std::map<std::string, std::shared_ptr<Batch>> open_;  // by the type of a row
  Counts counts_;
};

}  // namespace troupe
