// Whether a process may have more threads.
#pragma once

#include <system_error>
#include <type_traits>

#include "core/status.hpp"

namespace troupe {

// ok if `count` more threads can live at once: they are started, and end. Else resource_exhausted,
// which says how many could. CAF ends the process where it cannot start a thread of its own, so
// whoever makes an actor system asks before.
Status threads_can_start(int count);

Status no_thread(const std::system_error& error);  // resource_exhausted

// What `work` returns, an Expected or a Status: no_thread() if a std::thread in it cannot start.
template <class Work>
std::invoke_result_t<Work> unless_no_thread(Work&& work) {
  try {
    return work();
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return no_thread(error);
  }
}

}  // namespace troupe
