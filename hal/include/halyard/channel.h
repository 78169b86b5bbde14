/* Halyard channel provider ABI, version 1. Plain C11; needs only the headers that halyard/driver.h needs.
 *
 * A channel provider runs the collectives of a program (`hal.channel.*`, `command_buffer.collective`) between
 * ranks: processes of an MPI job, or threads of one process. It is one shared library
 * `halyard-channel-NAME.so`. It carries an ELF note, from which the host reads its identity without running
 * it, and exports one function, halyard_channel_negotiate, through which host and provider agree on a
 * version. docs/collectives.md states the contract.
 *
 * A provider describes the ranks of a job, and moves and reduces bytes of host memory between them. It knows
 * no devices, command buffers or fences: the host calls submit() when the bytes of a collective are ready,
 * and continues when `completed` is called.
 *
 * ORDER. The host submits the collectives of one channel in the order of the program's submissions, which is
 * the same on every rank. Collectives of different channels do not wait for one another.
 *
 * GROWTH, HANDLES, THREADS, FAILURE: as in halyard/driver.h. In addition, one thread at a time calls submit()
 * and channel_split() of a channel. A failure of a channel is permanent: every later call fails with the
 * first failure.
 */
#ifndef HALYARD_CHANNEL_H_
#define HALYARD_CHANNEL_H_

#include "halyard/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HALYARD_CHANNEL_ABI_V1 1u

/* ---- The note ------------------------------------------------------------------------------------------ */

#define HALYARD_CHANNEL_NOTE_SECTION ".note.halyard.channel"
#define HALYARD_NOTE_TYPE_CHANNEL 3u

/* The note's description. Its size never changes; a later version of the note gets another type. Texts are
 * zero-padded. */
typedef struct halyard_channel_note {
  uint32_t abi_min; /* lowest and highest ABI version that the provider speaks; 0 is always refused */
  uint32_t abi_max;
  uint32_t sanitizer; /* HALYARD_SANITIZER_* */
  uint32_t reserved;  /* 0 */
  char library[32];   /* NAME of halyard-channel-NAME.so */
  char version[32];   /* the provider's own version, for display */
  char launchers[64]; /* launchers whose jobs the provider joins, separated by commas: "openmpi", "mpich" */
} halyard_channel_note_t;

/* The note's record in the file. */
typedef struct halyard_channel_note_record {
  uint32_t owner_size;
  uint32_t description_size;
  uint32_t type;
  char owner[8];
  halyard_channel_note_t description;
} halyard_channel_note_record_t;

/* Once in a provider, at file scope: HALYARD_CHANNEL_NOTE("mpi", "1.0", "openmpi"); */
#define HALYARD_CHANNEL_NOTE(library_, version_, launchers_)                                               \
  HALYARD_NOTE_PLAIN_ __attribute__((                                                                      \
      used, aligned(4), section(HALYARD_CHANNEL_NOTE_SECTION))) static const halyard_channel_note_record_t \
      halyard_channel_note_record_ = {8,                                                                   \
                                      sizeof(halyard_channel_note_t),                                      \
                                      HALYARD_NOTE_TYPE_CHANNEL,                                           \
                                      HALYARD_NOTE_OWNER,                                                  \
                                      {HALYARD_CHANNEL_ABI_V1, HALYARD_CHANNEL_ABI_V1,                     \
                                       HALYARD_SANITIZER_KIND, 0, library_, version_, launchers_}}

/* ---- Collectives --------------------------------------------------------------------------------------- */

/* Numbers of the ecosystem (docs/spec/hal-types.md, "Collectives"). They never change. */
enum {
  HALYARD_COLLECTIVE_ALL_GATHER = 0,
  HALYARD_COLLECTIVE_ALL_REDUCE = 1,
  HALYARD_COLLECTIVE_ALL_TO_ALL = 2,
  HALYARD_COLLECTIVE_BROADCAST = 3,
  HALYARD_COLLECTIVE_REDUCE = 4,
  HALYARD_COLLECTIVE_REDUCE_SCATTER = 5,
  HALYARD_COLLECTIVE_SEND = 6,
  HALYARD_COLLECTIVE_RECV = 7,
  HALYARD_COLLECTIVE_SEND_RECV = 8,
};
enum {
  HALYARD_REDUCTION_NONE = 0,
  HALYARD_REDUCTION_SUM = 1,
  HALYARD_REDUCTION_PRODUCT = 2,
  HALYARD_REDUCTION_MINIMUM = 3,
  HALYARD_REDUCTION_MAXIMUM = 4,
  HALYARD_REDUCTION_AVERAGE = 5,
};
enum {
  HALYARD_COLLECTIVE_SINT_8 = 0,
  HALYARD_COLLECTIVE_UINT_8 = 1,
  HALYARD_COLLECTIVE_SINT_16 = 2,
  HALYARD_COLLECTIVE_UINT_16 = 3,
  HALYARD_COLLECTIVE_SINT_32 = 4,
  HALYARD_COLLECTIVE_UINT_32 = 5,
  HALYARD_COLLECTIVE_SINT_64 = 6,
  HALYARD_COLLECTIVE_UINT_64 = 7,
  HALYARD_COLLECTIVE_FLOAT_16 = 8,
  HALYARD_COLLECTIVE_FLOAT_32 = 9,
  HALYARD_COLLECTIVE_FLOAT_64 = 10,
  HALYARD_COLLECTIVE_BFLOAT_16 = 11,
  HALYARD_COLLECTIVE_FLOAT_8_E5M2 = 12,
  HALYARD_COLLECTIVE_FLOAT_8_E4M3FN = 13,
  HALYARD_COLLECTIVE_FLOAT_8_E5M2FNUZ = 14,
  HALYARD_COLLECTIVE_FLOAT_8_E4M3FNUZ = 15,
};

/* A value of halyard_collective.target and .source: no rank. */
#define HALYARD_NO_RANK UINT32_MAX

/* One rank's part of a collective. N is the number of ranks, C is element_count, and a block is C elements.
 *
 *   kind            | send      | receive   | result
 *   ALL_GATHER      | a block   | N blocks  | block r is the block of rank r
 *   ALL_REDUCE      | a block   | a block   | the reduction of the blocks of all ranks
 *   ALL_TO_ALL      | C elements in N parts | part r is this rank's part of the elements of rank r
 *   BROADCAST       | a block   | a block   | the block of the root, which alone reads `send`
 *   REDUCE          | a block   | a block   | on the root, which alone writes to `receive`: the reduction
 *   REDUCE_SCATTER  | N blocks  | a block   | on rank r: the reduction of block r of all ranks
 *   SEND            | a block   |           | goes to `target`, which receives it with RECV or SEND_RECV
 *   RECV            |           | a block   | the block of `source`
 *   SEND_RECV       | a block   | a block   | both at once; without a source: zeros
 *
 * Reductions combine the ranks in order, starting with rank 0, so that every provider computes the same bits.
 * Integers wrap around; their average is computed with 64 bits and truncated towards zero. Floats of 8 and 16
 * bits are reduced as f32 and rounded once; NaN becomes the positive quiet NaN. MINIMUM and MAXIMUM are NaN
 * if any rank has NaN, and order -0 before +0.
 *
 * The host has checked sizes and ranks. `send` may be equal to `receive` (ALL_REDUCE, REDUCE, BROADCAST), or
 * be this rank's block of the larger buffer (ALL_GATHER, REDUCE_SCATTER); otherwise the ranges do not
 * overlap. */
typedef struct halyard_collective {
  uint32_t struct_size;
  uint32_t kind;      /* HALYARD_COLLECTIVE_* */
  uint32_t reduction; /* HALYARD_REDUCTION_* */
  uint32_t element;   /* HALYARD_COLLECTIVE_* of an element type */
  uint32_t root;      /* BROADCAST, REDUCE */
  uint32_t target;    /* SEND, SEND_RECV; or HALYARD_NO_RANK */
  uint32_t source;    /* RECV, SEND_RECV; or HALYARD_NO_RANK */
  uint32_t reserved;
  uint64_t element_count;
  uint64_t number;  /* number of this collective on its channel, from 0, for messages */
  const void* send; /* host memory, multiples of the element's size; borrowed until `completed` */
  void* receive;
  uint64_t patience_ns; /* how long submit() may use the calling thread to complete the collective */
  uint64_t timeout_ns;  /* fails with DEADLINE_EXCEEDED if it waits longer for other ranks; 0: no limit */
  const uint32_t* stop; /* null, or like halyard_submission.stop */
  /* Called once: when the bytes are in place (`status` is null), or after a failure (`status` is owned by the
   * callee). Any thread, while no lock of the provider is held, perhaps before submit() returns. */
  void (*completed)(void* user, halyard_status_t status);
  void* user;
} halyard_collective_t;

/* ---- The provider -------------------------------------------------------------------------------------- */

typedef struct halyard_channel_provider* halyard_channel_provider_t;
typedef struct halyard_provider_channel* halyard_provider_channel_t;

typedef struct halyard_channel_init_args {
  uint32_t struct_size;
  uint32_t abi_version;                    /* the negotiated version */
  const halyard_host_services_t* services; /* valid until shutdown returns */
  const halyard_extension_t* extensions;
  /* Time limit for the other processes of the job to join, in nanoseconds; 0: no limit. DEADLINE_EXCEEDED:
   * some processes have not joined; this process cannot join the job any more. */
  uint64_t timeout_ns;
} halyard_channel_init_args_t;

/* The job to which this process belongs. */
typedef struct halyard_channel_world {
  uint32_t struct_size;
  uint32_t rank;
  uint32_t count;
  uint32_t local_rank; /* among the processes on this machine */
  uint32_t local_count;
  uint32_t reserved;
  const char* description; /* "Open MPI 4.1.4, MPI_THREAD_MULTIPLE", for display; owned by the provider */
} halyard_channel_world_t;

/* The arguments of hal.channel.create. */
typedef struct halyard_channel_open_args {
  uint32_t struct_size;
  int32_t rank;  /* -1: the rank in the world */
  int32_t count; /* -1: the size of the world */
  uint32_t has_id;
  halyard_text_t id; /* with has_id; otherwise the channel contains all ranks of the world */
  halyard_text_t group;
  const halyard_extension_t* extensions;
} halyard_channel_open_args_t;

/* All functions of version 1 are mandatory, except where a comment says otherwise. */
typedef struct halyard_channel_table {
  uint32_t struct_size;
  uint32_t reserved;

  /* Joins the job. UNAVAILABLE with the reason. May block until the other processes of the job have
   * joined. */
  halyard_status_t (*initialize)(const halyard_channel_init_args_t* args, halyard_channel_provider_t* out);
  /* Called after all channels of the provider are closed. A null *provider has no effect. */
  void (*shutdown)(halyard_channel_provider_t* provider);
  halyard_status_t (*world)(halyard_channel_provider_t provider, halyard_channel_world_t* world);

  /* Creates a channel. A collective call: every rank opens its channels in the same order. Does not wait for
   * the other ranks. NOT_FOUND: an unknown id. INVALID_ARGUMENT: rank or count differ from those of the
   * world. */
  halyard_status_t (*channel_open)(halyard_channel_provider_t provider,
                                   const halyard_channel_open_args_t* args, halyard_provider_channel_t* out);
  /* Registers a communicator of the embedder under an id, for channel_open. `kind` is the type of `handle`:
   * "MPI_Comm". A collective call of all ranks of the communicator; may block. The embedder keeps the
   * communicator until the call returns. A null function: UNIMPLEMENTED. */
  halyard_status_t (*import)(halyard_channel_provider_t provider, halyard_text_t id, halyard_text_t kind,
                             uint64_t handle);
  /* Creates a channel of the ranks that pass the same color, ordered by key, then by rank. A collective call
   * of all ranks of the channel, in the order of its collectives. Does not wait for the other ranks. With
   * color -1 this rank takes no part and *out is null. */
  halyard_status_t (*channel_split)(halyard_provider_channel_t channel, int32_t color, int32_t key,
                                    halyard_provider_channel_t* out);
  /* Returns this process's rank in the channel, and the number of ranks. After a split,
   * blocks until all its ranks have called channel_split, or until *stop (may be null) is not 0. */
  halyard_status_t (*channel_place)(halyard_provider_channel_t channel, const uint32_t* stop, uint32_t* rank,
                                    uint32_t* count);
  /* Called after all collectives of the channel have completed. Other ranks may still have it open. */
  void (*channel_close)(halyard_provider_channel_t channel);
  /* Success: the collective is accepted, and `completed` will be called once. Failure: nothing has happened.
   * Does not block, except for up to patience_ns. */
  halyard_status_t (*submit)(halyard_provider_channel_t channel, const halyard_collective_t* collective);
  /* This rank can no longer take part. Everything that waits for it, here and on other ranks, fails with the
   * status and the number of this rank. Takes ownership of `status`. */
  void (*channel_fail)(halyard_provider_channel_t channel, halyard_status_t status);
} halyard_channel_table_t;

/* ---- Negotiation --------------------------------------------------------------------------------------- */

typedef struct halyard_channel_request {
  uint32_t struct_size;
  uint32_t abi_min; /* versions that the host speaks */
  uint32_t abi_max;
  uint32_t sanitizer;       /* HALYARD_SANITIZER_* of the host */
  const char* host_version; /* for display */
  const halyard_extension_t* extensions;
} halyard_channel_request_t;

typedef struct halyard_channel_reply {
  uint32_t struct_size;                 /* set by the host; the provider writes only that many bytes */
  uint32_t abi_version;                 /* the highest common version */
  const halyard_channel_table_t* table; /* static storage */
  char refusal[256];                    /* zero-terminated reason, if the provider returns 0 */
} halyard_channel_reply_t;

/* The only exported function. Neither uses the network nor allocates, and may be called any number of times.
 * Returns 1 and fills the reply if there is a common version. Returns 0 if the provider refuses. */
typedef int32_t (*halyard_channel_negotiate_fn)(const halyard_channel_request_t* request,
                                                halyard_channel_reply_t* reply);
#define HALYARD_CHANNEL_NEGOTIATE_SYMBOL "halyard_channel_negotiate"
#if defined(__GNUC__)
#define HALYARD_CHANNEL_EXPORT __attribute__((visibility("default")))
#else
#define HALYARD_CHANNEL_EXPORT
#endif
HALYARD_CHANNEL_EXPORT int32_t halyard_channel_negotiate(const halyard_channel_request_t* request,
                                                         halyard_channel_reply_t* reply);

/* ---- Sizes of version 1; they never change ------------------------------------------------------------- */

#ifdef __cplusplus
#define HALYARD_STATIC_ASSERT_ static_assert
#else
#define HALYARD_STATIC_ASSERT_ _Static_assert
#endif
HALYARD_STATIC_ASSERT_(sizeof(halyard_channel_note_t) == 144, "the note never changes");
HALYARD_STATIC_ASSERT_(sizeof(halyard_channel_note_record_t) == 164, "the note never changes");
#if UINTPTR_MAX == UINT64_MAX
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_channel_table_t, channel_fail) == 8 + 10 * 8,
                       "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_collective_t, user) == 104, "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_channel_open_args_t, extensions) == 56,
                       "version 1 is frozen");
#endif
#undef HALYARD_STATIC_ASSERT_

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_CHANNEL_H_ */
