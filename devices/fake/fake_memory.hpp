// FakeMemory: memory that only the fake device can access.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "core/buffer.hpp"
#include "devices/arena.hpp"

namespace troupe {

// Access to its addresses faults; view() gives the address at which the device's own threads access
// the same bytes. New blocks are filled with 0xff, which is NaN, so that no code relies on zeros.
//
// A freed block is tagged with the last work issued on every stream, and reused only when all of
// that is done. So work needs no reference to its memory if it was issued before the last reference
// was dropped. This is stricter than a real device needs, which may reuse memory at once on the
// same stream.
//
// Owned by the device through retire(), like an Arena: blocks may outlive the device.
class FakeMemory final : public Allocator {
 public:
  static constexpr std::size_t kStreams = 8;

  // Reserves `bytes` of address space twice; pages are used when touched.
  explicit FakeMemory(std::size_t bytes);
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  void* allocate(std::size_t bytes) override;
  void deallocate(void* data, std::size_t bytes) noexcept override;
  MemorySpace space() const override { return MemorySpace::device; }

  // REQUIRES: an address of this memory.
  void* view(const void* address) const;

  // Called by the device: work `sequence` of `stream` was issued, or is done.
  void issued(std::uint32_t stream, std::uint64_t sequence) { issued_[stream].store(sequence); }
  void done(std::uint32_t stream, std::uint64_t sequence) { done_[stream].store(sequence); }

  std::size_t bytes_in_use();  // tagged blocks count until their work is done
  std::size_t peak_bytes() const { return arena_->peak_bytes(); }
  void reset_peak();
  void retire() noexcept { drop(); }

 private:
  using Sequences = std::array<std::uint64_t, kStreams>;
  struct Tagged {
    void* data;
    std::size_t bytes;
    Sequences last;
  };
  struct Region {
    explicit Region(std::size_t bytes);
    ~Region();
    const std::size_t bytes;
    char* host = nullptr;    // no access
    char* device = nullptr;  // the accessible bytes
  };
  class Pages;

  ~FakeMemory() override { reclaim(); }
  bool all_done(const Sequences& last) const;
  void reclaim();
  void drop() noexcept;

  const Region region_;
  ArenaPtr arena_;
  std::array<std::atomic<std::uint64_t>, kStreams> issued_{}, done_{};
  std::atomic<std::size_t> holders_{1};  // the device and every block
  std::mutex mutex_;
  std::deque<Tagged> tagged_;  // in the order of freeing, and so of becoming reusable
};

struct RetireFakeMemory {
  void operator()(FakeMemory* memory) const noexcept { memory->retire(); }
};
using FakeMemoryPtr = std::unique_ptr<FakeMemory, RetireFakeMemory>;

}  // namespace troupe
