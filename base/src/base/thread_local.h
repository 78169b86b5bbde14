// HALYARD_SMALL_THREAD_LOCAL: for a few bytes of each thread that every call looks at. They are found without
// asking the dynamic linker, in what it keeps in reserve for libraries that come late; that is little.
#pragma once

#define HALYARD_SMALL_THREAD_LOCAL [[gnu::tls_model("initial-exec")]]
