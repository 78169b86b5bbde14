// The first message of every collective, from each rank to each other rank: a description of the collective,
// and its bytes if they are few. Ranks that disagree notice it before any other bytes are moved.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::mpi {

// Kinds in addition to those of halyard/channel.h.
inline constexpr uint32_t kSplit = 0xF0;   // proposal of a split
inline constexpr uint32_t kVote = 0xF1;    // on the result of the proposals
inline constexpr uint32_t kNotice = 0xF2;  // the sender's channel has failed; the bytes are the text
inline constexpr uint32_t kEnd = 0xF3;     // the sender's program has ended well

struct Header {
  uint32_t version;  // kVersion; checks that all ranks have the same provider
  uint32_t kind;
  uint32_t reduction;
  uint32_t element;
  uint32_t root;
  int32_t code;  // status code, for a notice
  uint64_t element_count;
  uint64_t sequence;  // counts the collectives of the channel
  uint32_t size;      // bytes after the header
  uint32_t reserved[5];
};
static_assert(sizeof(Header) == 64);

inline constexpr uint32_t kVersion = 0x48430001;
inline constexpr size_t kInline = 16 << 10;  // maximum number of bytes of a collective in its first message
inline constexpr size_t kMessage = sizeof(Header) + kInline;

struct alignas(64) Message {
  Header header;
  uint8_t bytes[kInline];
};
static_assert(sizeof(Message) == kMessage);

// The tag of a message is kTags times the channel's number, plus this.
enum class Tag : int { header, move, contribution, result, direct_header, direct_bytes, notice };
inline constexpr int kTags = 8;
inline constexpr uint32_t kMaxChannels = 4096;  // open at once; MPI guarantees tags up to 32767

}  // namespace halyard::mpi
