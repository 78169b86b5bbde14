// HALYARD_SMALL_THREAD_LOCAL: for a few thread-local bytes that every call reads. They use the initial-exec
// model, without a call of the dynamic linker, in the small static TLS reserve for libraries that are loaded
// later.
#pragma once

#define HALYARD_SMALL_THREAD_LOCAL [[gnu::tls_model("initial-exec")]]
