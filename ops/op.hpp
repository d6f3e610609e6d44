// For op authors: everything a file in ops/kernels/ includes. ops/kernels/nn/softsign.cpp is the
// example to copy.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "core/text_map.hpp"
#include "devices/kernel.hpp"
#include "devices/types.hpp"
#include "graph/builder.hpp"
#include "graph/gradients.hpp"
#include "graph/op_registry.hpp"
#include "graph/passes/shape_inference.hpp"
#include "graph/request.hpp"

namespace troupe {

// A node as a kernel factory sees it. References live for the factory call only.
struct KernelSpec {
  const NodeDef& node;
  const OpInfo& op;

  DType type(std::string_view attr = "T") const;
  std::int64_t int_attr(std::string_view name) const;
  double float_attr(std::string_view name) const;
  bool bool_attr(std::string_view name) const;
  const std::string& string_attr(std::string_view name) const;
  const PartialShape& shape_attr(std::string_view name) const;
  const Tensor& tensor_attr(std::string_view name) const;
  const std::vector<std::int64_t>& ints_attr(std::string_view name) const;
};

using KernelFactory = Expected<std::unique_ptr<Kernel>> (*)(const KernelSpec&);

// Kernels by (op, device type). Device types in upper case: "CPU", "FAKE".
class KernelRegistry {
 public:
  struct Entry {
    KernelFactory factory = nullptr;
    std::vector<DType> types;  // of attribute T; empty: any
    // What runs: the kernel of `factory`, or that of a CPU behind the fake device or beside a GPU.
    enum class Runs : std::uint8_t { itself, behind_fake, beside_gpu } runs = Runs::itself;
  };
  // already_exists for a second kernel of the same op and device type: ambiguity is an error. One
  // of its own replaces what runs beside a GPU.
  Status add(std::string op, std::string device_type, Entry entry);
  const Entry* find(std::string_view op, std::string_view device_type) const;
  // Devices of `device_type` also run the kernels of `other` (DeviceType::kernels_of).
  void share(std::string device_type, std::string other);
  // not_found lists the device types that have one; unimplemented names the dtype.
  Expected<std::unique_ptr<Kernel>> make(const NodeDef& node, const OpInfo& op,
                                         std::string_view device_type) const;
  KernelIndex index() const;

 private:
  std::map<std::string, std::string, std::less<>> shared_;
  TextMap<std::map<std::string, Entry, std::less<>>> kernels_;  // by op, then device type
};

// What registration functions fill: definitions, kernels, and what a program adds beside ops. A
// failed registration (a definition that contradicts itself, a name taken) is a broken invariant of
// its author and stops the process.
struct OpTable {
  OpRegistry ops;
  KernelRegistry kernels;
  DeviceTypes devices = builtin_device_types();
  std::vector<PassDef> passes;

  class Entry {
   public:
    Entry(OpTable& table, const OpInfo& op) : table_(table), op_(op) {}
    // The CPU kernel, for the dtypes of the definition or those given ("f32 f64"). The FAKE device
    // runs the same kernel, later and elsewhere (ops/fake_kernel.hpp).
    Entry& cpu(KernelFactory factory, std::string_view types = {});
    // The kernel of NVIDIA's GPUs (ops/cuda/), for the dtypes given, or those of the definition but
    // for complex ones: device code moves complex numbers and does not compute with them.
    Entry& cuda(KernelFactory factory, std::string_view types = {});
    // The kernel of another device type.
    Entry& on(std::string_view device_type, KernelFactory factory, std::string_view types = {});

   private:
    // Those given, or those of the definition.
    std::vector<DType> types_of(std::string_view types) const;

    OpTable& table_;
    const OpInfo& op_;
  };
  Entry add(const OpDef& def);
  void add_device(DeviceType type);
  void add_pass(PassDef pass);

  // To be called when nothing more is added: what is asked of the whole is made once.
  void finish();
  // Ranks of device types included.
  std::shared_ptr<const KernelIndex> index() const;

 private:
  std::shared_ptr<const KernelIndex> index_;  // of a finished table
};

namespace ops {

// All ops of this build, with the kernels of the best ISA level this machine has (at most
// `TROUPE_ISA` from the profile), and what `extend` was given. Loaded once, immutable, lives until
// exit.
const OpTable& builtin();

// Ops, passes and device types of a program's own: `add` is called when the table is loaded, after
// the library's. Once, before the first builtin() (so before the first Graph or Session), and in
// every process of the job: one that has others is refused when it joins.
// failed_precondition: the table is loaded already.
Status extend(void (*add)(OpTable& table));

// The ISA level in use: 2, 3 or 4 for x86-64-v2 to -v4, or ops::kTileLevel (ops/isa.hpp).
// `limit_isa` must be called before the first session or kernel; between the last two levels it
// changes as long as no kernel has asked (ops/isa.hpp). What builtin() gave before has the kernels
// of before.
int isa_level();
Status limit_isa(int level);

// What Eigen is told about the caches, in bytes: it decides how products are blocked, and so their
// bits. Fixed rather than asked of the machine, part of the numeric profile. Like limit_isa, it
// must be set before the first session or kernel.
struct CacheSizes {
  std::int64_t l1 = 48 << 10, l2 = 1 << 20, l3 = 32 << 20;
  friend bool operator==(const CacheSizes&, const CacheSizes&) = default;
};
CacheSizes cache_sizes();
Status set_cache_sizes(CacheSizes sizes);

}  // namespace ops

// A kernel made of a plain function object that has no state:
//   .cpu(kernel<[](KernelContext& c) -> Status {...}>)  or  .cpu(kernel<my_function>)
template <auto F>
Expected<std::unique_ptr<Kernel>> kernel(const KernelSpec&) {
  struct Stateless final : Kernel {
    Status compute(KernelContext& ctx) override { return F(ctx); }
  };
  return std::unique_ptr<Kernel>(new Stateless);
}

}  // namespace troupe

// Opens a registration function; `r` is the table. CMake finds these lines and calls them all. Each
// runs once, and all of them are long: optimising them takes a sixteenth of the kernels' build
// time.
#if defined(__GNUC__) && !defined(__clang__)
#define TROUPE_OPS(name) \
  [[gnu::optimize("O0")]] void register_ops_##name([[maybe_unused]] ::troupe::OpTable& r)
#else
#define TROUPE_OPS(name) void register_ops_##name([[maybe_unused]] ::troupe::OpTable& r)
#endif
