# The schema of the executables that it writes. For authors of kernels.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
target_link_libraries(vulkan-pack PRIVATE halyard_vulkan_schema)
