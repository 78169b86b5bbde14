# Writes the page as C++: kPageBefore and kPageAfter, the texts before and after its data. FOLDER has page.html and the
# files that it names as @@FILE@@; OUTPUT is the C++ file.
file(READ "${FOLDER}/page.html" page)
string(REGEX MATCHALL "@@[a-z]+[.][a-z]+@@" parts "${page}")
foreach(part IN LISTS parts)
  string(REPLACE "@@" "" name "${part}")
  file(READ "${FOLDER}/${name}" content)
  string(STRIP "${content}" content)
  string(REPLACE "${part}" "${content}" page "${page}")
endforeach()
string(FIND "${page}" "@@data@@" at)
string(SUBSTRING "${page}" 0 ${at} before)
math(EXPR after "${at} + 8")
string(SUBSTRING "${page}" ${after} -1 after)
file(WRITE "${OUTPUT}"
     "// From tools/common/page, by embed.cmake.\nnamespace halyard::tools {\n\n"
     "extern const char* const kPageBefore;\nextern const char* const kPageAfter;\n"
     "const char* const kPageBefore = R\"page(${before})page\";\n"
     "const char* const kPageAfter = R\"page(${after})page\";\n\n}  // namespace halyard::tools\n")
