#include "devices/named_work.hpp"

#include <atomic>
#include <utility>

namespace troupe {
namespace {

std::atomic<std::uint64_t> last_number{0};

}  // namespace

thread_local NamedWork* NamedWork::current_ = nullptr;

NamedWork::NamedWork(std::string_view name, std::uint64_t run, std::shared_ptr<Trace> trace)
    : outer_(std::exchange(current_, this)),
      name_(name),
      run_(run == 0 && outer_ ? outer_->run_ : run),
      trace_(active(trace)      ? std::move(trace)
             : outer_ && !trace ? outer_->trace_
                                : nullptr),
      number_(trace_ ? ++last_number : 0) {}

NamedWork::~NamedWork() {
  current_ = outer_;
  if (outer_) outer_->issued_ += issued_;
}

void NamedWork::count_issued(std::uint32_t stream) {
  if (current_ && stream == 0) ++current_->issued_;
}

}  // namespace troupe
