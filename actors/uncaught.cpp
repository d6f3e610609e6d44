#include "actors/uncaught.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "core/status.hpp"

namespace troupe {
namespace {

std::terminate_handler before = nullptr;

[[noreturn]] void end() {
  if (const std::exception_ptr uncaught = std::current_exception()) {
    try {
      std::rethrow_exception(uncaught);
    } catch (const Error& error) {
      std::fflush(stdout);
      std::fprintf(stderr, "%s\n", error.status().report().c_str());
      const Code code = error.status().code();
      std::_Exit(code == Code::unavailable || code == Code::aborted ? 75 : 1);
    } catch (...) {  // not ours
    }
  }
  if (before) before();
  std::abort();
}

}  // namespace

void end_with_code_if_uncaught() {
  [[maybe_unused]] static const bool set = [] {
    before = std::set_terminate(end);
    return true;
  }();
}

}  // namespace troupe
