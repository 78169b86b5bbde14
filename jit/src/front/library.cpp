// The exported negotiation function of the compiler library, and its function table.
#include <llvm/Config/llvm-config.h>

#include <cstdio>
#include <string>

#include "front/compile.h"
#include "halyard/abi.h"
#include "shared/failure_reason.h"
#include "vm/decode/words.h"

namespace halyard::jit {

namespace {

int compile(const halyard_jit_function_t* function, const halyard_jit_host_t* host, const char* cache,
            halyard_jit_code_t* code, char* reason, size_t reason_size) {
  return with_failure_reason(reason, reason_size, [&](std::string& why) {
    return jit::compile(*function, *host, cache, *code, why);
  });
}

void release(void* handle) { jit::release(handle); }

void stats(halyard_jit_stats_t* stats) { get_stats(*stats); }

HALYARD_NOTE_PLAIN_ __attribute__((used, aligned(4), section(HALYARD_JIT_NOTE_SECTION)))
const halyard_jit_note_record_t note = {
    8,
    sizeof(halyard_jit_note_t),
    HALYARD_NOTE_TYPE_COMPILER,
    HALYARD_NOTE_OWNER,
    {HALYARD_JIT_ABI,
     {static_cast<uint32_t>(vm::kCodeFormat), static_cast<uint32_t>(vm::kCodeFormat >> 32)},
     "LLVM " LLVM_VERSION_STRING}};

constexpr halyard_jit_table_t kTable = {
    .struct_size = sizeof(halyard_jit_table_t),
    .compiler = note.description.compiler,
    .compile = compile,
    .release = release,
    .stats = stats,
};

}  // namespace

}  // namespace halyard::jit

extern "C" __attribute__((visibility("default"))) int halyard_jit_explain(
    const halyard_jit_function_t* function, const halyard_jit_explanation_t* explanation, char* reason,
    size_t reason_size) {
  return halyard::jit::with_failure_reason(reason, reason_size, [&](std::string& why) {
    return halyard::jit::explain(*function, *explanation, why);
  });
}

extern "C" __attribute__((visibility("default"))) int halyard_jit_negotiate(
    const halyard_jit_request_t* request, halyard_jit_reply_t* reply) {
  const char* why = nullptr;
  if (request->struct_size < sizeof *request || reply->struct_size < sizeof *reply ||
      request->abi != HALYARD_JIT_ABI) {
    why = "it supports another version of the compiler ABI";
  } else if (request->code_format != halyard::vm::kCodeFormat) {
    why = "its decoded code has another format";
  }
  if (why) {
    std::snprintf(reply->refusal, sizeof reply->refusal, "%s", why);
    return 0;
  }
  reply->table = &halyard::jit::kTable;
  return 1;
}
