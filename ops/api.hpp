// All that a client builds graphs with: ops, operators, variables, layers, optimizers, data.
#pragma once

#include "troupe/graph/gradients.hpp"
#include "troupe/graph/slicing.hpp"
#include "troupe/ops/api/constant.hpp"
#include "troupe/ops/api/control.hpp"
#include "troupe/ops/api/generated.hpp"
#include "troupe/ops/api/math.hpp"
#include "troupe/ops/api/moving_average.hpp"
#include "troupe/ops/api/operators.hpp"
#include "troupe/ops/api/scan.hpp"
#include "troupe/ops/api/tensor_array.hpp"
#include "troupe/ops/api/variable.hpp"
#include "troupe/ops/data/data.hpp"
#include "troupe/ops/graph_api.hpp"
#include "troupe/ops/metrics/metrics.hpp"
#include "troupe/ops/nn/nn.hpp"
#include "troupe/ops/optim/optim.hpp"
