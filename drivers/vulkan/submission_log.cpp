// Formats submissions.
#include "submission_log.h"

#include <fmt/format.h>

#include <iterator>

#include "halyard/driver/operation_name.hpp"

namespace halyard::vulkan {

void SubmissionLabel::add_function(std::string_view name) {
  if (functions.is_cut()) return;
  // Kernels are often dispatched many times in a row, once for each layer.
  const std::string_view known = functions.view();
  if (known.size() > name.size() + 1 && known.ends_with('\'') &&
      known.substr(0, known.size() - 1).ends_with(name) && known[known.size() - name.size() - 2] == '\'')
    return;
  functions.append(known.empty() ? "'" : ", '");
  functions.append(name);
  functions.append("'");
}

void SubmissionLabel::add_group(const std::vector<std::string_view>& path) {
  if (!groups.view().empty()) groups.append(", ");
  for (size_t i = 0; i < path.size(); ++i) {
    if (i > 0) groups.append("/");
    groups.append(path[i]);
  }
}

std::string LoggedSubmission::text() const {
  std::string text = fmt::format("#{} {}", id, kit::operation_name(operation));
  if (!label.functions.view().empty()) text += fmt::format(" of {}", label.functions.view());
  if (!label.groups.view().empty()) text += fmt::format(" with groups {}", label.groups.view());
  return text + fmt::format(" on queue {} (number {})", queue, number);
}

}  // namespace halyard::vulkan
