// A race on purpose: handlers of two actors write one integer without a message between them. With
// an instrumented CAF the tsan build must report it (and nothing else of CAF's own).
#include <caf/all.hpp>
#include <cstdio>

namespace {

caf::behavior writer(caf::event_based_actor* self, int* shared) {
  return {[=](int rounds) {
    for (int i = 0; i < 1000; ++i) ++*shared;
    if (rounds == 0)
      self->quit();
    else
      self->send(self, rounds - 1);
  }};
}

}  // namespace

int main() {
  caf::actor_system_config config;
  config.set("caf.scheduler.max-threads", 2);
  config.set("caf.scheduler.policy", "sharing");
  caf::actor_system system(config);
  int shared = 0;
  auto a = system.spawn(writer, &shared), b = system.spawn(writer, &shared);
  caf::anon_send(a, 200);
  caf::anon_send(b, 200);
  a = nullptr;
  b = nullptr;
  system.await_all_actors_done();
  std::printf("%d\n", shared);
}
