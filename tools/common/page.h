// Page: one self-contained HTML file about a module, written from its analysis. docs/vm-dump.md describes it.
#pragma once

#include <string>

#include "common/json.h"

namespace halyard::tools {

struct PageContents {
  std::string file;  // the module's, for people
  Json analysis;     // of halyard_module_analyze
  Json profile;      // of profile_json, or null
  Json timeline;     // of memory over time, or null
  Json diff;         // of a comparison of two runs, or null: docs/vm-dump.md, "Errors of a comparison"
};

// Texts of the module cannot leave the data of the page, whatever they contain.
std::string page_text(const PageContents& contents);
Result<> write_page(const std::string& path, const PageContents& contents);

}  // namespace halyard::tools
