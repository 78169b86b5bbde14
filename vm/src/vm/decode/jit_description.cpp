#include "vm/decode/jit_description.h"

#include "vm/decode/words.h"
#include "vm/module/bytecode_module.h"

namespace halyard::vm {

halyard_jit_function_t described(const FunctionCode& code, const char* name) {
  uint32_t entries = 0;
  for (uint32_t at = 0; at < code.words.size(); at += word_count(code.words[at]))
    entries += code.words[at].op == static_cast<uint16_t>(DecodedOp::enter_compiled);
  return {.struct_size = sizeof(halyard_jit_function_t),
          .name = name,
          .words = code.words.data(),
          .word_count = code.words.size(),
          .lists = code.lists.data(),
          .list_count = code.lists.size(),
          .value_slots = code.value_slots,
          .ref_slots = code.ref_slots,
          .entry_count = entries,
          .global_bytes = code.module->global_bytes(),
          .frame_bytes = code.frame_bytes,
          .fast_math = 0,
          .own_calls = 0,
          .ordinal = code.function,
          .kept_nans = 0,
          .arguments = code.arguments.data(),
          .argument_count = code.arguments.size(),
          .result_count = code.result_count,
          .layout = nullptr,
          .cached_only = 0};
}

}  // namespace halyard::vm
