// HALYARD_SMALL_THREAD_LOCAL: for a few thread-local bytes that every call reads. They use the initial-exec
// TLS model, which needs no call of the dynamic linker, and lie in the small static TLS reserve for libraries
// loaded later.
#pragma once

#define HALYARD_SMALL_THREAD_LOCAL [[gnu::tls_model("initial-exec")]]
