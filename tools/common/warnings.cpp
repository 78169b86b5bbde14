#include "common/warnings.h"

#include <errno.h>

#include "common/printable.h"
#include "common/standard_streams.h"

namespace halyard::tools {

Warnings::Warnings()
    : tell([](std::string_view text) {
        print_error("{}: warning: {}\n", program_invocation_short_name, printable(text));
      }) {}

void Warnings::take(const halyard_warning_t& warning) {
  const std::string_view line = view(warning.text);
  if (const std::scoped_lock lock(mutex_); !reported_.emplace(line).second) return;
  tell(line);
}

}  // namespace halyard::tools
