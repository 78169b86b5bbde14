// Executable: device code of format `vmvx-bytecode-fb`, a module of the register machine whose every export
// is a kernel. Specified by exec-vmvx.md, sections 1 to 4.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "status.h"
#include "vm/bytecode_module.h"
#include "worker.h"

namespace halyard::local {

class Executable {
 public:
  static Result<std::unique_ptr<halyard_driver_executable>> create(const Services& services,
                                                                   const halyard_executable_args_t& args);
  Executable(const Services& services, Ref<vm::BytecodeModule> module)
      : services_(services), module_(std::move(module)) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable();

  const Services& services() const { return services_; }
  uint32_t function_count() const { return static_cast<uint32_t>(kernels_.size()); }
  Result<> describe(uint32_t function, halyard_function_info_t& info) const;
  const Kernel& kernel(uint32_t function) const { return kernels_[function]; }

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

 private:
  Result<> load_kernels();
  void give_back(std::unique_ptr<Worker> worker);

  const Services& services_;
  Ref<vm::BytecodeModule> module_;
  std::vector<Kernel> kernels_;  // by function number
  std::mutex mutex_;
  std::unique_ptr<Worker> idle_;  // a list, warmest first
};

// Never fails; `data` may be null: then the format alone is judged.
void grade_executable(std::string_view format, std::span<const uint8_t> data,
                      halyard_executable_grade_t& grade);

}  // namespace halyard::local

struct halyard_driver_executable final : halyard::local::Executable {
  using Executable::Executable;
};
