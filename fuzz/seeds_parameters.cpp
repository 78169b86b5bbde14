// Parameter files of every kind, with every kind of entry.
#include <cstring>
#include <string_view>

#include "irpa_builder.h"
#include "seeds.h"

namespace halyard::fuzz {

namespace {

using File = std::vector<uint8_t>;

template <typename T>
void add(File& file, T value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  file.insert(file.end(), first, first + sizeof value);
}
void add_text(File& file, std::string_view text) {
  add(file, uint64_t{text.size()});
  file.insert(file.end(), text.begin(), text.end());
}

// A pair of each kind that a reader must skip, and tensors of several types.
File gguf(uint32_t version) {
  File file;
  add(file, uint32_t{0x46554747});
  add(file, version);
  add(file, uint64_t{2});  // tensors
  add(file, uint64_t{4});  // pairs
  add_text(file, "name");
  add(file, uint32_t{8});
  add_text(file, "a model");
  add_text(file, "words");
  add(file, uint32_t{9});
  add(file, uint32_t{8});
  add(file, uint64_t{2});
  add_text(file, "a");
  add_text(file, "b");
  add_text(file, "general.alignment");
  add(file, uint32_t{4});
  add(file, uint32_t{64});
  add_text(file, "numbers");
  add(file, uint32_t{9});
  add(file, uint32_t{6});
  add(file, uint64_t{3});
  for (uint32_t i = 0; i < 3; ++i) add(file, i);
  const auto tensor = [&](std::string_view name, uint64_t rows, uint64_t columns, uint32_t type,
                          uint64_t at) {
    add_text(file, name);
    add(file, uint32_t{2});
    add(file, rows);
    add(file, columns);
    add(file, type);
    add(file, at);
  };
  tensor("layer/weights", 2, 3, 0, 0);
  tensor("blocks", 32, 2, 8, 64);
  file.resize((file.size() + 63) / 64 * 64 + 64 + 68, 5);
  return file;
}

// One tensor of blocks.
File small_gguf() {
  File file;
  add(file, uint32_t{0x46554747});
  add(file, uint32_t{3});
  add(file, uint64_t{1});  // tensors
  add(file, uint64_t{0});  // pairs
  add_text(file, "q");
  add(file, uint32_t{2});
  add(file, uint64_t{32});
  add(file, uint64_t{4});
  add(file, uint32_t{8});
  add(file, uint64_t{0});
  file.resize((file.size() + 31) / 32 * 32 + size_t{4} * 34, 7);
  return file;
}

File safetensors(std::string_view header, size_t size) {
  File file;
  add_text(file, header);
  file.resize(file.size() + size, 9);
  return file;
}

}  // namespace

void write_parameter_files(const std::filesystem::path& folder) {
  using modules::IrpaBuilder;
  IrpaBuilder archive;
  archive.data("a", {1, 2, 3}).splat("zeros", 100, {0}).skip("nothing").data("b", File(40, 8), 16);
  archive.splat("words", 64, {1, 2, 3, 4});
  write_seed(folder / "all.irpa", archive.bytes());
  write_seed(folder / "none.irpa", IrpaBuilder().bytes());
  write_seed(folder / "external.irpa", IrpaBuilder().external("elsewhere").bytes());
  // Two archives in one file.
  const File second = IrpaBuilder().data("later", {4, 5}).bytes();
  File linked = IrpaBuilder().data("first", {1}).bytes();
  const size_t place = (linked.size() + 63) / 64 * 64;
  linked = IrpaBuilder().data("first", {1}).bytes(place);
  linked.resize(place);
  linked.insert(linked.end(), second.begin(), second.end());
  write_seed(folder / "linked.irpa", linked);

  write_seed(folder / "2.gguf", gguf(2));
  write_seed(folder / "3.gguf", gguf(3));
  write_seed(folder / "small.gguf", small_gguf());
  write_seed(folder / "types.safetensors",
             safetensors(R"({"\u0061\n": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]},
  "b": {"dtype": "F4", "shape": [4], "data_offsets": [8, 10]}, "a": {"dtype": "U8", "shape": [2, 0], "data_offsets": [8, 8]}})",
                         10));
  const std::string_view index =
      R"({"metadata": {"total_size": 8}, "weight_map": {"a": "m-1.safetensors", "b": "x/m-2.safetensors"}})";
  write_seed(folder / "model.safetensors.index.json", File(index.begin(), index.end()));
  write_seed(folder / "none.safetensors", safetensors("{}", 0));
  write_seed(folder / "all.safetensors",
             safetensors(R"( {"__metadata__": {"format": "pt", "deep": [1, {"a": []}, "]"]},
  "layer/w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
  "quoted\"n": {"data_offsets" : [24 ,26 ], "shape":[], "dtype":"I16"}, "none": {"data_offsets": [3,3]} }   )",
                         26));
}

}  // namespace halyard::fuzz
