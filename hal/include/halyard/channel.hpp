// A kit for channel providers in C++20, over halyard/channel.h, which remains the contract: names, sizes,
// time limits and the arithmetic of reductions. Providers that use this arithmetic compute the same bits.
// Header only, and not an ABI: every provider compiles its own copy.
#ifndef HALYARD_CHANNEL_HPP_
#define HALYARD_CHANNEL_HPP_

#if __cplusplus < 202002L
#error "halyard/channel.hpp needs C++20; compile with -std=c++20"
#else

#include "halyard/channel/reduce.hpp"
#include "halyard/channel/small_float.hpp"
#include "halyard/channel/stop.hpp"
#include "halyard/channel/text.hpp"

#endif  // C++20

#endif  // HALYARD_CHANNEL_HPP_
