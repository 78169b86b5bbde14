// A program whose memory and device work are known when it is translated: no object is left, buffers are
// offsets in one arena, and command buffers are calls.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aot/public_function.h"
#include "plan/lifter.h"
#include "plan/memory_plan.h"
#include "plan/simplify.h"

namespace halyard::aot {

// A tensor or number that an exported function returns.
struct Output {
  char type = 'i';
  ValueId value = kNoValue;  // of a number
  uint32_t element_type = 0;
  uint32_t encoding = 0;
  std::vector<ValueId> shape;
  Place place;
  bool is_fixed = false;  // the shape is known: the caller passes the bytes
  bool in_place = false;  // and the program computes in them
};

struct Placed {
  MemoryId memory = kNoMemory;
  Lifetime lifetime;
  std::string what;  // for the report
};

struct HostFunction {
  PublicFunction face;
  std::vector<Argument> arguments;
  std::vector<Output> outputs;
  Nodes body;
  std::vector<Placed> placed;  // buffers of known size
  uint64_t arena_bytes = 0;    // for these
  uint64_t peak_bytes = 0;
  bool has_dynamic_memory = false;
  size_t scope = 0;

  std::vector<ValueId> results() const;
};

struct KernelFunction {
  size_t kernels = 0;
  uint32_t function = 0;
  std::string symbol;
  std::string_view name;
  std::unique_ptr<Lifter> lifter;
  Nodes body;
  Nodes vector_body;  // for processors that compute several elements at once; empty: the same
  std::vector<MemoryId> bindings;
  std::vector<Placed> placed;
  uint64_t scratch_bytes = 0;
  bool can_fail = false;
  bool has_rows = false;                // it computes all workgroups of the first dimension
  std::string text;                     // the definition
  std::vector<std::string> used_names;  // of the parameters, in order
  bool takes_state = false;
};

class Program {
 public:
  // Nothing: the reason in `why`.
  static std::unique_ptr<Program> of(const Plan& host, const std::vector<Kernels>& kernels,
                                     const Options& options, std::string& why);

  const Plan& host() const { return host_; }
  const std::vector<HostFunction>& functions() const { return functions_; }
  const std::vector<KernelFunction>& kernels() const { return kernel_functions_; }
  Lifter& lifter() const { return *lifter_; }
  uint64_t state_bytes() const { return state_bytes_; }
  uint64_t arena_bytes() const;
  bool has_dynamic_memory() const;

  // C. Those of kernels are in their `text`.
  std::string initializer_text();
  std::string function_text(const HostFunction& function);
  // Whether the function has dynamic memory whose size is known from the dimensions of its arguments.
  bool has_arena_function(const HostFunction& function) const;
  std::string arena_function_text(const HostFunction& function) const;  // of these functions
  // The parameters after the state: "const float a0[4], float o0[4]".
  std::string parameters(const HostFunction& function) const;
  std::string dimensions(const HostFunction& function) const;
  std::vector<KernelFunction>& kernels() { return kernel_functions_; }

 private:
  Program(const Plan& host, const std::vector<Kernels>& kernels)
      : host_(host), kernels_(kernels), lifter_(std::make_unique<Lifter>(host, kernels)) {}

  bool lift_host();
  void erase_empty_dispatches(Nodes& nodes);
  bool lift_function(const PublicFunction& face, size_t scope);
  bool lift_kernels();
  bool lift_kernel(size_t kernels, uint32_t function, const std::vector<size_t>& sites);
  Overlap overlap_of(size_t a, size_t b, const std::vector<size_t>& sites) const;
  bool keep_globals(HostFunction& function, const std::map<uint32_t, ObjectId>& before);
  bool keep_written_constants();
  bool check_scopes(const Nodes& nodes, size_t scope);
  void write_kernels();
  void plan_memory();
  std::string kernel_text(KernelFunction& kernel);
  void place_all(const Nodes& nodes, Lifter& lifter, size_t scope, std::vector<Placed>& placed,
                 bool with_dispatches, const std::vector<MemoryId>& to_end);
  std::string dimension_locals(const HostFunction& function, size_t argument, const std::string& code,
                               std::string_view otherwise) const;
  bool is_checked_division(ValueId id) const;
  // The allocations of a function in their order, and the numbers that their sizes are computed from.
  // Nothing: a size depends on other things than the dimensions of arguments, or on a branch.
  std::optional<Nodes> allocations(const HostFunction& function) const;
  std::string constant_name(const Memory& memory) const;
  std::string memory_text(MemoryId memory, const std::vector<Placed>& placed) const;
  std::string dispatch_text(const Node& node, const std::vector<Placed>& placed, size_t time) const;
  const KernelFunction& kernel_of(const Site& site) const;
  bool give_up(std::string reason) {
    if (why_.empty()) why_ = std::move(reason);
    return false;
  }

  const Plan& host_;
  const std::vector<Kernels>& kernels_;
  std::unique_ptr<Lifter> lifter_;
  Nodes initializer_;
  std::vector<HostFunction> functions_;
  std::vector<KernelFunction> kernel_functions_;
  std::vector<std::pair<MemoryId, uint64_t>> state_;  // offsets
  uint64_t state_bytes_ = 0;
  std::string why_;
};

// The type of an element in C; null if there is none.
const char* element_c_type(uint32_t element_type);
uint32_t element_bytes(uint32_t element_type);

}  // namespace halyard::aot
