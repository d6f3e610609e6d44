#include "actors/burst/inbox.hpp"

namespace troupe {

Inbox::Node* Inbox::take() {
  Node* newest = head_.exchange(nullptr, std::memory_order_acquire);
  Node* oldest = nullptr;
  while (newest) {
    Node* next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  return oldest;
}

void Inbox::discard(Node* list) {
  while (list) delete std::exchange(list, list->next);
}

}  // namespace troupe
