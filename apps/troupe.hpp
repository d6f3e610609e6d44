// Everything a client program needs: graphs, layers, optimizers, data, sessions.
#pragma once

#include <fmt/core.h>

#include "actors/node.hpp"
#include "actors/session.hpp"
#include "ops/api.hpp"

namespace troupe {
using fmt::print;
}
