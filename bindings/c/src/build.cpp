// How this library was built: the build defines HALYARD_VERSION and HALYARD_BUILD_TYPE.
#include "hal/driver/driver_library.h"
#include "handles.h"
#include "vm/native/module_definition.h"

using namespace halyard;
using namespace halyard::c;

#define HALYARD_TEXT_(x) #x
#define HALYARD_NUMBER_(x) HALYARD_TEXT_(x)
#if defined(__clang__)
#define HALYARD_COMPILER_                                                                             \
  "clang " HALYARD_NUMBER_(__clang_major__) "." HALYARD_NUMBER_(__clang_minor__) "." HALYARD_NUMBER_( \
      __clang_patchlevel__)
#else
#define HALYARD_COMPILER_                                                                   \
  "g++ " HALYARD_NUMBER_(__GNUC__) "." HALYARD_NUMBER_(__GNUC_MINOR__) "." HALYARD_NUMBER_( \
      __GNUC_PATCHLEVEL__)
#endif
#if defined(__x86_64__)
#define HALYARD_PROCESSOR_ "x86_64"
#elif defined(__aarch64__)
#define HALYARD_PROCESSOR_ "aarch64"
#else
#define HALYARD_PROCESSOR_ "another processor"
#endif

halyard_status_t halyard_build_describe(halyard_build_t* build) {
  return guarded([&]() -> Result<> {
    halyard_build_t filled = {};
    filled.sanitizer = HALYARD_SANITIZER_KIND;
    filled.driver_abi_min = hal::kDriverAbi.low;
    filled.driver_abi_max = hal::kDriverAbi.high;
    filled.module_abi_min = vm::kModuleAbi.low;
    filled.module_abi_max = vm::kModuleAbi.high;
    filled.version = HALYARD_VERSION;
    filled.compiler = HALYARD_COMPILER_;
    filled.type = HALYARD_BUILD_TYPE;
    filled.processor = HALYARD_PROCESSOR_;
    return fill_info(build, filled, "build");
  });
}
