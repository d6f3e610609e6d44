#include "core/uncaught.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "core/held_signal.hpp"
#include "core/stop_signal.hpp"

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
      write_last_error(error.status());
      std::_Exit(exit_code_of(error.status()));
    } catch (...) {  // not ours
    }
  }
  if (before) before();
  std::abort();
}

// Programs build graphs, which throws, before they use anything that could call it.
[[maybe_unused]] const bool at_load = (end_with_code_if_uncaught(), true);

}  // namespace

void end_with_code_if_uncaught() {
  [[maybe_unused]] static const bool set = [] {
    before = std::set_terminate(end);
    return true;
  }();
}

int exit_code_of(const Status& status) {
  if (status.ok()) return 0;
  if (status.code() == Code::cancelled && stop_signal() != 0)
    return exit_code_of_signal(stop_signal());
  return status.code() == Code::unavailable || status.code() == Code::aborted ? 75 : 1;
}

void write_last_error(const Status& status) {
  const char* folder = std::getenv("TROUPE_JOB");
  if (folder == nullptr || *folder == '\0' || status.ok()) return;
  const std::string text = std::string(code_name(status.code())) + "\n" + status.report() + "\n";
  const std::string path = std::string(folder) + "/error";
  const std::string draft = path + "." + std::to_string(getpid());
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  const HeldSignal limit(SIGXFSZ);
  const bool whole = write(file, text.data(), text.size()) == ssize_t(text.size());
  close(file);
  if (!whole || rename(draft.c_str(), path.c_str()) != 0) unlink(draft.c_str());
}

}  // namespace troupe
