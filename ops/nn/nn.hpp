// All layers.
#pragma once

#include "ops/nn/attention.hpp"
#include "ops/nn/batch_norm.hpp"
#include "ops/nn/convolutions.hpp"
#include "ops/nn/dropout.hpp"
#include "ops/nn/embedding.hpp"
#include "ops/nn/layer_norm.hpp"
#include "ops/nn/layers.hpp"
#include "ops/nn/norms.hpp"
#include "ops/nn/recurrent.hpp"
#include "ops/nn/sampled_losses.hpp"
#include "ops/nn/sequential.hpp"
#include "ops/nn/tables.hpp"
