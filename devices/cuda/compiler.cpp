#include "devices/cuda/compiler.hpp"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/hash.hpp"
#include "core/processors.hpp"

namespace troupe::cuda {
namespace {

// Of 128 bits.
struct Hash {
  std::uint64_t low = 1, high = 2;
  void add(std::string_view part) {
    low = hash_text(part, low);
    high = hash_text(part, high);
  }
};

std::string entry_of(std::string_view type) {
  return fmt::format("extern \"C\" __global__ void {}(const {}::Args args) {{ {}::run(args); }}\n",
                     function_name(type), type, type);
}

}  // namespace

// One call of images() or measured().
class Compiler::Round {
 public:
  Round(const Compiler& compiler, std::span<const Function> functions,
        const std::string& architecture, bool measure)
      : compiler_(compiler),
        functions_(functions),
        architecture_(architecture),
        measure_(measure),
        images_(functions.size()) {
    for (const Function& function : functions)
      if (const auto [at, is_new] = of_code_.try_emplace(function.code); is_new) {
        for (const DeviceCode::File& file : function.code->files)
          at->second.add(file.name), at->second.add(file.text);
        at->second.add(function.code->prologue);
        at->second.add(Nvrtc::options());
      }
  }

  std::vector<Expected<Image>> run() {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < functions_.size(); i = next++) try {
          images_[i] = image(functions_[i]);
        } catch (const std::bad_alloc&) {
          images_[i] = resource_exhausted("no memory to compile a function of a GPU");
        }
    };
    std::vector<std::thread> threads;
    const std::size_t most = std::min(functions_.size(), std::size_t(usable_processors()));
    threads.reserve(most);
    try {
      for (std::size_t t = 1; t < most; ++t) threads.emplace_back(work);
    } catch (const std::system_error&) {
      // There are no more threads: those that there are do it all.
    }
    work();
    for (std::thread& thread : threads) thread.join();
    std::vector<Expected<Image>> all;
    for (auto& image : images_) all.push_back(std::move(*image));
    return all;
  }

 private:
  Expected<Image> image(const Function& function) const {
    const std::string key = key_of(function);
    if (!measure_)
      if (std::optional<std::string> known = compiler_.cache_.read(key))
        return Image{std::move(*known), {}, true, true};
    TROUPE_TRY(Cubin cubin, compiler_.nvrtc_.compile(
                                std::string(function.code->prologue) + entry_of(function.type), {},
                                architecture_, function.code->files, measure_));
    const bool kept = compiler_.cache_.write(key, cubin.image);
    return Image{std::move(cubin.image), std::move(cubin.log), false, kept};
  }

  // All that an image depends on, as the name of a file.
  std::string key_of(const Function& function) const {
    Hash hash = of_code_.find(function.code)->second;
    hash.add(entry_of(function.type));
    return fmt::format("{}{}-nvrtc{}-{:016x}{:016x}", architecture_,
                       compiler_.nvrtc_.fake ? "-fake" : "", compiler_.nvrtc_.version, hash.low,
                       hash.high);
  }

  const Compiler& compiler_;
  const std::span<const Function> functions_;
  const std::string& architecture_;
  const bool measure_;
  std::map<const DeviceCode*, Hash> of_code_;
  std::vector<std::optional<Expected<Image>>> images_;
};

std::vector<Expected<Compiler::Image>> Compiler::images(std::span<const Function> functions,
                                                        const std::string& architecture) const {
  return Round(*this, functions, architecture, false).run();
}

std::vector<Expected<Compiler::Image>> Compiler::measured(std::span<const Function> functions,
                                                          const std::string& architecture) const {
  return Round(*this, functions, architecture, true).run();
}

}  // namespace troupe::cuda
