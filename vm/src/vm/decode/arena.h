// Arena: memory for one task, freed all at once. Array: a growing array of plain data in an arena. Functions
// that append an element are inline, because decoding appends thousands of small elements.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace halyard::vm {

class Arena {
 public:
  // Allocates from `first` while it lasts, then from the heap.
  explicit Arena(std::span<std::byte> first) : at_(first.data()), end_(first.data() + first.size()) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    while (chunks_) std::free(std::exchange(chunks_, chunks_->next));
  }

  static constexpr size_t kAlignment = 8;
  void* allocate(size_t bytes) {
    bytes = (bytes + kAlignment - 1) & ~(kAlignment - 1);
    if (bytes > static_cast<size_t>(end_ - at_)) [[unlikely]]
      add_chunk(bytes);
    void* const allocated = at_;
    at_ += bytes;
    return allocated;
  }

 private:
  struct Chunk {
    Chunk* next;
  };
  [[gnu::noinline]] void add_chunk(size_t bytes) {
    chunk_bytes_ = std::max(2 * chunk_bytes_, bytes + sizeof(Chunk));
    auto* const chunk = static_cast<Chunk*>(std::malloc(chunk_bytes_));
    if (!chunk) throw std::bad_alloc();
    chunk->next = chunks_;
    chunks_ = chunk;
    at_ = reinterpret_cast<std::byte*>(chunk + 1);
    end_ = reinterpret_cast<std::byte*>(chunk) + chunk_bytes_;
  }

  std::byte* at_;
  std::byte* end_;
  Chunk* chunks_ = nullptr;
  size_t chunk_bytes_ = size_t{16} << 10;
};

template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= Arena::kAlignment);

 public:
  explicit Array(Arena& arena) : arena_(&arena) {}
  // `size` zero-initialized elements.
  Array(Arena& arena, size_t size) : arena_(&arena) { resize(size); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void push_back(const T& element) { append() = element; }
  // Appends an uninitialized element.
  T& append() {
    if (size_ == capacity_) [[unlikely]]
      grow(size_ + 1);
    return data_[size_++];
  }
  // Reserves memory for `count` more elements and returns its start; set_end() then adds the written elements
  // to the array.
  T* room(size_t count) {
    if (capacity_ - size_ < count) [[unlikely]]
      grow(size_ + count);
    return data_ + size_;
  }
  void set_end(const T* end) { size_ = static_cast<size_t>(end - data_); }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void shrink(size_t size) {
    assert(size <= size_);
    size_ = size;
  }
  // New elements are zero-initialized.
  void resize(size_t size) {
    reserve(size);
    if (size > size_) std::memset(static_cast<void*>(data_ + size_), 0, (size - size_) * sizeof(T));
    size_ = size;
  }
  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }

 private:
  [[gnu::noinline]] void grow(size_t needed) {
    const size_t capacity = std::max({needed, 2 * capacity_, size_t{8}});
    auto* const data = static_cast<T*>(arena_->allocate(capacity * sizeof(T)));
    if (size_) std::memcpy(static_cast<void*>(data), data_, size_ * sizeof(T));
    data_ = data;
    capacity_ = capacity;
  }

  Arena* arena_;
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace halyard::vm
