// Of the kit (halyard/driver.hpp): objects that are reused by queue work.
#ifndef HALYARD_DRIVER_POOL_HPP_
#define HALYARD_DRIVER_POOL_HPP_

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace halyard::kit {

// Keeps returned objects with the memory that they hold, so that warm queue work does not call malloc.
// Thread-safe. Objects are created once and used many times: the user of an object resets it.
template <typename T>
class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // A returned object, or a new one from `make`, which returns a unique_ptr<T> or a Result of one.
  template <typename Make>
  auto take(Make make) -> decltype(make()) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<T> object = std::move(free_.back());
        free_.pop_back();
        return object;
      }
      ++made_;
      free_.reserve(made_);  // so that give() cannot fail
    }
    return make();
  }
  void give(std::unique_ptr<T> object) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(object));
  }
  // Frees all unused objects.
  void trim() {
    std::vector<std::unique_ptr<T>> objects;
    const std::lock_guard lock(mutex_);
    made_ -= free_.size();
    objects.swap(free_);
    free_.reserve(made_);
  }

 private:
  std::mutex mutex_;
  size_t made_ = 0;  // objects created and not freed
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_POOL_HPP_
