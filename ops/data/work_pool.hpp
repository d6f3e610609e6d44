// Threads that call the function of a map stage.
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

// A call and its result. Several threads may wait for the same call.
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

// Has one thread per function, which alone uses it. A call is not begun if only the pool still
// refers to it. Thread-safe. The destructor waits for running calls.
class WorkPool {
 public:
  explicit WorkPool(std::vector<ExampleFunctionPtr> functions);
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;
  ~WorkPool();

  void submit(PooledCallPtr call);
  // Waits for the call's result.
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

// Calls the function; returns resource_exhausted for exceptions that report a lack of memory.
Expected<std::vector<Tensor>> call_in_memory(ExampleFunction& function, std::vector<Tensor> values,
                                             std::uint64_t draw);

}  // namespace troupe
