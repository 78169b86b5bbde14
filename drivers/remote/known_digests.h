// KnownDigests: SHA-256 of parts of files, by the version of the file, so that a later process need not read
// the files to name their bytes. They are kept in a file of the user's cache folder, which nobody else may
// write to. Thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "halyard/driver.hpp"
#include "remote/digest.h"

namespace halyard::remote {

class KnownDigests {
 public:
  // A part of a version of a file.
  struct Part {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
    uint64_t offset, length;
    auto operator<=>(const Part&) const = default;
  };

  // `folder`: empty: nothing is kept.
  explicit KnownDigests(std::string folder) : folder_(std::move(folder)) {}

  // The default: halyard/ in the user's cache folder ($XDG_CACHE_HOME, ~/.cache).
  static std::string default_folder();
  // Nothing if the bytes are those of no file.
  static std::optional<Part> part_of(const halyard_external_memory_t& external);

  std::optional<Sha256> find(const Part& part);
  // Those of all parts of the version of the file.
  std::vector<Sha256> of_file(const Part& part);
  // No effect for a file that was changed within the last seconds: it may change again without another time.
  void add(const Part& part, const Sha256& digest);
  void forget(const Part& part);
  // Writes what was added. Failures have no effect but that the next process computes again.
  void save();

 private:
  struct Entry {
    Sha256 digest;
    uint64_t used;  // the larger, the later
  };
  using Entries = std::map<Part, Entry>;
  Entries read() const;
  void load();  // under mutex_

  const std::string folder_;
  std::mutex mutex_;  // guards the members below
  bool is_loaded_ = false;
  bool has_changed_ = false;
  uint64_t last_used_ = 0;
  Entries entries_;
};

}  // namespace halyard::remote
