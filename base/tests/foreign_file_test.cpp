// Files of other formats, by their first bytes.
#include "base/foreign_file.h"

#include <gtest/gtest.h>

#include <string>

namespace halyard {
namespace {

using namespace std::string_literals;

std::string recognized(std::string_view bytes, std::string_view extension = ".vmfb") {
  const std::span<const uint8_t> span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const std::optional<ForeignFile> file = foreign_file(span, extension);
  return file ? std::string(file->is) : "";
}

TEST(ForeignFiles, AreKnownByTheirFirstBytes) {
  EXPECT_EQ(recognized(""), "empty");
  EXPECT_EQ(recognized("version https://git-lfs.github.com/spec/v1\noid"), "a Git LFS pointer");
  EXPECT_EQ(recognized("\x1F\x8B\x08"), "compressed with gzip");
  EXPECT_EQ(recognized("\x1F"), "") << "one byte of two";
  EXPECT_EQ(recognized("\x7F"
                       "ELF\2"),
            "a shared library or a program");
  EXPECT_EQ(recognized("something else"), "");
}

TEST(ForeignFiles, TheReadersOwnFormatIsNone) {
  EXPECT_EQ(recognized("GGUF\3", ".gguf"), "");
  EXPECT_EQ(recognized("GGUF\3", ".irpa"), "a .gguf file");
  EXPECT_EQ(recognized("PK\3\4", ".vmfb"), "");
  EXPECT_EQ(recognized("PK\3\4", ".npy"), "a zip archive, such as .npz or .pt");
  EXPECT_EQ(recognized("{\"a\": 1}", ".json"), "");
  EXPECT_NE(recognized("{\"a\": 1}", ".gguf"), "");
}

TEST(ForeignFiles, TextsInAnyCaseAfterBlanksAndAByteOrderMark) {
  EXPECT_EQ(recognized("<!DOCTYPE html>"), "a page of HTML");
  EXPECT_EQ(recognized("\xEF\xBB\xBF \r\n\t<HtMl>"), "a page of HTML");
  EXPECT_EQ(recognized("<?xml version"), "an XML document");
  EXPECT_EQ(recognized("<htm"), "") << "shorter than each of them";
  EXPECT_EQ(recognized("\xEF\xBB\xBF"), "") << "nothing behind the mark";
  EXPECT_EQ(recognized(" \n "), "");
  EXPECT_EQ(recognized("[html>"), "");
  EXPECT_EQ(recognized("<@tml>"), "") << "the letter before 'A'";
}

TEST(ForeignFiles, SafetensorsHaveAHeaderOfTheirLength) {
  const std::string header = "{\"t\":[]}";
  const auto file = [&](char length) { return std::string(1, length) + "\0\0\0\0\0\0\0"s + header; };
  EXPECT_EQ(recognized(file(8)), "a .safetensors file");
  EXPECT_EQ(recognized(file(7)), "a .safetensors file");
  EXPECT_EQ(recognized(file(9)), "") << "the header is longer than the file";
  EXPECT_EQ(recognized(file(8), ".safetensors"), "");
  EXPECT_EQ(recognized("\1\0\0\0\0\0\0\0"s), "") << "no header at all";
  EXPECT_EQ(recognized("\1\0\0\0\0\0\0\0["s), "");
}

}  // namespace
}  // namespace halyard
