// A file system in memory that fails or crashes at a chosen call.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "serialization/file.hpp"

namespace troupe::testing {

// Keeps two states: what programs see, and what the disk has for sure. A file's bytes reach the
// disk by its sync, a directory's entries by its own. A crash leaves of each file a prefix of what
// was appended since, possibly torn inside the last write or with zeros at its end, and of each
// directory a random subset of the changes since its sync. Deeper than "dir/sub/file" it does not
// go.
class FaultyFiles : public FileSystem {
 public:
  explicit FaultyFiles(std::uint64_t seed) : random_(seed) { root_ = std::make_shared<Node>(true); }

  int calls() const { return calls_; }
  // That call, and no other, finds the disk full.
  void fail_at(int call) { fail_at_ = call, failed_ = false; }
  bool failed() const { return failed_; }
  // From that call on nothing reaches the disk and every call fails.
  void crash_at(int call) { crash_at_ = call; }
  bool crashed() const { return crash_at_ >= 0 && calls_ > crash_at_; }
  // What a program finds afterwards.
  void restart() {
    survive(*root_);
    crash_at_ = -1;
  }

  // The content of a file that is there, to damage it.
  std::vector<std::byte>& bytes(const std::string& path) { return find(path)->bytes; }

  Expected<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    TROUPE_TRY(begin());
    auto [dir, name] = split(path);
    if (!dir) return not_found(path);
    if (dir->seen.count(name)) return already_exists(path);
    auto node = std::make_shared<Node>(false);
    change(*dir, name, node);
    return std::unique_ptr<WritableFile>(new Writer(*this, node));
  }
  Expected<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    TROUPE_TRY(begin());
    auto node = find(path);
    if (!node) return not_found(path);
    if (node->directory) return failed_precondition(path);
    return std::unique_ptr<ReadableFile>(new Reader(node->bytes));
  }
  Status make_dirs(const std::string& path) override {
    Status made = make_dir(path);
    if (made.ok()) return sync_dir("");  // tests begin with a directory that stays
    return made.code() == Code::already_exists ? ok_status() : made;
  }
  Status make_dir(const std::string& path) override {
    TROUPE_TRY(begin());
    auto [dir, name] = split(path);
    if (!dir) return not_found(path);
    if (dir->seen.count(name)) return already_exists(path);
    change(*dir, name, std::make_shared<Node>(true));
    return ok_status();
  }
  Status rename(const std::string& from, const std::string& to) override {
    TROUPE_TRY(begin());
    auto [a, a_name] = split(from);
    auto [b, b_name] = split(to);
    auto node = find(from), old = find(to);
    if (!node || !b) return not_found(from);
    if (old && old->directory && !old->seen.empty()) return failed_precondition(to);
    TROUPE_CHECK(a == b, "renames stay in their directory");
    a->pending.push_back({{a_name, nullptr}, {b_name, node}});  // one change, whole or not at all
    a->seen.erase(a_name);
    a->seen[b_name] = node;
    return ok_status();
  }
  bool swaps = true;  // else names cannot be exchanged, as on NFS
  Status exchange(const std::string& a, const std::string& b) override {
    TROUPE_TRY(begin());
    if (!swaps) return unimplemented(b);
    auto [dir, a_name] = split(a);
    auto b_name = split(b).second;
    auto x = find(a), y = find(b);
    if (!x || !y) return not_found(a);
    dir->pending.push_back({{a_name, y}, {b_name, x}});
    dir->seen[a_name] = y;
    dir->seen[b_name] = x;
    return ok_status();
  }
  Status sync_dir(const std::string& path) override {
    TROUPE_TRY(begin());
    auto node = find(path == "." ? "" : path);
    if (!node) return not_found(path);
    node->durable = node->seen;
    node->pending.clear();
    return ok_status();
  }
  Expected<std::vector<std::string>> list(const std::string& path) override {
    TROUPE_TRY(begin());
    auto node = find(path);
    if (!node) return not_found(path);
    if (!node->directory) return failed_precondition(path);
    std::vector<std::string> out;
    for (const auto& [name, child] : node->seen) out.push_back(name);
    return out;
  }
  Status remove(const std::string& path) override {
    TROUPE_TRY(begin());
    auto [dir, name] = split(path);
    if (!dir || !dir->seen.count(name)) return not_found(path);
    change(*dir, name, nullptr);
    return ok_status();
  }
  Status remove_dir(const std::string& path) override {
    auto node = find(path);
    if (!node) return not_found(path);
    auto names = node->seen;
    for (const auto& [name, child] : names) TROUPE_TRY(remove(path + "/" + name));
    return remove(path);
  }

 private:
  struct Node;
  using Entries = std::map<std::string, std::shared_ptr<Node>>;
  struct Node {
    explicit Node(bool is_directory) : directory(is_directory) {}
    bool directory;
    std::vector<std::byte> bytes;
    std::size_t synced = 0;  // bytes before are on the disk
    Entries seen, durable;
    // Changes since the last sync; each sets some names, null removes.
    std::vector<std::vector<std::pair<std::string, std::shared_ptr<Node>>>> pending;
  };

  class Writer : public WritableFile {
   public:
    Writer(FaultyFiles& files, std::shared_ptr<Node> node)
        : files_(files), node_(std::move(node)) {}
    Status append(std::span<const std::byte> bytes) override {
      Status status = files_.begin();
      // A failing write may leave a part.
      if (!status.ok()) bytes = bytes.first(files_.random_.below(bytes.size() + 1));
      if (status.ok() || !files_.crashed())
        node_->bytes.insert(node_->bytes.end(), bytes.begin(), bytes.end());
      return status;
    }
    Status sync() override {
      TROUPE_TRY(files_.begin());
      node_->synced = node_->bytes.size();
      return ok_status();
    }

   private:
    FaultyFiles& files_;
    std::shared_ptr<Node> node_;
  };

  class Reader : public ReadableFile {
   public:
    explicit Reader(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
    std::uint64_t size() const override { return bytes_.size(); }
    Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
      if (offset + out.size() > bytes_.size()) return data_loss("too short");
      if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
      return ok_status();
    }

   private:
    std::vector<std::byte> bytes_;
  };

  Status begin() {
    int call = calls_++;
    if (crash_at_ >= 0 && call >= crash_at_) return internal_error("crashed");
    if (call != fail_at_) return ok_status();
    failed_ = true;
    return resource_exhausted("the disk is full");
  }

  void change(Node& dir, const std::string& name, std::shared_ptr<Node> node) {
    dir.pending.push_back({{name, node}});
    if (node)
      dir.seen[name] = node;
    else
      dir.seen.erase(name);
  }

  void survive(Node& node) {
    if (!node.directory) {
      std::size_t kept = node.synced + random_.below(node.bytes.size() - node.synced + 1);
      std::size_t zeros = random_.below(kept - node.synced + 1);
      node.bytes.resize(kept);
      std::fill(node.bytes.end() - std::ptrdiff_t(zeros), node.bytes.end(), std::byte{0});
      node.synced = kept;
      return;
    }
    for (const auto& changes : node.pending) {
      if (random_.below(2) == 0) continue;
      for (const auto& [name, child] : changes)
        if (child)
          node.durable[name] = child;
        else
          node.durable.erase(name);
    }
    node.pending.clear();
    node.seen = node.durable;
    for (const auto& [name, child] : node.seen) survive(*child);
  }

  std::shared_ptr<Node> find(std::string path) {
    if (path.starts_with("./")) path.erase(0, 2);
    auto node = root_;
    for (std::size_t at = 0; node && at < path.size();) {
      std::size_t slash = std::min(path.find('/', at), path.size());
      auto child = node->seen.find(path.substr(at, slash - at));
      node = child == node->seen.end() ? nullptr : child->second;
      at = slash + 1;
    }
    return node;
  }
  std::pair<std::shared_ptr<Node>, std::string> split(std::string path) {
    if (path.starts_with("./")) path.erase(0, 2);
    std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {root_, path};
    return {find(path.substr(0, slash)), path.substr(slash + 1)};
  }

  Random random_;
  std::shared_ptr<Node> root_;
  int calls_ = 0, fail_at_ = -1, crash_at_ = -1;
  bool failed_ = false;
};

}  // namespace troupe::testing
