// Randomly mutated FlatBuffers rarely load. These mutations mostly do.
#include "module_mutator.h"

#include <bytecode_module_generated.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzzing.h"
#include "program_generator.h"
#include "vm/format/archive.h"
#include "vm/format/bytecode_reader.h"

namespace halyard::fuzz {

namespace {

using namespace vm;

// The position of a module's functions in its file.
struct Body {
  size_t offset;
  size_t length;
  size_t descriptor;
};
std::vector<Body> bodies(std::span<const uint8_t> file) {
  std::vector<Body> found;
  const Result<Archive> archive = open_archive(Bytes::borrow(file, {}));
  if (!archive || archive->metadata->data() != file.data()) return found;
  const auto* descriptors = archive->module->function_descriptors();
  const auto* code = archive->module->bytecode_data();
  for (uint32_t i = 0; descriptors && code && i < descriptors->size(); ++i) {
    const auto& descriptor = *descriptors->Get(i);
    const auto offset = static_cast<uint32_t>(descriptor.bytecode_offset());
    const auto length = static_cast<uint32_t>(descriptor.bytecode_length());
    if (length < 2 || uint64_t{offset} + length > code->size()) continue;
    found.push_back({static_cast<size_t>(code->data() - file.data()) + offset, length,
                     static_cast<size_t>(reinterpret_cast<const uint8_t*>(&descriptor) - file.data())});
  }
  return found;
}

void put_u16(uint8_t* at, uint16_t value) { std::memcpy(at, &value, sizeof value); }

// Another instruction, or another operand of one.
void change_instruction(std::span<uint8_t> body, test::Choices& choices) {
  std::vector<uint32_t> starts;
  for (uint32_t pc = 0; has_instruction(body, pc);) {
    const Result<vm::Instruction> instruction = read_instruction(body, pc, 17, 3);
    if (!instruction) break;
    starts.push_back(pc);
    pc = instruction->next_pc;
  }
  if (starts.empty()) starts.push_back(0);
  const uint32_t index = choices.below(static_cast<uint32_t>(starts.size()));
  const uint32_t start = starts[index];
  const uint32_t end = index + 1 < starts.size() ? starts[index + 1] : static_cast<uint32_t>(body.size());
  uint8_t* at = body.data() + start;
  const uint32_t length = end - start;
  switch (choices.below(6)) {
    case 0: {  // an opcode with the same encoding
      const size_t prefix = at[0] >= 0xE0 && length > 1 ? 1 : 0;
      at[prefix] = choices.byte();
      break;
    }
    case 1:
    case 2:  // a register
      if (length >= 3) {
        const uint32_t field = 1 + 2 * choices.below((length - 1) / 2);
        const uint16_t reg = static_cast<uint16_t>(choices.below(16));
        put_u16(at + field, choices.one_of<uint16_t>({reg, static_cast<uint16_t>(kRefBit | reg),
                                                      static_cast<uint16_t>(kRefBit | kMoveBit | reg)}));
      }
      break;
    case 3:  // a number
      if (length >= 5) {
        const uint32_t value = choices.one_in(2)
                                   ? starts[choices.below(static_cast<uint32_t>(starts.size()))]
                                   : choices.one_of<uint32_t>({0, 1, 3, 0x80000000, 0xFFFFFFFF});
        std::memcpy(at + 1 + choices.below(length - 4), &value, sizeof value);
      }
      break;
    case 4:  // a copy of another instruction
      if (const uint32_t other = choices.pick(starts); other + length <= body.size())
        std::memmove(at, body.data() + other, length);
      break;
    default:
      at[choices.below(length)] ^= static_cast<uint8_t>(1u << choices.below(8));
      break;
  }
}

}  // namespace

size_t mutate_module(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  test::Choices choices(seed);
  const uint32_t way = choices.below(16);
  if (way == 0) {  // a new, small one
    std::vector<uint8_t> bytes(16 + choices.below(150));
    for (uint8_t& byte : bytes) byte = choices.byte();
    test::Choices few{std::span<const uint8_t>(bytes)};
    const std::vector<uint8_t> file = generate_program(few).modules.back().build();
    if (file.size() > max_size) return size;
    std::memcpy(data, file.data(), file.size());
    return file.size();
  }
  if (way <= 2 || size < 16) {
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size >= 4 && way == 2) {
      const auto prefix = static_cast<uint32_t>(size - 4);
      std::memcpy(data, &prefix, sizeof prefix);
    }
    return size;
  }
  const std::vector<Body> functions = bodies({data, size});
  if (functions.empty()) return LLVMFuzzerMutate(data, size, max_size);
  const Body body = choices.pick(functions);
  if (way == 3) {  // requirements, blocks, registers
    put_u16(data + body.descriptor + choices.one_of<size_t>({8, 14, 16, 18}),
            choices.one_in(2) ? static_cast<uint16_t>(choices.below(40))
                              : static_cast<uint16_t>(choices.bits(2)));
    return size;
  }
  if (way == 4) {
    LLVMFuzzerMutate(data + body.offset, body.length, body.length);
    return size;
  }
  for (uint32_t n = 1 + choices.below(3); n > 0; --n)
    change_instruction({data + body.offset, body.length}, choices);
  return size;
}

}  // namespace halyard::fuzz
