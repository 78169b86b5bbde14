// Executable: device code, loaded. Its kernels by number, and the workers that run them; what kind of code it
// is, only they know. An ExecutableKind loads one kind; formats find it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  explicit Executable(const Services& services) : services_(services) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable();

  const Services& services() const { return services_; }
  uint32_t function_count() const { return static_cast<uint32_t>(kernels_.size()); }
  Result<> describe(uint32_t function, halyard_function_info_t& info) const;
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
  virtual Result<std::unique_ptr<Worker>> create_worker() const = 0;
  void give_back(std::unique_ptr<Worker> worker);

  std::vector<Kernel> kernels_;  // by function number; complete before the first worker

 private:
  const Services& services_;
  std::unique_ptr<Cost[]> costs_;           // by function number
  Stash<Worker, &Worker::next_idle> idle_;  // owned
};

// Never fails; `data` may be null: then the format alone is judged.
void grade_executable(const Device& device, std::string_view format, std::span<const uint8_t> data,
                      halyard_executable_grade_t& grade);

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
