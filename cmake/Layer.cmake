# halyard_add_layer(NAME LINKS target...): a static library of src/**.cpp of the calling folder whose users see src/
# (headers as "layer/file.h"). A layer with headers only is an interface library with the same links.
function(halyard_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "src/*.cpp")
  halyard_choose_sources(sources)
  if(sources)
    add_library(${name} STATIC ${sources})
    halyard_lto_objects(${name})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} "${CMAKE_CURRENT_SOURCE_DIR}/src")
  target_link_libraries(${name} ${scope} ${arg_LINKS})
endfunction()

# halyard_add_abi(NAME EXPORT_NAME name [LINKS target...]): the public C headers below include/ of the calling folder.
function(halyard_add_abi name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXPORT_NAME" "LINKS")
  add_library(${name} INTERFACE)
  add_library(Halyard::${arg_EXPORT_NAME} ALIAS ${name})
  target_include_directories(${name} INTERFACE "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>"
                                               "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${name} INTERFACE ${arg_LINKS})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${arg_EXPORT_NAME})
  install(TARGETS ${name} EXPORT HalyardTargets)
endfunction()
