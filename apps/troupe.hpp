// Everything a client program needs: graphs, layers, optimizers, data, sessions.
#pragma once

#include <fmt/core.h>

#include "troupe/actors/client/session.hpp"
#include "troupe/actors/runtime/worker_process.hpp"
#include "troupe/ops/api.hpp"

namespace troupe {
using fmt::print;
}
