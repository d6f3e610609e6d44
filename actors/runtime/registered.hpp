// What this program registered, as the processes of a job compare it.
#pragma once

#include "serialization/messages.hpp"

namespace troupe {

// Of ops::builtin(), kinds of resources and the passes of compile(), by name and definition; of
// devices, which ops have kernels there. Equal in two processes that run the same program.
Registered registered();

}  // namespace troupe
