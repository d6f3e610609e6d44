// List: a sequence of tensors, as a value.
#pragma once

#include <cstdint>
#include <vector>

#include "core/function_ref.hpp"
#include "core/tensor.hpp"

namespace troupe {

// Elements are tensors of any type and shape, lists among them; one that is not defined is an entry
// without a value. A value: who changes a list changes no other, and what two of them have in
// common is there once. Nothing of a tensor is ever copied.
//
// Perfect binary trees, of which the two youngest alone may be of one size:
//
//   9 elements  [ 0 1 2 3 4 5 6 ] [ 7 ] [ 8 ]      and a tenth     [ 0 ... 6 ] [ 7 8 9 ]
//
// A push or pop makes or takes apart one node; a copy, get and set cost O(log n). Freed without
// recursion, however deep lists are in lists.
class List {
 public:
  List() = default;
  List(const List& other);
  List(List&& other) noexcept : trees_(std::move(other.trees_)), size_(other.size_) {
    other.trees_.clear();
    other.size_ = 0;
  }
  List& operator=(List other) noexcept {
    std::swap(trees_, other.trees_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~List();

  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void push(Tensor value);
  // The last element, without which the list is left. Throws Error for an empty list.
  Tensor pop();
  // Throw Error unless 0 <= i < size().
  const Tensor& get(std::int64_t i) const;
  void set(std::int64_t i, Tensor value);
  // From the first to the last.
  void for_each(FunctionRef<void(const Tensor&)> f) const;

  // Element by element, entries without a value and lists in lists included.
  static bool same(const List& a, const List& b);

 private:
  void check_index(std::int64_t i) const;
  struct Node;
  struct Tree {
    std::int64_t size = 0;
    Node* root = nullptr;
  };
  static void hold(Node* node);
  static void release(Node* node);
  static Node* owned(Node*& at);
  static void visit(const Node* node, FunctionRef<void(const Tensor&)>& f);

  std::vector<Tree> trees_;  // the oldest elements first
  std::int64_t size_ = 0;
};

// Lists in lists that go to another device, at most.
inline constexpr int kDeepestSent = 64;
// REQUIRES: a tensor of type list. invalid_argument: it is deeper.
Status check_sent_depth(const Tensor& list);

// A scalar of type list, in host memory whatever its elements are in.
Tensor list_tensor(List list);
// Throws Error unless it is a tensor of type list.
const List& list_in(const Tensor& tensor);
// The same to be changed. REQUIRES: nobody else reads it.
List& list_in(Tensor& tensor);

}  // namespace troupe
