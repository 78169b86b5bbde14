#include "base/foreign_file.h"

#include <algorithm>
#include <array>

namespace halyard {
namespace {

constexpr std::string_view kDownload =
    "download the file itself; this is probably a login page or an error page";
constexpr std::string_view kConvert = "convert it to .safetensors";
constexpr std::string_view kUnpack = "unpack it";

// Formats recognized by their first bytes.
struct Signature {
  std::string_view begin;
  std::string_view extension;  // of a format that Halyard can read; else empty
  ForeignFile file;
};
constexpr std::array kSignatures = {
    Signature{"version https://git-lfs.github.com/spec/",
              "",
              {"a Git LFS pointer", "run `git lfs pull` in its folder to fetch the real file", true}},
    Signature{"GGUF", ".gguf", {"a .gguf file", "give it a name that ends in .gguf"}},
    Signature{"IRPA", ".irpa", {"an .irpa archive", "give it a name that ends in .irpa"}},
    Signature{"PK\3\4", ".vmfb", {"a zip archive, such as .npz or .pt", kConvert}},
    Signature{"\x93NUMPY", ".npy", {"an .npy file", kConvert}},
    Signature{"\x89HDF\r\n", "", {"an HDF5 file", kConvert}},
    Signature{"\x80\x02", "", {"a pickle of Python", kConvert}},
    Signature{"\x80\x03", "", {"a pickle of Python", kConvert}},
    Signature{"\x80\x04", "", {"a pickle of Python", kConvert}},
    Signature{"\x80\x05", "", {"a pickle of Python", kConvert}},
    Signature{"\x1F\x8B", "", {"compressed with gzip", kUnpack, true}},
    Signature{"\x28\xB5\x2F\xFD", "", {"compressed with zstd", kUnpack, true}},
    Signature{"\xFD"
              "7zXZ",
              "",
              {"compressed with xz", kUnpack, true}},
    Signature{"BZh", "", {"compressed with bzip2", kUnpack, true}},
    Signature{"\x7F"
              "ELF",
              "",
              {"a shared library or a program", "give the file with the weights"}},
};

// Formats recognized by their first words, case-insensitive, after blanks.
constexpr std::array kTexts = {
    Signature{"<!doctype html", "", {"a page of HTML", kDownload, true}},
    Signature{"<html", "", {"a page of HTML", kDownload, true}},
    Signature{"<?xml", "", {"an XML document", kDownload, true}},
    Signature{"<error", "", {"an XML document", kDownload, true}},
    Signature{"{\"",
              ".json",
              {"JSON text, such as an index of shards or a server's answer",
               "if it is an index, give it a name that ends in .safetensors.index.json"}},
    Signature{"{\n",
              ".json",
              {"JSON text, such as an index of shards or a server's answer",
               "if it is an index, give it a name that ends in .safetensors.index.json"}},
};

// Whether the text is a JSON header after its length.
bool is_safetensors(std::string_view text) {
  constexpr size_t kLength = 8;
  if (text.size() <= kLength || text[kLength] != '{') return false;
  uint64_t length = 0;
  for (size_t i = kLength; i-- > 0;) length = length << 8 | static_cast<uint8_t>(text[i]);
  return length <= text.size() - kLength;
}

bool is_foreign(const Signature& it, std::string_view extension) {
  return it.extension.empty() || it.extension != extension;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::optional<ForeignFile> foreign_file(std::span<const uint8_t> bytes, std::string_view extension) {
  const std::string_view whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (whole.empty()) return ForeignFile{"empty", "write or download it again"};
  for (const Signature& it : kSignatures)
    if (whole.starts_with(it.begin) && is_foreign(it, extension)) return it.file;
  if (extension != ".safetensors" && is_safetensors(whole))
    return ForeignFile{"a .safetensors file", "give it a name that ends in .safetensors"};
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view text = whole.starts_with(kByteOrderMark) ? whole.substr(kByteOrderMark.size()) : whole;
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  for (const Signature& it : kTexts)
    if (is_foreign(it, extension) && text.size() >= it.begin.size() &&
        std::ranges::equal(text.substr(0, it.begin.size()), it.begin, {}, lower))
      return it.file;
  return std::nullopt;
}

}  // namespace halyard
