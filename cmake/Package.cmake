# Debian packages by CPack, one per use; `./dev package` configures for them and runs CPack. A component is a package:
# folders set CMAKE_INSTALL_DEFAULT_COMPONENT_NAME. Included last, where HALYARD_PACKAGES is on.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME halyard)
# CPack puts any summary but this one, its default, before each package's own.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_PROJECT_NAME} built using CMake")
set(HALYARD_MAINTAINER "Halyard maintainers <halyard@users.noreply.github.com>" CACHE STRING "Who answers for the packages")
set(CPACK_PACKAGE_CONTACT "${HALYARD_MAINTAINER}")
set(CPACK_PACKAGE_VENDOR "Halyard")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)

# halyard_package(COMPONENT name SECTION section SUMMARY text DESCRIPTION text [DEPENDS text] [RECOMMENDS text]
#                 [ALL]): a package of the files of a component. ALL: the same on every architecture.
set(CPACK_COMPONENTS_ALL "")
macro(halyard_package component)
  cmake_parse_arguments(package "ALL" "NAME;SECTION;SUMMARY;DESCRIPTION;DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package_NAME})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${package_SECTION})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${package_SUMMARY}\n${package_DESCRIPTION}")
  foreach(field IN ITEMS DEPENDS RECOMMENDS SUGGESTS)
    if(package_${field})
      set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${package_${field}}")
    endif()
  endforeach()
  if(package_ALL)
    set(CPACK_DEBIAN_${upper}_PACKAGE_ARCHITECTURE all)
    set(CPACK_DEBIAN_${upper}_DEBUGINFO_PACKAGE OFF)
  endif()
  # What Debian asks of every package: the licence, and the changes.
  set(doc "${CMAKE_INSTALL_DATAROOTDIR}/doc/${package_NAME}")
  install(FILES "${PROJECT_BINARY_DIR}/install/copyright" "${PROJECT_BINARY_DIR}/install/changelog.gz" DESTINATION "${doc}"
          COMPONENT ${component})
endmacro()

set(same "(= ${PROJECT_VERSION})")
halyard_package(
  runtime
  NAME libhalyard0
  SECTION libs
  SUMMARY "runtime for compiled machine-learning programs"
  DESCRIPTION
    "Runs .vmfb modules, as iree-compile makes them, of every release from 3.1 on.\nThis package holds the library and the driver for the processor.")
halyard_package(
  tools
  NAME halyard-tools
  SECTION devel
  SUMMARY "run, serve, inspect and assemble .vmfb modules"
  DESCRIPTION
    "The commands vm-run, vm-serve, vm-check, vm-diff, vm-dump, vm-as, vm-cc and\nhal-info, with manual pages, completions for bash and zsh, documents and\nexamples."
  DEPENDS "libhalyard0 ${same}"
  SUGGESTS "halyard-bench, halyard-serve-grpc")
halyard_package(
  bench
  NAME halyard-bench
  SECTION devel
  SUMMARY "measure .vmfb modules"
  DESCRIPTION "The command vm-bench, with its manual page and completions for bash and zsh."
  DEPENDS "libhalyard0 ${same}")
halyard_package(
  vulkan
  NAME halyard-vulkan
  SECTION libs
  SUMMARY "Halyard's driver for GPUs with Vulkan"
  DESCRIPTION "Runs the device code of .vmfb modules on every device with Vulkan 1.1 or newer."
  DEPENDS "libhalyard0 ${same}, libvulkan1"
  RECOMMENDS "mesa-vulkan-drivers | vulkan-icd")
halyard_package(
  remote
  NAME halyard-remote
  SECTION devel
  SUMMARY "devices on other machines for Halyard"
  DESCRIPTION
    "The driver for devices of other machines, over TLS, and of other processes,\nover Unix sockets. Their server is the command vm-device, with its manual page,\ncompletions for bash and zsh, and units for systemd."
  DEPENDS "libhalyard0 ${same}")
halyard_package(
  dev
  NAME libhalyard-dev
  SECTION libdevel
  SUMMARY "headers, templates and conformance suite of Halyard"
  DESCRIPTION
    "To embed Halyard in C or C++, to write drivers for devices, and to write native\nmodules: headers, CMake and pkg-config files, templates, hal-cts. The headers\ncite the documents of halyard-tools."
  DEPENDS "libhalyard0 ${same}, halyard-tools ${same}"
  SUGGESTS "cmake, pkg-config")
if(TARGET halyard-jit-llvm)
  halyard_package(
    jit
    NAME halyard-jit
    SECTION libs
    SUMMARY "just-in-time compiler for Halyard"
    DESCRIPTION "Compiles bytecode of .vmfb modules to machine code with LLVM while they run."
    DEPENDS "libhalyard0 ${same}")
endif()
if(TARGET halyard-emit-llvm)
  halyard_package(
    emit
    NAME halyard-emit
    SECTION devel
    SUMMARY "ahead-of-time compiler of kernels for Halyard"
    DESCRIPTION
      "Lets vm-cc compile portable kernels of .vmfb modules to machine code, for\nx86-64, arm64 and riscv64, with the flag --emit=vmfb."
    DEPENDS "halyard-tools ${same}")
endif()
if(TARGET vm-serve-grpc)
  halyard_package(
    grpc
    NAME halyard-serve-grpc
    SECTION libs
    SUMMARY "gRPC for vm-serve"
    DESCRIPTION "Lets vm-serve answer inference requests over gRPC, with the flag --grpc."
    DEPENDS "halyard-tools ${same}")
endif()
if(TARGET halyard-channel-mpi-openmpi) # Debian's usual MPI
  halyard_package(
    openmpi
    NAME halyard-mpi
    SECTION libs
    SUMMARY "collectives over Open MPI for Halyard"
    DESCRIPTION "Lets programs that were compiled for several ranks communicate by Open MPI."
    DEPENDS "libhalyard0 ${same}")
endif()
if(TARGET halyard-channel-mpi-mpich)
  halyard_package(
    mpich
    NAME halyard-mpi-mpich
    SECTION libs
    SUMMARY "collectives over MPICH for Halyard"
    DESCRIPTION "Lets programs that were compiled for several ranks communicate by MPICH."
    DEPENDS "libhalyard0 ${same}")
endif()
if(TARGET halyard-python)
  halyard_package(
    python
    NAME python3-halyard
    SECTION python
    SUMMARY "Halyard for Python"
    DESCRIPTION "Runs .vmfb modules from Python, with and without numpy."
    DEPENDS "libhalyard0 ${same}, python3 (>= 3.11)"
    SUGGESTS "python3-numpy")
  # Byte code is made where the package is installed, and removed with it.
  foreach(script IN ITEMS postinst prerm)
    configure_file("${PROJECT_SOURCE_DIR}/packaging/debian/python-${script}.in" "${PROJECT_BINARY_DIR}/install/${script}" @ONLY
                   FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/install/postinst;${PROJECT_BINARY_DIR}/install/prerm")
endif()

# How other packages depend on the library, and the renewal of the loader's cache.
file(WRITE "${PROJECT_BINARY_DIR}/install/shlibs" "libhalyard 0 libhalyard0 (>= ${PROJECT_VERSION})\n")
file(WRITE "${PROJECT_BINARY_DIR}/install/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/install/shlibs;${PROJECT_BINARY_DIR}/install/triggers")

# The files for /usr/share/doc/PACKAGE. The date is the last commit's, or the day of the source archive.
configure_file("${PROJECT_SOURCE_DIR}/packaging/debian/copyright.in" "${PROJECT_BINARY_DIR}/install/copyright" @ONLY)
string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, where it is set
file(WRITE "${PROJECT_BINARY_DIR}/install/changelog"
     "halyard (${PROJECT_VERSION}) unstable; urgency=medium\n\n"
     "  * Release ${PROJECT_VERSION}; /usr/share/doc/halyard/CHANGELOG.md in halyard-tools\n"
     "    says what is new.\n\n"
     " -- ${CPACK_PACKAGE_CONTACT}  ${package_date}\n")
execute_process(COMMAND gzip -9nf "${PROJECT_BINARY_DIR}/install/changelog" RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "gzip could not compress the changelog of the packages: ${failed}")
endif()

include(CPack)
