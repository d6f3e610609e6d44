#include "devices/cuda/programs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/hash.hpp"
#include "devices/cuda/image_cache.hpp"

namespace troupe::cuda {

// The text of a program: device code, and an entry for each type.
struct Programs::Program {
  const DeviceCode& code;
  std::vector<std::string> types;  // ascending

  std::string text() const {
    std::string text(code.prologue);
    for (const std::string& type : types)
      text +=
          fmt::format("extern \"C\" __global__ void {}(const {}::Args args) {{ {}::run(args); }}\n",
                      function_name(type), type, type);
    return text;
  }
};

namespace {

// All that an image depends on, as the name of a file.
std::string key_of(const DeviceCode& code, const std::string& text, const Context& context,
                   const Nvrtc& nvrtc) {
  std::uint64_t low = 1, high = 2;
  const auto add = [&](std::string_view part) {
    low = hash_text(part, low);
    high = hash_text(part, high);
  };
  for (const DeviceCode::File& file : code.files) add(file.name), add(file.text);
  add(text);
  add(nvrtc.options());
  return fmt::format("{}{}-nvrtc{}-{:016x}{:016x}", context.gpu().architecture,
                     context.driver().fake ? "-fake" : "", nvrtc.version, low, high);
}

}  // namespace

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
  std::lock_guard lock(mutex_);
  std::map<const DeviceCode*, std::vector<std::string>> missing;
  for (GpuKernel* kernel : kernels)
    for (const GpuFunction& function : kernel->functions())
      if (!functions_.contains(function.type)) missing[&kernel->code()].push_back(function.type);
  for (auto& [code, types] : missing) {
    std::sort(types.begin(), types.end());
    types.erase(std::unique(types.begin(), types.end()), types.end());
    TROUPE_TRY(build({*code, std::move(types)}));
  }
  for (GpuKernel* kernel : kernels)
    for (GpuFunction& function : kernel->functions())
      function.handle = functions_.find(function.type)->second;
  return ok_status();
}

Status Programs::build(const Program& program) {
  TROUPE_TRY(const std::string image, compile(program));
  for (const std::string& type : program.types) {
    TROUPE_TRY(const FunctionHandle handle, find(image, function_name(type).c_str()));
    functions_.emplace(type, handle);
  }
  return ok_status();
}

Expected<std::string> Programs::compile(const Program& program) {
  TROUPE_TRY(const Nvrtc* nvrtc, this->nvrtc());
  const ImageCache cache = ImageCache::standard(!context_->driver().fake);
  const std::string text = program.text();
  const std::string key = key_of(program.code, text, *context_, *nvrtc);
  if (std::optional<std::string> known = cache.read(key)) return std::move(*known);
  TROUPE_TRY(Cubin cubin,
             nvrtc->compile(text, {}, context_->gpu().architecture, program.code.files));
  ++compiled_;
  cache.write(key, cubin.image);
  return std::move(cubin.image);
}

Expected<FunctionHandle> Programs::function(const std::string& image, const char* name) {
  std::lock_guard lock(mutex_);
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

Expected<const Nvrtc*> Programs::nvrtc() {
  if (nvrtc_) return &*nvrtc_;
  const Finding finding = nvrtc_finding(search_, context_->driver().version);
  if (finding.state != "ready")
    return failed_precondition(
        "kernels for GPUs are compiled by NVRTC, which is " +
        (finding.state == "missing" ? finding.text : "unusable: " + finding.text));
  TROUPE_TRY(nvrtc_, open_nvrtc(search_));
  return &*nvrtc_;
}

}  // namespace troupe::cuda
