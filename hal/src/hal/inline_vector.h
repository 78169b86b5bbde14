// InlineVector: a growing array whose first N elements need no allocation. For the short lists of a
// submission.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace halyard::hal {

template <typename T, size_t N>
class InlineVector {
 public:
  InlineVector() = default;
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  void push_back(T value) {
    if (size_ < N) {
      inline_[size_++] = std::move(value);
      return;
    }
    if (size_ == N) heap_.assign(std::move_iterator(inline_.begin()), std::move_iterator(inline_.end()));
    heap_.push_back(std::move(value));
    ++size_;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ <= N ? inline_.data() : heap_.data(); }
  T& operator[](size_t index) { return data()[index]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  operator std::span<const T>() { return {data(), size_}; }

 private:
  std::array<T, N> inline_{};
  std::vector<T> heap_;  // all elements, once there are more than N
  size_t size_ = 0;
};

}  // namespace halyard::hal
