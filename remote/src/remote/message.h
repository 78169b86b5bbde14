// Messages: building and verifying the FlatBuffers of schemas/remote.fbs.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "remote/digest.h"
#include "remote/failure.h"
#include "remote/stream.h"
#include "remote_generated.h"

namespace halyard::remote {

namespace wire = schema::remote;

// The versions of the protocol that this code speaks.
inline constexpr uint32_t kOldestVersion = 1;
inline constexpr uint32_t kNewestVersion = 3;
inline constexpr uint32_t kVersionWithTraces = 2;
inline constexpr uint32_t kVersionWithBlobsWanted = 2;
inline constexpr uint32_t kVersionWithLists = 3;  // Submit.created, Destroy, Completions
inline constexpr uint32_t kVersionWithMemoryLimits = 2;

// A message under construction. A small one needs no memory but its own.
class Message {
 public:
  Message() : builder_(kRoom, &room_) {}
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  flatbuffers::FlatBufferBuilder& builder() { return builder_; }
  flatbuffers::Offset<flatbuffers::String> text(std::string_view text) {
    return builder_.CreateString(text.data(), text.size());
  }
  // Finishes the message with this body: one of ToServerBody or ToClientBody.
  template <typename Table>
  Bytes to_server(flatbuffers::Offset<Table> body) {
    builder_.Finish(
        wire::CreateToServer(builder_, wire::ToServerBodyTraits<Table>::enum_value, body.Union()));
    return {builder_.GetBufferPointer(), builder_.GetSize()};
  }
  template <typename Table>
  Bytes to_client(flatbuffers::Offset<Table> body) {
    builder_.Finish(
        wire::CreateToClient(builder_, wire::ToClientBodyTraits<Table>::enum_value, body.Union()));
    return {builder_.GetBufferPointer(), builder_.GetSize()};
  }

 private:
  static constexpr size_t kRoom = 1024;
  class Room final : public flatbuffers::Allocator {
   public:
    uint8_t* allocate(size_t size) override {
      if (!is_taken_ && size <= kRoom) {
        is_taken_ = true;
        return bytes_;
      }
      return new uint8_t[size];
    }
    void deallocate(uint8_t* bytes, size_t) override {
      if (bytes != bytes_) delete[] bytes;
    }

   private:
    alignas(16) uint8_t bytes_[kRoom];
    bool is_taken_ = false;
  };

  Room room_;
  flatbuffers::FlatBufferBuilder builder_;
};

// The message, whose every offset and size has been checked, or null.
const wire::ToServer* verified_to_server(Bytes message);
const wire::ToClient* verified_to_client(Bytes message);

flatbuffers::Offset<wire::Status> add_status(Message& message, const Failure& failure);
// Null means success, as does code 0.
Failure failure_of(const wire::Status* status);

inline wire::Digest to_wire(const Sha256& digest) {
  return wire::Digest(flatbuffers::span<const uint8_t, 32>(digest.data(), digest.size()));
}

inline Sha256 from_wire(const wire::Digest& digest) {
  Sha256 bytes;
  std::memcpy(bytes.data(), &digest, bytes.size());
  return bytes;
}

inline std::string_view view(const flatbuffers::String* text) {
  return text ? std::string_view(text->c_str(), text->size()) : std::string_view();
}

// The highest common version. UNIMPLEMENTED names both ranges.
Result<uint32_t> negotiate(uint32_t oldest, uint32_t newest);

}  // namespace halyard::remote
