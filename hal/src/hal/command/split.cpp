// Splits a recording with collectives into pieces: the driver executes the other commands, the host the
// collectives. Commands between two barriers (a region) may run in any order, so the collectives of a region
// run after its other commands, and all begin together.
#include <cstring>

#include "hal/command/command_buffer.h"

namespace halyard::hal {

namespace {

struct Splitter {
  std::vector<CommandBuffer::Piece>& pieces;
  std::vector<uint64_t> words = {};  // of the driver's next piece
  uint32_t commands = 0;
  bool has_work = false;                             // a command other than barriers and groups
  std::vector<std::span<const uint64_t>> open = {};  // open debug groups
  std::vector<uint32_t> counts = {};                 // number of commands in each piece
  uint32_t collectives = 0;                          // so far
  uint32_t pending = 0;                              // of this region

  void append(std::span<const uint64_t> command) {
    words.insert(words.end(), command.begin(), command.end());
    ++commands;
  }

  // Ends the driver's piece. Open debug groups end in this piece, and begin again in the next one.
  void cut() {
    if (has_work) {
      const halyard_command_t end = {sizeof end, HALYARD_COMMAND_END_GROUP};
      uint64_t word = 0;
      static_assert(sizeof end == sizeof word);
      std::memcpy(&word, &end, sizeof end);
      for (size_t i = 0; i < open.size(); ++i) append({&word, 1});
      pieces.push_back({.words = std::move(words)});
      counts.push_back(commands);
    }
    words.clear();
    commands = 0;
    has_work = false;
    for (const std::span<const uint64_t> group : open) append(group);
  }

  void end_region() {
    if (pending == 0) return;
    cut();
    pieces.push_back({.first_collective = collectives - pending, .collective_count = pending});
    counts.push_back(0);
    pending = 0;
  }

  void add(std::span<const uint64_t> command, uint32_t kind) {
    switch (kind) {
      case HALYARD_COMMAND_COLLECTIVE:
        ++collectives;
        ++pending;
        return;
      case HALYARD_COMMAND_BARRIER:
        // All work of a piece is complete when it ends, so the next piece needs no barrier at its begin.
        end_region();
        if (has_work) append(command);
        return;
      case HALYARD_COMMAND_BEGIN_GROUP:
        open.push_back(command);
        break;
      case HALYARD_COMMAND_END_GROUP:
        if (!open.empty()) open.pop_back();
        break;
      default:
        has_work = true;
        break;
    }
    append(command);
  }
};

}  // namespace

Result<> CommandBuffer::split() {
  Splitter splitter{pieces_};
  // Open debug groups are repeated in each piece, so the pieces can be much larger than the recording.
  size_t charged = 0;
  const auto charge = [&]() -> Result<> {
    constexpr uint64_t kCopies = 2;  // this one, and an estimate of the driver's
    for (; charged < pieces_.size(); ++charged)
      HALYARD_TRY(charge_.grow_by(
          block_bytes(pieces_[charged].words.size() * sizeof(uint64_t)) * kCopies + sizeof(Piece),
          "a command buffer"));
    return {};
  };
  const std::span<const uint64_t> all = words_;
  for (size_t word = 0; word < all.size();) {
    halyard_command_t header;
    std::memcpy(&header, &all[word], sizeof header);
    const size_t size = header.size / sizeof(uint64_t);
    splitter.add(all.subspan(word, size), header.kind);
    HALYARD_TRY(charge());
    word += size;
  }
  splitter.end_region();
  splitter.cut();
  HALYARD_TRY(charge());
  for (size_t i = 0; i < pieces_.size(); ++i)
    if (pieces_[i].collective_count == 0)
      pieces_[i].list = HALYARD_TRY(make_list(pieces_[i].words, splitter.counts[i]));
  return {};
}

}  // namespace halyard::hal
