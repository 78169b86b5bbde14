// InlineVector: a growing array whose first N elements are stored inline, and uninitialized until used. For
// the short lists of a submission.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace halyard {

template <typename T, size_t N>
class InlineVector {
 public:
  static_assert(std::is_nothrow_move_constructible_v<T>);

  InlineVector() = default;
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(other);
    return *this;
  }
  ~InlineVector() {
    std::destroy_n(data_, size_);
    free();
  }

  void push_back(T value) {
    if (size_ == capacity_) grow(capacity_ * 2);
    std::construct_at(data_ + size_++, std::move(value));
  }
  void append(std::span<const T> values) {
    if (values.size() > capacity_ - size_) grow(std::max(capacity_ * 2, size_ + values.size()));
    std::uninitialized_copy(values.begin(), values.end(), data_ + size_);
    size_ += values.size();
  }

  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  T& back() { return data_[size_ - 1]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  operator std::span<const T>() const { return {data_, size_}; }

 private:
  T* room() { return reinterpret_cast<T*>(room_); }

  void grow(size_t capacity) {
    T* grown = std::allocator<T>().allocate(capacity);
    std::uninitialized_move_n(data_, size_, grown);
    std::destroy_n(data_, size_);
    free();
    data_ = grown;
    capacity_ = capacity;
  }
  void free() {
    if (data_ != room()) std::allocator<T>().deallocate(data_, capacity_);
  }
  void clear() {
    std::destroy_n(data_, size_);
    free();
    data_ = room();
    size_ = 0;
    capacity_ = N;
  }
  // This array must be empty.
  void take(InlineVector& other) noexcept {
    if (other.data_ != other.room()) {
      data_ = std::exchange(other.data_, other.room());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
      return;
    }
    std::uninitialized_move_n(other.data_, other.size_, data_);
    size_ = other.size_;
    other.clear();
  }

  T* data_ = room();
  size_t size_ = 0;
  size_t capacity_ = N;
  alignas(T) std::byte room_[N * sizeof(T)];
};

}  // namespace halyard
