#include "devices/cuda/programs.hpp"

#include <fmt/format.h>

#include <chrono>

#include "core/log.hpp"
#include "devices/cuda/image_cache.hpp"

namespace troupe::cuda {

Programs::Programs(ContextPtr context, Search search)
    : context_(std::move(context)), search_(std::move(search)) {}

Programs::~Programs() {
  context_->enter();
  for (auto& [image, module] : modules_) context_->driver().cuModuleUnload(module);
}

int Programs::compiled() const {
  std::lock_guard lock(mutex_);
  return compiled_;
}

FunctionHandle Programs::prepared(std::string_view type) const {
  std::lock_guard lock(mutex_);
  const auto found = functions_.find(type);
  return found == functions_.end() ? nullptr : found->second;
}

Status Programs::prepare(std::span<GpuKernel* const> kernels) {
  std::lock_guard lock(loading_);
  std::map<std::string_view, const DeviceCode*> missing;
  for (GpuKernel* kernel : kernels)
    for (const GpuFunction& function : kernel->functions())
      if (!functions_.contains(function.type)) missing.emplace(function.type, &kernel->code());
  std::vector<Compiler::Function> ordered;
  for (const auto& [type, code] : missing) ordered.push_back({code, type});
  if (!ordered.empty()) TROUPE_TRY(load(ordered));
  for (GpuKernel* kernel : kernels)
    for (GpuFunction& function : kernel->functions())
      function.handle = functions_.find(function.type)->second;
  return ok_status();
}

Status Programs::load(std::span<const Compiler::Function> missing) {
  const auto begin = std::chrono::steady_clock::now();
  TROUPE_TRY(const Compiler* compiler, this->compiler());
  TROUPE_TRY(const std::string target, compiler->nvrtc().target_for(context_->gpu().architecture));
  auto images = compiler->images(missing, target);
  int cached = 0, compiled = 0;
  for (const auto& image : images)
    if (image.ok()) ++(image->cached ? cached : compiled);
  {
    std::lock_guard lock(mutex_);
    compiled_ += compiled;
  }
  for (std::size_t i = 0; i < missing.size(); ++i) {
    TROUPE_TRY(const Compiler::Image image, std::move(images[i]));
    TROUPE_TRY(const FunctionHandle handle,
               find(image.bytes, function_name(missing[i].type).c_str()));
    std::lock_guard lock(mutex_);
    functions_.emplace(missing[i].type, handle);
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  TROUPE_LOG(
      info, "cuda",
      fmt::format("{} functions for {} in {:.1f} ms: {} compiled, {} found on disk", missing.size(),
                  target, took.count(), int(missing.size()) - cached, cached));
  return ok_status();
}

Expected<FunctionHandle> Programs::function(const std::string& image, const char* name) {
  std::lock_guard lock(loading_);
  return find(image, name);
}

Expected<FunctionHandle> Programs::find(const std::string& image, const char* name) {
  const Driver& driver = context_->driver();
  context_->enter();
  auto module = modules_.find(image);
  if (module == modules_.end()) {
    ModuleHandle loaded = nullptr;
    TROUPE_TRY(
        context_->check(driver.cuModuleLoadData(&loaded, image.c_str()), "cuModuleLoadData"));
    module = modules_.emplace(image, loaded).first;
  }
  FunctionHandle found = nullptr;
  Status status = context_->check(driver.cuModuleGetFunction(&found, module->second, name),
                                  "cuModuleGetFunction");
  if (!status.ok()) return status.in("for kernel '" + std::string(name) + "'");
  return found;
}

Expected<const Compiler*> Programs::compiler() {
  if (compiler_) return &*compiler_;
  const Finding finding = nvrtc_finding(search_, context_->driver().version);
  if (finding.state != "ready")
    return failed_precondition(
        "kernels for GPUs are compiled by NVRTC, which is " +
        (finding.state == "missing" ? finding.text : "unusable: " + finding.text));
  TROUPE_TRY(Nvrtc nvrtc, open_nvrtc(search_, context_->driver().version));
  compiler_.emplace(std::move(nvrtc), ImageCache::standard(!context_->driver().fake));
  return &*compiler_;
}

}  // namespace troupe::cuda
