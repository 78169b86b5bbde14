// PlacedCode: an image in executable memory. The memory is never writable and executable at the same time.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "shared/image.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit {

class PlacedCode {
 public:
  // NOT_FOUND: a symbol is missing; RESOURCE_EXHAUSTED: out of memory.
  static Result<std::unique_ptr<PlacedCode>> place(const Image& image, const halyard_jit_host_t& host);
  PlacedCode(const PlacedCode&) = delete;
  PlacedCode& operator=(const PlacedCode&) = delete;
  ~PlacedCode();

  const void* entry() const { return entry_; }

 private:
  PlacedCode() = default;

  void* memory_ = nullptr;
  size_t size_ = 0;
  const void* entry_ = nullptr;
};

}  // namespace halyard::jit
