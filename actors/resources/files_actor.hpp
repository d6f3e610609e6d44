// The actor that carries out Save and Restore.
#pragma once

#include <caf/fwd.hpp>

#include "troupe/actors/interfaces.hpp"

namespace troupe {

// One per process. Files are written beside their place and renamed, so that a reader finds a whole
// file or the old one.
ServiceActor spawn_files(caf::actor_system& system);

}  // namespace troupe
