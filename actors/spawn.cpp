#include "actors/spawn.hpp"

#include <array>
#include <caf/exit_reason.hpp>

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

void ended(caf::actor_system& system, const char* actor, const caf::error& reason) {
  // What an exception did was told when it was thrown.
  constexpr std::array expected = {caf::exit_reason::normal, caf::exit_reason::user_shutdown,
                                   caf::exit_reason::unreachable,
                                   caf::exit_reason::unhandled_exception};
  if (!reason) return;
  for (caf::exit_reason e : expected)
    if (reason == e) return;
  fault(system, actor, caf::to_string(reason));
}

}  // namespace troupe::detail
