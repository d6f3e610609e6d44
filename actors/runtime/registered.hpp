// What this program registered, for comparison between the processes of a job.
#pragma once

#include "serialization/messages.hpp"

namespace troupe {

// The ops of ops::builtin(), kinds of resources and passes of compile(), by name and definition,
// and the ops with kernels on each type of device. Equal in two processes of the same program.
Registered registered();

}  // namespace troupe
