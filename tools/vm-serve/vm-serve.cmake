# Compiled once, for the tool and its tests; for size, as all tools, but for speed what every request passes.
set(main "${CMAKE_CURRENT_LIST_DIR}/main.cpp")
set(request_sources ${sources})
list(FILTER request_sources INCLUDE REGEX "/(access|body|boost_json|connection|decoder|documents|endpoints|grpc_call|infer_json|infer_message|infer_request|inference|job|output|request_head|response|route|scheduler|tensor|tensor_contents|wire).cpp$")
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

# Tests of the parts of the protocol that need neither sockets nor models.
file(GLOB test_sources CONFIGURE_DEPENDS "vm-serve/tests/*.cpp")
halyard_add_tests(halyard_serve_tests PREFIX serve LINKS halyard_serve_requests halyard_serve_models SOURCES ${test_sources})

# Units for systemd. The installation does not enable them.
configure_file("${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-serve.service.in"
               "${PROJECT_BINARY_DIR}/share/systemd/halyard-serve.service" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/share/systemd/halyard-serve.service"
              "${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-serve.socket" DESTINATION "lib/systemd/system")
