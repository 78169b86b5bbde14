# What Halyard requires of the processor that it is built for; said before anything else is looked for.
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  math(EXPR bits "${CMAKE_SIZEOF_VOID_P} * 8")
  message(FATAL_ERROR "The target has ${bits}-bit addresses; expected 64 bits: the structs of the driver ABI and the registers "
                      "that hold pointers are designed for them (docs/porting.md)")
endif()
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "The target is big-endian; expected little-endian: module data are used in place (docs/porting.md)")
endif()
