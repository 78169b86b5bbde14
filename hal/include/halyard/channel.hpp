// A kit for channel providers in C++20: names, sizes and the arithmetic of reductions, over
// halyard/channel.h, which stays the contract. Providers that reduce with it compute the same bits. Header
// only; a header, not an ABI: every provider has its own copy.
#ifndef HALYARD_CHANNEL_HPP_
#define HALYARD_CHANNEL_HPP_

#include "halyard/channel/reduce.hpp"
#include "halyard/channel/small_float.hpp"
#include "halyard/channel/text.hpp"

#endif  // HALYARD_CHANNEL_HPP_
