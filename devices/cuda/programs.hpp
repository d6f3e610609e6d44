// Programs: the compiled device code of one GPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/cuda/compiler.hpp"
#include "devices/cuda/context.hpp"
#include "devices/cuda/gpu_kernel.hpp"

namespace troupe::cuda {

// Compiles what kernels need and keeps it: a function is compiled once, and loaded as long as this
// lives. Owned by the device; any thread may use it. Who asks for a function that there is does not
// wait for others that are compiled.
class Programs {
 public:
  Programs(ContextPtr context, Search search);
  ~Programs();
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // Sets the handles of the kernels' functions. failed_precondition where NVRTC is needed and
  // missing, which names the wheel that has it.
  Status prepare(std::span<GpuKernel* const> kernels);
  // A kernel of a module, which is loaded once.
  Expected<FunctionHandle> function(const std::string& image, const char* name);

  // Null: there is no such function yet.
  FunctionHandle prepared(std::string_view type) const;

  // How many functions were compiled, rather than found on disk.
  int compiled() const;

 private:
  // With loading_ held:
  Status load(std::span<const Compiler::Function> missing);
  Expected<FunctionHandle> find(const std::string& image, const char* name);
  Expected<const Compiler*> compiler();

  const ContextPtr context_;
  const Search search_;
  std::mutex loading_;  // held while functions are compiled and loaded; guards what follows
  std::optional<Compiler> compiler_;
  std::map<std::string, ModuleHandle> modules_;  // by their images
  // Behind loading_; guards what follows, which only the holder of both writes.
  mutable std::mutex mutex_;
  std::map<std::string, FunctionHandle, std::less<>> functions_;  // by their types
  int compiled_ = 0;
};

}  // namespace troupe::cuda
