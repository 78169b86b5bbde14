# How tests are named, found and run. See tests/README.md.
#   halyard_add_tests(NAME PREFIX prefix LINKS target... [ENVIRONMENT NAME=value])
#     tests/*.cpp of the calling folder as one GoogleTest program; ctest sees every test as PREFIX.Suite.Test.
#   halyard_add_header_tests(header include-directory...)
#     the header alone, as C11 and as C++17, both pedantic.
# Seconds. Only what hangs may reach a limit, so they are for machines that are slow and busy.
set(HALYARD_TEST_TIMEOUT 1200)
set(HALYARD_TEST_ENVIRONMENT "HALYARD_BUILD=${PROJECT_BINARY_DIR}" "HALYARD_SOURCE=${PROJECT_SOURCE_DIR}")
if(CMAKE_CROSSCOMPILING OR HALYARD_COVERAGE)
  set(HALYARD_TEST_TIMEOUT 3600) # an emulator, or no optimization and counters
endif()
if(HALYARD_SANITIZE STREQUAL "thread")
  # ThreadSanitizer of g++ 12 does not support the address space randomization of newer kernels.
  set(CMAKE_CROSSCOMPILING_EMULATOR setarch;--addr-no-randomize)
endif()

function(halyard_add_tests name)
  if(NOT HALYARD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX" "LINKS;ENVIRONMENT;SOURCES")
  set(sources ${arg_SOURCES})
  if(NOT sources)
    file(GLOB sources CONFIGURE_DEPENDS "tests/*.cpp")
  endif()
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/base/tests")
  target_compile_definitions(${name} PRIVATE HALYARD_BUILD_DIR="${PROJECT_BINARY_DIR}"
                                             HALYARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Half the time of the compiler. What is tested is in libraries, which are optimized.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT HALYARD_SANITIZE)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0> -U_FORTIFY_SOURCE)
  endif()
  halyard_precompile_headers(${name} <gtest/gtest.h>)
  halyard_compile_together(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  include(GoogleTest)
  set(environment "")
  if(arg_ENVIRONMENT) # one variable: gtest_discover_tests takes a list of several for names and values of properties
    set(environment ENVIRONMENT "${arg_ENVIRONMENT}")
  endif()
  gtest_discover_tests(
    ${name}
    TEST_PREFIX "${arg_PREFIX}."
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 600
    PROPERTIES TIMEOUT ${HALYARD_TEST_TIMEOUT} ${environment})
endfunction()

function(halyard_add_header_tests header)
  if(NOT HALYARD_TESTS)
    return()
  endif()
  cmake_path(GET header FILENAME file)
  list(TRANSFORM ARGN PREPEND "-I" OUTPUT_VARIABLE includes)
  set(strict -pedantic-errors -Wall -Wextra -Werror -fsyntax-only)
  add_test(NAME header.${file}.c11 COMMAND "${CMAKE_C_COMPILER}" -std=c11 ${strict} ${includes} -include halyard/${file}
                                           -x c /dev/null)
  add_test(NAME header.${file}.c++17 COMMAND "${CMAKE_CXX_COMPILER}" -std=c++17 ${strict} ${includes} -include
                                             halyard/${file} -x c++ /dev/null)
endfunction()
