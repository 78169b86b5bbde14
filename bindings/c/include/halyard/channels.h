/* Programs of several ranks: what a launcher has said, and the channels between the ranks. Plain C11; the
 * functions are libhalyard's. docs/collectives.md describes their use.
 *
 * A program that is compiled for several ranks creates channels (hal.channel.create) and exchanges tensors
 * over them. A rank is a process of an MPI job (`mpirun -n 4 ...`), or a thread of one process. A context
 * gets its rank with halyard_context_options_t.channels; without it, the process is the rank that its
 * launcher has made it, and the only one where no launcher has started it. Any thread.
 */
#ifndef HALYARD_CHANNELS_H_
#define HALYARD_CHANNELS_H_

#include "halyard/halyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The launcher of this process. Without one: rank 0 of 1. */
typedef struct halyard_launch {
  uint32_t struct_size;
  uint32_t is_launched;
  uint32_t rank;
  uint32_t count;
  uint32_t local_rank; /* among the processes of this machine */
  uint32_t local_count;
  char launcher[32]; /* "openmpi", "mpich", "slurm"; "" without one */
} halyard_launch_t;
/* Reads environment variables, and nothing else. INVALID_ARGUMENT: struct_size is not set. */
HALYARD_API halyard_status_t halyard_launch_detect(halyard_launch_t* out);

typedef struct halyard_channels_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* The path of a halyard-channel-NAME.so. Null or "": the library for the launcher of this process, or
   * $HALYARD_CHANNEL_PROVIDER; without both, a world of one rank. */
  const char* library;
  /* The expected place of this process; -1: any. FAILED_PRECONDITION if the world has another. Zero is a
   * rank, so set both. */
  int32_t rank;
  int32_t rank_count;
  /* How long to wait for the other processes of the job, and later in collectives
   * (halyard_channels_set_timeout), in nanoseconds; 0: no limit. A process that has waited in vain cannot
   * join the job any more. */
  uint64_t timeout_ns;
} halyard_channels_options_t;
/* Joins the job, for which it may wait. `options` may be null. A process joins an MPI job once, and leaves it
 * when it ends: MPI is initialized here (with MPI_THREAD_MULTIPLE, if the library has it) unless the process
 * has done so, and then finalized at exit. NOT_FOUND: no library for the launcher, with the places that were
 * looked at; UNAVAILABLE: MPI does not work; FAILED_PRECONDITION: the process has initialized MPI without
 * MPI_THREAD_MULTIPLE, or the launcher's variables say another rank than the job does, as where a program is
 * started by the launcher of another MPI (not compared if `rank` and `rank_count` are given);
 * DEADLINE_EXCEEDED: timeout_ns.
 */
HALYARD_API halyard_status_t halyard_channels_create(const halyard_channels_options_t* options,
                                                     halyard_channels_t* out);
/* A world within this process: `count` handles, one for each rank, for as many contexts. Its ranks run on
 * threads of their own, since each waits for the others; or on one thread, with asynchronous functions.
 * INVALID_ARGUMENT: a count of 0, or of more than 65535. */
HALYARD_API halyard_status_t halyard_channels_create_local(uint32_t count, halyard_channels_t* out);

typedef struct halyard_channels_world {
  uint32_t struct_size;
  uint32_t rank;
  uint32_t count;
  uint32_t local_rank; /* among the processes of this machine */
  uint32_t local_count;
  uint32_t reserved;
  const char* description; /* "Open MPI v4.1.4, MPI_THREAD_MULTIPLE"; lives as long as the handle */
} halyard_channels_world_t;
HALYARD_API halyard_status_t halyard_channels_world(halyard_channels_t channels,
                                                    halyard_channels_world_t* world);

/* How long a collective that is submitted later may wait for other ranks, in nanoseconds; 0, the default: no
 * limit. One that waits longer fails with DEADLINE_EXCEEDED, and its channel with it, here and on the ranks
 * that can be told; the message names the channel, the command and the missing ranks. */
HALYARD_API halyard_status_t halyard_channels_set_timeout(halyard_channels_t channels, uint64_t timeout_ns);

/* Makes a communicator of the caller known to programs as hal.channel.create with this id. `kind` says what
 * `handle` is: "MPI_Comm", a handle of the MPI library that the provider uses (of mpi4py:
 * MPI._handleof(comm)). A collective call of all ranks of the communicator, which is duplicated and may be
 * freed afterwards. ALREADY_EXISTS; UNIMPLEMENTED: a world within one process. */
HALYARD_API halyard_status_t halyard_channels_import(halyard_channels_t channels, const char* id,
                                                     const char* kind, uint64_t handle);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_CHANNELS_H_ */
