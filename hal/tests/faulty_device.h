// Uses the faulty driver (faulty_driver.h) in the tests of this folder.
#pragma once

#include "faulty_driver.h"
#include "hal_test.h"

namespace halyard::hal {

const FaultyControls& faulty();
// Sets the wrapped driver; the default is the null driver.
void wrap_driver(const std::string& path, const std::string& kind);
void wrap_null_driver();
inline void inject(int function, int kind, int32_t code = 0, int64_t at = 0) {
  faulty().inject(function, kind, at, code);
}

// Starts without faults, and checks for leaks at the end.
class FaultyDriverTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  static Result<Ref<DriverLibrary>> open_library();
  static Result<Ref<Device>> open();
};

}  // namespace halyard::hal
