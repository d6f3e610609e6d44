#include "ops/cuda/measure.hpp"

#include <fmt/format.h>

#include "ops/cuda/device_code.hpp"

namespace troupe::cuda {
namespace {

std::string fault_of(const Resources& resources, int budget) {
  if (resources.spilled > 0) return fmt::format("spills {} bytes", resources.spilled);
  if (resources.registers > budget)
    return fmt::format("takes {} registers, of at most {}", resources.registers, budget);
  return {};
}

}  // namespace

std::vector<Measured> measure(const Compiler& compiler, std::span<const GpuFunction> functions,
                              const std::string& architecture) {
  std::vector<Compiler::Function> wanted;
  for (const GpuFunction& function : functions) wanted.push_back({&device_code(), function.type});
  const auto images = compiler.measured(wanted, architecture);
  std::vector<Measured> all;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    Measured one{.name = function_name(functions[i].type), .budget = functions[i].registers};
    const auto resources = [&]() -> Expected<Resources> {
      if (!images[i].ok()) return images[i].status();
      one.bytes = images[i]->bytes.size();
      return resources_of(images[i]->log, one.name, architecture);
    }();
    if (resources.ok()) one.resources = *resources;
    one.fault = resources.ok() ? fault_of(*resources, one.budget) : resources.status().text();
    const std::string& folder = compiler.cache().folder();
    if (one.fault.empty() && !folder.empty() && !images[i]->kept)
      one.fault = "cannot be written to " + folder;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace troupe::cuda
