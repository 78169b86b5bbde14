# The installed files for embedders and driver authors besides programs and libraries: public headers,
# find_package(Halyard), pkg-config files, the template drivers, the documents.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Halyard")

install(DIRECTORY base/include/halyard vm/include/halyard hal/include/halyard bindings/c/include/halyard
                  bindings/cpp/include/halyard
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

configure_package_config_file(cmake/HalyardConfig.cmake.in "${PROJECT_BINARY_DIR}/install/HalyardConfig.cmake"
                              INSTALL_DESTINATION "${package}" PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/install/HalyardConfigVersion.cmake"
                                 COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/install/HalyardConfig.cmake"
              "${PROJECT_BINARY_DIR}/install/HalyardConfigVersion.cmake" cmake/HalyardDriver.cmake
              cmake/halyard-driver.map cmake/HalyardModule.cmake cmake/HalyardPlugin.cmake cmake/halyard-module.map
              cmake/HalyardModel.cmake cmake/empty_data.cmake DESTINATION "${package}")
install(EXPORT HalyardTargets NAMESPACE Halyard:: DESTINATION "${package}")

# The prefix of the .pc files is relative to their folder, so that an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE libdir)
string(REGEX REPLACE "[^/]+" ".." up "${libdir}/pkgconfig")
set(HALYARD_PC_PREFIX "\${pcfiledir}/${up}")
set(HALYARD_PC_LIBS "-lhalyard")
if(HALYARD_STATIC)
  string(APPEND HALYARD_PC_LIBS " -lffi -lstdc++ -lm -pthread")
endif()
foreach(name IN ITEMS halyard halyard-driver halyard-module)
  configure_file(cmake/${name}.pc.in "${PROJECT_BINARY_DIR}/install/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/install/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

install(DIRECTORY drivers/null/ DESTINATION "${CMAKE_INSTALL_DATADIR}/halyard/examples/driver-null")
install(DIRECTORY drivers/template/ DESTINATION "${CMAKE_INSTALL_DATADIR}/halyard/examples/driver-template")
install(DIRECTORY examples/native_module/ DESTINATION "${CMAKE_INSTALL_DATADIR}/halyard/examples/native-module")
install(DIRECTORY examples/host_functions/ DESTINATION "${CMAKE_INSTALL_DATADIR}/halyard/examples/host-functions")
install(DIRECTORY examples/cpp/ DESTINATION "${CMAKE_INSTALL_DATADIR}/halyard/examples/cpp")
install(FILES tools/hal-cts/kernels/README.md tools/hal-cts/device_code.vmasm drivers/vulkan/tests/shaders/iota.comp
              drivers/vulkan/tests/shaders/add.comp drivers/vulkan/tests/shaders/increment.comp
              drivers/vulkan/tests/shaders/spread.comp drivers/vulkan/tests/shaders/place.comp
        DESTINATION "${CMAKE_INSTALL_DATADIR}/halyard/examples/hal-cts-kernels")

# Documents and programs have the layout of the source tree, so that links between them work
# (tests/test_installed_documents.py). Their package is that of the tools, whose --help names them.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tools)
install(FILES README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")
install(DIRECTORY examples/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples" FILES_MATCHING PATTERN "*.md" PATTERN "*.vmasm"
        PATTERN "*.comp" PATTERN "*.py" PATTERN "*.yaml" PATTERN "nginx.conf" PATTERN "Dockerfile"
        REGEX "/examples/(firmware|web)/[^/]+$" PATTERN "native_module" EXCLUDE PATTERN "host_functions" EXCLUDE PATTERN "cpp" EXCLUDE)
foreach(folder IN ITEMS analysis aot base benchmarks bindings bindings/python cmake drivers drivers/local drivers/remote
        drivers/vulkan fuzz hal jit modules packaging remote schemas tests tests/abi tests/mutation tools vm)
  install(FILES ${folder}/README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}/${folder}")
endforeach()
install(FILES tests/wrong_command_lines.md tests/coverage.md DESTINATION "${CMAKE_INSTALL_DOCDIR}/tests")
install(FILES fuzz/hours.md DESTINATION "${CMAKE_INSTALL_DOCDIR}/fuzz")
