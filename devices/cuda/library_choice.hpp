// What computes something on a GPU: a library of NVIDIA's, or Troupe's own kernels.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "core/function_ref.hpp"
#include "core/status.hpp"
#include "devices/cuda/diagnosis.hpp"
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

// The same with the library, as a table of functions. `open(search)` is an Expected<Table>.
template <class Table>
struct TableChoice {
  std::optional<Table> library;  // none: own kernels
  bool asked = false;            // for the library, by name
  std::string text;              // one line
};
template <class Table, class Open>
Expected<TableChoice<Table>> choose_table(const LibraryWish& wish, const Driver& driver,
                                          const Search& search, const Open& open,
                                          Finding (*finding)(const Search&, int driver_version)) {
  std::optional<Table> library;
  const auto look = [&]() -> FoundLibrary {
    auto opened = open(search);
    if (!opened.ok())
      return {.status = opened.status(), .lacks = finding(search, driver.version).text};
    library = std::move(*opened);
    return {.path = library->path, .cuda_major = library->cuda_major(), .fake = library->fake};
  };
  TROUPE_TRY(LibraryChoice choice, choose_library(wish, driver, look));
  if (!choice.library) library.reset();
  return TableChoice<Table>{std::move(library), choice.asked, std::move(choice.text)};
}

// What a library knows no way to compute, Troupe's kernels do. Any thread.
class LibraryGaps {
 public:
  // `alone`: it is an error instead. `what`: "products".
  LibraryGaps(bool alone, const char* what) : alone_(alone), what_(what) {}
  // Whether Troupe's kernel is to compute what the library answered so; warns the first time.
  bool leaves(const Status& status) const;

 private:
  const bool alone_;
  const char* const what_;
  mutable std::atomic<bool> warned_{false};
};

}  // namespace troupe::cuda
