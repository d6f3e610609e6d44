// A race on purpose: handlers of two actors write the same integers without a message between them.
// With an instrumented CAF the tsan build must report it (and nothing else of CAF's own).
#include <array>
#include <atomic>
#include <caf/all.hpp>
#include <cstdio>
#include <thread>

namespace {

// Of two writes at the very same moment the sanitizer may see one.
using Shared = std::array<int, 1000>;

// Both write only when both are there, on two threads. A relaxed counter orders nothing.
caf::behavior writer(caf::event_based_actor* self, std::atomic<int>* there, Shared* shared) {
  return {[=](int value) {
    there->fetch_add(1, std::memory_order_relaxed);
    while (there->load(std::memory_order_relaxed) < 2) std::this_thread::yield();
    for (int& each : *shared) each = value;
    self->quit();
  }};
}

}  // namespace

int main() {
  caf::actor_system_config config;
  config.set("scheduler.max-threads", std::size_t{2});
  caf::actor_system system(config);
  std::atomic<int> there = 0;
  Shared shared{};
  for (int value : {1, 2}) caf::anon_send(system.spawn(writer, &there, &shared), value);
  system.await_all_actors_done();
  std::printf("%d\n", shared[0]);
}
