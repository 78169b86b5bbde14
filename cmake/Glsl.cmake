# halyard_add_spirv(NAME FOLDER folder TARGET_ENV env ENTRY entry SOURCE file.comp): compiles GLSL at build time into
# FOLDER/NAME.spv, with ENTRY as its entry point.
function(halyard_add_spirv name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;TARGET_ENV;ENTRY;SOURCE" "")
  cmake_path(ABSOLUTE_PATH arg_SOURCE)
  set(output "${arg_FOLDER}/${name}.spv")
  file(MAKE_DIRECTORY "${arg_FOLDER}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${HALYARD_GLSLANG}" --quiet -V --target-env ${arg_TARGET_ENV} -e ${arg_ENTRY} --source-entrypoint main -o
            "${output}" --depfile "${output}.d" "${arg_SOURCE}"
    DEPENDS "${arg_SOURCE}"
    DEPFILE "${output}.d"
    COMMENT "glslang ${name}.spv"
    VERBATIM)
endfunction()
