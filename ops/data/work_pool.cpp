#include "ops/data/work_pool.hpp"

#include <new>
#include <stdexcept>
#include <system_error>

#include "core/float_environment.hpp"

namespace troupe {

WorkPool::WorkPool(std::vector<ExampleFunctionPtr> functions) : functions_(std::move(functions)) {
  threads_.reserve(functions_.size());
  try {
    for (const ExampleFunctionPtr& function : functions_)
      threads_.emplace_back([this, &function] { work(*function); });
  } catch (const std::system_error&) {
    // As many as the system allows; without any, submit() makes the call itself.
  }
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  some_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkPool::submit(PooledCallPtr call) {
  if (threads_.empty()) {
    auto result = call_in_memory(*functions_[0], std::move(call->values_), call->draw_);
    const std::lock_guard lock(mutex_);
    call->result_.emplace(std::move(result));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(call));
  }
  some_work_.notify_one();
}

Expected<std::vector<Tensor>> WorkPool::wait(const PooledCallPtr& call) {
  std::unique_lock lock(mutex_);
  some_result_.wait(lock, [&] { return call->result_.has_value(); });
  return *call->result_;
}

void WorkPool::work(ExampleFunction& function) {
  const FloatEnvironment as_in_kernels;
  std::unique_lock lock(mutex_);
  for (;;) {
    some_work_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    PooledCallPtr call = std::move(waiting_.front());
    waiting_.pop_front();
    if (call.use_count() == 1) continue;  // nobody waits for it any more
    lock.unlock();
    auto result = call_in_memory(function, std::move(call->values_), call->draw_);
    lock.lock();
    call->result_.emplace(std::move(result));
    some_result_.notify_all();
  }
}

Expected<std::vector<Tensor>> call_in_memory(ExampleFunction& function, std::vector<Tensor> values,
                                             std::uint64_t draw) try {
  return function.call(std::move(values), draw);
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for an element of a dataset");
} catch (const std::length_error&) {
  return resource_exhausted("no memory for an element of a dataset");
}

}  // namespace troupe
