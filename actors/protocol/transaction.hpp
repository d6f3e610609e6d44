#pragma once
#include "core/transaction.hpp"
