// Mutates modules so that most of them still load; randomly mutated FlatBuffers rarely do.
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

// Changes an instruction, or one of its operands.
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

uint32_t number_at(std::span<const uint8_t> file, size_t at) {
  uint32_t number = 0;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}
void put_number(std::span<uint8_t> file, size_t at, size_t number) {
  const auto low = static_cast<uint32_t>(number);
  std::memcpy(file.data() + at, &low, sizeof low);
}

// The positions of numbers that may be offsets within the FlatBuffer.
std::vector<size_t> offsets(std::span<const uint8_t> flatbuffer) {
  std::vector<size_t> found;
  for (size_t at = 4; at + 4 <= flatbuffer.size(); at += 4) {
    const uint32_t offset = number_at(flatbuffer, at);
    if (offset != 0 && offset < flatbuffer.size() - at) found.push_back(at);
  }
  return found;
}

// The positions of the offsets to the bytes of constants.
std::vector<size_t> constants(const schema::BytecodeModule& module, const uint8_t* begin) {
  std::vector<size_t> found;
  const auto* segments = module.rodata_segments();
  for (uint32_t i = 0; segments && i < segments->size(); ++i) {
    const auto* table = reinterpret_cast<const flatbuffers::Table*>(segments->Get(i));
    if (const uint8_t* place = table->GetAddressOf(schema::RodataSegment::VT_EMBEDDED_DATA))
      found.push_back(static_cast<size_t>(place - begin));
  }
  return found;
}

// Appends these bytes to the FlatBuffer of `size` bytes as the constant at `place`; returns their position.
size_t append(std::vector<uint8_t>& file, size_t size, std::span<const uint8_t> bytes, size_t place) {
  constexpr size_t kAlignment = 64;  // of external constants, too
  const size_t external = std::min((size + kAlignment - 1) / kAlignment * kAlignment, file.size());
  const std::vector<uint8_t> rest(file.begin() + static_cast<ptrdiff_t>(external), file.end());
  const size_t begin = (size + kAlignment) / kAlignment * kAlignment;
  file.resize(size);
  file.resize(begin);
  put_number(file, begin - 4, bytes.size());
  put_number(file, place, begin - 4 - place);
  file.insert(file.end(), bytes.begin(), bytes.end());
  put_number(file, 0, file.size() - 4);
  if (!rest.empty()) file.resize((file.size() + kAlignment - 1) / kAlignment * kAlignment);
  file.insert(file.end(), rest.begin(), rest.end());
  return begin;
}

}  // namespace

size_t alias_parts(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  test::Choices choices(seed);
  std::vector<uint8_t> file(data, data + size);
  const Result<Archive> archive = open_archive(Bytes::borrow({data, size}, {}));
  if (!archive || schema::GetSizePrefixedBytecodeModule(data) != archive->module)  // not a flat file
    return LLVMFuzzerMutate(data, size, max_size);
  const size_t end = number_at(file, 0) + size_t{4};
  const std::vector<size_t> all = offsets(std::span(file).first(end));
  const std::vector<size_t> of_constants = constants(*archive->module, data);
  if (all.empty()) return size;
  // Often one of the module's own fields: there are few of them.
  const auto* module = reinterpret_cast<const flatbuffers::Table*>(archive->module);
  const uint8_t* code = module->GetAddressOf(schema::BytecodeModule::VT_BYTECODE_DATA);
  const size_t place = code && choices.one_in(4) ? static_cast<size_t>(code - data) : choices.pick(all);
  const size_t target = place + number_at(file, place);
  const size_t constant = of_constants.empty() ? 0 : choices.pick(of_constants);
  const uint32_t way = choices.below(constant == 0 ? 1 : 4);
  if (way == 0) {  // two parts at the same position
    const size_t from = choices.pick(all);
    if (target > from) put_number(file, from, target - from);
  } else if (way == 1) {  // a constant at the position of another part
    if (target > constant) put_number(file, constant, target - constant);
  } else if (way == 2) {  // a part within a constant that is a copy of the FlatBuffer
    const size_t distance = append(file, end, std::span(data, end), constant);
    const bool is_vtable = choices.one_in(4);  // offsets to vtables count backwards
    put_number(file, place,
               is_vtable ? number_at(file, place) - distance : number_at(file, place) + distance);
  } else if (target + 4 <= end &&
             number_at(file, target) <= end - target - 4) {  // a vector that is a constant
    const size_t begin = append(file, end, std::span(data + target + 4, number_at(file, target)), constant);
    put_number(file, place, begin - 4 - place);
  }
  if (file.size() > max_size) return size;
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

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
  if (way == 5) return alias_parts(data, size, max_size, static_cast<unsigned>(choices.bits(4)));
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
