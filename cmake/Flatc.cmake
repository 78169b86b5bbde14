# halyard_add_schemas(NAME schema.fbs...): an interface library whose users can include "<schema>_generated.h".
function(halyard_add_schemas name)
  set(folder "${PROJECT_BINARY_DIR}/schemas/${name}")
  set(headers "")
  foreach(schema IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH schema)
    cmake_path(GET schema STEM stem)
    set(header "${folder}/${stem}_generated.h")
    add_custom_command(
      OUTPUT "${header}"
      COMMAND "${HALYARD_FLATC}" --cpp --scoped-enums --gen-object-api -o "${folder}" "${schema}"
      DEPENDS "${schema}"
      COMMENT "flatc ${stem}.fbs"
      VERBATIM)
    list(APPEND headers "${header}")
  endforeach()
  add_custom_target(${name}_headers DEPENDS ${headers})
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_headers)
  # Generated code is exempt from this project's warnings.
  target_include_directories(${name} SYSTEM INTERFACE "${folder}" "${HALYARD_FLATBUFFERS_INCLUDE}")
endfunction()
