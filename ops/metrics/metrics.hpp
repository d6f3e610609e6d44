// All measures.
#pragma once

#include "troupe/ops/metrics/auc.hpp"
#include "troupe/ops/metrics/confusion.hpp"
#include "troupe/ops/metrics/mean.hpp"
