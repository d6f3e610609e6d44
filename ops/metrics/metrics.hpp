// All measures.
#pragma once

#include "ops/metrics/auc.hpp"
#include "ops/metrics/confusion.hpp"
#include "ops/metrics/mean.hpp"
