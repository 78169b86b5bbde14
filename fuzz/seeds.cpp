// Writes the seed corpora: `seeds FOLDER` fills FOLDER/archive, verifier, run, jit, assembler,
// disassembler, analysis and translate from generated programs, the examples, and the instruction table;
// FOLDER/elf from small libraries, FOLDER/capture and FOLDER/parameters from files of every kind,
// FOLDER/serve from requests, FOLDER/grpc from their messages, FOLDER/http from streams of them,
// FOLDER/remote_client and FOLDER/remote_server from frames of the other side.
#include "seeds.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "elf_writer.h"
#include "loop_generator.h"
#include "program_generator.h"
#include "vm/text/assembler.h"

namespace {

using namespace halyard;
using namespace halyard::vm;
using File = std::vector<uint8_t>;
namespace fs = std::filesystem;

// The file as the first member of a zip archive.
File zipped(const File& file) {
  File zip(64, 0);
  const uint8_t header[] = {0x50, 0x4B, 3, 4, 0x2D};
  std::copy(std::begin(header), std::end(header), zip.begin());
  zip[26] = 9;   // bytes of the name
  zip[28] = 25;  // of the extra field: 30 + 9 + 25 = 64
  const std::string_view name = "module.fb";
  std::copy(name.begin(), name.end(), zip.begin() + 30);
  zip.insert(zip.end(), file.begin(), file.end());
  return zip;
}

// Text with every mnemonic, so that the fuzzer knows them all.
std::string all_mnemonics() {
  std::string text = "vm.module @m\nvm.func @f(%i0: i32, %r0: !vm.buffer) -> (i32) {\n";
  for (const OpInfo& op : kOps) text += "  vm." + std::string(op.mnemonic()) + " %i0, %r0\n";
  return text + "  vm.return %i0\n}\n";
}

// Words of the language, for libFuzzer's -dict.
std::string dictionary() {
  std::string text;
  const auto word = [&](std::string_view what) {
    text += '"';
    for (const char c : what) text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    text += "\"\n";
  };
  for (const OpInfo& op : kOps) word("vm." + std::string(op.mnemonic()) + " ");
  for (const std::string_view directive :
       {"vm.module @m",    "vm.type ",     "vm.dependency @", "vm.import ",     "vm.export ", "vm.func ",
        "vm.global.",      "vm.rodata",    "vm.attr ",        "vm.rwdata",      "optional",   "required",
        "version",         "mutable",      "private",         "cconv \"0v_v\"", "segments[",  "default:",
        "module {",        "requirements", "default",         "loc(",           ".bytes ",    ".blocks 1",
        ".registers 1, 1", ".cconv ",      ".attr ",          "vm.state 8, 1",  "hex {",      "bytecode 15",
        "e\"\\x00\"",      "bits(0x1)",    "import[0]",       "type[0]",        "%m0"})
    word(directive);
  for (const std::string_view piece : {"%i0",        "%i2:3",      "%r0",
                                       "%R0",        "^bb1",       "^bb1(%i0->%i1)",
                                       " -> (",      ") {",        "}",
                                       "i32",        "i64",        "f32",
                                       "f64",        "!vm.buffer", "!vm.list<i32>",
                                       "!vm.opaque", "0x1.8p1",    "-1",
                                       "0xFFFFFFFF", "\"text\"",   "@f",
                                       "//",         " ? ",        " : ",
                                       "[0]",        "="})
    word(piece);
  return text;
}

// Libraries for each known architecture, with every part that a loader reads.
void write_libraries(const fs::path& folder) {
  using local_tests::ElfWriter;
  struct Machine {
    const char* name;
    uint16_t number;
    std::vector<uint32_t> relocations;
  };
  const Machine machines[] = {
      {"x86_64", EM_X86_64, {R_X86_64_64, R_X86_64_PC32, R_X86_64_GLOB_DAT, R_X86_64_RELATIVE, R_X86_64_32S}},
      {"arm_64", EM_AARCH64, {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_RELATIVE}},
      {"riscv_64", EM_RISCV, {R_RISCV_32, R_RISCV_64, R_RISCV_RELATIVE}}};
  std::vector<local_tests::FatElfRecord> records;
  std::vector<File> files;
  for (const Machine& machine : machines) {
    ElfWriter elf(machine.number, "iree_hal_executable_library_query");
    fuzz::write_seed(folder / (std::string(machine.name) + ".small"), elf.build());
    elf.add_symbol("data", ElfWriter::kDataAddress).st_info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT);
    elf.add_symbol("fixed", 0x1234).st_shndx = SHN_ABS;
    for (const uint32_t type : machine.relocations)
      elf.add_relocation(ElfWriter::kDataAddress + 8 * elf.relocations.size(), type, 1, 0x2510);
    elf[DT_INIT] = ElfWriter::kCodeAddress;
    elf[DT_INIT_ARRAY] = ElfWriter::kDataAddress;
    elf[DT_INIT_ARRAYSZ] = 16;
    elf.add_levels(1);
    files.push_back(elf.build());
    records.push_back({machine.number});
    fuzz::write_seed(folder / machine.name, files.back());
  }
  fuzz::write_seed(folder / "fat", local_tests::fat_elf(records, files));
}

// The input of the target jit: the last 8 bytes choose arguments.
File with_arguments(File file) {
  file.resize(file.size() + 8);
  return file;
}

void run(const fs::path& folder) {
  write_libraries(folder / "elf");
  fuzz::write_captures(folder / "capture");
  fuzz::write_inputs(folder / "inputs");
  fuzz::write_requests(folder / "serve");
  fuzz::write_messages(folder / "grpc");
  fuzz::write_streams(folder / "http");
  fuzz::write_server_frames(folder / "remote_client");
  fuzz::write_client_frames(folder / "remote_server");
  fuzz::write_parameter_files(folder / "parameters");
  const std::string words = dictionary();
  fuzz::write_seed(folder / "assembler.dict", words.data(), words.size());
  for (uint64_t seed = 0; seed < 160; ++seed) {
    test::Choices choices(seed);
    const std::string name = std::to_string(seed);
    File bytes(16 + seed * 2);
    for (uint8_t& byte : bytes) byte = choices.byte();
    fuzz::write_seed(folder / "run" / name, bytes);
    // The programs that are generated from these bytes. More bytes give larger programs.
    test::Choices few{std::span<const uint8_t>(bytes)};
    for (const test::ModuleParts& parts : generate_program(few).modules) {
      const File file = parts.build();
      fuzz::write_seed(folder / "verifier" / (name + parts.name), file);
      fuzz::write_seed(folder / "disassembler" / (name + parts.name), file);
      fuzz::write_seed(folder / "analysis" / (name + parts.name), file);
      fuzz::write_seed(folder / "translate" / (name + parts.name), file);
      fuzz::write_seed(folder / "jit" / (name + parts.name), with_arguments(file));
      if (seed % 8 != 0) continue;
      fuzz::write_seed(folder / "archive" / (name + parts.name), file);
      fuzz::write_seed(folder / "archive" / (name + parts.name + ".zip"), zipped(file));
    }
    if (const auto file = assemble(test::generate_loops(choices), {})) {
      fuzz::write_seed(folder / "jit" / (name + "loops"), with_arguments(*file));
      fuzz::write_seed(folder / "translate" / (name + "loops"), *file);
    }
  }
  test::ModuleParts parts;
  parts.attributes = {{"key", "value"}};
  parts.dependencies = {{.name = "hal", .minimum_version = 6}};
  parts.imports = {{.name = "native.count", .convention = "0CiD_i", .flags = 2}};
  parts.types = {"i32", "!hal.buffer_view", "!vm.list<i8>"};
  parts.functions.push_back({.attributes = {{"iree.abi.declaration", "f()"}}});
  parts.exports = {{"f", 0}};
  parts.rodata = {{.data = {1, 2, 3}, .embedded = false}, {.data = File(100, 7), .embedded = false}};
  parts.debug_names = {"f"};
  fuzz::write_seed(folder / "archive" / "everything", parts.build());
  fuzz::write_seed(folder / "archive" / "everything.zip", zipped(parts.build()));
  fuzz::write_seed(folder / "disassembler" / "everything", parts.build());
  fuzz::write_seed(folder / "analysis" / "everything", parts.build());
  fuzz::write_seed(folder / "translate" / "everything", parts.build());

  const std::string mnemonics = all_mnemonics();
  fuzz::write_seed(folder / "assembler" / "mnemonics", mnemonics.data(), mnemonics.size());
  for (const char* source : {"examples", "fuzz/seeds/assembler"}) {
    const fs::path from = fs::path(HALYARD_SOURCE_DIR) / source;
    if (!fs::is_directory(from)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      if (entry.path().extension() != ".vmasm") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(in), {});
      fuzz::write_seed(folder / "assembler" / entry.path().filename(), text.data(), text.size());
      if (const auto file = assemble(text, {})) {
        fuzz::write_seed(folder / "archive" / entry.path().stem(), *file);
        fuzz::write_seed(folder / "disassembler" / entry.path().stem(), *file);
        fuzz::write_seed(folder / "analysis" / entry.path().stem(), *file);
        fuzz::write_seed(folder / "translate" / entry.path().stem(), *file);
      }
    }
  }
}

}  // namespace

void halyard::fuzz::write_seed(const fs::path& path, const void* bytes, size_t size) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: seeds FOLDER\n";
    return 2;
  }
  run(argv[1]);
  return 0;
}
