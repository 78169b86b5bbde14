// A list of addresses; an address is listed as long as the object lives.
#include "made_here.h"

#include <pthread.h>

#include <mutex>
#include <unordered_set>

#include "base/origin.h"
#include "hal/channel/provider.h"
#include "hal/device/device.h"
#include "handles.h"

namespace halyard::c {

namespace {

struct Made {
  std::mutex mutex;
  std::unordered_set<const Object*> objects;
};

// The list of this process. A child process starts a new list, because the lock of the inherited list may be
// held.
Made* made = nullptr;

void begin_list() { made = new Made; }

[[gnu::constructor]] void watch_forks() { static_cast<void>(::pthread_atfork(nullptr, nullptr, begin_list)); }

bool has_threads_around(const Object* object) {
  const ObjectType* const type = object->type();
  for (const ObjectType* each : {&Instance::kType, &hal::Device::kType, &vm::Context::kType, &Function::kType,
                                 &Call::kType, &hal::ChannelProvider::kType})
    if (type == each) return true;
  return false;
}

}  // namespace

void note_made(const Object* object) {
  if (!made) [[likely]]
    return;
  const std::lock_guard lock(made->mutex);
  made->objects.insert(object);
}

bool is_inherited(const Object* object) {
  if (!made || !object || !has_threads_around(object)) [[likely]]
    return false;
  const std::lock_guard lock(made->mutex);
  const auto found = made->objects.find(object);
  if (found == made->objects.end()) return true;
  if (object->unique()) made->objects.erase(found);
  return false;
}

}  // namespace halyard::c
