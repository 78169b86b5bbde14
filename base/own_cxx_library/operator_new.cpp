// In a library that contains parts of libstdc++: memory comes from the program's operator new, as it would
// with a shared libstdc++, so a program that replaces operator new still provides the memory of the library.
// A process without a C++ library has no such function; memory then comes from malloc. The forms that are not
// here call these.
#include <dlfcn.h>

#include <cstdlib>
#include <new>

namespace {

struct Operators {
  // Those that return null, because no exception may come from another C++ library.
  void* (*allocate)(std::size_t size, const std::nothrow_t& tag) noexcept;
  void* (*allocate_aligned)(std::size_t size, std::align_val_t alignment, const std::nothrow_t& tag) noexcept;
  void (*free)(void* memory) noexcept;
  void (*free_aligned)(void* memory, std::align_val_t alignment) noexcept;
};

constexpr Operators kSystem = {
    [](std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size ? size : 1); },
    [](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
      const auto to = static_cast<std::size_t>(alignment);
      return std::aligned_alloc(to, (size + to - 1) / to * to);
    },
    [](void* memory) noexcept { std::free(memory); },
    [](void* memory, std::align_val_t) noexcept { std::free(memory); },
};

template <typename Function>
bool find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

const Operators& operators() {
  static const Operators chosen = [] {
    Operators program = {};
    const bool has_all = find(program.allocate, "_ZnwmRKSt9nothrow_t") && find(program.free, "_ZdlPv") &&
                         find(program.allocate_aligned, "_ZnwmSt11align_val_tRKSt9nothrow_t") &&
                         find(program.free_aligned, "_ZdlPvSt11align_val_t");
    static_cast<void>(::dlerror());  // a failed search is no error of the program's
    return has_all ? program : kSystem;
  }();
  return chosen;
}

}  // namespace

void* operator new(std::size_t size) {
  if (void* const memory = operators().allocate(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  if (void* const memory = operators().allocate_aligned(size, alignment, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { operators().free(memory); }
void operator delete(void* memory, std::align_val_t alignment) noexcept {
  operators().free_aligned(memory, alignment);
}
void operator delete(void* memory, std::size_t) noexcept { operators().free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  operators().free_aligned(memory, alignment);
}
