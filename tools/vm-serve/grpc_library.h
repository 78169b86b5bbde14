// The boundary between vm-serve and vm-serve-grpc.so, which contains gRPC. A call is a method, the bytes of
// one message, and the bytes of an answer. The boundary is C, because each side has a C++ library of its own;
// no exception crosses it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VM_SERVE_GRPC_ABI 1

typedef struct vm_serve_grpc_server_t vm_serve_grpc_server_t;
typedef struct vm_serve_grpc_call_t vm_serve_grpc_call_t;

typedef struct vm_serve_grpc_text_t {
  const char* data;
  size_t size;
} vm_serve_grpc_text_t;

typedef struct vm_serve_grpc_piece_t {
  const void* data;
  size_t size;
} vm_serve_grpc_piece_t;

// The bytes of a message, in pieces. The receiver owns them: it calls `release` once, on any thread, when
// nothing reads them any more.
typedef struct vm_serve_grpc_message_t {
  const vm_serve_grpc_piece_t* pieces;
  size_t count;
  void* owner;
  void (*release)(void* owner);
} vm_serve_grpc_message_t;

typedef struct vm_serve_grpc_begin_t {
  vm_serve_grpc_text_t method;        // "/package.Service/Method"
  vm_serve_grpc_text_t connection;    // "fd:N", with the socket of add_connection
  vm_serve_grpc_text_t trace_parent;  // the header of W3C Trace Context; size 0: none
  int64_t nanoseconds;                // until the client's deadline; INT64_MAX: none
} vm_serve_grpc_begin_t;

// vm-serve, as the library calls it: on gRPC's threads. The functions must not block.
typedef struct vm_serve_grpc_host_t {
  void* self;
  // A call has begun; its message has not arrived. Returns the host's object for the call. Null: the method
  // does not exist; the library then ends the call.
  void* (*begin)(void* self, vm_serve_grpc_call_t* call, const vm_serve_grpc_begin_t* begin);
  // The call's message, once. Null: the client has sent none.
  void (*message)(void* object, const vm_serve_grpc_message_t* message);
  // The client no longer waits, or its deadline has passed. The call must still be answered. May overlap the
  // other functions.
  void (*cancelled)(void* object);
  // The call has ended, after its answer. The library does not use `object` any more.
  void (*end)(void* object);
  // After drain: no call begins any more.
  void (*drained)(void* self);
} vm_serve_grpc_host_t;

typedef struct vm_serve_grpc_limits_t {
  uint64_t message_bytes;     // of a request
  uint64_t buffer_bytes;      // of gRPC's buffers: connections, and messages that arrive
  uint64_t calls;             // of one connection
  uint64_t idle_nanoseconds;  // of a connection without calls
} vm_serve_grpc_limits_t;

typedef struct vm_serve_grpc_answer_t {
  int code;                         // gRPC's status code; 0: OK, with a message
  vm_serve_grpc_text_t text;        // of other codes
  vm_serve_grpc_message_t message;  // of OK
} vm_serve_grpc_answer_t;

// The library, as vm-serve calls it. Any thread.
typedef struct vm_serve_grpc_library_t {
  uint32_t abi;
  const char* version;  // gRPC's
  // Null: gRPC could not start. The host must outlive the server.
  vm_serve_grpc_server_t* (*start)(const vm_serve_grpc_host_t* host, const vm_serve_grpc_limits_t* limits);
  // Serves a connected, non-blocking socket, and owns it.
  void (*add_connection)(vm_serve_grpc_server_t* server, int socket);
  // Ends a call; once for each. The text is copied.
  void (*answer)(vm_serve_grpc_call_t* call, const vm_serve_grpc_answer_t* answer);
  // Ends the transfer of the call's message or answer. Without effect after `end`.
  void (*cancel)(vm_serve_grpc_call_t* call);
  // Frees the call; once for each, after `end`.
  void (*release)(vm_serve_grpc_call_t* call);
  // Asks the clients to begin no further calls, and closes connections without calls. Without effect the
  // second time.
  void (*drain)(vm_serve_grpc_server_t* server);
  // Waits for the end of all calls, and frees the server.
  void (*stop)(vm_serve_grpc_server_t* server);
} vm_serve_grpc_library_t;

// The function that the library exports. Null: it has another boundary than `abi`.
#define VM_SERVE_GRPC_SYMBOL "vm_serve_grpc_library"
typedef const vm_serve_grpc_library_t* (*vm_serve_grpc_library_fn)(uint32_t abi);

#ifdef __cplusplus
}
#endif
