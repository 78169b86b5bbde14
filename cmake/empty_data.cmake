# Writes FILE for the assembler, without data, if it does not exist.
if(NOT EXISTS "${FILE}")
  file(WRITE "${FILE}" ".section .note.GNU-stack,\"\",%progbits\n")
endif()
