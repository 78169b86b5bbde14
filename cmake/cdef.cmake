# Writes halyard-cdef.h: the declarations of the public C headers after the preprocessor, for readers of C that have none
# (Python's cffi). Run as a script: cmake -DCOMPILER=cc -DHEADERS=a.h,b.h -DINCLUDES=dir,dir -DFOLDER=dir -P cdef.cmake
string(REPLACE "," ";" headers "${HEADERS}")
string(REPLACE "," ";" includes "${INCLUDES}")
list(TRANSFORM includes PREPEND "-I")

# cffi knows the types of stddef.h and stdint.h; what else these declare does not belong here.
file(WRITE "${FOLDER}/system/stddef.h" "")
file(WRITE "${FOLDER}/system/stdint.h" "#define UINT32_MAX 4294967295u\n#define UINT64_MAX 18446744073709551615u\n#define UINTPTR_MAX UINT64_MAX\n")
set(all "")
foreach(header IN LISTS headers)
  string(APPEND all "#include \"halyard/${header}\"\n")
endforeach()
file(WRITE "${FOLDER}/all.h" "${all}")

# Without __GNUC__ the headers have no attributes.
function(preprocess out)
  execute_process(
    COMMAND "${COMPILER}" -E -P -nostdinc -U__GNUC__ ${ARGN} "-I${FOLDER}/system" ${includes} -x c "${FOLDER}/all.h"
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()
preprocess(text)
string(REGEX REPLACE "static inline [^{]*{\n([ \t][^\n]*\n)*}\n" "" text "${text}")
string(REGEX REPLACE "_Static_assert[^;]*;\n" "" text "${text}")

# Macros that are a number, as enumerators: "#define HALYARD_EVERY_EXECUTION UINT64_MAX".
preprocess(macros -dM)
string(REGEX MATCHALL "#define HALYARD_[A-Z0-9_]+ \\(?-?(U?INT[0-9]+_MAX|[0-9][0-9a-fA-FxuU]*)\\)?\n" macros "${macros}")
list(SORT macros)
set(numbers "")
foreach(macro IN LISTS macros)
  string(REGEX REPLACE "^#define ([A-Z0-9_]+) \\(?([^()]*)\\)?\n$" "\\1;\\2" pair "${macro}")
  list(GET pair 0 name)
  list(GET pair 1 value)
  string(REPLACE "UINT32_MAX" "4294967295" value "${value}")
  string(REPLACE "UINT64_MAX" "18446744073709551615" value "${value}")
  if(NOT name MATCHES "HALYARD_SANITIZER_KIND|_$")
    string(APPEND numbers "enum { ${name} = ${value} };\n")
  endif()
endforeach()

if(text MATCHES "#|__attribute__|static inline")
  message(FATAL_ERROR "cdef.cmake: the headers have something that it does not take out: ${CMAKE_MATCH_0}")
endif()
set(about
    "/* The declarations of Halyard's public C headers, generated from them for readers without a preprocessor: Python's cffi,"
    "\n * ffi.cdef(open(\"halyard-cdef.h\").read()). The headers beside it say what each means. */\n")
string(CONCAT about ${about})
file(WRITE "${FOLDER}/halyard-cdef.h" "${about}${text}${numbers}")
