// What compiling in this process needs, whoever asks for it: a master, a worker, a command.
#pragma once

#include <memory>

#include "devices/device.hpp"
#include "graph/compile.hpp"
#include "ops/op.hpp"

namespace troupe {

// Ops and kernels of a table, and a device on which constants are folded, on the calling thread.
// REQUIRES: the table outlives it, and it outlives its targets.
class CompileHost {
 public:
  explicit CompileHost(const OpTable& table);
  CompileHost(const CompileHost&) = delete;
  CompileHost& operator=(const CompileHost&) = delete;

  // A target with everything but devices and settings.
  Target target() const;
  // Gives those to a target that has devices and settings already.
  void complete(Target& target) const;

 private:
  const OpTable& table_;
  const std::shared_ptr<const KernelIndex> kernels_;
  const std::unique_ptr<Device> fold_device_;
};

}  // namespace troupe
