// Names and sizes for the numbers of halyard/channel.h, and collectives as text.
#ifndef HALYARD_CHANNEL_TEXT_HPP_
#define HALYARD_CHANNEL_TEXT_HPP_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "halyard/channel.h"

namespace halyard::channel {

inline constexpr std::array<std::string_view, 9> kKindNames = {"all_gather", "all_reduce", "all_to_all",
                                                               "broadcast",  "reduce",     "reduce_scatter",
                                                               "send",       "recv",       "send_recv"};
inline constexpr std::array<std::string_view, 6> kReductionNames = {"none",    "sum",     "product",
                                                                    "minimum", "maximum", "average"};
struct ElementType {
  std::string_view name;
  uint32_t size;  // bytes
};
inline constexpr std::array<ElementType, 16> kElementTypes = {{{"si8", 1},
                                                               {"ui8", 1},
                                                               {"si16", 2},
                                                               {"ui16", 2},
                                                               {"si32", 4},
                                                               {"ui32", 4},
                                                               {"si64", 8},
                                                               {"ui64", 8},
                                                               {"f16", 2},
                                                               {"f32", 4},
                                                               {"f64", 8},
                                                               {"bf16", 2},
                                                               {"f8E5M2", 1},
                                                               {"f8E4M3FN", 1},
                                                               {"f8E5M2FNUZ", 1},
                                                               {"f8E4M3FNUZ", 1}}};

constexpr uint32_t element_size(uint32_t element) { return kElementTypes[element].size; }

constexpr bool reduces(uint32_t kind) {
  return kind == HALYARD_COLLECTIVE_ALL_REDUCE || kind == HALYARD_COLLECTIVE_REDUCE ||
         kind == HALYARD_COLLECTIVE_REDUCE_SCATTER;
}
constexpr bool is_point_to_point(uint32_t kind) {
  return kind == HALYARD_COLLECTIVE_SEND || kind == HALYARD_COLLECTIVE_RECV ||
         kind == HALYARD_COLLECTIVE_SEND_RECV;
}

// "all_reduce sum f32 x 1024", "broadcast from 0 si8 x 3", "send to 1 f16 x 8".
inline std::string text_of(const halyard_collective_t& collective) {
  std::string text(kKindNames[collective.kind]);
  if (reduces(collective.kind)) text.append(" ").append(kReductionNames[collective.reduction]);
  if (collective.kind == HALYARD_COLLECTIVE_BROADCAST) text += " from " + std::to_string(collective.root);
  if (collective.kind == HALYARD_COLLECTIVE_REDUCE) text += " to " + std::to_string(collective.root);
  if (is_point_to_point(collective.kind)) {
    if (collective.target != HALYARD_NO_RANK) text += " to " + std::to_string(collective.target);
    if (collective.source != HALYARD_NO_RANK) text += " from " + std::to_string(collective.source);
  }
  text.append(" ").append(kElementTypes[collective.element].name);
  return text + " x " + std::to_string(collective.element_count);
}

}  // namespace halyard::channel

#endif  // HALYARD_CHANNEL_TEXT_HPP_
