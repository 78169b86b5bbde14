// Constants are separate from all other data. A device's work may write to constants, and any two vectors of
// a FlatBuffer may overlap. Whatever a file makes overlap, writing to the constants changes no data that the
// module reads later.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "module_builder.h"
#include "vm/format/byte_ranges.h"
#include "vm/module/source_location.h"

namespace halyard::vm {
namespace {

using namespace test;

// Has an entry in every table of the format.
ModuleParts everything() {
  FunctionParts function;
  function.code = CodeBuilder().block().op(Op::add_i32, {0, 1, 0}).ret({0}).bytes();
  function.convention = "0ii_i";
  function.values = 2;
  function.attributes = {{"function-key", "function-value"}};
  ModuleParts parts = one_function(function);
  parts.functions.push_back(function);
  parts.exports.emplace_back("other", 1);
  parts.attributes = {{"module-key", "module-value"}};
  parts.types = {"i32", "!vm.buffer"};
  parts.dependencies = {{"hal", 2}};
  parts.imports = {{"hal.first", "0i_i"}, {"hal.second", "0r_v"}};
  parts.global_bytes = 8;
  parts.rodata = {{{1, 2, 3, 4}}, {{7, 8, 9}}, {{5, 6}, false}};
  parts.debug_names = {"source-main", "source-other"};
  parts.all_location_kinds = true;
  parts.debug_locations = {{0, 1, "main.mlir", 1, 2}, {1, 1, "other.mlir", 3, 4}};
  return parts;
}

// All properties of a loaded module.
std::string facts(const BytecodeModule& module) {
  std::string text;
  const auto add = [&](auto value) { text += fmt::format("{}\n", value); };
  const auto add_attributes = [&](const std::vector<Attribute>& attributes) {
    for (const Attribute& each : attributes) add(fmt::format("{} = {}", each.key, each.value));
  };
  add(module.name());
  add(module.version());
  add(module.bytecode_version());
  add_attributes(module.attributes());
  for (const Dependency& each : module.dependencies()) add(each.name);
  for (const Import& each : module.imports()) add(fmt::format("{} {}", each.name, each.convention));
  for (const Export& each : module.exports()) {
    add(fmt::format("{} {} {}", each.name, each.convention, each.function));
    add_attributes(each.attributes);
  }
  for (const std::string_view name : module.type_names()) add(name);
  for (uint32_t i = 0; i < module.functions().size(); ++i) {
    const Function& function = module.functions()[i];
    add(fmt::format("{} {} {} {} {}", module.function_name(i), function.convention, function.block_count,
                    function.value_registers, function.ref_registers));
    text.append(function.bytecode.begin(), function.bytecode.end());
    for (uint32_t pc = 0; pc < 8; ++pc) add(source_location(module, i, pc));
  }
  for (const Ref<Buffer>& each : module.rodata()) add(each->length());
  return text;
}

// Writes to the constants like a kernel may.
void overwrite_constants(const BytecodeModule& module) {
  for (const Ref<Buffer>& constant : module.rodata())
    if (constant->may_be_written_by_devices()) std::ranges::fill(constant->span(), uint8_t{0xA5});
}

struct Tried {
  int loaded = 0;
  int refused_for_overlap = 0;
  std::set<std::string> names;  // names of the parts that overlapped a constant
};

void try_file(const std::vector<uint8_t>& file, Tried& tried) {
  const auto module = load(file);
  if (!module) {
    const std::string text = module.error().text();
    const size_t at = text.find("overlaps '");
    if (at == std::string::npos) return;
    EXPECT_EQ(module.error().code(), Code::INVALID_ARGUMENT) << text;
    ++tried.refused_for_overlap;
    const size_t begin = at + std::strlen("overlaps '");
    tried.names.insert(text.substr(begin, text.find('\'', begin) - begin));
    return;
  }
  ++tried.loaded;
  const std::string before = facts(**module);
  overwrite_constants(**module);
  EXPECT_EQ(facts(**module), before);
}

uint32_t number_at(const std::vector<uint8_t>& file, size_t at) {
  uint32_t number = 0;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}
void put_number(std::vector<uint8_t>& file, size_t at, uint32_t number) {
  std::memcpy(file.data() + at, &number, sizeof number);
}

// The position of the offset to a constant's bytes.
size_t offset_place(const std::vector<uint8_t>& file, uint32_t constant) {
  const auto* module = schema::GetSizePrefixedBytecodeModule(file.data());
  const schema::RodataSegment* segment = module->rodata_segments()->Get(constant);
  const uint8_t* place = reinterpret_cast<const flatbuffers::Table*>(segment)->GetAddressOf(
      schema::RodataSegment::VT_EMBEDDED_DATA);
  return static_cast<size_t>(place - file.data());
}

// The file with a copy of its whole FlatBuffer at `distance`, as constant 1.
std::vector<uint8_t> with_image(std::vector<uint8_t> file, uint32_t& distance) {
  constexpr size_t kAlignment = 64;
  file.resize(number_at(file, 0) + sizeof(uint32_t));  // without external constants
  const std::vector<uint8_t> image = file;
  const size_t place = offset_place(file, 1);
  file.resize((file.size() + kAlignment) / kAlignment * kAlignment);
  distance = static_cast<uint32_t>(file.size());
  put_number(file, file.size() - sizeof(uint32_t), static_cast<uint32_t>(image.size()));
  put_number(file, place, static_cast<uint32_t>(file.size() - sizeof(uint32_t) - place));
  file.insert(file.end(), image.begin(), image.end());
  put_number(file, 0, static_cast<uint32_t>(file.size() - sizeof(uint32_t)));
  file.resize(file.size() + 2 * kAlignment);  // external constants
  return file;
}

// Each offset of the file, to a table, a vtable, a vector or a string, is changed to refer to the same part
// in a copy of the file that is a constant.
TEST(AliasedRodata, NothingElseLiesInAConstant) {
  uint32_t distance = 0;
  const std::vector<uint8_t> file = with_image(everything().build(), distance);
  ASSERT_OK(load(file));
  Tried tried;
  for (size_t at = 4; at + 4 <= distance; at += 4) {
    SCOPED_TRACE(fmt::format("byte {}", at));
    for (const uint32_t moved : {number_at(file, at) + distance, number_at(file, at) - distance}) {
      std::vector<uint8_t> changed = file;
      put_number(changed, at, moved);
      try_file(changed, tried);
    }
  }
  EXPECT_GT(tried.loaded, 10);  // numbers that are not offsets
  // All vectors and strings of the format, and the tables and vtables.
  const std::set<std::string> expected = {"attributes",
                                          "bytecode_data",
                                          "debug_database",
                                          "debug_database.functions",
                                          "debug_database.functions.local_name",
                                          "debug_database.functions.locations",
                                          "debug_database.location_table",
                                          "debug_database.location_table.filename",
                                          "debug_database.location_table.locations",
                                          "debug_database.location_table.metadata",
                                          "debug_database.location_table.name",
                                          "debug_database.location_table_type",
                                          "dependencies",
                                          "dependencies.name",
                                          "exported_functions",
                                          "exported_functions.local_name",
                                          "function_descriptors",
                                          "function_signatures",
                                          "imported_functions",
                                          "imported_functions.full_name",
                                          "imported_functions.signature",
                                          "module",
                                          "module_state",
                                          "name",
                                          "rodata_segments",
                                          "signature.attributes",
                                          "signature.calling_convention",
                                          "types",
                                          "types.full_name"};
  for (const std::string& name : expected) EXPECT_TRUE(tried.names.contains(name)) << name;
}

// Constant 0 is moved to every position after its table.
TEST(AliasedRodata, AConstantLiesOverNothingElse) {
  const std::vector<uint8_t> file = everything().build();
  const size_t place = offset_place(file, 0);
  Tried tried;
  for (size_t at = place + 4; at + 4 <= file.size(); at += 4) {
    SCOPED_TRACE(fmt::format("byte {}", at));
    std::vector<uint8_t> changed = file;
    put_number(changed, place, static_cast<uint32_t>(at - place));
    try_file(changed, tried);
    // With a length, which overwrites the previous bytes.
    put_number(changed, at, 8);
    try_file(changed, tried);
  }
  EXPECT_GT(tried.refused_for_overlap, 50);
  EXPECT_GT(tried.loaded, 0);
}

TEST(AliasedRodata, TheMessageNamesBothRegions) {
  uint32_t distance = 0;
  std::vector<uint8_t> file = with_image(everything().build(), distance);
  const auto* module = schema::GetSizePrefixedBytecodeModule(file.data());
  const auto code =
      static_cast<size_t>(reinterpret_cast<const uint8_t*>(module->bytecode_data()) - file.data());
  const size_t size = module->bytecode_data()->size();
  const auto place = static_cast<size_t>(reinterpret_cast<const flatbuffers::Table*>(module)->GetAddressOf(
                                             schema::BytecodeModule::VT_BYTECODE_DATA) -
                                         file.data());
  put_number(file, place, number_at(file, place) + distance);
  EXPECT_FAILS(
      INVALID_ARGUMENT,
      fmt::format("constant 1 (bytes {} to {} of the file) overlaps 'bytecode_data' (bytes {} to {})",
                  distance, number_at(file, 0) + sizeof(uint32_t), code + distance,
                  code + distance + sizeof(uint32_t) + size),
      load(file));
}

// One of the constants could be device code, so neither may be written to. Adjacent constants may.
TEST(AliasedRodata, ConstantsWithCommonBytesCannotBeWritten) {
  ModuleParts parts = one_function({});
  const std::vector<uint8_t> bytes(64);
  const auto external = [&](uint64_t offset, uint64_t length) {
    return RodataParts{.data = bytes, .embedded = false, .offset = offset, .length = length};
  };
  parts.rodata = {external(0, 16),  external(16, 16), external(40, 8), external(33, 8),
                  external(64, 64), external(70, 0),  external(72, 8), external(80, 8)};
  const bool kWritable[] = {true, true, false, false, false, true, false, false};
  const auto module = ASSERT_VALUE(load(parts.build()));
  for (size_t i = 0; i < std::size(kWritable); ++i) {
    SCOPED_TRACE(i);
    Buffer& constant = *module->rodata()[i];
    EXPECT_EQ(constant.may_be_written_by_devices(), kWritable[i]);
    EXPECT_EQ(constant.never_changes(), !kWritable[i]);
  }
  // Two embedded constants at one position.
  std::vector<uint8_t> file = everything().build();
  const size_t first = offset_place(file, 0);
  const size_t second = offset_place(file, 1);
  put_number(file, second, static_cast<uint32_t>(first + number_at(file, first) - second));
  const auto embedded = ASSERT_VALUE(load(file));
  EXPECT_FALSE(embedded->rodata()[0]->may_be_written_by_devices());
  EXPECT_FALSE(embedded->rodata()[1]->may_be_written_by_devices());
  EXPECT_TRUE(embedded->rodata()[2]->may_be_written_by_devices());
}

// The machine does not run code in the file, so functions stay as they were verified.
TEST(AliasedRodata, FunctionsAreCopied) {
  const std::vector<uint8_t> file = everything().build();
  std::vector<uint8_t> memory = file;
  const auto module = ASSERT_VALUE(LoadedModule::load(Bytes::borrow(memory, {}), TypeRegistry()));
  const auto* code = schema::GetSizePrefixedBytecodeModule(memory.data())->bytecode_data();
  const auto begin = static_cast<size_t>(code->data() - memory.data());
  const std::vector<uint8_t> before(code->begin(), code->end());
  std::fill_n(memory.begin() + static_cast<ptrdiff_t>(begin), before.size(), uint8_t{0xFF});
  EXPECT_OK(module->code(0));
  EXPECT_TRUE(std::ranges::equal(module->functions()[0].bytecode,
                                 std::span(before).first(module->functions()[0].bytecode.size())));
}

TEST(ByteRanges, FindsWhatOverlaps) {
  const std::vector<uint8_t> memory(100);
  const auto range = [&](size_t begin, size_t end) { return std::span(memory).subspan(begin, end - begin); };
  const std::vector<std::span<const uint8_t>> given = {
      range(60, 70), range(10, 50), range(20, 30), range(50, 50), {}, range(50, 60)};
  const ByteRanges ranges(given);
  EXPECT_EQ(ranges.shared(), std::vector<bool>({false, true, true, false, false, false}));
  const auto at = [&](size_t begin, size_t end) { return ranges.overlapping(&memory[begin], end - begin); };
  EXPECT_EQ(at(0, 10), -1);
  EXPECT_EQ(at(0, 11), 1);
  EXPECT_EQ(at(40, 50), 1);
  EXPECT_EQ(at(49, 60), 1);
  EXPECT_EQ(at(50, 51), 5);
  EXPECT_EQ(at(69, 99), 0);
  EXPECT_EQ(at(70, 99), -1);
  EXPECT_EQ(at(5, 95), 1);
  EXPECT_EQ(at(30, 30), -1);
  EXPECT_EQ(ByteRanges({}).overlapping(memory.data(), 100), -1);
  EXPECT_TRUE(ByteRanges({}).shared().empty());
}

}  // namespace
}  // namespace halyard::vm
