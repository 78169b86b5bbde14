// Owning handles: counted references to objects of the C ABI, and blocks and texts that the C ABI returns.
#ifndef HALYARD_CPP_HANDLE_HPP_
#define HALYARD_CPP_HANDLE_HPP_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "halyard/cpp/error.hpp"

namespace halyard::inline HALYARD_CPP_FORM {

// How a constructor gets its reference: `adopt` takes ownership, `share` adds a reference.
struct adopt_t {};
struct share_t {};
inline constexpr adopt_t adopt;
inline constexpr share_t share;

// One reference, or none. A copy is a further reference. Derived classes add functions but no state, unless
// they say so. Thread-safety of the object: as in the C header. One thread at a time may use a Handle.
template <typename C>
class Handle {
 public:
  Handle() noexcept = default;
  Handle(adopt_t, C handle) noexcept : handle_(handle) {}
  Handle(share_t, C handle) noexcept : handle_(handle) { halyard_retain(handle); }
  Handle(const Handle& other) noexcept : Handle(share, other.handle_) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(const Handle& other) noexcept {
    Handle(other).swap(*this);
    return *this;
  }
  Handle& operator=(Handle&& other) noexcept {
    Handle(std::move(other)).swap(*this);
    return *this;
  }
  ~Handle() {
    if (handle_) halyard_release(handle_);
  }

  C get() const noexcept { return handle_; }  // borrowed
  C release() noexcept { return std::exchange(handle_, nullptr); }
  void reset() noexcept { Handle().swap(*this); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  friend bool operator==(const Handle&, const Handle&) = default;  // the same object

 private:
  void swap(Handle& other) noexcept { std::swap(handle_, other.handle_); }
  C handle_ = nullptr;
};

// A zero-terminated text for a C function: a literal or a std::string.
class CString {
 public:
  CString(const char* text) noexcept : text_(text) {}
  CString(const std::string& text) noexcept : text_(text.c_str()) {}
  const char* get() const noexcept { return text_; }

 private:
  const char* text_;
};

// A text of a C struct. Lives as long as the C header says.
inline std::string_view view(halyard_text_t text) noexcept {
  return text.data ? std::string_view(text.data, text.size) : std::string_view();
}
inline std::string_view view(const char* text) noexcept { return text ? text : ""; }
inline halyard_text_t to_text(std::string_view text) noexcept { return {text.data(), text.size()}; }

// An array in one block of the C ABI. The destructor frees the block with all entries and their texts.
template <typename T>
class Block {
 public:
  Block() noexcept = default;
  Block(adopt_t, T* data, size_t size) noexcept : data_(data), size_(size) {}
  Block(Block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Block() { halyard_free(const_cast<std::remove_const_t<T>*>(data_)); }

  T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() const noexcept { return data_; }
  T* end() const noexcept { return data_ + size_; }
  T& operator[](size_t index) const noexcept { return data_[index]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};
using Bytes = Block<const std::byte>;

namespace detail {

// Converts an owned text of the C ABI to a string. Null is RESOURCE_EXHAUSTED.
inline Result<std::string> take_text(char* text) {
  if (!text)
    return fail<std::string>(Error(StatusCode::RESOURCE_EXHAUSTED, "out of memory for a text of libhalyard"));
  const Block<char> block(adopt, text, 0);
  return std::string(text);
}
inline std::string take_text(char* text, size_t size) {
  const Block<char> block(adopt, text, size);
  return std::string(text, size);
}

// An info struct of the C ABI with struct_size set.
template <typename Info>
Info sized() noexcept {
  Info info = {};
  info.struct_size = sizeof info;
  return info;
}

}  // namespace detail

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_HANDLE_HPP_
