#include "core/list.hpp"

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace troupe {

// The root of a tree is its youngest element; then come those of `left`, then those of `right`.
struct List::Node {
  std::atomic<std::uint32_t> holders{1};
  Tensor value;
  Node* left = nullptr;
  Node* right = nullptr;
  Node* next = nullptr;  // that waits to be freed
};

void List::hold(Node* node) {
  if (node) node->holders.fetch_add(1, std::memory_order_relaxed);
}

// An element may be a list, whose nodes are let go while this one is freed: they wait.
void List::release(Node* node) {
  thread_local Node* waiting = nullptr;
  thread_local bool busy = false;
  if (!node || node->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  node->next = std::exchange(waiting, node);
  if (busy) return;
  busy = true;
  while (waiting) {
    const std::unique_ptr<Node> last(std::exchange(waiting, waiting->next));
    release(last->left);
    release(last->right);
  }
  busy = false;
}

// The node at `at` as one that this list alone holds, whose value is to be replaced or changed
// below: a copy unless it is.
List::Node* List::owned(Node*& at) {
  if (at->holders.load(std::memory_order_acquire) == 1) return at;
  auto* copy = new Node{.value = at->value, .left = at->left, .right = at->right};
  hold(copy->left);
  hold(copy->right);
  release(std::exchange(at, copy));
  return at;
}

List::List(const List& other) : trees_(other.trees_), size_(other.size_) {
  for (const Tree& tree : trees_) hold(tree.root);
}

List::~List() {
  for (const Tree& tree : trees_) release(tree.root);
}

void List::push(Tensor value) {
  auto* node = new Node{.value = std::move(value)};
  ++size_;
  const std::size_t n = trees_.size();
  if (n < 2 || trees_[n - 1].size != trees_[n - 2].size) {
    trees_.push_back({1, node});
    return;
  }
  node->left = trees_[n - 1].root;
  node->right = trees_[n - 2].root;
  trees_[n - 2] = {2 * trees_[n - 1].size + 1, node};
  trees_.pop_back();
}

Tensor List::pop() {
  if (empty()) throw Error(out_of_range("an empty list has no last element"));
  const Tree last = trees_.back();
  trees_.pop_back();
  --size_;
  if (last.size > 1) {
    const std::int64_t half = last.size / 2;
    trees_.push_back({half, last.root->right});
    trees_.push_back({half, last.root->left});
    hold(last.root->right);
    hold(last.root->left);
  }
  const bool alone = last.root->holders.load(std::memory_order_acquire) == 1;
  Tensor value = alone ? std::move(last.root->value) : last.root->value;
  release(last.root);
  return value;
}

void List::check_index(std::int64_t i) const {
  if (i < 0 || i >= size_)
    throw Error(out_of_range("a list of " + std::to_string(size_) + " elements has no element " +
                             std::to_string(i)));
}

const Tensor& List::get(std::int64_t i) const {
  check_index(i);
  std::int64_t younger = size_ - 1 - i;
  std::size_t t = trees_.size() - 1;
  for (; younger >= trees_[t].size; --t) younger -= trees_[t].size;
  const Node* node = trees_[t].root;
  for (std::int64_t half = trees_[t].size / 2; younger != 0; half /= 2) {
    const bool left = --younger < half;
    node = left ? node->left : node->right;
    if (!left) younger -= half;
  }
  return node->value;
}

void List::set(std::int64_t i, Tensor value) {
  check_index(i);
  std::int64_t younger = size_ - 1 - i;
  std::size_t t = trees_.size() - 1;
  for (; younger >= trees_[t].size; --t) younger -= trees_[t].size;
  Node* node = owned(trees_[t].root);
  for (std::int64_t half = trees_[t].size / 2; younger != 0; half /= 2) {
    const bool left = --younger < half;
    node = owned(left ? node->left : node->right);
    if (!left) younger -= half;
  }
  node->value = std::move(value);
}

void List::visit(const Node* node, FunctionRef<void(const Tensor&)>& f) {
  if (!node) return;
  visit(node->right, f);
  visit(node->left, f);
  f(node->value);
}

void List::for_each(FunctionRef<void(const Tensor&)> f) const {
  for (const Tree& tree : trees_) visit(tree.root, f);
}

bool List::same(const List& a, const List& b) {
  if (a.size() != b.size()) return false;
  auto same_elements = [](const Tensor& x, const Tensor& y) {
    const bool stored = x.buffer() && y.buffer();
    return stored ? Tensor::same(x, y)
                  : !x.buffer() && !y.buffer() && x.dtype() == y.dtype() && x.shape() == y.shape();
  };
  bool equal = true;
  std::int64_t i = 0;
  a.for_each([&](const Tensor& x) { equal = equal && same_elements(x, b.get(i++)); });
  return equal;
}

// --- in a tensor ---

namespace {

bool is_deeper(const Tensor& list, int most) {
  if (most == 0) return true;
  bool deeper = false;
  list_in(list).for_each([&](const Tensor& element) {
    if (!deeper && element.dtype() == DType::list) deeper = is_deeper(element, most - 1);
  });
  return deeper;
}

}  // namespace

Status check_sent_depth(const Tensor& list) {
  if (!is_deeper(list, kDeepestSent)) return ok_status();
  return invalid_argument("lists in lists are more than " + std::to_string(kDeepestSent) +
                          " deep, the most that go to another device");
}

Tensor list_tensor(List list) {
  auto buffer = Buffer::allocate(heap_allocator(), sizeof(List));
  TROUPE_CHECK(buffer.ok(), "there is memory for a list of nothing");
  new (buffer->data()) List(std::move(list));
  buffer->on_destroy([](void* data, std::size_t) { std::destroy_at(static_cast<List*>(data)); });
  return Tensor(DType::list, Shape{}, std::move(buffer).value());
}

namespace {

void check_list(const Tensor& tensor) {
  if (tensor.dtype() == DType::list) return;
  throw Error(invalid_argument("a tensor of type " + std::string(dtype_name(tensor.dtype())) +
                               " holds no list"));
}

}  // namespace

const List& list_in(const Tensor& tensor) {
  check_list(tensor);
  return *static_cast<const List*>(tensor.raw());
}

List& list_in(Tensor& tensor) {
  check_list(tensor);
  return *static_cast<List*>(tensor.mutable_raw());
}

}  // namespace troupe
