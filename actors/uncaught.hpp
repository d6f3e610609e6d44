// How a program ends that lets an Error leave main.
#pragma once

namespace troupe {

// From now on an uncaught Error is printed as a compiler would print it, and ends the process with
// exit code 75 if a part of the job was lost (unavailable, aborted), else with 1; not by SIGABRT,
// which says nothing of the cause to whoever started the program. What else nobody catches ends it
// as before. Sessions and the options of programs call this; after the first call it does nothing.
void end_with_code_if_uncaught();

}  // namespace troupe
