#include "troupe/devices/lent_thread.hpp"

#include "troupe/devices/detail/lane_pool.hpp"

namespace troupe {

thread_local LentThread* LentThread::current = nullptr;

LentThread::LentThread() : outer_(current) { current = this; }

LentThread::~LentThread() {
  give_back();
  current = outer_;
}

bool LentThread::work(FunctionRef<bool()> done) {
  if (!pool_) return false;
  pool_->work(*this, done);
  give_back();
  return true;
}

void LentThread::give_back() {
  if (!pool_) return;
  pool_->give_back(*this);
  pool_ = nullptr;
}

}  // namespace troupe
