# HALYARD_RUN_HERE: what precedes the file of a tool that the build runs. Packages have no run path.
set(HALYARD_RUN_HERE ${CMAKE_CROSSCOMPILING_EMULATOR})
if(CMAKE_SKIP_INSTALL_RPATH)
  set(HALYARD_RUN_HERE "${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:halyard>")
endif()

# halyard_run_path(TARGET [element...]): where the loader looks for the libraries of an installed program or library, the same in
# the build folder; without elements those of CMAKE_INSTALL_RPATH. Where CMake exchanges it at installation, it makes room in the
# build folder with empty elements at the end. An empty element is the current folder: the program would take libraries from
# whatever folder it is run in.
function(halyard_run_path target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  if(ARGN)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${ARGN}")
  endif()
endfunction()
