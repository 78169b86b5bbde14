// Measures columns and fills them.
#include "common/table.h"

#include <algorithm>

#include "common/colour.h"
#include "common/failure.h"
#include "common/printable.h"

namespace halyard::tools {

std::string table(const Row& titles, std::vector<Row> rows) {
  for (Row& row : rows)
    for (std::string& cell : row) cell = printable(cell);
  std::vector<size_t> widths;
  for (const std::string& title : titles) widths.push_back(title.size());
  for (const Row& row : rows)
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  size_t fixed = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) fixed += widths[i] + 2;
  const auto line = [&](const Row& row) {
    std::string text;
    for (size_t i = 0; i + 1 < row.size(); ++i) text += fmt::format("{:<{}}  ", row[i], widths[i]);
    const bool below =
        fixed + row.back().size() > terminal_width() && row.back().size() > titles.back().size();
    if (!below) text += row.back();
    while (text.ends_with(' ')) text.pop_back();
    return below ? text + "\n    " + row.back() : text;
  };
  std::string text = coloured(Colour::bold, line(titles)) + "\n";
  for (const Row& row : rows) text += line(row) + "\n";
  return text;
}

}  // namespace halyard::tools
