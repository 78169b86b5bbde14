// The errors of stopped work.
#include "base/work_scope.h"

namespace halyard {

const ObjectType WorkScope::kType = object_type<WorkScope>("halyard.work_scope");

Status stopped_work(Code code) {
  if (code == Code::DEADLINE_EXCEEDED)
    return Status(code,
                  "work on a device was stopped, because its call took longer than its time limit; raise the "
                  "limit if it is too short");
  if (code == Code::CANCELLED)
    return Status(code, "work on a device was stopped, because its call was cancelled");
  return Status(code, "work on a device was stopped");
}

}  // namespace halyard
