// Executable: device code, loaded. Its kernels by number, and the workers that run them; what kind of code it
// is, only they know. An ExecutableKind loads one kind; formats find it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/stash.h"
#include "estimate.h"
#include "status.h"
#include "worker.h"

namespace halyard::local {

struct Device;

class Executable {
 public:
  static Result<std::unique_ptr<halyard_driver_executable>> create(const Device& device,
                                                                   const halyard_executable_args_t& args);
  // What its kernels allocate is charged to `memory`, which may be null.
  Executable(const Services& services, Ref<Budget> memory)
      : services_(services), memory_(std::move(memory)) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable();

  const Services& services() const { return services_; }
  uint32_t function_count() const { return static_cast<uint32_t>(kernels_.size()); }
  Result<halyard_function_info_t> function_info(uint32_t function) const;
  const Kernel& kernel(uint32_t function) const { return kernels_[function]; }
  Cost& workgroup_cost(uint32_t function) const { return costs_[function]; }

  // A worker of this thread's own until it is given back.
  class Lease {
   public:
    Lease(Executable& executable, std::unique_ptr<Worker> worker)
        : executable_(executable), worker_(std::move(worker)) {}
    Lease(Lease&&) = default;
    ~Lease() {
      if (worker_) executable_.give_back(std::move(worker_));
    }
    Worker* operator->() const { return worker_.get(); }
    Worker& operator*() const { return *worker_; }

   private:
    Executable& executable_;
    std::unique_ptr<Worker> worker_;
  };
  Result<Lease> lease();

 protected:
  const Ref<Budget>& memory() const { return memory_; }
  virtual Result<std::unique_ptr<Worker>> create_worker() const = 0;
  void give_back(std::unique_ptr<Worker> worker);

  std::vector<Kernel> kernels_;  // by function number; complete before the first worker

 private:
  const Services& services_;
  const Ref<Budget> memory_;
  std::unique_ptr<Cost[]> costs_;           // by function number
  Stash<Worker, &Worker::next_idle> idle_;  // owned
};

// The host's, as a budget of this library's; null where the host gave none. Until the executable goes.
Ref<Budget> budget_of(const halyard_executable_args_t& args);

// HALYARD_GRADE_*, and the reason; `data` may be null: then the format alone is judged.
uint32_t grade_executable(const Device& device, std::string_view format, std::span<const uint8_t> data,
                          std::string& reason);

// Code of one kind.
struct ExecutableKind {
  // What it runs, for messages.
  std::string (*formats)();
  bool (*accepts)(std::string_view format);
  // The format alone where `data` is null. INCOMPATIBLE and NOT_FOUND: another build of the same program
  // could run here.
  Result<> (*judge)(const Device& device, std::string_view format, std::span<const uint8_t> data);
  Result<std::unique_ptr<halyard_driver_executable>> (*create)(const Device& device,
                                                               const halyard_executable_args_t& args);
};

}  // namespace halyard::local

struct halyard_driver_executable : halyard::local::Executable {
  using Executable::Executable;
};
