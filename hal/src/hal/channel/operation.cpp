// One table: how many blocks each kind of collective reads and writes.
#include "hal/channel/operation.h"

#include <iterator>

#include "halyard/channel/text.hpp"

namespace halyard::hal {

namespace {

// The number of blocks, each of element_count elements.
enum class Blocks : uint8_t { none, one, all };
// The ranks that read or write.
enum class Ranks : uint8_t { every, root };
struct Side {
  Blocks blocks;
  Ranks ranks = Ranks::every;
};
struct Kind {
  Side send;
  Side receive;
};
constexpr Kind kKinds[] = {
    {{Blocks::one}, {Blocks::all}},               // ALL_GATHER
    {{Blocks::one}, {Blocks::one}},               // ALL_REDUCE
    {{Blocks::one}, {Blocks::one}},               // ALL_TO_ALL
    {{Blocks::one, Ranks::root}, {Blocks::one}},  // BROADCAST
    {{Blocks::one}, {Blocks::one, Ranks::root}},  // REDUCE
    {{Blocks::all}, {Blocks::one}},               // REDUCE_SCATTER
    {{Blocks::one}, {Blocks::none}},              // SEND
    {{Blocks::none}, {Blocks::one}},              // RECV
    {{Blocks::one}, {Blocks::one}},               // SEND_RECV
};
static_assert(std::size(kKinds) == channel::kKindNames.size());

Result<> check_rank(const char* what, uint32_t rank, const Place& place) {
  if (rank < place.count) return {};
  return fail(Code::INVALID_ARGUMENT, "expected a {} below {}, the number of ranks of the channel, found {}",
              what, place.count, rank);
}

Result<uint64_t> size_of(const Side& side, const halyard_collective_t& collective, const Place& place) {
  if (side.blocks == Blocks::none || (side.ranks == Ranks::root && place.rank != collective.root)) return 0;
  uint64_t size = 0;
  if (__builtin_mul_overflow(collective.element_count, channel::element_size(collective.element), &size) ||
      (side.blocks == Blocks::all && __builtin_mul_overflow(size, place.count, &size)))
    return fail(Code::INVALID_ARGUMENT, "expected fewer than 2^64 bytes, found {} elements for {} ranks",
                collective.element_count, place.count);
  return size;
}

}  // namespace

Result<halyard_collective_t> unpack(uint32_t operation, uint32_t parameter, uint64_t element_count,
                                    const Place& place) {
  halyard_collective_t to = {};
  to.struct_size = sizeof to;
  to.kind = operation & 0xFF;
  to.reduction = operation >> 8 & 0xFF;
  to.element = operation >> 16 & 0xFF;
  to.root = 0;
  to.target = HALYARD_NO_RANK;
  to.source = HALYARD_NO_RANK;
  to.element_count = element_count;
  if (operation >> 24 != 0 || to.kind >= channel::kKindNames.size() ||
      to.reduction >= channel::kReductionNames.size() || to.element >= channel::kElementTypes.size())
    return fail(Code::INVALID_ARGUMENT,
                "expected a collective operation with a kind below {}, a reduction below {} and an element "
                "type below {}, found {:#x}",
                channel::kKindNames.size(), channel::kReductionNames.size(), channel::kElementTypes.size(),
                operation);
  const std::string_view kind = channel::kKindNames[to.kind];
  if (channel::reduces(to.kind) != (to.reduction != HALYARD_REDUCTION_NONE))
    return fail(Code::INVALID_ARGUMENT, "expected {} for {}, found reduction {}",
                channel::reduces(to.kind) ? "a reduction" : "no reduction", kind,
                channel::kReductionNames[to.reduction]);
  constexpr uint32_t kNone16 = 0xFFFF;
  switch (to.kind) {
    case HALYARD_COLLECTIVE_BROADCAST:
    case HALYARD_COLLECTIVE_REDUCE:
      to.root = parameter;
      HALYARD_TRY(check_rank("root rank", to.root, place));
      break;
    case HALYARD_COLLECTIVE_SEND:
      to.target = parameter;
      HALYARD_TRY(check_rank("target rank", to.target, place));
      break;
    case HALYARD_COLLECTIVE_RECV:
      to.source = parameter;
      HALYARD_TRY(check_rank("source rank", to.source, place));
      break;
    case HALYARD_COLLECTIVE_SEND_RECV:
      if (const uint32_t target = parameter & 0xFFFF; target != kNone16) {
        to.target = target;
        HALYARD_TRY(check_rank("target rank", target, place));
      }
      if (const uint32_t source = parameter >> 16; source != kNone16) {
        to.source = source;
        HALYARD_TRY(check_rank("source rank", source, place));
      }
      break;
    case HALYARD_COLLECTIVE_ALL_TO_ALL:
      if (element_count % place.count != 0)
        return fail(Code::INVALID_ARGUMENT,
                    "expected a number of elements for all_to_all that the {} ranks of the channel divide, "
                    "found {}",
                    place.count, element_count);
      break;
    default:
      break;
  }
  return to;
}

Result<CollectiveSizes> sizes_of(halyard_collective_t& collective, const Place& place, uint64_t send_length,
                                 uint64_t receive_length) {
  const Kind& kind = kKinds[collective.kind];
  CollectiveSizes sizes;
  if (collective.kind == HALYARD_COLLECTIVE_ALL_GATHER && collective.element_count % place.count == 0) {
    const uint64_t send = HALYARD_TRY(size_of(kind.send, collective, place));
    const Result<uint64_t> receive = size_of(kind.receive, collective, place);
    if (send > send_length || !receive || *receive > receive_length) collective.element_count /= place.count;
  }
  sizes.send = HALYARD_TRY(size_of(kind.send, collective, place));
  sizes.receive = HALYARD_TRY(size_of(kind.receive, collective, place));
  if (collective.kind == HALYARD_COLLECTIVE_SEND_RECV && collective.target == HALYARD_NO_RANK) sizes.send = 0;
  return sizes;
}

Result<> check_overlap(const halyard_collective_t& collective, const Place& place,
                       const CollectiveSizes& sizes, uint64_t send, uint64_t receive) {
  if (sizes.send == 0 || sizes.receive == 0) return {};
  if (send >= receive + sizes.receive || receive >= send + sizes.send) return {};
  switch (collective.kind) {
    case HALYARD_COLLECTIVE_ALL_REDUCE:
    case HALYARD_COLLECTIVE_REDUCE:
    case HALYARD_COLLECTIVE_BROADCAST:
      if (send == receive) return {};
      break;
    case HALYARD_COLLECTIVE_ALL_GATHER:
      if (send == receive + place.rank * sizes.send) return {};
      break;
    case HALYARD_COLLECTIVE_REDUCE_SCATTER:
      if (receive == send + place.rank * sizes.receive) return {};
      break;
    default:
      break;
  }
  return fail(
      Code::INVALID_ARGUMENT,
      "expected ranges to send and to receive without common bytes, found [{}, +{}) and [{}, +{}) for "
      "{}; receive into another buffer",
      send, sizes.send, receive, sizes.receive, channel::text_of(collective));
}

}  // namespace halyard::hal
