#include "actors/spawn.hpp"

#include <unistd.h>

#include <array>
#include <caf/exit_reason.hpp>
#include <cstdio>
#include <cstdlib>

namespace troupe::detail {

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

// Other threads go on until the end, so nothing is torn down.
void end_process(const char* actor, const std::string& cause) {
  std::fprintf(stderr, "a fault of the runtime: actor '%s' of process %d ended: %s\n", actor,
               int(getpid()), cause.c_str());
  std::fflush(stderr);
  std::_Exit(kOurFault);
}

void ended(const char* actor, const caf::error& reason) {
  constexpr std::array expected = {caf::exit_reason::normal, caf::exit_reason::user_shutdown,
                                   caf::exit_reason::unreachable};
  if (!reason) return;
  for (caf::exit_reason e : expected)
    if (reason == e) return;
  end_process(actor, caf::to_string(reason));
}

}  // namespace troupe::detail
