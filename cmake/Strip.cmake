# halyard_strip_installed(TARGET FOLDER [COMPONENT]): the file of TARGET that is installed to FOLDER (relative to the prefix) is stripped;
# its symbols and line numbers go to PREFIX/lib/debug/.build-id, where debuggers look for them by the file's build id, with
#   cmake --install BUILD --component debug
# which no other installation includes. COMPONENT is that of the file, where it is not the folder's. The files in the build
# folder stay whole. Builds with a sanitizer are not stripped: reports need their symbols. CPack does the same for packages.
function(halyard_strip_installed target folder)
  if(HALYARD_SANITIZE OR HALYARD_PACKAGES OR NOT CMAKE_STRIP OR NOT CMAKE_OBJCOPY OR NOT CMAKE_READELF)
    return()
  endif()
  set(component ${ARGN})
  if(NOT component)
    set(component ${CMAKE_INSTALL_DEFAULT_COMPONENT_NAME})
  endif()
  cmake_path(IS_ABSOLUTE folder absolute)
  if(NOT absolute)
    set(folder "\${CMAKE_INSTALL_PREFIX}/${folder}")
  endif()
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded \"\$ENV{DESTDIR}${folder}/$<TARGET_FILE_NAME:${target}>\"
                COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
  install(CODE "set(whole \"$<TARGET_FILE:${target}>\")\nset(objcopy \"${CMAKE_OBJCOPY}\")\nset(readelf \"${CMAKE_READELF}\")"
          COMPONENT debug EXCLUDE_FROM_ALL)
  install(SCRIPT "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/debug_file.cmake" COMPONENT debug EXCLUDE_FROM_ALL)
endfunction()
