# HALYARD_UNITY: sources of tests and tools are compiled several at a time, which takes a third of the time. Libraries are not,
# because a name of one source can change what another means.
# Sources include what they use all the same: builds without the option show it (packages, sanitizers).
# Names in anonymous namespaces differ among the sources that are compiled together: those of a folder with at most eight, else
# those whose names begin with letters of one range.
option(HALYARD_UNITY "Compile several sources of a folder at a time: a faster build from scratch" OFF)
set(halyard_unity_ranges "[a-b]" "c" "[d-e]" "[f-g]" "h" "[i-m]" "[n-o]" "[p-r]" "[s-z]")

# halyard_compile_together(target): the C++ sources that have no options of their own. Call it when the target has its sources.
function(halyard_compile_together target)
  if(NOT HALYARD_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(folders "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source PARENT_PATH folder)
    list(APPEND folders "${folder}")
    list(APPEND sources_${folder} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE name)
    list(LENGTH sources_${folder} count)
    if(count LESS_EQUAL 8)
      set(ranges "[a-z]")
    else()
      set(ranges ${halyard_unity_ranges})
    endif()
    foreach(range IN LISTS ranges)
      set(group ${sources_${folder}})
      list(FILTER group INCLUDE REGEX "/${range}[^/]*$")
      string(MAKE_C_IDENTIFIER "${name}_${range}" name_of_group)
      set_source_files_properties(${group} PROPERTIES UNITY_GROUP ${name_of_group})
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes a source that another file includes for a header, where members of unnamed types would be a mistake.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  else() # clang warns of a local name that hides one of another source
    target_compile_options(${target} PRIVATE -Wno-shadow)
  endif()
endfunction()
