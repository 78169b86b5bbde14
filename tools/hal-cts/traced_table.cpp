// A wrapper of the same type for each function of the table, generated with templates.
#include "traced_table.h"

namespace halyard::cts {

namespace {

// Process-wide, because functions of a table get no argument that could refer to it.
halyard_driver_table_t real;
Trail* current = nullptr;

template <auto function, const char* name>
struct Traced;
template <typename R, typename... Arguments, R (*halyard_driver_table_t::*function)(Arguments...),
          const char* name>
struct Traced<function, name> {
  static R call(Arguments... arguments) {
    const Entered entered(current, name);
    return (real.*function)(arguments...);
  }
};

#define HAL_CTS_FUNCTION(name) constexpr char name##_name[] = #name;
#include "driver_functions.inc"
#undef HAL_CTS_FUNCTION

}  // namespace

halyard_driver_table_t traced(const halyard_driver_table_t& table, Trail& trail) {
  real = table;
  current = &trail;
  halyard_driver_table_t wrapped = table;
#define HAL_CTS_FUNCTION(name) \
  if (table.name) wrapped.name = Traced<&halyard_driver_table_t::name, name##_name>::call;
#include "driver_functions.inc"
#undef HAL_CTS_FUNCTION
  return wrapped;
}

}  // namespace halyard::cts
