// The first message of every collective, from each rank to each other one: what the sender thinks that the
// collective is, and its bytes where they are few. Ranks that disagree find out before any bytes are moved.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::mpi {

// Kinds beyond those of halyard/channel.h.
inline constexpr uint32_t kSplit = 0xF0;   // proposal of a split
inline constexpr uint32_t kVote = 0xF1;    // on what all proposals lead to
inline constexpr uint32_t kNotice = 0xF2;  // the sender takes part no more; the message is a text
inline constexpr uint32_t kEnd = 0xF3;     // the sender's program has ended well

struct Header {
  uint32_t version;  // kVersion: all ranks have the same provider
  uint32_t kind;
  uint32_t reduction;
  uint32_t element;
  uint32_t root;
  int32_t code;  // of a notice
  uint64_t element_count;
  uint64_t sequence;  // of collectives of this channel
  uint32_t size;      // bytes that follow
  uint32_t reserved[5];
};
static_assert(sizeof(Header) == 64);

inline constexpr uint32_t kVersion = 0x48430001;
inline constexpr size_t kInline = 16 << 10;  // bytes of a collective that the first message holds
inline constexpr size_t kMessage = sizeof(Header) + kInline;

struct alignas(64) Message {
  Header header;
  uint8_t bytes[kInline];
};
static_assert(sizeof(Message) == kMessage);

// What tells messages of one channel from others; the tag is kTags times the channel's number, plus this.
enum class Tag : int { header, move, contribution, result, direct_header, direct_bytes, notice };
inline constexpr int kTags = 8;
inline constexpr uint32_t kMostChannels = 4096;  // at once; tags up to 32767 are always there

}  // namespace halyard::mpi
