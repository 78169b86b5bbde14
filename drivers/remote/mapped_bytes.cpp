// The comparison of the host's bytes with those that both sides agree on.
#include "mapped_bytes.h"

#include <algorithm>
#include <cstring>

namespace halyard::remote {

template <typename Visit>
void MappedBytes::for_each_part(uint64_t begin, uint64_t end, Visit visit) const {
  while (begin < end) {
    Kind kind = Kind::unmapped;
    uint64_t next = end;
    for (const Range& range : ranges_) {
      const uint64_t last = range.offset + range.length;
      if (range.offset > begin) {
        next = std::min(next, range.offset);
      } else if (last > begin) {
        next = std::min(next, last);
        if (kind != Kind::agreed) kind = range.is_new ? Kind::fresh : Kind::agreed;
      }
    }
    visit(kind, begin, next);
    begin = next;
  }
}

// Bytes that are agreed on already may have been changed by the host since.
void MappedBytes::agree(uint64_t begin, uint64_t end) {
  if (!agreed_) agreed_ = std::make_unique_for_overwrite<uint8_t[]>(size_);
  for_each_part(begin, end, [this](Kind kind, uint64_t from, uint64_t to) {
    if (kind != Kind::agreed) std::memcpy(agreed_.get() + from, bytes_ + from, to - from);
  });
}

void MappedBytes::open(uint64_t offset, uint64_t length, bool is_new) {
  if (length == 0) return;
  const std::lock_guard lock(mutex_);
  if (!is_new) agree(offset, offset + length);
  ranges_.push_back({offset, length, is_new});
}

void MappedBytes::send_differences(const Range& range) {
  const uint64_t end = range.offset + range.length;
  for (uint64_t at = range.offset; at < end;) {
    constexpr uint64_t kBlock = 4096;
    const uint64_t block = std::min(kBlock, end - at);
    if (std::memcmp(bytes_ + at, agreed_.get() + at, block) == 0) {
      at += block;
      continue;
    }
    while (bytes_[at] == agreed_[at]) ++at;
    uint64_t last = at + 1;
    while (last < end && last - at < kPiece && bytes_[last] != agreed_[last]) ++last;
    std::memcpy(agreed_.get() + at, bytes_ + at, last - at);
    send_(at, {agreed_.get() + at, last - at});
    at = last;
  }
}

void MappedBytes::send_changes() {
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_)
    if (!range.is_new) send_differences(range);
  for (Range& range : ranges_) {
    if (!range.is_new) continue;
    agree(range.offset, range.offset + range.length);
    send_(range.offset, {agreed_.get() + range.offset, range.length});
    range.is_new = false;
  }
}

void MappedBytes::close_all() {
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_) {
    if (range.is_new) {
      send_(range.offset, {bytes_ + range.offset, range.length});
    } else {
      send_differences(range);
    }
  }
  ranges_.clear();
  agreed_.reset();
}

void MappedBytes::merge(uint64_t offset, Bytes bytes) {
  if (offset > size_ || bytes.size() > size_ - offset) return;
  const std::lock_guard lock(mutex_);
  for_each_part(offset, offset + bytes.size(), [&](Kind kind, uint64_t begin, uint64_t end) {
    const uint8_t* const found = bytes.data() + (begin - offset);
    if (kind == Kind::unmapped) std::memcpy(bytes_ + begin, found, end - begin);
    if (kind != Kind::agreed) return;  // the host writes all of a fresh range
    for (uint64_t at = begin; at < end; ++at) {
      if (found[at - begin] == agreed_[at]) continue;
      agreed_[at] = bytes_[at] = found[at - begin];
    }
  });
}

}  // namespace halyard::remote
