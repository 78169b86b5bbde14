// KernelEntry: the function that runs a kernel for one workgroup. It makes the kernel's arguments from the
// records of the caller, calls compiled code, and executes each instruction at which that code leaves for the
// interpreter.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "codegen/registers.h"
#include "emit/float_mode.h"
#include "vm/decode/emit_abi.h"
#include "vm/decode/words.h"

namespace halyard::jit {

class KernelEntry {
 public:
  // `run` is the compiled code, after all passes. `plain`: the function without addresses, from which it was
  // made.
  KernelEntry(const halyard_emit_request_t& request, const halyard_emit_kernel_t& kernel,
              const halyard_jit_function_t& plain, llvm::Function& run);

  // Adds the function. An error has the reason why the kernel is not compiled.
  llvm::Error write(const std::string& symbol);
  // The imports that it calls (microkernels.h).
  const std::set<std::string>& microkernels() const { return microkernels_; }
  uint32_t local_memory_pages() const;
  llvm::Function* function() const { return entry_; }

 private:
  using Word = vm::Word;

  void begin(const std::string& symbol);
  void make_arguments();
  void set_number(uint32_t argument, llvm::Value* number);
  void set_object(uint32_t argument, llvm::Value* object);
  llvm::Error place_own_buffers();
  llvm::Error write_word(uint32_t at);
  llvm::Error write_alloc(uint32_t at);
  llvm::Value* dynamic_place(uint32_t at, llvm::Value* bytes);
  llvm::Error write_list_get(uint32_t at);
  llvm::Error write_constant(uint32_t at);
  llvm::Error write_import_call(uint32_t at);
  void go_on(uint32_t at);

  bool leaves(uint32_t at) const;
  bool is_in_circle(uint32_t at) const;
  llvm::Error refused(uint32_t at, const char* why) const;
  llvm::Value* field(llvm::Value* record, uint64_t offset, llvm::Type* type);
  void set_field(llvm::Value* record, uint64_t offset, llvm::Value* value);
  llvm::Value* slot(uint32_t reg);
  llvm::Value* ref(uint32_t reg);
  llvm::Value* checked_buffer(uint32_t reg);
  llvm::AllocaInst* room(uint64_t bytes);
  void fill_buffer(llvm::Value* buffer, llvm::Value* data, llvm::Value* length, bool writable);
  void clear(llvm::Value* memory, uint64_t bytes);
  void clear_cache_lines(llvm::Value* memory, llvm::Value* bytes);
  bool is_reused(uint32_t at) const;
  void fail_unless(llvm::Value* condition, int32_t code);
  llvm::Constant* host_type(const char* name);
  llvm::BasicBlock* new_block(const llvm::Twine& name = "");
  void return_code(llvm::Value* code);

  const halyard_emit_request_t& request_;
  const halyard_emit_kernel_t& kernel_;
  const std::span<const Word> words_;  // with addresses
  const OwnCalls own_calls_;
  const Registers registers_;
  llvm::Function& run_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  llvm::Function* entry_ = nullptr;
  llvm::Value* values_ = nullptr;
  llvm::Value* refs_ = nullptr;
  llvm::Value* stack_ = nullptr;
  llvm::Value* stop_ = nullptr;
  std::optional<FloatMode> mode_;         // if compiled code computes with floats
  llvm::BasicBlock* dispatch_ = nullptr;  // where compiled code has returned
  llvm::PHINode* returned_ = nullptr;     // the word at which it left
  std::map<uint32_t, llvm::BasicBlock*> blocks_;
  std::map<uint32_t, uint64_t>
      own_buffers_;  // by the instruction that allocates one: its place in local memory
  uint64_t own_bytes_ = 0;
  // Buffers whose place is found at run time follow those: the instructions that allocate them, and the
  // bytes in use.
  std::set<uint32_t> dynamic_buffers_;
  uint64_t dynamic_bytes_ = 0;
  llvm::Value* dynamic_used_ = nullptr;
  std::set<std::string> microkernels_;
};

}  // namespace halyard::jit
