// LocalWorld: channels between threads of one process, or between the devices of one thread. Each rank has a
// provider of its own, behind the same table as those of libraries. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "base/object.h"
#include "base/origin.h"
#include "hal/channel/provider.h"

namespace halyard::hal {

class LocalWorld final : public ObjectOf<LocalWorld> {
 public:
  static const ObjectType kType;

  // A world of `count` ranks, at least one.
  static Ref<LocalWorld> create(uint32_t count);
  // The provider of a rank, which is below the count; a new one with each call.
  Ref<ChannelProvider> provider(uint32_t rank);

  struct State;
  explicit LocalWorld(std::unique_ptr<State> state);
  ~LocalWorld();

 private:
  Origin origin_;
  std::unique_ptr<State> state_;
};

}  // namespace halyard::hal
