# Every Debian 12 package that the build needs. Reports all missing ones at once, with their package names.
set(missing "")
# require(PACKAGE NAME...): the Debian package is missing where one of these is neither a variable that is set nor a target.
macro(require package)
  foreach(name IN ITEMS ${ARGN})
    if(NOT ${name} AND NOT TARGET ${name})
      list(APPEND missing ${package})
      break()
    endif()
  endforeach()
endmacro()

find_package(Threads REQUIRED)

find_package(fmt CONFIG QUIET)
require(libfmt-dev fmt::fmt-header-only)

find_path(HALYARD_FFI_INCLUDE ffi.h PATH_SUFFIXES ffi)
# The archive where there is one: libhalyard.so contains it, and no process has to load it for native modules that it may not have.
find_library(HALYARD_FFI_LIBRARY NAMES libffi_pic.a ffi)
require(libffi-dev HALYARD_FFI_INCLUDE HALYARD_FFI_LIBRARY)

# Headers only: Asio, the event loop. Debian 12 has 1.74 and 1.81; 1.81 is tested.
find_path(HALYARD_BOOST_INCLUDE boost/asio/any_completion_handler.hpp)
require(libboost1.81-dev HALYARD_BOOST_INCLUDE)

# Headers only: JSON of the tools and of parameter files.
find_path(HALYARD_JSON_INCLUDE nlohmann/json.hpp)
require(nlohmann-json3-dev HALYARD_JSON_INCLUDE)

# TLS and SHA-256 of remote devices: the driver remote, and vm-device.
find_package(OpenSSL 3.0 QUIET)
require(libssl-dev OpenSSL::SSL OpenSSL::Crypto)

# Compressed requests of vm-serve.
find_package(ZLIB QUIET)
require(zlib1g-dev ZLIB::ZLIB)

find_path(HALYARD_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h)
require(libflatbuffers-dev HALYARD_FLATBUFFERS_INCLUDE)
find_program(HALYARD_FLATC flatc)
require(flatbuffers-compiler HALYARD_FLATC)

# Headers only: the library would be loaded with the driver, and its initializers take 3 ms.
find_path(HALYARD_HWY_INCLUDE hwy/highway.h)
require(libhwy-dev HALYARD_HWY_INCLUDE)
# Headers only: libvulkan is opened at run time.
find_path(HALYARD_VULKAN_INCLUDE vulkan/vulkan_core.h)
require(libvulkan-dev HALYARD_VULKAN_INCLUDE)
find_path(HALYARD_SPIRV_TOOLS_INCLUDE spirv-tools/libspirv.h)
find_library(HALYARD_SPIRV_TOOLS_LIBRARY SPIRV-Tools)
require(spirv-tools HALYARD_SPIRV_TOOLS_INCLUDE HALYARD_SPIRV_TOOLS_LIBRARY)
find_program(HALYARD_GLSLANG glslangValidator)
require(glslang-tools HALYARD_GLSLANG)

if(HALYARD_TESTS)
  find_package(GTest CONFIG QUIET)
  require(libgtest-dev GTest::gtest_main)
  find_program(HALYARD_PYTHON python3)
  require(python3 HALYARD_PYTHON)
endif()

# For vm-bench and the benchmarks.
if(NOT HALYARD_STATIC)
  find_package(benchmark CONFIG QUIET)
  require(libbenchmark-dev benchmark::benchmark)
endif()

if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "Missing Debian packages: ${missing}\n"
                      "Run `./dev setup`, or `apt-get install ${missing}`.")
endif()

add_library(Ffi::ffi UNKNOWN IMPORTED)
set_target_properties(Ffi::ffi PROPERTIES IMPORTED_LOCATION "${HALYARD_FFI_LIBRARY}"
                                          INTERFACE_INCLUDE_DIRECTORIES "${HALYARD_FFI_INCLUDE}")

# Without assertions, which call the library.
add_library(Hwy::hwy INTERFACE IMPORTED)
set_target_properties(Hwy::hwy PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${HALYARD_HWY_INCLUDE}"
                                          INTERFACE_COMPILE_DEFINITIONS HWY_IS_DEBUG_BUILD=0)

# For the Vulkan driver: headers, and the library that validates SPIR-V.
add_library(Halyard::Vulkan INTERFACE IMPORTED)
set_target_properties(
  Halyard::Vulkan
  PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${HALYARD_VULKAN_INCLUDE};${HALYARD_SPIRV_TOOLS_INCLUDE}"
             INTERFACE_LINK_LIBRARIES "${HALYARD_SPIRV_TOOLS_LIBRARY}")

find_program(HALYARD_CCACHE ccache)
if(HALYARD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher "${HALYARD_CCACHE}")
  if(HALYARD_PCH) # as ccache's manual asks for
    set(launcher "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${HALYARD_CCACHE}")
  elseif(HALYARD_REPRODUCIBLE)
    # ccache would make file names relative to the folder of the build where it has a base_dir, which shows in debug information.
    set(launcher "${CMAKE_COMMAND}" -E env CCACHE_BASEDIR= "${HALYARD_CCACHE}")
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
