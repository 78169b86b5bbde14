# Compiled once, for the tool and its tests; for size, as all tools, but for speed what every request passes.
set(main "${CMAKE_CURRENT_LIST_DIR}/main.cpp")
set(request_sources ${sources})
list(FILTER request_sources INCLUDE REGEX "/(access|body|boost_json|connection|decoder|documents|endpoints|grpc_call|infer_json|infer_message|infer_request|inference|job|output|request_head|response|route|scheduler|sending|tensor|tensor_contents|wire).cpp$")
list(REMOVE_ITEM sources ${main} ${request_sources})
add_library(halyard_serve_requests OBJECT ${request_sources})
add_library(halyard_serve_models OBJECT ${sources})
foreach(target IN ITEMS halyard_serve_requests halyard_serve_models)
  target_include_directories(${target} PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
  target_link_libraries(${target} PUBLIC halyard_tools_common Threads::Threads ZLIB::ZLIB)
  halyard_compile_small(${target})
endforeach()
target_compile_options(halyard_serve_requests PRIVATE $<$<CONFIG:Release>:-O2>)
set_target_properties(vm-serve PROPERTIES SOURCES "${main}")
target_link_libraries(vm-serve PRIVATE halyard_serve_requests halyard_serve_models)

include("${CMAKE_CURRENT_LIST_DIR}/grpc/grpc.cmake")

# Tests of the parts of the protocol, and of connections over sockets within the process of the test.
file(GLOB test_sources CONFIGURE_DEPENDS "vm-serve/tests/*.cpp")
halyard_add_tests(halyard_serve_tests PREFIX serve LINKS halyard_serve_requests halyard_serve_models SOURCES ${test_sources})

# Units for systemd. The installation does not enable them. The service names the installed program, whose folder is known when it
# is installed; CPack installs into a folder of its own what will be in CMAKE_INSTALL_PREFIX.
set(units "${PROJECT_BINARY_DIR}/share/systemd")
set(HALYARD_BINDIR "${CMAKE_INSTALL_FULL_BINDIR}")
configure_file("${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-serve.service.in" "${units}/halyard-serve.service" @ONLY)
if(NOT HALYARD_PACKAGES)
  install(CODE "set(HALYARD_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
string(REPLACE % %% HALYARD_BINDIR \"\${HALYARD_BINDIR}\")
configure_file(\"${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-serve.service.in\" \"${units}/installed/halyard-serve.service\" @ONLY)")
  string(APPEND units "/installed")
endif()
install(FILES "${units}/halyard-serve.service" "${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-serve.socket"
        DESTINATION "lib/systemd/system")
