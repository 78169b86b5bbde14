# HALYARD_HARDENING: what is installed is compiled and linked so that a fault in memory is more likely to end the process than to
# be of use to somebody: canaries on the stack, checked functions of the C library, control flow that the processor checks where
# it can, and tables of the dynamic linker that nobody can write to. benchmarks/README.md has the cost.
# Sanitizers check more than that, and have no use for it.
option(HALYARD_HARDENING "Stack protector, checked C library functions, CET or BTI, no lazy binding" ON)
# Options for the interpreter's loops, whose handlers are entered by indirect jumps: with those of HALYARD_HARDENING each handler
# would begin with an instruction that marks it, one more for each instruction of bytecode.
set(HALYARD_UNMARKED_HANDLERS "")
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
    if(flag STREQUAL halyard_branches)
      set(HALYARD_UNMARKED_HANDLERS "${halyard_returns}")
    endif()
  endif()
endforeach()

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
