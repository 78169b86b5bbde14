# HALYARD_OWN_CXX_LIBRARY: libhalyard, the local driver and the tools contain the functions of libstdc++ and libgcc that they use.
# A process of vm-run then loads neither library: a fifth of its time was for them, mostly for the 3,300 symbols that the dynamic
# linker looks up for libstdc++ itself (benchmarks/README.md). The copies do not meet: no exception and no C++ object crosses a
# library boundary, nothing exports a function of them, and memory comes from one operator new (base/own_cxx_library). Without
# effect in debug builds and builds with a sanitizer.
option(HALYARD_OWN_CXX_LIBRARY "Programs and libraries contain what they use of libstdc++ and libgcc" ON)
set(halyard_owns_cxx_library FALSE)
if(HALYARD_OWN_CXX_LIBRARY AND halyard_gnu_release AND NOT HALYARD_STATIC)
  set(CMAKE_REQUIRED_FLAGS -fPIC)
  set(CMAKE_REQUIRED_LINK_OPTIONS -shared -static-libstdc++ -static-libgcc)
  check_cxx_source_compiles("#include <string>
std::string text(const char* part) { return std::string(\"text\") + part; }" HALYARD_CXX_LIBRARY_IS_RELOCATABLE)
  set(CMAKE_REQUIRED_FLAGS)
  set(CMAKE_REQUIRED_LINK_OPTIONS)
  if(HALYARD_CXX_LIBRARY_IS_RELOCATABLE)
    set(halyard_owns_cxx_library TRUE)
  endif()
endif()

# halyard_own_cxx_library(TARGET): not for a program that links another shared C++ library, with which it exchanges objects.
function(halyard_own_cxx_library target)
  if(NOT halyard_owns_cxx_library)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "EXECUTABLE")
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/base/own_cxx_library/*.cpp")
    target_sources(${target} PRIVATE ${sources})
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  endif()
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:--gc-sections
                                        LINKER:--exclude-libs,libstdc++.a:libgcc.a:libgcc_eh.a)
endfunction()
