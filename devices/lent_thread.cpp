#include "devices/lent_thread.hpp"

#include <utility>

#include "devices/detail/lane_pool.hpp"

namespace troupe {

thread_local LentThread* LentThread::current = nullptr;
thread_local std::uint64_t NamedBursts::current = 0;

LentThread::LentThread() : outer_(current) { current = this; }

LentThread::~LentThread() {
  give_back();
  current = outer_;
}

bool LentThread::work(FunctionRef<bool()> done) {
  if (!pool_) return false;
  const bool idle = pool_->work(*this, done);
  give_back();
  return idle;
}

void LentThread::give_back() {
  if (!pool_) return;
  pool_->give_back(*this);
  pool_ = nullptr;
}

NamedBursts::NamedBursts(std::uint64_t name) : outer_(std::exchange(current, name)) {}
NamedBursts::~NamedBursts() { current = outer_; }

}  // namespace troupe
