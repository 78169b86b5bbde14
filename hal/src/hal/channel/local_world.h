// LocalWorld: channels between threads of one process, or between the devices of one thread. Each rank has
// its own provider, with the same function table as providers from libraries. Thread-safe.
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

  // Creates a world of `count` ranks; `count` is at least 1.
  static Ref<LocalWorld> create(uint32_t count);
  // Returns a new provider for a rank; `rank` is less than the count.
  Ref<ChannelProvider> provider(uint32_t rank);

  struct State;
  explicit LocalWorld(std::unique_ptr<State> state);
  ~LocalWorld();

 private:
  Origin origin_;
  std::unique_ptr<State> state_;
};

}  // namespace halyard::hal
