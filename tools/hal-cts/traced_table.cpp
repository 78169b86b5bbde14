// A wrapper of the same type for each function of the table, generated with templates.
#include "traced_table.h"

namespace halyard::cts {

namespace {

// Process-wide, because functions of a table get no argument that could refer to it.
halyard_driver_table_t real;
CaseLog* current = nullptr;

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

#define HALYARD_DRIVER_FUNCTION(name, mandatory) constexpr char name##_name[] = #name;
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION

}  // namespace

halyard_driver_table_t traced(const halyard_driver_table_t& table, CaseLog& case_log) {
  real = table;
  current = &case_log;
  halyard_driver_table_t wrapped = table;
#define HALYARD_DRIVER_FUNCTION(name, mandatory) \
  if (table.name) wrapped.name = Traced<&halyard_driver_table_t::name, name##_name>::call;
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION
  return wrapped;
}

}  // namespace halyard::cts
