// Everything a client program needs: graphs, layers, optimizers, data, sessions.
#pragma once

#include <fmt/core.h>

#include "actors/client/session.hpp"
#include "actors/runtime/inherited_worker.hpp"
#include "ops/api.hpp"

namespace troupe {
using fmt::print;
}
