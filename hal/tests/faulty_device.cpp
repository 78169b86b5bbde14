// The faulty driver: its controls, and leak checks after a test.
#include "faulty_device.h"

#include <dlfcn.h>

#include "hal/device/callback_scope.h"
#include "sample_drivers.h"

namespace halyard::hal {

const FaultyControls& faulty() {
  static const FaultyControls& controls = []() -> const FaultyControls& {
    void* const library = ::dlopen(sample_path("faulty").c_str(), RTLD_NOW | RTLD_LOCAL);
    using Function = const FaultyControls* (*)();
    return *reinterpret_cast<Function>(::dlsym(library, FAULTY_CONTROLS_SYMBOL))();
  }();
  return controls;
}

void wrap_driver(const std::string& path, const std::string& kind) {
  faulty().wrap(path.c_str(), kind.c_str());
}
void wrap_null_driver() {
  wrap_driver(HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-null.so", "null");
}

void FaultyDriverTest::SetUp() {
  wrap_null_driver();
  faulty().reset();
}

void FaultyDriverTest::TearDown() {
  faulty().await_late_calls();
  await_outside_of_callbacks(*test_loop());  // devices whose last reference was dropped in a callback
  static const char* const kNames[] = {"instances",  "devices",     "memory",
                                       "semaphores", "executables", "lists"};
  for (int kind = 0; kind < FAULTY_HANDLES; ++kind) EXPECT_EQ(faulty().live(kind), 0) << kNames[kind];
  faulty().reset();
}

Result<Ref<DriverLibrary>> FaultyDriverTest::open_library() {
  return DriverLibrary::open(sample_path("faulty"));
}

Result<Ref<Device>> FaultyDriverTest::open() {
  return Device::open(HALYARD_TRY(open_library()), "faulty", "", {}, false, test_loop());
}

}  // namespace halyard::hal
