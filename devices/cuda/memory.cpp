#include "devices/cuda/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/byte_count.hpp"
#include "core/log.hpp"
#include "devices/detail/extents.hpp"
#include "devices/named_work.hpp"

namespace troupe::cuda {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostTold = 5;
constexpr std::size_t kFirstPiece = std::size_t{2} << 20, kLargestPiece = std::size_t{1} << 30;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

class PinnedPages final : public PageSource {
 public:
  explicit PinnedPages(ContextPtr context) : context_(std::move(context)) {}

  void* take(std::size_t bytes) override {
    context_->enter();
    void* pages = nullptr;
    const Result result = context_->driver().cuMemHostAlloc(&pages, bytes, kHostAllocPortable);
    if (result == kSuccess) return pages;
    if (plain_.empty())
      TROUPE_LOG(warning, "cuda",
                 context_->check(result, "cuMemHostAlloc").text() +
                     ": host memory is not pinned, and the host waits for copies");
    pages = std::aligned_alloc(kPage, whole_pages(bytes));
    if (pages) plain_.insert(pages);
    return pages;
  }
  void give_back(void* pages, std::size_t) noexcept override {
    if (plain_.erase(pages) != 0) return std::free(pages);
    context_->enter();
    context_->driver().cuMemFreeHost(pages);
  }

 private:
  const ContextPtr context_;
  std::set<void*> plain_;  // of the heap, where nothing could be pinned
};

}  // namespace

// Pieces of memory, each twice as large as the one before, so that a small program leaves the GPU
// to others and a large one has few pieces. Freeing one waits for everything on the GPU: only what
// is unused goes, when there would not be room for another one.
class GpuMemory::Pages final : public PageSource {
 public:
  explicit Pages(GpuMemory& memory) : memory_(memory) {}
  ~Pages() override {
    memory_.context_->enter();
    for (const Piece& piece : pieces_) memory_.context_->driver().cuMemFree_v2(piece.address);
  }

  void* take(std::size_t bytes) override {
    bytes = whole_pages(bytes);
    auto at = free_.take(bytes);
    if (!at && grow(bytes)) at = free_.take(bytes);
    return at ? reinterpret_cast<void*>(*at) : nullptr;
  }
  void give_back(void* pages, std::size_t bytes) noexcept override {
    memory_.recut_.store(memory_.issued_.load());
    free_.add(reinterpret_cast<std::uint64_t>(pages), whole_pages(bytes));
  }
  MemorySpace space() const override { return MemorySpace::device; }

 private:
  // A page more than what is used: to align it, and so that no two pieces touch.
  struct Piece {
    DeviceAddress address = 0;
    std::size_t size = 0;
    std::uint64_t first_page() const { return (address + kPage - 1) / kPage * kPage; }
  };

  bool grow(std::size_t bytes) {
    if (held_ + bytes > memory_.cap_ && !free_unused()) return false;
    if (ask(bytes)) return true;
    const std::size_t held = held_;
    return memory_.refusal_.load() == kOutOfMemory && free_unused() && held_ < held && ask(bytes);
  }

  bool ask(std::size_t bytes) {
    const std::size_t left = memory_.cap_ - std::min(memory_.cap_, held_);
    memory_.refusal_.store(kSuccess);
    memory_.context_->enter();
    for (std::size_t size : {std::min(std::max(bytes, next_), left) / kPage * kPage, bytes}) {
      if (size < bytes || size > left) continue;
      Piece piece{0, size};
      const Result result = memory_.context_->driver().cuMemAlloc_v2(&piece.address, size + kPage);
      memory_.refuse(result, "cuMemAlloc");
      if (result != kSuccess) continue;
      pieces_.push_back(piece);
      hold(held_ + size);
      next_ = std::min(2 * std::max(next_, size), kLargestPiece);
      free_.add(piece.first_page(), size);
      return true;
    }
    return false;
  }

  // False: the driver takes nothing back, since the GPU has failed.
  bool free_unused() {
    memory_.context_->enter();
    for (std::size_t i = 0; i < pieces_.size();) {
      const Piece piece = pieces_[i];
      if (!free_.remove(piece.first_page(), piece.size)) {
        ++i;
        continue;
      }
      const Result result = memory_.context_->driver().cuMemFree_v2(piece.address);
      if (result != kSuccess) {
        free_.add(piece.first_page(), piece.size);
        memory_.refuse(result, "cuMemFree");
        return false;
      }
      pieces_.erase(pieces_.begin() + std::ptrdiff_t(i));
      memory_.forget(piece.first_page(), piece.size);
      hold(held_ - piece.size);
    }
    return true;
  }

  void hold(std::size_t bytes) {
    held_ = bytes;
    memory_.taken_.store(bytes);
  }

  GpuMemory& memory_;
  std::vector<Piece> pieces_;
  std::size_t held_ = 0, next_ = kFirstPiece;
  detail::Extents free_;
};

GpuMemory::GpuMemory(ContextPtr context, std::size_t cap)
    : context_(std::move(context)),
      cap_(cap),
      arena_(make_arena(cap, std::make_unique<Pages>(*this))) {}

void* GpuMemory::allocate(std::size_t bytes) {
  void* data = arena_->allocate(bytes);
  refused_.store(!data);
  if (!data) return nullptr;
  holders_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  // Of pages that were cut anew, the uses were of other blocks.
  Use& use = uses_.try_emplace(data, Use{recut_.load(), 0}).first->second;
  use.freed = std::max(use.freed, recut_.load());
  use.allocated = issued_.load();
  use.bytes = Arena::block_size(bytes);
  const NamedWork* work = NamedWork::current();
  use.node = work ? work->name() : std::string_view();
  return data;
}

void GpuMemory::deallocate(void* data, std::size_t bytes) noexcept {
  {
    std::lock_guard lock(mutex_);
    Use& use = uses_.find(data)->second;
    use.freed = issued_.load();
    use.bytes = 0;
  }
  arena_->deallocate(data, bytes);
  drop();  // last: this may go with it
}

void GpuMemory::forget(std::uint64_t at, std::size_t size) {
  std::lock_guard lock(mutex_);
  std::erase_if(uses_, [&](const auto& use) {
    return reinterpret_cast<std::uint64_t>(use.first) - at < size;
  });
}

std::uint64_t GpuMemory::may_use_after(const void* block) {
  const std::uint64_t issued = issued_.load();
  std::lock_guard lock(mutex_);
  const auto use = uses_.find(block);
  if (use == uses_.end() || use->second.allocated != issued) return issued;
  return use->second.freed;
}

std::string GpuMemory::text(const std::string& device) {
  if (!refused_.exchange(false)) return {};
  struct Holder {
    std::size_t bytes = 0, tensors = 0;
  };
  std::map<std::string, Holder> by_node;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [block, use] : uses_) {
      if (use.bytes == 0) continue;
      Holder& holder = by_node[use.node];
      holder.bytes += use.bytes;
      ++holder.tensors;
    }
  }
  std::vector<std::pair<std::string, Holder>> holders(by_node.begin(), by_node.end());
  std::stable_sort(holders.begin(), holders.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  const std::size_t used = bytes_in_use(), taken = taken_.load();
  std::string text =
      fmt::format("{} of {} of {} are in use, {} more are cached", byte_count_text(used),
                  byte_count_text(cap_), device, byte_count_text(taken - std::min(taken, used)));
  if (const Result refusal = refusal_.load(); refusal != kSuccess)
    text += ", " + context_->check(refusal, refused_call_.load()).message();
  if (holders.size() > kMostTold) holders.resize(kMostTold);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const auto& [node, holder] = holders[i];
    text += fmt::format("{}{} by {}", i == 0 ? "; the most is held: " : ", ",
                        byte_count_text(holder.bytes), node.empty() ? "no node" : "'" + node + "'");
    if (holder.tensors > 1) text += fmt::format(" ({} tensors)", holder.tensors);
  }
  return text;
}

Status GpuMemory::failure() const {
  const Result refusal = refusal_.load();
  if (refusal == kSuccess || refusal == kOutOfMemory) return ok_status();
  return context_->check(refusal, refused_call_.load());
}

void GpuMemory::drop() noexcept {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

std::unique_ptr<PageSource> pinned_pages(ContextPtr context) {
  return std::make_unique<PinnedPages>(std::move(context));
}

}  // namespace troupe::cuda
