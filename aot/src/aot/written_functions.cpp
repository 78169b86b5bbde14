#include "aot/written_functions.h"

#include <map>

#include "aot/c_text.h"

namespace halyard::aot {

CalledFunctions called_functions(const std::vector<WrittenFunction>& written, std::string_view callers) {
  std::map<std::string_view, std::string_view> unused;  // texts by name
  for (const WrittenFunction& each : written) unused.emplace(each.name, each.text);
  std::vector<std::string_view> left = {callers};
  while (!left.empty()) {
    const std::string code = without_literals(left.back());
    left.pop_back();
    for (const std::string_view word : words_of(code)) {
      const auto found = unused.find(word);
      if (found == unused.end()) continue;
      left.push_back(found->second);
      unused.erase(found);
    }
  }
  CalledFunctions called;
  for (const WrittenFunction& each : written) {
    if (unused.contains(each.name)) continue;
    called.prototypes += each.text.substr(0, each.text.find(" {\n")) + ";\n";
    called.definitions += each.text + "\n";
  }
  return called;
}

}  // namespace halyard::aot
