// FreeList: a lock-free list of free nodes that any thread may take from and give to. take() removes the
// whole list, keeps the first node and puts back the rest, so no thread reads a node that it does not own.
// Between these steps other threads find the list empty.
#pragma once

#include <atomic>

#include "base/atomics.h"

namespace halyard {

// `kNext` is the member of Node that links the list.
template <typename Node, Node* Node::* kNext>
class FreeList {
 public:
  // Returns the node that was given last; null if there is none.
  Node* take() {
    if (!first_.load(std::memory_order_relaxed)) return nullptr;
    Node* const node = take_all();
    if (node && node->*kNext) put_back(node->*kNext);
    return node;
  }
  // Returns all nodes as a chain.
  Node* take_all() { return exchange(first_, nullptr, std::memory_order_acquire); }
  void give(Node* node) { push(node, node); }

 private:
  void put_back(Node* rest) {
    Node* nothing = nullptr;
    if (compare_exchange(first_, nothing, rest, std::memory_order_release)) return;
    Node* last = rest;
    while (last->*kNext) last = last->*kNext;
    push(rest, last);
  }
  void push(Node* first, Node* last) {
    Node* next = first_.load(std::memory_order_relaxed);
    do {
      last->*kNext = next;
    } while (!compare_exchange(first_, next, first, std::memory_order_release));
  }

  std::atomic<Node*> first_ = nullptr;
};

}  // namespace halyard
