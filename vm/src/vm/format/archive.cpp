// Parsing the container.
#include "vm/format/archive.h"

#include <bytecode_module_generated.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "vm/format/archive_structure.h"
#include "vm/format/bytecode_reader.h"
#include "vm/format/bytecode_version.h"

namespace halyard::vm {

namespace {

constexpr uint32_t kZipSignature = 0x04034B50;
constexpr uint64_t kZipHeaderSize = 30;
constexpr uint64_t kPrefixSize = 4;
constexpr uint64_t kRodataAlignment = 64;
constexpr uint64_t kScalarAlignment = 8;  // of the widest scalar of the schema
constexpr uint32_t kMaxDepth = 100;
// A lower bound: tables may be shared, so the size of the file does not limit their number.
constexpr uint32_t kMaxTables = 1'000'000;

std::string printable(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    if (byte >= 0x20 && byte < 0x7F) {
      text += static_cast<char>(byte);
    } else {
      text += fmt::format("\\x{:02X}", byte);
    }
  }
  return text;
}

std::unexpected<Status> not_a_module(std::span<const uint8_t> file, uint64_t base) {
  const std::span<const uint8_t> found = file.subspan(base + 8, 4);
  const std::span<const uint8_t> bare = file.subspan(base + 4, 4);
  std::string_view advice =
      "; load a module made by iree-compile (the name of a module in text form ends in .vmasm)";
  if (std::ranges::equal(bare, std::string_view("IREE")))
    advice = "; the u32 size prefix before the FlatBuffer is missing";
  else if (base != 0 && load_unaligned<uint16_t>(file.data() + 8) != 0)
    advice =
        "; the first entry of the zip archive is compressed; it must be the module, stored without "
        "compression";
  else if (base != 0)
    advice = "; the first entry of the zip archive must be the module";
  return fail(Code::INVALID_ARGUMENT,
              "not a compiled module: expected the identifier 'IREE' at byte {}, found '{}'{}", base + 8,
              printable(found), advice);
}

Result<> check(std::span<const uint8_t> flatbuffer, uint64_t file_offset) {
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxDepth;
  options.max_tables = std::max(kMaxTables, static_cast<uint32_t>(flatbuffer.size() / 16));
  flatbuffers::Verifier verifier(flatbuffer.data(), flatbuffer.size(), options);
  if (!schema::VerifySizePrefixedBytecodeModuleBuffer(verifier))
    return fail(Code::INVALID_ARGUMENT,
                "the module's FlatBuffer is damaged: an offset, a size, an alignment or the end of a string "
                "is wrong, or the module's name is missing");
  return check_structure(*schema::GetSizePrefixedBytecodeModule(flatbuffer.data()), flatbuffer, file_offset);
}

}  // namespace

Result<Archive> open_archive(Ref<Bytes> bytes) {
  if (!bytes || bytes->size() == 0)
    return fail(Code::INVALID_ARGUMENT, "no module: the file is empty; expected the output of iree-compile");
  const std::span<const uint8_t> file = bytes->span();

  uint64_t base = 0;
  if (file.size() >= kZipHeaderSize && load_unaligned<uint32_t>(file.data()) == kZipSignature) {
    base = kZipHeaderSize + load_unaligned<uint16_t>(file.data() + 26) +
           load_unaligned<uint16_t>(file.data() + 28);
    if (base > file.size())
      return fail(Code::INVALID_ARGUMENT,
                  "the zip header says that its data starts at byte {}, but the file has {}; it was cut off",
                  base, file.size());
  }
  const uint64_t rest = file.size() - base;
  if (rest < 16)
    return fail(Code::INVALID_ARGUMENT,
                "expected at least 16 bytes of module at byte {}, found {}; the file was cut off", base,
                rest);
  const uint64_t size = load_unaligned<uint32_t>(file.data() + base);
  if (!std::ranges::equal(file.subspan(base + 8, 4), std::string_view("IREE")))
    return not_a_module(file, base);
  if (size > rest - kPrefixSize)
    return fail(Code::INVALID_ARGUMENT,
                "the module's FlatBuffer has {} bytes, but the file ends after {} of them; it was cut off",
                size, rest - kPrefixSize);
  if (size + kPrefixSize >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return fail(Code::INVALID_ARGUMENT, "the module's FlatBuffer has {} bytes; expected less than 2 GiB",
                size);

  Archive archive;
  archive.bytes = bytes;
  archive.metadata = std::move(bytes);
  archive.rodata_base =
      (base + kPrefixSize + size + kRodataAlignment - 1) / kRodataAlignment * kRodataAlignment;

  // The alignment within the FlatBuffer is relative to its size prefix.
  const uint8_t* prefix = file.data() + base;
  if (reinterpret_cast<uintptr_t>(prefix) % kScalarAlignment != 0) {
    archive.metadata = Bytes::copy(file.subspan(base, kPrefixSize + size));
    prefix = archive.metadata->data();
  }

  const std::span<const uint8_t> flatbuffer(prefix, kPrefixSize + size);
  if (Result<> sound = check(flatbuffer, base); !sound) {
    if (const uint32_t older = version_of_older_layout(flatbuffer))
      return unsupported_version(older, "an IREE compiler of 2023 or before");
    return std::unexpected(std::move(sound.error()));
  }
  archive.module = schema::GetSizePrefixedBytecodeModule(prefix);
  return archive;
}

}  // namespace halyard::vm
