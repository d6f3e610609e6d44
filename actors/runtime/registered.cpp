#include "actors/runtime/registered.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/resources/resource.hpp"
#include "core/dtype.hpp"
#include "core/hash.hpp"
#include "graph/compile.hpp"
#include "graph/node_query.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

class Digest {
 public:
  Digest& add(std::string_view text) {
    value_ = hash_text(text, value_);
    return *this;
  }
  Digest& add(std::uint64_t number) {
    value_ = hash_combine(value_, number);
    return *this;
  }
  Digest& add(const std::vector<std::string>& texts) {
    add(texts.size());
    for (const std::string& text : texts) add(text);
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

Registered digest(const OpTable& table, const std::vector<std::string>& kinds) {
  const std::shared_ptr<const KernelIndex> kernels = table.index();
  Digest ops, passes, devices;
  for (const OpInfo* info : table.ops.all()) {
    const OpDef& def = info->def;
    ops.add(def.name).add(def.in).add(def.out).add(def.types).add(def.attrs).add(def.host);
    ops.add(def.reduce).add(std::uint64_t(def.combine)).add(std::uint64_t(def.role));
    ops.add(std::uint64_t(def.stateful) | std::uint64_t(def.random) << 1 |
            std::uint64_t(def.commutative) << 2 | std::uint64_t(def.composite != nullptr) << 3);
    ops.add(def.external.resource).add(def.external.verb);
    for (const std::string& type : kernels->devices_of(def.name))
      devices.add(def.name).add(type).add(kernels->types_of(def.name, type));
  }
  ops.add(kinds);
  for (const std::string& stage : stage_names()) passes.add(stage);
  for (const PassDef& pass : table.passes) passes.add(pass.name).add(pass.after);
  for (const DeviceType& type : table.devices.all())
    devices.add(type.name).add(std::uint64_t(type.space)).add(std::uint64_t(type.rank));
  return {ops.value(), passes.value(), devices.value()};
}

}  // namespace

Registered registered() {
  // Every session asks, and reading all definitions takes longer than what else it begins with.
  static std::mutex mutex;
  static const OpTable* of = nullptr;
  static std::vector<std::string> of_kinds;
  static Registered known;
  const OpTable& table = ops::builtin();
  std::vector<std::string> kinds = resource_kind_names();
  std::lock_guard lock(mutex);
  if (of != &table || of_kinds != kinds) {
    known = digest(table, kinds);
    of = &table;
    of_kinds = std::move(kinds);
  }
  return known;
}

}  // namespace troupe
