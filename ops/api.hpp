// All that a client builds graphs with: ops, operators, variables, layers, optimizers, data.
#pragma once

#include "graph/gradients.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/math.hpp"
#include "ops/api/operators.hpp"
#include "ops/api/variable.hpp"
#include "ops/data/data.hpp"
#include "ops/graph_api.hpp"
#include "ops/nn/layers.hpp"
#include "ops/nn/module.hpp"
#include "ops/optim/optim.hpp"
