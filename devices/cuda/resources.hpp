// What compiled functions take of a GPU, as the compiler tells it.
#pragma once

#include <string_view>

#include "core/status.hpp"

namespace troupe::cuda {

struct Resources {
  int registers = 0;  // of a thread
  int spilled = 0;    // bytes of a thread that are stored and loaded for want of registers
  int stack = 0;      // bytes of a thread's local memory: its arrays, calls and spills
  int shared = 0;     // bytes of a block's static shared memory
};

// Those of `function`, from the log of a program that was compiled with `resources`
// (Nvrtc::compile). data_loss where the log does not tell them, or tells them twice.
Expected<Resources> resources_of(std::string_view log, std::string_view function,
                                 std::string_view architecture);

}  // namespace troupe::cuda
