// NodePool: objects that come and go with queue work, kept with the memory they hold when they are given
// back, so that warm queue work does not reach malloc. Thread-safe. T is made once and used many times:
// whoever takes one brings it into its first state.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace halyard::vulkan {

template <typename T>
class NodePool {
 public:
  NodePool() = default;
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

  // One that was given back, or what `make` makes: a Result<std::unique_ptr<T>>.
  template <typename Make>
  auto take(Make make) -> decltype(make()) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<T> node = std::move(free_.back());
        free_.pop_back();
        return node;
      }
      ++made_;
      free_.reserve(made_);  // so that give() cannot fail
    }
    return make();
  }
  void give(std::unique_ptr<T> node) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(node));
  }
  // Frees what nobody uses.
  void trim() {
    std::vector<std::unique_ptr<T>> nodes;
    const std::lock_guard lock(mutex_);
    made_ -= free_.size();
    nodes.swap(free_);
    free_.reserve(made_);
  }

 private:
  std::mutex mutex_;
  size_t made_ = 0;  // and not freed
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace halyard::vulkan
