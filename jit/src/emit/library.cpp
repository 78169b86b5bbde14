// The note and the exported function of the library.
#include <llvm/Config/llvm-config.h>

#include <string>
#include <vector>

#include "codegen/object.h"
#include "emit/kernel_object.h"
#include "emit/library_object.h"
#include "emit/link.h"
#include "emit/microkernels.h"
#include "emit/target.h"
#include "halyard/abi.h"
#include "shared/failure_reason.h"
#include "vm/decode/emit_abi.h"
#include "vm/decode/words.h"

namespace halyard::jit {

namespace {

HALYARD_NOTE_PLAIN_ __attribute__((used, aligned(4), section(HALYARD_EMIT_NOTE_SECTION)))
const halyard_jit_note_record_t note = {
    8,
    sizeof(halyard_jit_note_t),
    HALYARD_NOTE_TYPE_EMITTER,
    HALYARD_NOTE_OWNER,
    {HALYARD_EMIT_ABI,
     {static_cast<uint32_t>(vm::kCodeFormat), static_cast<uint32_t>(vm::kCodeFormat >> 32)},
     "LLVM " LLVM_VERSION_STRING}};

llvm::Expected<std::string> make_library(const halyard_emit_request_t& request) {
  auto machine = make_target(request.triple, request.processor, request.features);
  if (!machine) return machine.takeError();
  Pipeline pipeline(**machine);
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  std::vector<ExportedKernel> exported;
  std::set<std::string> microkernels;
  for (size_t i = 0; i < request.kernel_count; ++i) {
    const halyard_emit_kernel_t& kernel = request.kernels[i];
    const std::string symbol = "kernel" + std::to_string(i);
    auto object = make_kernel_object(request, kernel, symbol, **machine, pipeline);
    if (!object)
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          "kernel '" + llvm::Twine(kernel.name) + "': " + llvm::toString(object.takeError()));
    objects.push_back(std::move(object->object));
    microkernels.merge(object->microkernels);
    exported.push_back({.name = kernel.name,
                        .symbol = symbol,
                        .binding_count = kernel.binding_count,
                        .constant_count = kernel.constant_count,
                        .local_memory_pages = object->local_memory_pages});
  }
  llvm::LLVMContext context;
  if (!microkernels.empty()) {
    llvm::Module module("microkernels", context);
    set_target(module, **machine);
    write_microkernels(microkernels, module, **machine);
    auto object = generate_object(module, **machine, llvm::CodeGenFileType::ObjectFile);
    if (!object) return object.takeError();
    objects.push_back(std::move(*object));
  }
  llvm::Module module("library", context);
  set_target(module, **machine);
  write_library(module, request.name, exported);
  for (llvm::Function& each : module) set_processor(each, **machine);
  auto records = generate_object(module, **machine, llvm::CodeGenFileType::ObjectFile);
  if (!records) return records.takeError();
  objects.push_back(std::move(*records));
  return link(objects);
}

}  // namespace

}  // namespace halyard::jit

extern "C" __attribute__((visibility("default"))) int halyard_emit(const halyard_emit_request_t* request,
                                                                   void* user, halyard_emit_take_fn take,
                                                                   char* reason, size_t reason_size) {
  using namespace halyard;
  return jit::with_failure_reason(reason, reason_size, [&](std::string& why) {
    if (request->struct_size < sizeof *request || request->code_format != vm::kCodeFormat) {
      why = "the library that compiles kernels is of another build; install that of this one";
      return false;
    }
    auto library = jit::make_library(*request);
    if (!library) {
      why = llvm::toString(library.takeError());
      return false;
    }
    take(user, library->data(), library->size());
    return true;
  });
}
