// How a program ends that lets an Error leave main.
#pragma once

#include "core/status.hpp"

namespace troupe {

// An Error that nobody catches is printed as a compiler would print it, and ends the process with
// exit code 75 if a part of the job was lost (unavailable, aborted), else with 1; not by SIGABRT,
// which says nothing of the cause to whoever started the program. What else nobody catches ends it
// as before. So it is from the moment when this library is loaded; a terminate handler that the
// program sets itself replaces ours. After the first call this does nothing.
void end_with_code_if_uncaught();

// 0, 1, or 75: what may pass if the program is started again. For what was cancelled after a
// stop_signal(), that signal's exit code.
int exit_code_of(const Status& status);

// Leaves the error that ends this process for whoever keeps it running: the file $TROUPE_JOB/error,
// the code on its first line, Status::report() behind it. Does nothing without that variable.
void write_last_error(const Status& status);

}  // namespace troupe
