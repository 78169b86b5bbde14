// Builds messages about wrong refs.
#include "vm/native/bind.h"

namespace halyard::vm {

namespace internal {

Status null_ref() { return Status(Code::INVALID_ARGUMENT, "expected a ref, found null"); }

Status wrong_ref(const ObjectType* expected, const Object* found) {
  return Status(Code::INVALID_ARGUMENT,
                fmt::format("expected a {}, found {}", expected->name, found->type()->name));
}

}  // namespace internal

}  // namespace halyard::vm
