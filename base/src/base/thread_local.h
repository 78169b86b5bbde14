// HALYARD_SMALL_THREAD_LOCAL: for a few thread-local bytes that every call reads. They use the initial-exec
// TLS model, which needs no call of the dynamic linker. The C library reserves little static TLS for
// libraries that are loaded later, so use it for a few bytes only.
#pragma once

#define HALYARD_SMALL_THREAD_LOCAL [[gnu::tls_model("initial-exec")]]
