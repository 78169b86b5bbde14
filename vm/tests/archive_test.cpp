// The container: zip and flat forms, ignored parts, rejected files.
#include "vm/format/archive.h"

#include <bytecode_module_generated.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "module_builder.h"

namespace halyard::vm::test {
namespace {

// module-format.md, section 14: module "t", version 1, "add" of "0ii_i".
const std::vector<uint8_t> kExample = {
    0xb8, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x49, 0x52, 0x45, 0x45, 0x72, 0xff, 0xff, 0xff,
    0x7c, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x28, 0x00, 0x00, 0x00,
    0x2c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x11, 0x00, 0x50, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x04, 0x00, 0x00, 0x00, 0xa0, 0xff, 0xff, 0xff, 0x04, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
    0x61, 0x64, 0x64, 0x00, 0x01, 0x00, 0x00, 0x00, 0x1c, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00,
    0x03, 0x00, 0x00, 0x00, 0xd0, 0xff, 0xff, 0xff, 0x04, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00,
    0x30, 0x69, 0x69, 0x5f, 0x69, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x79, 0x22, 0x00, 0x00,
    0x01, 0x00, 0x02, 0x00, 0x5a, 0x00, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x74, 0x00, 0x00, 0x00, 0x06, 0x00, 0x08, 0x00, 0x04, 0x00, 0x22, 0x00, 0x20, 0x00, 0x04, 0x00,
    0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x10, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x18, 0x00, 0x1c, 0x00};

// The file after a zip local header with a name and an extra field of these sizes.
std::vector<uint8_t> zipped(const std::vector<uint8_t>& file, uint16_t name_size, uint16_t extra_size) {
  std::vector<uint8_t> zip(30 + name_size + extra_size, 0xEE);
  const uint8_t signature[] = {0x50, 0x4B, 0x03, 0x04};
  std::ranges::copy(signature, zip.begin());
  zip[8] = zip[9] = 0;
  std::memcpy(&zip[26], &name_size, 2);
  std::memcpy(&zip[28], &extra_size, 2);
  zip.insert(zip.end(), file.begin(), file.end());
  return zip;
}

Result<Archive> open(const std::vector<uint8_t>& file) { return open_archive(Bytes::copy(file)); }

// Uses every part of the schema at least once, so that each part can be damaged.
ModuleParts rich_module() {
  ModuleParts parts = one_function({});
  parts.attributes = {{"key", "value"}};
  parts.functions[0].attributes = {{"inner key", "inner value"}};
  parts.types = {"i32"};
  parts.dependencies = {{"hal"}};
  parts.imports = {{"hal.f", "0v_v"}};
  parts.rodata = {{{1, 2, 3}}};
  parts.debug_names = {"debug"};
  return parts;
}

const schema::BytecodeModule& root(const std::vector<uint8_t>& file) {
  return *schema::GetSizePrefixedBytecodeModule(file.data());
}

void overwrite(const void* place, uint32_t value) {
  std::memcpy(const_cast<void*>(place), &value, sizeof(value));
}

TEST(Archive, OpensTheExampleOfTheSpecification) {
  const auto archive = ASSERT_VALUE(open(kExample));
  EXPECT_EQ(archive.module->name()->str(), "t");
  EXPECT_EQ(archive.module->version(), 1u);
  EXPECT_EQ(archive.module->exported_functions()->Get(0)->local_name()->str(), "add");
  EXPECT_EQ(archive.module->function_descriptors()->Get(0)->bytecode_length(), 14);
  EXPECT_EQ(archive.module->function_descriptors()->Get(0)->i32_register_count(), 3);
  EXPECT_EQ(archive.module->bytecode_version(), 0x00110000u);
  EXPECT_EQ(archive.rodata_base, 192u);
  EXPECT_EQ(archive.metadata, archive.bytes);
}

TEST(Archive, ZipBaseCountsInRodataBase) {
  const auto archive = ASSERT_VALUE(open(zipped(kExample, 9, 25)));
  EXPECT_EQ(archive.rodata_base, 256u);  // align64(64 + 188)
  EXPECT_EQ(archive.module->name()->str(), "t");
}

TEST(Archive, ZipHeaderMayEndAnywhere) {
  for (uint16_t extra = 0; extra < 16; ++extra) {
    const auto archive = open(zipped(kExample, 9, extra));
    ASSERT_TRUE(succeeds(archive)) << extra;
    EXPECT_EQ(archive->module->name()->str(), "t");
    EXPECT_EQ(archive->rodata_base, (30u + 9 + extra + 188 + 63) / 64 * 64);
  }
}

TEST(Archive, FileMemoryMayHaveAnyAlignment) {
  std::vector<uint8_t> memory(kExample.size() + 8);
  for (size_t shift = 0; shift < 8; ++shift) {
    std::ranges::copy(kExample, memory.begin() + static_cast<ptrdiff_t>(shift));
    const auto archive = open_archive(Bytes::borrow(std::span(memory).subspan(shift, kExample.size()), {}));
    ASSERT_TRUE(succeeds(archive)) << shift;
    EXPECT_EQ(archive->module->name()->str(), "t");
    EXPECT_EQ(archive->rodata_base, 192u);
  }
}

TEST(Archive, BytesAfterTheFlatBufferAreIgnored) {
  std::vector<uint8_t> file = kExample;
  file.insert(file.end(), 100, 0xAB);
  EXPECT_OK(open(file));
}

TEST(Archive, EmptyFile) {
  EXPECT_FAILS(INVALID_ARGUMENT, "the file is empty", open({}));
  EXPECT_FAILS(INVALID_ARGUMENT, "no module", open_archive(nullptr));
}

TEST(Archive, FewerThanSixteenBytes) {
  const std::vector<uint8_t> file(kExample.begin(), kExample.begin() + 15);
  EXPECT_FAILS(INVALID_ARGUMENT, "expected at least 16 bytes of module at byte 0, found 15", open(file));
  const std::vector<uint8_t> zip = zipped(file, 3, 4);
  EXPECT_FAILS(INVALID_ARGUMENT, "at byte 37, found 15", open(zip));
}

TEST(Archive, ZipHeaderPastTheEnd) {
  std::vector<uint8_t> zip = zipped(kExample, 9, 25);
  zip[28] = 0xFF;
  zip[29] = 0xFF;
  EXPECT_FAILS(INVALID_ARGUMENT, "starts at byte 65574", open(zip));
}

TEST(Archive, SizePrefixPastTheEnd) {
  std::vector<uint8_t> file = kExample;
  file[0] = 0xB9;  // one more than there are
  EXPECT_FAILS(INVALID_ARGUMENT, "has 185 bytes, but the file ends after 184", open(file));
  overwrite(file.data(), 0xFFFFFFFF);
  EXPECT_FAILS(INVALID_ARGUMENT, "has 4294967295 bytes", open(file));
}

TEST(Archive, WrongIdentifierSaysWhatWasFound) {
  std::vector<uint8_t> file = kExample;
  file[8] = 'X';
  EXPECT_FAILS(INVALID_ARGUMENT,
               "expected the identifier 'IREE' at byte 8, found 'XREE'; load a module made by", open(file));
  // What is no printable ASCII is shown as numbers.
  std::ranges::copy(std::vector<uint8_t>{0x1F, ' ', '~', 0x7F}, file.begin() + 8);
  EXPECT_FAILS(INVALID_ARGUMENT, "found '\\x1F ~\\x7F'; load a module", open(file));
  std::ranges::copy(std::vector<uint8_t>{0x80, 0x00, '!', 'a'}, file.begin() + 8);
  EXPECT_FAILS(INVALID_ARGUMENT, "found '\\x80\\x00!a'; load a module", open(file));
}

TEST(Archive, ZipWithAnotherFirstEntryIsNamed) {
  std::vector<uint8_t> file = kExample;
  file[8] = 'X';
  EXPECT_FAILS(INVALID_ARGUMENT, "; the first entry of the zip archive must be the module",
               open(zipped(file, 9, 25)));
}

TEST(Archive, MissingSizePrefixIsNamed) {
  const std::vector<uint8_t> bare(kExample.begin() + 4, kExample.end());
  EXPECT_FAILS(INVALID_ARGUMENT, "size prefix before the FlatBuffer is missing", open(bare));
}

TEST(Archive, CompressedZipIsNamed) {
  std::vector<uint8_t> file = kExample;
  file[8] = 'X';
  std::vector<uint8_t> zip = zipped(file, 9, 25);
  zip[8] = 8;  // deflate
  EXPECT_FAILS(INVALID_ARGUMENT, "stored without compression", open(zip));
}

TEST(Archive, NameIsRequired) {
  std::vector<uint8_t> file = kExample;
  ASSERT_EQ(file[0x9E], 4);  // the vtable's entry for the name
  file[0x9E] = 0;
  EXPECT_FAILS(INVALID_ARGUMENT, "name is missing", open(file));
}

// Modules of older compilers have other fields. Their tables look damaged, but their version can be found.
TEST(Archive, ModulesOfOlderCompilersSayTheirVersion) {
  struct Layout {
    int version_field;
    uint32_t version;
    const char* text;
  };
  constexpr Layout kLayouts[] = {
      {12, 13u << 16, "13.0"}, {12, 11u << 16 | 2, "11.2"}, {8, 7u << 16, "7.0"}, {8, 1u << 16 | 15, "1.15"}};
  for (const auto& [field, version, text] : kLayouts) {
    SCOPED_TRACE(text);
    flatbuffers::FlatBufferBuilder builder;
    const auto field_of = [](int number) { return static_cast<flatbuffers::voffset_t>(4 + 2 * number); };
    const auto name = builder.CreateString("old");
    const auto code = builder.CreateVector(std::vector<uint8_t>{1, 2, 3});
    const auto table = builder.StartTable();
    builder.AddOffset(field_of(0), name);
    builder.AddElement<uint32_t>(field_of(field), version, 0);
    builder.AddOffset(field_of(field + 1), code);
    builder.AddOffset(field_of(field + 2), code);
    const auto root = flatbuffers::Offset<schema::BytecodeModule>(builder.EndTable(table));
    builder.FinishSizePrefixed(root, "IREE");
    const std::vector<uint8_t> file(builder.GetBufferPointer(),
                                    builder.GetBufferPointer() + builder.GetSize());
    for (const std::string_view part :
         {std::string_view(text), std::string_view("2023"),
          std::string_view("15.0 (made by IREE 3.1 to 3.9)"), std::string_view("compile it again")})
      EXPECT_FAILS(INVALID_ARGUMENT, part, load(file));
    // Truncated anywhere, the file is only damaged.
    for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(load({file.begin(), file.begin() + size}));
    std::vector<uint8_t> changed = file;
    for (size_t at = 0; at < file.size(); ++at) {
      changed[at] = 0xFF;
      (void)load(changed);
      changed[at] = file[at];
    }
  }
}

// The version may be the last field of the table.
TEST(Archive, TheVersionOfAnOlderModuleMayBeItsLastField) {
  flatbuffers::FlatBufferBuilder builder;
  const auto table = builder.StartTable();
  builder.AddElement<uint32_t>(4 + 2 * 12, 12u << 16, 0);
  const auto root = flatbuffers::Offset<schema::BytecodeModule>(builder.EndTable(table));
  builder.FinishSizePrefixed(root, "IREE");
  EXPECT_FAILS(INVALID_ARGUMENT, "12.0",
               load({builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()}));
}

// Offsets of large modules look like the versions of older ones.
TEST(Archive, LargeDamagedModulesAreNotOlder) {
  for (uint32_t size = 0x10000; size < 0x100000; size += 0x8000) {
    ModuleParts parts = one_function({});
    parts.rodata = {{std::vector<uint8_t>(size)}};
    std::vector<uint8_t> file = parts.build();
    overwrite(root(file).exported_functions()->Data(), 0x7FFFFFF0);
    const auto module = load(file);
    ASSERT_TRUE(fails_with(module, Code::INVALID_ARGUMENT, "damaged")) << size;
    EXPECT_EQ(module.error().text().find("made by IREE"), std::string::npos) << module.error().text();
  }
}

// A current module with invalid tables is damaged, whatever its other fields look like.
TEST(Archive, DamagedModulesAreNotOlder) {
  for (size_t at = 4; at < kExample.size(); ++at) {
    std::vector<uint8_t> damaged = kExample;
    damaged[at] ^= 0x80;
    const auto module = load(damaged);
    EXPECT_TRUE(module || module.error().text().find("2023") == std::string::npos) << at;
  }
}

TEST(Archive, StringsEndInZero) {
  std::vector<uint8_t> file = kExample;
  ASSERT_EQ(file[0x91], 0);  // after "t"
  file[0x91] = 'x';
  EXPECT_FAILS(INVALID_ARGUMENT, "FlatBuffer is damaged", open(file));
}

TEST(Archive, MisalignedTable) {
  std::vector<uint8_t> file = kExample;
  file[4] = 9;  // root table
  EXPECT_FAILS(INVALID_ARGUMENT, "FlatBuffer is damaged", open(file));
}

TEST(Archive, FieldsLieInsideTheirTable) {
  std::vector<uint8_t> file = kExample;
  ASSERT_EQ(file[0x9C], 0x20);  // the root table's size; its last field is at 0x1C
  file[0x9C] = 0x1C;
  EXPECT_FAILS(INVALID_ARGUMENT, "field 14 lies at byte 28 of a table of 28 bytes", open(file));
}

TEST(Archive, VtablesHoldAtLeastTheirSizes) {
  ModuleParts parts = one_function({});
  parts.global_bytes = 8;
  std::vector<uint8_t> file = parts.build();
  const auto* state = reinterpret_cast<const uint8_t*>(root(file).module_state());
  int32_t distance = 0;
  std::memcpy(&distance, state, 4);
  const uint16_t sizes[] = {2, 0};
  for (const uint16_t size : sizes) {
    std::memcpy(const_cast<uint8_t*>(state) - distance, &size, 2);
    EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("expected a vtable of at least 4 bytes, found {}", size),
                 open(file));
  }
}

TEST(Archive, NullElementsAreRefused) {
  const struct {
    const char* name;
    const uint8_t* (*data)(const schema::BytecodeModule&);
  } kVectors[] = {
      {"attributes", [](const schema::BytecodeModule& m) { return m.attributes()->Data(); }},
      {"types", [](const schema::BytecodeModule& m) { return m.types()->Data(); }},
      {"dependencies", [](const schema::BytecodeModule& m) { return m.dependencies()->Data(); }},
      {"imported_functions", [](const schema::BytecodeModule& m) { return m.imported_functions()->Data(); }},
      {"exported_functions", [](const schema::BytecodeModule& m) { return m.exported_functions()->Data(); }},
      {"function_signatures",
       [](const schema::BytecodeModule& m) { return m.function_signatures()->Data(); }},
      {"signature.attributes",
       [](const schema::BytecodeModule& m) { return m.function_signatures()->Get(0)->attributes()->Data(); }},
      {"rodata_segments", [](const schema::BytecodeModule& m) { return m.rodata_segments()->Data(); }},
      {"debug_database.functions",
       [](const schema::BytecodeModule& m) { return m.debug_database()->functions()->Data(); }},
  };
  for (const auto& vector : kVectors) {
    std::vector<uint8_t> file = rich_module().build();
    ASSERT_OK(open(file));
    overwrite(vector.data(root(file)), 0);
    const auto archive = open(file);
    ASSERT_TRUE(fails_with(archive, Code::INVALID_ARGUMENT, "")) << vector.name;
    // The library's verifier interprets an element that points to itself as a table; if that is not a valid
    // table, it rejects the file first.
    EXPECT_TRUE(archive.error().text().find("damaged") != std::string::npos ||
                archive.error().text().find(fmt::format("'{}[0]' is null", vector.name)) != std::string::npos)
        << archive.error().text();
  }
}

// A module with only the additional content that `fill` writes to its tables.
template <typename Fill>
std::vector<uint8_t> custom_module(Fill fill) {
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString("custom");
  const auto add_fields = fill(builder);
  schema::BytecodeModuleBuilder module(builder);
  module.add_name(name);
  module.add_bytecode_version(17u << 16);
  add_fields(module);
  schema::FinishSizePrefixedBytecodeModuleBuffer(builder, module.Finish());
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

// The library's verifier takes an element that points to itself for a table. Here that is a valid one: what
// lies there looks like a table without fields.
TEST(Archive, NullElementsThatLookLikeTablesAreRefused) {
  std::vector<uint8_t> file = custom_module([](flatbuffers::FlatBufferBuilder& builder) {
    const auto state = builder.EndTable(builder.StartTable());
    const auto segment = flatbuffers::Offset<schema::RwdataSegment>(builder.EndTable(builder.StartTable()));
    const auto segments = builder.CreateVector(std::vector{segment});
    static_cast<void>(state);
    return [segments](schema::BytecodeModuleBuilder& module) { module.add_rwdata_segments(segments); };
  });
  ASSERT_OK(open(file));
  // The element becomes null; its table would be the vector's entry, whose vtable is the entry itself: size
  // 0.
  overwrite(root(file).rwdata_segments()->Data(), 0);
  EXPECT_FAILS(INVALID_ARGUMENT, "'rwdata_segments[0]' is null; expected a table", open(file));
}

TEST(Archive, UnknownFieldsAreTolerated) {
  const std::vector<uint8_t> file = custom_module([](flatbuffers::FlatBufferBuilder& builder) {
    const auto start = builder.StartTable();
    builder.AddElement<int32_t>(4, 12, 0);   // global_bytes_capacity
    builder.AddElement<uint64_t>(40, 7, 0);  // from a later schema
    const flatbuffers::Offset<schema::ModuleState> state(builder.EndTable(start));
    return [state](schema::BytecodeModuleBuilder& module) { module.add_module_state(state); };
  });
  const auto archive = ASSERT_VALUE(open(file));
  EXPECT_EQ(archive.module->module_state()->global_bytes_capacity(), 12);
  EXPECT_EQ(archive.module->module_state()->global_ref_count(), 0);
}

std::vector<uint8_t> module_with_compression(uint8_t tag, bool value) {
  return custom_module([=](flatbuffers::FlatBufferBuilder& builder) {
    const auto data = value ? schema::CreateUncompressedData(builder).Union() : 0;
    const auto segment =
        schema::CreateRodataSegment(builder, static_cast<schema::CompressionType>(tag), data, 0, 0, 0);
    const auto segments = builder.CreateVector(std::vector{segment});
    return [segments](schema::BytecodeModuleBuilder& module) { module.add_rodata_segments(segments); };
  });
}

TEST(Archive, UnionTagAndValueBelongTogether) {
  EXPECT_OK(open(module_with_compression(0, false)));
  EXPECT_OK(open(module_with_compression(1, true)));
  EXPECT_FAILS(INVALID_ARGUMENT, "compression tag", open(module_with_compression(1, false)));
  EXPECT_FAILS(INVALID_ARGUMENT, "compression tag", open(module_with_compression(0, true)));
}

TEST(Archive, UnknownUnionMembersAreTolerated) { EXPECT_OK(open(module_with_compression(77, true))); }

std::vector<uint8_t> module_with_locations(std::vector<uint8_t> tags, size_t values) {
  return custom_module([&](flatbuffers::FlatBufferBuilder& builder) {
    std::vector<flatbuffers::Offset<void>> entries;
    for (size_t i = 0; i < values; ++i)
      entries.push_back(schema::CreateFileLineColLocationDirect(builder, "file", 1, 2).Union());
    const auto tag_vector = builder.CreateVector(tags);
    const auto value_vector = builder.CreateVector(entries);
    schema::DebugDatabaseBuilder database(builder);
    database.add_location_table_type(tag_vector.o);
    database.add_location_table(value_vector);
    const auto offset = database.Finish();
    return [offset](schema::BytecodeModuleBuilder& module) { module.add_debug_database(offset); };
  });
}

TEST(Archive, LocationTableOfUnions) {
  EXPECT_OK(open(module_with_locations({2, 2}, 2)));
  EXPECT_OK(open(module_with_locations({2, 99}, 2)));  // from a later schema
  EXPECT_FAILS(INVALID_ARGUMENT, "damaged", open(module_with_locations({2}, 2)));
  EXPECT_FAILS(INVALID_ARGUMENT, "location_table[1]", open(module_with_locations({2, 0}, 2)));
  std::vector<uint8_t> file = module_with_locations({2, 2}, 2);
  overwrite(root(file).debug_database()->location_table()->Data() + 4, 0);
  EXPECT_FAILS(INVALID_ARGUMENT, "", open(file));
}

}  // namespace
}  // namespace halyard::vm::test
