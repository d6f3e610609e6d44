// Extents: which parts of an address space are free.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace troupe::detail {

// First fit; neighbours are joined when they come back. Not for several threads at a time.
class Extents {
 public:
  // Free from now on: new, or what take gave, as it was asked for.
  void add(std::uint64_t at, std::uint64_t size) {
    auto it = free_.emplace(at, size).first;
    if (auto next = std::next(it); next != free_.end() && at + size == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it == free_.begin()) return;
    if (auto before = std::prev(it); before->first + before->second == at) {
      before->second += it->second;
      free_.erase(it);
    }
  }

  std::optional<std::uint64_t> take(std::uint64_t size) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [at, has] = *it;
      if (has < size) continue;
      free_.erase(it);
      if (has > size) free_[at + size] = has - size;
      return at;
    }
    return std::nullopt;
  }

  // Exactly these, no longer free from now on; false: not all of them were, or their neighbours.
  bool remove(std::uint64_t at, std::uint64_t size) {
    const auto it = free_.find(at);
    if (it == free_.end() || it->second != size) return false;
    free_.erase(it);
    return true;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  // where to how much
};

}  // namespace troupe::detail
