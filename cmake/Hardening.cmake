# HALYARD_HARDENING: what is installed is compiled and linked so that a fault in memory is more likely to end the process than to
# be of use to somebody: canaries on the stack, checked functions of the C library, control flow that the processor checks where
# it can, and tables of the dynamic linker that nobody can write to. benchmarks/README.md has the cost.
# Sanitizers check more than that, and have no use for it.
option(HALYARD_HARDENING "Stack protector, checked C library functions, CET or BTI, no lazy binding" ON)
# halyard_harden_warm_calls(TARGET): what a warm call runs has canaries only in functions with an array on the stack, and no marks
# at the targets of indirect branches: both for every function would be 4 to 9 % of a call's instructions.
function(halyard_harden_warm_calls target)
  target_compile_options(${target} PRIVATE ${halyard_warm_options})
endfunction()
set(halyard_warm_options "")
if(NOT HALYARD_HARDENING OR HALYARD_SANITIZE OR HALYARD_SMALL) # a small build is for what has little memory
  return()
endif()
include(CheckCXXCompilerFlag)
include(CheckPIESupported)
if(CMAKE_POSITION_INDEPENDENT_CODE)
  check_pie_supported(OUTPUT_VARIABLE halyard_pie_refusal LANGUAGES C CXX) # programs lie at random addresses
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(halyard_branches -fcf-protection=full)
  set(halyard_returns -fcf-protection=return)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(halyard_branches -mbranch-protection=standard)
  set(halyard_returns -mbranch-protection=pac-ret)
endif()
foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection ${halyard_branches})
  string(MAKE_C_IDENTIFIER "HALYARD_COMPILER_HAS${flag}" known)
  check_cxx_compiler_flag("${flag}" ${known})
  if(${known})
    add_compile_options("${flag}")
  endif()
endforeach()
if(HALYARD_COMPILER_HAS_fstack_protector_strong)
  list(APPEND halyard_warm_options -fstack-protector)
endif()
string(MAKE_C_IDENTIFIER "HALYARD_COMPILER_HAS${halyard_branches}" known)
if(${known})
  list(APPEND halyard_warm_options ${halyard_returns})
endif()

# Needs an optimizing compiler. 3 also knows sizes that are computed; older C libraries warn of it.
check_cxx_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 34)
#error older
#endif
int main() {}" HALYARD_LIBC_FORTIFIES_COMPUTED_SIZES)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_options(-U_FORTIFY_SOURCE "-D_FORTIFY_SOURCE=$<IF:$<BOOL:${HALYARD_LIBC_FORTIFIES_COMPUTED_SIZES}>,3,2>")
endif()

add_link_options("LINKER:-z,relro" "LINKER:-z,now" "LINKER:-z,noexecstack")
