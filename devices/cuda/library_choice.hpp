// What computes something on a GPU: a library of NVIDIA's, or Troupe's own kernels.
#pragma once

#include <string>

#include "core/function_ref.hpp"
#include "core/status.hpp"
#include "devices/cuda/driver.hpp"

namespace troupe::cuda {

// A library that may compute something. The environment's `variable` is `word`, "kernels"
// (Troupe's own), or not set: the library where it is installed and made for the driver.
struct LibraryWish {
  const char* variable;  // "TROUPE_CUDA_MATMUL"
  const char* word;      // "cublaslt"
  const char* library;   // "cublasLt"
  const char* what;      // "products of matrices"
};

struct FoundLibrary {
  Status status;      // why it cannot be opened
  std::string lacks;  // the same, as doctor says it
  std::string path;
  int cuda_major = 0;  // the version of CUDA that it was made with
  bool fake = false;   // the tests'
};

struct LibraryChoice {
  bool library = false;  // else own kernels
  bool asked = false;    // for the library, by name
  std::string text;      // one line
};

// `look` opens the library, unless it is not wanted. invalid_argument for another value of the
// variable; failed_precondition for a library that is broken, or asked for and missing.
Expected<LibraryChoice> choose_library(const LibraryWish& wish, const Driver& driver,
                                       FunctionRef<FoundLibrary()> look);

}  // namespace troupe::cuda
