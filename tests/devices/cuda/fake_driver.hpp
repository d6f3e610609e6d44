// The fake driver of tests/fake_cuda, for tests of this process.
#pragma once

#include <string>
#include <vector>

#include "devices/cuda/driver.hpp"
#include "tests/environment_variable.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"
#include "tests/paths.hpp"

namespace troupe::test {

inline cuda::Search fake_cuda_search() { return {{build_dir() + "/fake-cuda"}, false}; }

// What the fake driver is like.
struct FakeCuda : EnvironmentVariable {
  explicit FakeCuda(const std::string& options)
      : EnvironmentVariable("TROUPE_FAKE_CUDA", options) {}
};

template <class Function>
Function of_fake_cuda(const char* name) {
  auto library = cuda::Library::open({"libcuda.so.1"}, fake_cuda_search());
  TROUPE_CHECK(library.ok(), "the fake driver is built");
  return reinterpret_cast<Function>(library->find(name));
}

inline std::size_t count_in_fake_cuda(const char* what) {
  return of_fake_cuda<fake_cuda::Count>("troupe_fake_count")(what);
}
// What the driver has found out of order since the last call.
inline std::string fake_reports() {
  return of_fake_cuda<fake_cuda::Reports>("troupe_fake_reports")();
}
inline void register_in_fake_cuda(const char* name, fake_cuda::Run run,
                                  const std::vector<std::size_t>& sizes) {
  of_fake_cuda<fake_cuda::Register>("troupe_fake_register")(name, run, sizes.data(),
                                                            int(sizes.size()));
}

}  // namespace troupe::test
