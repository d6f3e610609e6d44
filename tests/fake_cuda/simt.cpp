#include "tests/fake_cuda/simt.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || defined(TROUPE_SIMT_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

// Saves the registers that a call keeps on this stack, and its top in *save; goes on with `load`.
asm(R"(
.text
.type troupe_switch_stacks,@function
troupe_switch_stacks:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size troupe_switch_stacks,.-troupe_switch_stacks
)");
extern "C" void troupe_switch_stacks(void** save, void* load);

namespace troupe::simt {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(TROUPE_SIMT_TSAN)
constexpr bool kTsan = true;
void tsan_acquire(void* at) { __tsan_acquire(at); }
void tsan_release(void* at) { __tsan_release(at); }
#else
constexpr bool kTsan = false;
void tsan_acquire(void*) {}
void tsan_release(void*) {}
#endif

constexpr std::size_t kStack = std::size_t{64} << 10, kGuard = 4096;
constexpr std::size_t kBlockMemory = std::size_t{48} << 10, kGap = 64;
constexpr std::size_t kRegion = std::size_t{1} << 30;

char* map_memory(std::size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) std::abort();
  return static_cast<char*>(p);
}
// What comes to lie there next is nobody's poison.
void unmap_memory(char* memory, std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
  munmap(memory, bytes);
}

struct Fiber {
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {  // with the thread of the host: each is two of the process's mappings
    if (!stack) return;
#if defined(__SANITIZE_THREAD__) || defined(TROUPE_SIMT_TSAN)
    __tsan_destroy_fiber(tsan);
#endif
    unmap_memory(stack - kGuard, kStack + kGuard);
  }

  void* top = nullptr;
  char* stack = nullptr;  // null: the thread's own
  [[maybe_unused]] void* asan = nullptr;
  [[maybe_unused]] void* tsan = nullptr;
};

enum class State : std::uint8_t { fresh, ready, at_barrier, in_warp, done };

// One thread of the block.
struct Thread {
  State state = State::fresh;
  dim3 index;
  unsigned number = 0;
  Fiber* fiber = nullptr;
  Place at;  // where it waited last
  unsigned mask = 0;
  WarpOp op = WarpOp::sync;
};

struct Warp {
  std::uint64_t brought[32], met[32];
  unsigned waiting = 0;
};

// The launches of one thread of the host.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() {
    if (region_) unmap_memory(region_, kRegion);
  }
  void run(const Launch& launch, void (*body)(const void*), const void* args);
  void meet_block(Place at);
  const std::uint64_t* meet_warp(unsigned mask, WarpOp op, std::uint64_t value, Place at);
  void* memory(const void* key, std::size_t bytes);
  int lane() const { return int(running_->number % 32); }

 private:
  struct Variable {
    const void* key;
    char* data;
  };

  void run_block();
  void begin_block();
  void work();
  static void fiber_main();
  Fiber& fiber_of_next();
  Fiber& make_fiber();
  void switch_to(Fiber& to);
  void go_on(Thread& thread);
  void release_barrier();
  [[noreturn]] void stuck(const char* why);

  Launch launch_;
  void (*body_)(const void*) = nullptr;
  const void* args_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> order_;  // in which threads begin
  std::size_t begun_ = 0;
  unsigned alive_ = 0, at_barrier_ = 0;
  std::vector<unsigned> ready_;
  Thread* running_ = nullptr;

  Fiber scheduler_;
  Fiber* now_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;

  std::vector<Variable> variables_;
  char* region_ = nullptr;  // of which each block has a piece
  std::size_t region_used_ = 0, used_ = 0;
  char* block_memory_ = nullptr;
  std::mt19937_64 random_;
  char launch_key_ = 0, barrier_key_ = 0, end_key_ = 0;  // for the sanitizer
#if defined(__SANITIZE_ADDRESS__)
  const void* host_stack_ = nullptr;
  std::size_t host_stack_bytes_ = 0;
#endif
};

// Not itself a variable of the thread: libraries that are opened late share little room for these.
Machine& the_machine() {
  static thread_local std::unique_ptr<Machine> machine;
  if (!machine) machine = std::make_unique<Machine>();
  return *machine;
}

void Machine::switch_to(Fiber& to) {
  Fiber& from = *now_;
  now_ = &to;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.asan, to.stack ? to.stack : host_stack_,
                                 to.stack ? kStack : host_stack_bytes_);
#endif
#if defined(__SANITIZE_THREAD__) || defined(TROUPE_SIMT_TSAN)
  __tsan_switch_to_fiber(to.tsan, __tsan_switch_to_fiber_no_sync);
#endif
  troupe_switch_stacks(&from.top, to.top);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.asan, nullptr, nullptr);
#endif
}

void Machine::fiber_main() {
#if defined(__SANITIZE_ADDRESS__)
  Machine& m = the_machine();
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (!m.host_stack_) m.host_stack_ = bottom, m.host_stack_bytes_ = bytes;
#endif
  the_machine().work();
}

// A fiber: runs threads that have not begun, one after the other, until it has to wait in one.
void Machine::work() {
  for (;;) {
    while (begun_ < order_.size()) {
      Thread& thread = threads_[order_[begun_++]];
      thread.fiber = now_;
      go_on(thread);
      tsan_acquire(&launch_key_);
      body_(args_);
      tsan_release(&end_key_);
      running_->state = State::done;
      --alive_;
      if (at_barrier_ != 0 && at_barrier_ == alive_) release_barrier();
      if (kTsan) break;  // a thread has a fiber of its own
    }
    if (!kTsan) idle_.push_back(now_);
    switch_to(scheduler_);
  }
}

void Machine::go_on(Thread& thread) {
  thread.state = State::ready;
  running_ = &thread;
  threadIdx = thread.index;
}

Fiber& Machine::fiber_of_next() {
  if (kTsan) {  // thread i always has fiber i: the sanitizer must see no order between threads
    while (fibers_.size() <= order_[begun_]) make_fiber();
    return *fibers_[order_[begun_]];
  }
  if (idle_.empty()) return make_fiber();
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  return fiber;
}

Fiber& Machine::make_fiber() {
  auto fiber = std::make_unique<Fiber>();
  char* memory = map_memory(kStack + kGuard);
  mprotect(memory, kGuard, PROT_NONE);
  fiber->stack = memory + kGuard;
  void** top = reinterpret_cast<void**>(fiber->stack + kStack) - 1;
  *--top = reinterpret_cast<void*>(&fiber_main);
  fiber->top = top - 6;  // the registers
#if defined(__SANITIZE_THREAD__) || defined(TROUPE_SIMT_TSAN)
  fiber->tsan = __tsan_create_fiber(0);
#endif
  fibers_.push_back(std::move(fiber));
  return *fibers_.back();
}

void Machine::release_barrier() {
  const Thread* first = nullptr;
  for (Thread& thread : threads_) {
    if (thread.state != State::at_barrier) continue;
    if (!first) first = &thread;
    if (first->at.line != thread.at.line || std::strcmp(first->at.file, thread.at.file) != 0)
      stuck("threads of a block meet at different barriers");
    thread.state = State::ready;
    ready_.push_back(thread.number);
  }
  at_barrier_ = 0;
}

void Machine::meet_block(Place at) {
  Thread& me = *running_;
  tsan_release(&barrier_key_);
  me.at = at;
  me.state = State::at_barrier;
  if (++at_barrier_ == alive_) release_barrier();
  switch_to(scheduler_);
  tsan_acquire(&barrier_key_);
}

const std::uint64_t* Machine::meet_warp(unsigned mask, WarpOp op, std::uint64_t value, Place at) {
  Thread& me = *running_;
  const unsigned mine = me.number % 32, first = me.number - mine;
  Warp& warp = warps_[me.number / 32];
  me.at = at;
  me.mask = mask;
  me.op = op;
  if ((mask >> mine & 1) == 0) stuck("a lane is not in the mask that it gives");
  warp.brought[mine] = value;
  warp.waiting |= 1u << mine;
  me.state = State::in_warp;
  tsan_release(&warp);
  if ((warp.waiting & mask) == mask) {
    for (unsigned l = 0; l < 32; ++l) {
      warp.met[l] = 0xfff8dead'fff8deadull;  // nothing to read from who is not in the mask
      if ((mask >> l & 1) == 0) continue;
      Thread& other = threads_[first + l];
      if (other.mask != mask || other.op != op)
        stuck("lanes of a warp meet with different masks or operations");
      warp.met[l] = warp.brought[l];
      other.state = State::ready;
      ready_.push_back(first + l);
    }
    warp.waiting &= ~mask;
  }
  switch_to(scheduler_);
  tsan_acquire(&warp);
  return warp.met;
}

void* Machine::memory(const void* key, std::size_t bytes) {
  for (const Variable& variable : variables_)
    if (variable.key == key) return variable.data;
  const std::size_t at = (used_ + kGap + 15) / 16 * 16;
  if (at + bytes + kGap > kBlockMemory) stuck("a block wants more memory than 48 KiB");
  char* data = block_memory_ + at;
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
  // Not by memset, which the sanitizer takes for a write of this thread.
  for (std::size_t i = 0; i < bytes; ++i) static_cast<volatile char*>(data)[i] = char(0xff);
  used_ = at + bytes;
  variables_.push_back({key, data});
  return data;
}

// Blocks have no order: under tsan each has memory of its own, or it would see races.
void Machine::begin_block() {
  if (!region_ || region_used_ + kBlockMemory > kRegion) {
    if (region_) unmap_memory(region_, kRegion);
    region_ = map_memory(kRegion);
    region_used_ = 0;
  }
  block_memory_ = region_ + region_used_;
  if (kTsan) region_used_ += kBlockMemory;
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(block_memory_, kBlockMemory);
#endif
  variables_.clear();
  used_ = 0;
  for (Thread& thread : threads_) thread.state = State::fresh;
  for (Warp& warp : warps_) warp.waiting = 0;
  if (launch_.seed != 0) std::shuffle(order_.begin(), order_.end(), random_);
  begun_ = 0;
  at_barrier_ = 0;
  alive_ = unsigned(threads_.size());
}

void Machine::run_block() {
  begin_block();
  while (alive_ != 0) {
    if (!ready_.empty()) {
      if (launch_.seed != 0) std::swap(ready_[random_() % ready_.size()], ready_.back());
      Thread& next = threads_[ready_.back()];
      ready_.pop_back();
      go_on(next);
      switch_to(*next.fiber);
    } else if (begun_ < order_.size()) {
      switch_to(fiber_of_next());
    } else {
      stuck("threads wait for others that never come");
    }
  }
}

void Machine::run(const Launch& launch, void (*body)(const void*), const void* args) {
  launch_ = launch;
  body_ = body;
  args_ = args;
  random_.seed(launch.seed);
  const dim3 b = launch.block, g = launch.grid;
  const unsigned threads = b.x * b.y * b.z;
  threads_.assign(threads, Thread{});
  warps_.assign((threads + 31) / 32, Warp{});
  order_.resize(threads);
  // The sanitizer sees the copies of vectors that grow.
  ready_.reserve(2 * threads);
  fibers_.reserve(1025);
  idle_.reserve(1025);
  variables_.reserve(16);
  for (unsigned i = 0; i < threads; ++i) {
    order_[i] = threads_[i].number = i;
    threads_[i].index = {i % b.x, i / b.x % b.y, i / b.x / b.y};
  }
  blockDim = b;
  gridDim = g;
  now_ = &scheduler_;
#if defined(__SANITIZE_THREAD__) || defined(TROUPE_SIMT_TSAN)
  scheduler_.tsan = __tsan_get_current_fiber();
#endif
  tsan_release(&launch_key_);
  const std::uint64_t blocks = std::uint64_t{g.x} * g.y * g.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t at = launch.seed != 0 ? blocks - 1 - i : i;
    blockIdx = {unsigned(at % g.x), unsigned(at / g.x % g.y), unsigned(at / g.x / g.y)};
    run_block();
  }
  tsan_acquire(&end_key_);
}

void Machine::stuck(const char* why) {
  std::fprintf(stderr, "emulated GPU: %s, in block (%u,%u,%u) of (%u,%u,%u):\n", why, blockIdx.x,
               blockIdx.y, blockIdx.z, gridDim.x, gridDim.y, gridDim.z);
  struct Group {
    unsigned first = 0, count = 0;
  };
  std::map<std::string, Group> groups;
  for (const Thread& thread : threads_) {
    std::string where = "not begun";
    if (thread.state == State::done) where = "done";
    if (thread.state == State::ready) where = "running";
    if (thread.state == State::at_barrier) where = "at a barrier";
    if (thread.state == State::in_warp) where = "at a warp operation";
    if (thread.at.file && thread.state != State::done)
      where += std::string(", ") + thread.at.file + ":" + std::to_string(thread.at.line);
    auto [group, fresh] = groups.try_emplace(where, Group{thread.number, 0});
    ++group->second.count;
  }
  for (const auto& [where, group] : groups)
    std::fprintf(stderr, "  %u threads from %u on: %s\n", group.count, group.first, where.c_str());
  std::abort();
}

}  // namespace

void run(const Launch& launch, void (*body)(const void*), const void* args) {
  the_machine().run(launch, body, args);
}
void meet_block(Place at) { the_machine().meet_block(at); }
const std::uint64_t* meet_warp(unsigned mask, WarpOp op, std::uint64_t value, Place at) {
  return the_machine().meet_warp(mask, op, value, at);
}
void* block_memory(const void* key, std::size_t bytes) { return the_machine().memory(key, bytes); }
int lane() { return the_machine().lane(); }

}  // namespace troupe::simt
