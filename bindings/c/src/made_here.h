// In a child of fork(): which handles it has made itself. What it has inherited is not released there, since
// that could wait for threads, and for locks of threads, that are in the other process. A process that has
// not been forked keeps no list.
#pragma once

#include "base/object.h"

namespace halyard::c {

// For instances, devices, contexts, functions, calls and channels, when they are made. Throws std::bad_alloc.
void note_made(const Object* object);
// Whether the object is of one of those types, and was made before the last fork(). Forgets one whose last
// reference is about to go.
bool is_inherited(const Object* object);

}  // namespace halyard::c
