target_link_libraries(vm-serve PRIVATE Threads::Threads ZLIB::ZLIB)

# Tests of the parts of the protocol that need neither sockets nor models.
halyard_add_tests(
  halyard_serve_tests
  PREFIX serve
  LINKS halyard_tools_common ZLIB::ZLIB
  SOURCES vm-serve/tests/access_test.cpp vm-serve/tests/datatype_test.cpp vm-serve/tests/decoder_test.cpp vm-serve/tests/infer_request_test.cpp vm-serve/tests/json_events_test.cpp
          vm-serve/tests/request_head_test.cpp vm-serve/tests/request_trace_test.cpp vm-serve/tests/route_test.cpp
          vm-serve/access.cpp vm-serve/boost_json.cpp vm-serve/datatype.cpp vm-serve/decoder.cpp
          vm-serve/documents.cpp vm-serve/infer_request.cpp vm-serve/request_head.cpp vm-serve/request_trace.cpp vm-serve/route.cpp vm-serve/tensor.cpp)
if(TARGET halyard_serve_tests)
  target_include_directories(halyard_serve_tests PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/vm-serve")
endif()

# Tools are compiled for size, but these files, which every request passes, for speed.
foreach(source IN ITEMS access body boost_json connection decoder documents endpoints infer_request job output request_head response route scheduler tensor)
  set_source_files_properties("vm-serve/${source}.cpp" PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
endforeach()

# Units for systemd. The installation does not enable them.
configure_file("${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-serve.service.in"
               "${PROJECT_BINARY_DIR}/share/systemd/halyard-serve.service" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/share/systemd/halyard-serve.service"
              "${PROJECT_SOURCE_DIR}/packaging/systemd/halyard-serve.socket" DESTINATION "lib/systemd/system")
