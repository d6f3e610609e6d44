// Everything a client program needs: graphs, layers, optimizers, data, sessions.
#pragma once

#include <fmt/core.h>

#include "troupe/actors/client/session.hpp"
#include "troupe/actors/runtime/inherited_worker.hpp"
#include "troupe/ops/api.hpp"

namespace troupe {
using fmt::print;
}
