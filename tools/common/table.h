// Formats tables for terminals.
#pragma once

#include <string>
#include <vector>

namespace halyard::tools {

using Row = std::vector<std::string>;

// Each row has one cell for each title. Columns are as wide as their longest cell. If a row is too long for
// the terminal, its last cell gets a separate line. Cells are made printable.
std::string table(const Row& titles, std::vector<Row> rows);

}  // namespace halyard::tools
