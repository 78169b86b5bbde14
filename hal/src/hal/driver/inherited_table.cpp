// One function for each signature in the table.
#include "hal/driver/inherited_table.h"

#include "base/c_boundary.h"

namespace halyard::hal {

namespace {

template <typename Function>
struct Refusing;
template <typename... Arguments>
struct Refusing<halyard_status_t (*)(Arguments...)> {
  static halyard_status_t function(Arguments...) noexcept {
    return guarded([]() -> Result<> {
      return fail(
          Code::FAILED_PRECONDITION,
          "the device was opened before fork(), and its threads are in the process that opened it; open one "
          "in this process, or start processes without fork()");
    });
  }
};
template <typename Answer, typename... Arguments>
struct Refusing<Answer (*)(Arguments...)> {
  static Answer function(Arguments...) noexcept { return Answer(); }
};

constexpr halyard_driver_table_t make_table() {
  halyard_driver_table_t table = {};
  table.struct_size = sizeof table;
#define HALYARD_DRIVER_FUNCTION(name, mandatory) table.name = Refusing<decltype(table.name)>::function;
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION
  return table;
}

constexpr halyard_driver_table_t kTable = make_table();

}  // namespace

const halyard_driver_table_t& inherited_table() { return kTable; }

}  // namespace halyard::hal
