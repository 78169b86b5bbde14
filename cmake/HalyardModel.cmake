# halyard_add_model(NAME module [RUNTIME none|hal] [SPLIT N] [PARAMETERS [scope=]file...] [FLAGS flag...]): translates a module (.vmfb, or
# .vmasm text) to C with vm-cc when the project is built, and builds it for the project's target.
#   RUNTIME none, the default: NAME is a static library without Halyard, with the header NAME.h.
#   RUNTIME hal: NAME is libNAME.so, a native module for `vm-run --module=libNAME.so`.
# SPLIT N: the C has N more files, which are compiled at the same time.
# PARAMETERS are files whose parameters become constants of the program; FLAGS are further flags of vm-cc (--checks=none).
# Used through find_package(Halyard). HALYARD_VM_CC names the vm-cc of the machine that builds.
include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/HalyardModule.cmake")
find_program(HALYARD_VM_CC vm-cc HINTS "${PACKAGE_PREFIX_DIR}/bin" DOC "The translator of modules to C")

function(halyard_add_model name module)
  cmake_parse_arguments(PARSE_ARGV 2 model "" "RUNTIME;SPLIT" "PARAMETERS;FLAGS")
  if(model_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "halyard_add_model(${name}): '${model_UNPARSED_ARGUMENTS}' is not expected; "
                        "the arguments are NAME module [RUNTIME none|hal] [SPLIT N] [PARAMETERS file...] [FLAGS flag...]")
  endif()
  if(NOT HALYARD_VM_CC)
    message(FATAL_ERROR "halyard_add_model(${name}): the program vm-cc is not there; install Halyard's tools, "
                        "or set HALYARD_VM_CC to its path")
  endif()
  if(NOT model_RUNTIME)
    set(model_RUNTIME none)
  elseif(NOT model_RUNTIME MATCHES "^(none|hal)$")
    message(FATAL_ERROR "halyard_add_model(${name}): RUNTIME ${model_RUNTIME}: expected none or hal")
  endif()
  cmake_path(ABSOLUTE_PATH module BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}.model")
  set(files "${module}")
  foreach(parameters IN LISTS model_PARAMETERS)
    string(REGEX MATCH "^[^=/]*=" scope "${parameters}")
    string(LENGTH "${scope}" length)
    string(SUBSTRING "${parameters}" ${length} -1 file)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND files "${file}")
    list(APPEND model_FLAGS "--parameters=${scope}${file}")
  endforeach()
  set(sources "${folder}/${name}.c" "${folder}/${name}_data.S")
  if(DEFINED model_SPLIT)
    if(NOT model_SPLIT MATCHES "^[1-9][0-9]?[0-9]?$")
      message(FATAL_ERROR "halyard_add_model(${name}): SPLIT ${model_SPLIT}: expected 1 to 999 files")
    endif()
    list(APPEND model_FLAGS "--split=${model_SPLIT}")
    foreach(number RANGE 1 ${model_SPLIT})
      list(APPEND sources "${folder}/${name}_${number}.c")
    endforeach()
  endif()
  # Only modules with large constants have a file for the assembler.
  add_custom_command(
    OUTPUT ${sources} "${folder}/${name}.h"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${folder}/${name}_data.S" "${folder}/${name}.bin"
    COMMAND "${HALYARD_VM_CC}" "${module}" "--runtime=${model_RUNTIME}" "--output=${folder}/${name}" ${model_FLAGS}
    COMMAND "${CMAKE_COMMAND}" "-DFILE=${folder}/${name}_data.S" -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/empty_data.cmake"
    DEPENDS ${files} "${HALYARD_VM_CC}"
    COMMENT "vm-cc ${name}"
    VERBATIM)
  # By the compiler of C, so that projects need not enable the language ASM.
  set_source_files_properties("${folder}/${name}_data.S" PROPERTIES LANGUAGE C COMPILE_OPTIONS -xassembler-with-cpp
                                                                    INCLUDE_DIRECTORIES "${folder}")
  if(model_RUNTIME STREQUAL "hal")
    halyard_add_module(${name} ${sources})
  else()
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC "${folder}")
    if(UNIX)
      target_link_libraries(${name} PUBLIC m)
    endif()
  endif()
  set_target_properties(${name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF) # fuses no products with sums
endfunction()
