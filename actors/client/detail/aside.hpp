// Sessions that are closed on another thread, since their owner must not wait.
#pragma once

#include <chrono>
#include <functional>

namespace troupe::detail {

// Calls `close` on a thread of its own, one after the other, and destroys it there. The end of the
// process waits for them, 20 s at most, before it destroys what sessions use: not if a callback of
// a session ends it, for which they may wait. False: no thread could be started, and nothing is
// done. Any thread.
bool close_aside(std::function<void()> close);
// Whether all are over within that time.
bool closed_aside(std::chrono::milliseconds within);

}  // namespace troupe::detail
