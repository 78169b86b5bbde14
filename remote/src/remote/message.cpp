// Messages are verified with bounds on their depth and on the number of their tables.
#include "remote/message.h"

#include <algorithm>

namespace halyard::remote {

namespace {

constexpr flatbuffers::uoffset_t kMaxDepth = 16;
constexpr flatbuffers::uoffset_t kMaxTables = 1 << 20;

template <typename Root>
const Root* verified(Bytes message) {
  flatbuffers::Verifier verifier(message.data(), message.size(), kMaxDepth, kMaxTables);
  if (!verifier.VerifyBuffer<Root>(nullptr)) return nullptr;
  const Root* const root = flatbuffers::GetRoot<Root>(message.data());
  return root->body() ? root : nullptr;
}

}  // namespace

const wire::ToServer* verified_to_server(Bytes message) { return verified<wire::ToServer>(message); }
const wire::ToClient* verified_to_client(Bytes message) { return verified<wire::ToClient>(message); }

flatbuffers::Offset<wire::Status> add_status(Message& message, const Failure& failure) {
  constexpr size_t kLongest = 64 << 10;
  const auto text = message.text(std::string_view(failure.message).substr(0, kLongest));
  return wire::CreateStatus(message.builder(), failure.code, text);
}

Failure failure_of(const wire::Status* status) {
  if (!status) return {HALYARD_OK, ""};
  // Only codes of failures: 17 is none, and later versions may have more.
  const int32_t code = status->code();
  const bool is_known = code > HALYARD_OK && code <= HALYARD_INCOMPATIBLE && code != HALYARD_DEFERRED;
  return {is_known || code == HALYARD_OK ? code : halyard_status_code_t{HALYARD_UNKNOWN},
          std::string(view(status->message()))};
}

Result<uint32_t> negotiate(uint32_t oldest, uint32_t newest) {
  const uint32_t version = std::min(newest, kNewestVersion);
  if (oldest > 0 && version >= std::max(oldest, kOldestVersion)) return version;
  return fail(HALYARD_UNIMPLEMENTED,
              "the client speaks versions {} to {} of the protocol, the server {} to {}; install Halyard of "
              "the same release "
              "on both sides",
              oldest, newest, kOldestVersion, kNewestVersion);
}

}  // namespace halyard::remote
