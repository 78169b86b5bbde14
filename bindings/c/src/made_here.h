// Records, in a child of fork(), which handles the child has created. Inherited handles are not released in
// the child, because releasing could wait for threads, or for locks of threads, that exist only in the
// parent. A process that has not been forked keeps no list.
#pragma once

#include "base/object.h"

namespace halyard::c {

// Call it when an instance, device, context, function, call or channel is created. Throws std::bad_alloc.
void note_made(const Object* object);
// Whether the object has one of those types and was created before the last fork(). Removes an object from
// the list if its last reference is about to be dropped.
bool is_inherited(const Object* object);

}  // namespace halyard::c
