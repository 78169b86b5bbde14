# Writes FILES as texts into the C++ file OUTPUT: kSupportFiles, and the last one as kMainProgram. PROGRAM becomes
# kProgramSupport.
set(text "// From aot/support, by embed.cmake.\nnamespace halyard::aot {\n\n")
set(names "")
list(POP_BACK FILES main)
foreach(file IN LISTS FILES ITEMS "${main}")
  file(READ "${file}" content)
  cmake_path(GET file STEM name)
  string(APPEND text "static const char ${name}_text[] = R\"aot(${content})aot\";\n")
  if(NOT file STREQUAL "${main}")
    string(APPEND names "${name}_text, ")
  endif()
endforeach()
file(READ "${PROGRAM}" content)
string(APPEND text "static const char hal_program_text[] = R\"aot(${content})aot\";\n"
       "extern const char* const kProgramSupport;\nconst char* const kProgramSupport = hal_program_text;\n")
string(APPEND text "\nextern const char* const kSupportFiles[];\nextern const char* const kMainProgram;\n"
       "const char* const kSupportFiles[] = {${names}nullptr};\nconst char* const kMainProgram = main_text;\n\n}  // namespace halyard::aot\n")
file(WRITE "${OUTPUT}" "${text}")
