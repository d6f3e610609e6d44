// All that a client builds graphs with: ops, operators, variables, layers, optimizers, data.
#pragma once

#include "graph/gradients.hpp"
#include "graph/slicing.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/control.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/math.hpp"
#include "ops/api/moving_average.hpp"
#include "ops/api/operators.hpp"
#include "ops/api/scan.hpp"
#include "ops/api/tensor_array.hpp"
#include "ops/api/variable.hpp"
#include "ops/data/data.hpp"
#include "ops/graph_api.hpp"
#include "ops/metrics/metrics.hpp"
#include "ops/nn/nn.hpp"
#include "ops/optim/optim.hpp"
