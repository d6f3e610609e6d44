// A program whose session goes with a callback, on a thread that must not wait, while main ends.
#include <future>
#include <memory>
#include <utility>

#include "apps/troupe.hpp"
using namespace troupe;

int main(int argc, char** argv) {
  static std::promise<void> gone;  // outlives the callback
  static Graph g;
  Variable v = variable(g, "v", 1.0f);
  auto session = std::make_shared<Session>(g, Cluster::from_args(argc, argv));
  session->init();
  session->watch([](const SessionEvent& event) {
    if (event.kind == SessionEvent::Kind::ended) print("it has ended\n");
  });
  PendingRun run = session->compile({v.value()}).start();
  run.then([session = std::exchange(session, nullptr)](const auto&) mutable {
    session.reset();
    gone.set_value();
  });
  gone.get_future().wait();
}
