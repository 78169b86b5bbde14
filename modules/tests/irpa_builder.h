// Writes .irpa archives for tests, according to parameters-and-files.md, section 3.1.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace halyard::modules {

class IrpaBuilder {
 public:
  IrpaBuilder& data(std::string_view key, const std::vector<uint8_t>& bytes, uint64_t alignment = 64) {
    while (storage_.size() % alignment) storage_.push_back(0);
    begin(76, 2, key, alignment);
    put(uint64_t{storage_.size()}, uint64_t{bytes.size()});
    end();
    storage_.insert(storage_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  IrpaBuilder& splat(std::string_view key, uint64_t length, const std::vector<uint8_t>& pattern) {
    begin(85, 1, key, 0);
    put(length);
    for (size_t i = 0; i < 16; ++i) put(i < pattern.size() ? pattern[i] : uint8_t{0});
    put(static_cast<uint8_t>(pattern.size()));
    end();
    return *this;
  }
  IrpaBuilder& skip(std::string_view key) {
    begin(60, 0, key, 0);
    end();
    return *this;
  }
  IrpaBuilder& external(std::string_view key) {
    begin(92, 3, key, 0);
    put(uint64_t{0}, uint64_t{0}, uint64_t{0}, uint64_t{0});
    end();
    return *this;
  }

  // The archive, not padded at its end. `next` is the offset of the next header; 0: none.
  std::vector<uint8_t> bytes(uint64_t next = 0) const {
    std::vector<uint8_t> out(96);  // the header is 88 bytes, the entries start at a multiple of 16
    const uint64_t metadata = 96 + table_.size();
    const uint64_t storage = (metadata + names_.size() + 63) / 64 * 64;
    const uint32_t magic = 0x41505249;
    std::memcpy(&out[0], &magic, sizeof magic);
    const uint64_t fields[] = {88,       next,          0,       count_,         96, table_.size(),
                               metadata, names_.size(), storage, storage_.size()};
    std::memcpy(&out[8], fields, sizeof fields);
    out.insert(out.end(), table_.begin(), table_.end());
    out.insert(out.end(), names_.begin(), names_.end());
    out.resize(storage);
    out.insert(out.end(), storage_.begin(), storage_.end());
    return out;
  }

 private:
  template <typename... Values>
  void put(Values... values) {
    const auto one = [&](auto value) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
      table_.insert(table_.end(), bytes, bytes + sizeof value);
    };
    (one(values), ...);
  }
  void begin(uint64_t size, uint32_t type, std::string_view key, uint64_t alignment) {
    while (table_.size() % 16) table_.push_back(0);
    put(size, type, uint64_t{0}, uint64_t{names_.size()}, uint64_t{key.size()}, uint64_t{names_.size()},
        uint64_t{0}, alignment);
    names_ += key;
  }
  void end() { ++count_; }

  std::vector<uint8_t> table_, storage_;
  std::string names_;
  uint64_t count_ = 0;
};

}  // namespace halyard::modules
