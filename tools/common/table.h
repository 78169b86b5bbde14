// Tables for people.
#pragma once

#include <string>
#include <vector>

namespace halyard::tools {

using Row = std::vector<std::string>;

// Rows of as many cells as there are titles, in columns as wide as they need to be. Where a row is too long
// for the terminal its last cell goes to a line of its own. Cells may hold anything: they are made printable.
std::string table(const Row& titles, std::vector<Row> rows);

}  // namespace halyard::tools
