// Threads that call functions of examples for a stage.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ops/data/example_function.hpp"

namespace troupe {

// A call, and what came of it. Waiting calls may be handed to several who wait.
class PooledCall {
 public:
  PooledCall(std::vector<Tensor> values, std::uint64_t draw)
      : values_(std::move(values)), draw_(draw) {}

 private:
  friend class WorkPool;
  std::vector<Tensor> values_;
  const std::uint64_t draw_;
  std::optional<Expected<std::vector<Tensor>>> result_;
};
using PooledCallPtr = std::shared_ptr<PooledCall>;

// As many threads as there are functions, each the user of one. A call that nobody holds any more
// is not begun. Thread-safe. The destructor waits for calls that run.
class WorkPool {
 public:
  explicit WorkPool(std::vector<ExampleFunctionPtr> functions);
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;
  ~WorkPool();

  void submit(PooledCallPtr call);
  // The call's result, once it is there.
  Expected<std::vector<Tensor>> wait(const PooledCallPtr& call);

 private:
  void work(ExampleFunction& function);

  std::vector<ExampleFunctionPtr> functions_;
  std::mutex mutex_;
  std::condition_variable some_work_, some_result_;
  std::deque<PooledCallPtr> waiting_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

// What `call` gives; resource_exhausted for the exceptions that say there is no memory.
Expected<std::vector<Tensor>> call_in_memory(ExampleFunction& function, std::vector<Tensor> values,
                                             std::uint64_t draw);

}  // namespace troupe
