// NamedWork: names what a thread issues to devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/trace.hpp"

namespace troupe {

// While it lives, memory that its thread takes from a device is taken for this node, and work that
// it issues is the node's. CudaDevice names holders of its memory so; with a recorder that is
// active it also records when the GPU did the work. Asynchronous devices count what is issued.
class NamedWork {
 public:
  // The name lives as long as this. Without a run and a recorder they are those of the one outside.
  explicit NamedWork(std::string_view name, std::uint64_t run = 0,
                     std::shared_ptr<Trace> trace = nullptr);
  ~NamedWork();
  NamedWork(const NamedWork&) = delete;
  NamedWork& operator=(const NamedWork&) = delete;

  std::string_view name() const { return name_; }
  std::uint64_t run() const { return run_; }
  const std::shared_ptr<Trace>& trace() const { return trace_; }
  // Tells it from all others that are recorded; 0: it is not.
  std::uint64_t number() const { return number_; }
  // How often its thread has issued work meanwhile to the stream that a device computes on. Copies
  // on streams of their own do not count: they can be made again.
  std::uint64_t issued() const { return issued_; }

  // The calling thread's, or null.
  static const NamedWork* current() { return current_; }
  // Called by the stream of that number, by the thread that issues work. A device computes on 0.
  static void count_issued(std::uint32_t stream);

 private:
  static thread_local NamedWork* current_;

  NamedWork* const outer_;
  const std::string_view name_;
  const std::uint64_t run_;
  const std::shared_ptr<Trace> trace_;
  const std::uint64_t number_;
  std::uint64_t issued_ = 0;
};

}  // namespace troupe
