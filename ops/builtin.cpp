// Finds the ISA object of this machine beside libtroupe_ops.so and lets it fill the table.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "core/log.hpp"
#include "ops/detail/machine_level.hpp"
#include "ops/detail/op_files.hpp"
#include "ops/isa.hpp"
#include "ops/op.hpp"
#if TROUPE_ONEDNN
#include "ops/onednn/onednn.hpp"
#endif

namespace troupe::ops {
namespace {

// What was asked for before anything is computed, and what came of it. The one mutable global of
// this folder: the ISA level belongs to the process, as the processor does.
struct Choice {
  std::mutex mutex;
  int limit = 0;  // none
  CacheSizes caches;
  std::vector<void (*)(OpTable&)> extensions;
  int level = 0;                                // once loaded
  bool adding = false;                          // a kernel has asked how bf16 is added up
  std::atomic<const OpTable*> table = nullptr;  // of that level; what was before it is not deleted
  std::atomic<bool> settled = false;            // something may be computed with it
};

Choice& choice() {
  static Choice c;
  return c;
}

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return ".";
  std::string path = info.dli_fname;
  auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Both levels of x86-64-v4 have the same kernels.
std::string object_path(int level) {
  return fmt::format("{}/libtroupe_ops_v{}.so", own_folder(), std::min(level, 4));
}

// What TROUPE_ISA asks for; 0 when it is not set.
Expected<int> wanted_level() {
  const char* text = std::getenv("TROUPE_ISA");
  if (text == nullptr || *text == '\0') return 0;
  for (int level = 2; level <= kTileLevel; ++level)
    if (text == isa_name(level)) return level;
  return invalid_argument(fmt::format("TROUPE_ISA is v2, v3, v4 or v4-amx, not '{}'", text));
}

// The level that load() takes: the one that TROUPE_ISA asks for, or the best that processor, limit
// and build have in common. Of the two levels of x86-64-v4, that is the one that the limit names
// or, without a limit (0), the one that the processor has instructions for.
Expected<int> find_level(int limit) {
  const int machine = machine_level(), most = machine == 4 ? kTileLevel : machine;
  TROUPE_TRY(int wanted, wanted_level());
  if (wanted > most)
    return failed_precondition(fmt::format("TROUPE_ISA asks for {}, this processor is an x86-64-{}",
                                           isa_name(wanted), isa_name(machine)));
  if (limit != 0 && wanted > limit)
    return failed_precondition(
        fmt::format("TROUPE_ISA asks for {}, this process may use {} at most", isa_name(wanted),
                    isa_name(limit)));
  if (limit == 0) limit = has_tiles() ? kTileLevel : 4;
  std::string missing;
  const int best = wanted > 0 ? wanted : std::min(most, limit);
  for (int level = best; level >= (wanted > 0 ? wanted : 2); --level) {
    std::string path = object_path(level);
    if (access(path.c_str(), R_OK) == 0) return level;
    if (level != kTileLevel || wanted > 0) missing += "\n  missing: " + path;
  }
  return failed_precondition(fmt::format(
      "no CPU kernels for {} x86-64-{}:{}", wanted > 0 ? "TROUPE_ISA, " : "this processor, ",
      isa_name(best), missing.empty() ? " v2 is needed" : missing));
}

// Calls `visit` for each registration function, with the file that it stands in.
using VisitOps = void (*)(void* to, const char* file, void (*add)(OpTable&));

struct IsaObject {
  void (*register_ops)(void* to, VisitOps visit) = nullptr;
  void (*set_cache_sizes)(std::int64_t, std::int64_t, std::int64_t) = nullptr;
};

// The object stays open for good: kernels live in it.
IsaObject open_object(int level) {
  std::string path = object_path(level);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  IsaObject object;
  if (handle != nullptr) {
    object.register_ops =
        reinterpret_cast<void (*)(void*, VisitOps)>(dlsym(handle, "troupe_register_ops"));
    object.set_cache_sizes = reinterpret_cast<void (*)(std::int64_t, std::int64_t, std::int64_t)>(
        dlsym(handle, "troupe_set_cache_sizes"));
    if (object.register_ops != nullptr && object.set_cache_sizes != nullptr) return object;
  }
  const char* why = dlerror();
  TROUPE_CHECK(false, fmt::format("broken CPU kernels: {}", why != nullptr ? why : path));
}

// oneDNN picks its code by the machine too: the same cap, or the same level would give other bits
// elsewhere. It can be told once.
void cap_libraries([[maybe_unused]] int level) {
#if TROUPE_ONEDNN
  if (Status s = onednn::limit_isa(level); !s.ok()) TROUPE_LOG(warning, "ops", s.text());
#endif
}

// REQUIRES: the lock.
const OpTable* load(Choice& c) {
  auto level = find_level(c.limit);
  TROUPE_CHECK(level.ok(), level.status().text());
  c.level = *level;
  IsaObject object = open_object(c.level);
  object.set_cache_sizes(c.caches.l1, c.caches.l2, c.caches.l3);
  auto* table = new OpTable;  // never deleted: sessions of static lifetime may still use it
  object.register_ops(
      table, [](void* to, const char*, void (*add)(OpTable&)) { add(*static_cast<OpTable*>(to)); });
  for (auto* extension : c.extensions) extension(*table);
  table->finish();
  c.table = table;
  return table;
}

Status before_use(bool used, std::string_view what) {
  if (!used) return ok_status();
  return failed_precondition(fmt::format("{} is set before the ops are first used", what));
}

}  // namespace

const OpTable& builtin() {
  Choice& c = choice();
  if (const OpTable* table = c.table.load()) return *table;
  std::lock_guard lock(c.mutex);
  const OpTable* table = c.table.load();
  return *(table != nullptr ? table : load(c));
}

namespace detail {

std::map<std::string, std::string, std::less<>> op_files() {
  struct Found {
    OpTable table;
    std::map<std::string, std::string, std::less<>> files;
  } found;
  open_object(isa_level())
      .register_ops(&found, [](void* to, const char* file, void (*add)(OpTable&)) {
        auto& f = *static_cast<Found*>(to);
        add(f.table);
        for (const OpInfo* op : f.table.ops.all()) f.files.try_emplace(op->def.name, file);
      });
  return std::move(found.files);
}

}  // namespace detail

Status ready() {
  std::lock_guard lock(choice().mutex);
  return choice().level != 0 ? ok_status() : find_level(choice().limit).status();
}

std::string isa_name(int level) {
  return level == kTileLevel ? "v4-amx" : fmt::format("v{}", level);
}

bool can_compute_at(int level) {
  if (level < 2 || level > kTileLevel) return false;
  std::lock_guard lock(choice().mutex);
  auto found = find_level(level);
  return found.ok() && *found == level;
}

bool adds_by_tiles() {
  {
    std::lock_guard lock(choice().mutex);
    choice().adding = true;
  }
  return isa_level() == kTileLevel;
}

std::string libraries() {
#if TROUPE_ONEDNN
  std::string onednn = onednn::version();
#else
  std::string onednn = "none";
#endif
  return fmt::format("oneDNN {}, Eigen {}", onednn, TROUPE_EIGEN_VERSION);
}

int isa_level() {
  std::lock_guard lock(choice().mutex);
  if (choice().level != 0) return choice().level;
  auto level = find_level(choice().limit);
  TROUPE_CHECK(level.ok(), level.status().text());
  return *level;
}

void settle() {
  Choice& c = choice();
  if (c.settled) return;
  builtin();
  std::lock_guard lock(c.mutex);
  if (c.settled) return;
  cap_libraries(c.level);
  c.settled = true;
}

Status limit_isa(int level) {
  if (level < 2 || level > kTileLevel)
    return invalid_argument(fmt::format("the ISA level is 2 to {}, not {}", kTileLevel, level));
  std::lock_guard lock(choice().mutex);
  if (level == choice().level) return ok_status();
  const bool same_kernels = std::min(level, choice().level) >= 4;
  TROUPE_TRY(before_use(same_kernels ? choice().adding : choice().settled.load(), "the ISA level"));
  TROUPE_TRY(const int found, find_level(level));
  choice().limit = level;
  if (choice().level == 0) return ok_status();
  if (same_kernels)
    choice().level = found;
  else
    load(choice());
  return ok_status();
}

Status extend(void (*add)(OpTable& table)) {
  std::lock_guard lock(choice().mutex);
  TROUPE_TRY(before_use(choice().level != 0, "what a program adds"));
  choice().extensions.push_back(add);
  return ok_status();
}

CacheSizes cache_sizes() {
  std::lock_guard lock(choice().mutex);
  return choice().caches;
}

Status set_cache_sizes(CacheSizes sizes) {
  if (sizes.l1 <= 0 || sizes.l2 <= 0 || sizes.l3 <= 0)
    return invalid_argument("cache sizes are positive");
  std::lock_guard lock(choice().mutex);
  if (sizes == choice().caches) return ok_status();
  TROUPE_TRY(before_use(choice().settled, "the cache sizes"));
  choice().caches = sizes;
  if (choice().level != 0)
    open_object(choice().level).set_cache_sizes(sizes.l1, sizes.l2, sizes.l3);
  return ok_status();
}

}  // namespace troupe::ops
