// The file is a header, records, and the SHA-256 of both, which finds damage, not attackers.
#include "known_digests.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "halyard/private_folder.hpp"

namespace halyard::remote {

namespace {

constexpr char kFile[] = "remote-digests";
constexpr std::string_view kMagic = "HLYDIG01";
constexpr size_t kMostEntries = 1 << 16;
// File systems have coarse clocks: two changes within a tick give a file the same times.
constexpr auto kSettled = std::chrono::seconds(2);

struct Record {
  KnownDigests::Part part;
  Sha256 digest;
};
static_assert(sizeof(Record) == 88 && std::is_trivially_copyable_v<Record>);

std::string_view bytes_of(const Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Sha256 digest_of(std::string_view text) {
  return sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace

std::string KnownDigests::default_folder() {
  if (const char* const cache = ::secure_getenv("XDG_CACHE_HOME"); cache && cache[0] == '/')
    return std::string(cache) + "/halyard";
  if (const char* const home = ::secure_getenv("HOME"); home && home[0] == '/')
    return std::string(home) + "/.cache/halyard";
  return {};
}

std::optional<KnownDigests::Part> KnownDigests::part_of(const halyard_external_memory_t& external) {
  if (!external.file) return std::nullopt;
  const halyard_file_version_t file = kit::copy_sized(*external.file);
  return Part{file.device,     file.inode,           file.size,    file.modified_ns,
              file.changed_ns, external.file_offset, external.size};
}

// The entries in the order of the file, which is that of their last use.
KnownDigests::Entries KnownDigests::read() const {
  constexpr size_t kFrame = kMagic.size() + sizeof(Sha256);
  Entries entries;
  if (folder_.empty()) return entries;
  const PrivateFolder folder(folder_, PrivateFolder::Missing::stays);
  const std::optional<std::string> found = folder.read(kFile, kFrame + kMostEntries * sizeof(Record));
  if (!found || found->size() < kFrame || !found->starts_with(kMagic)) return entries;
  const std::string_view checked = std::string_view(*found).substr(0, found->size() - sizeof(Sha256));
  const std::string_view records = checked.substr(kMagic.size());
  if (records.size() % sizeof(Record) != 0 || !found->ends_with(bytes_of(digest_of(checked)))) return entries;
  for (size_t at = 0; at < records.size(); at += sizeof(Record)) {
    Record record;
    std::memcpy(&record, records.data() + at, sizeof record);
    entries.insert_or_assign(record.part, Entry{record.digest, at / sizeof(Record)});
  }
  return entries;
}

void KnownDigests::load() {
  if (std::exchange(is_loaded_, true)) return;
  entries_ = read();
  last_used_ = kMostEntries;
}

std::optional<Sha256> KnownDigests::find(const Part& part) {
  const std::lock_guard lock(mutex_);
  load();
  const auto found = entries_.find(part);
  if (found == entries_.end()) return std::nullopt;
  found->second.used = ++last_used_;
  return found->second.digest;
}

std::vector<Sha256> KnownDigests::of_file(const Part& part) {
  const std::lock_guard lock(mutex_);
  load();
  Part first = part, last = part;
  first.offset = first.length = 0;
  last.offset = last.length = UINT64_MAX;
  std::vector<Sha256> digests;
  for (auto it = entries_.lower_bound(first); it != entries_.end() && it->first <= last; ++it)
    digests.push_back(it->second.digest);
  return digests;
}

void KnownDigests::add(const Part& part, const Sha256& digest) {
  using std::chrono::nanoseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (nanoseconds(std::max(part.modified_ns, part.changed_ns)) > now - kSettled) return;
  const std::lock_guard lock(mutex_);
  load();
  entries_.insert_or_assign(part, Entry{digest, ++last_used_});
  has_changed_ = true;
}

void KnownDigests::forget(const Part& part) {
  const std::lock_guard lock(mutex_);
  has_changed_ |= entries_.erase(part) > 0;
}

void KnownDigests::save() {
  const std::lock_guard lock(mutex_);
  if (folder_.empty() || !std::exchange(has_changed_, false)) return;
  // Another process may have written since.
  for (const auto& [part, entry] : read()) entries_.emplace(part, entry);
  std::vector<const Entries::value_type*> order;
  for (const auto& each : entries_) order.push_back(&each);
  std::ranges::sort(order, {}, [](const auto* each) { return each->second.used; });
  if (order.size() > kMostEntries) order.erase(order.begin(), order.end() - kMostEntries);
  std::string text(kMagic);
  for (const auto* const each : order) {
    const Record record = {each->first, each->second.digest};
    text.append(reinterpret_cast<const char*>(&record), sizeof record);
  }
  const Sha256 checksum = digest_of(text);
  (void)PrivateFolder(folder_).write(kFile, {text, bytes_of(checksum)});
}

}  // namespace halyard::remote
