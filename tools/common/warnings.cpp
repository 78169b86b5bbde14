#include "common/warnings.h"

#include <errno.h>

#include "common/printable.h"
#include "common/standard_streams.h"

namespace halyard::tools {

Warnings::Warnings()
    : tell([](std::string_view text) {
        print_error("{}: warning: {}\n", program_invocation_short_name, printable(text));
      }) {}

void Warnings::take(void* warnings, const halyard_warning_t* warning) {
  auto* const self = static_cast<Warnings*>(warnings);
  const std::string_view line(warning->text.data, warning->text.size);
  if (const std::scoped_lock lock(self->mutex_); !self->told_.emplace(line).second) return;
  self->tell(line);
}

}  // namespace halyard::tools
