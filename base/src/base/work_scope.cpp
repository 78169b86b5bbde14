// The errors of stopped work.
#include "base/work_scope.h"

namespace halyard {

const ObjectType WorkScope::kType = object_type<WorkScope>("halyard.work_scope");

Status stopped_work(Code code) {
  if (code == Code::DEADLINE_EXCEEDED)
    return Status(
        code,
        "work on a device was stopped: the call that it belongs to took longer than its time limit; "
        "raise it where that is too short");
  if (code == Code::CANCELLED)
    return Status(code, "work on a device was stopped: the call that it belongs to was cancelled");
  return Status(code, "work on a device was stopped");
}

}  // namespace halyard
