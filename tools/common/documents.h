// Where a tool's documents are.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

// The document about a tool, relative to the folder of documents: "docs/hal-cts.md".
std::string_view document_of(std::string_view tool);

// The folder of documents of the installation that this program belongs to; empty if it is not installed.
std::string documents_folder();

// For --help: where the document is, and the folder to which paths in texts are relative.
std::string documents_text(std::string_view tool);

}  // namespace halyard::tools
