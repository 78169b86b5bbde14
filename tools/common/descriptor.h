// An owned file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace halyard::tools {

// Closes the descriptor in its destructor. A negative number means none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  // Gives ownership to the caller.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace halyard::tools
