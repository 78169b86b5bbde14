# Cross compilation for 64-bit ARM on a Debian of another architecture; `./dev build arm64` prepares it: the cross compiler, and
# in HALYARD_FOREIGN_ROOT the libraries of Debian's arm64 packages, unpacked. Programs of the build run in qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HALYARD_FOREIGN_ROOT)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_PREFIX_PATH "${HALYARD_FOREIGN_ROOT}/usr")
set(libraries "${HALYARD_FOREIGN_ROOT}/usr/lib/aarch64-linux-gnu")
# Headers are the host's or the packages'; libraries must not be the host's.
set(CMAKE_FIND_ROOT_PATH "${HALYARD_FOREIGN_ROOT};/")
set(CMAKE_IGNORE_PREFIX_PATH /usr/local)
set(CMAKE_IGNORE_PATH /usr/lib/x86_64-linux-gnu /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu/cmake)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${libraries} -Wl,-rpath-link,${libraries}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-L${libraries} -Wl,-rpath-link,${libraries}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-L${libraries} -Wl,-rpath-link,${libraries}")

# HALYARD_EMULATED: for tests of what the emulator does not do (docs/porting.md).
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${libraries};-E;HALYARD_EMULATED=1)
