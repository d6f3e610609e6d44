// All layers.
#pragma once

#include "troupe/ops/nn/attention.hpp"
#include "troupe/ops/nn/batch_norm.hpp"
#include "troupe/ops/nn/dropout.hpp"
#include "troupe/ops/nn/embedding.hpp"
#include "troupe/ops/nn/layer_norm.hpp"
#include "troupe/ops/nn/layers.hpp"
#include "troupe/ops/nn/recurrent.hpp"
#include "troupe/ops/nn/sequential.hpp"
