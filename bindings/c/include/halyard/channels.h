/* Programs of several ranks: the launcher of a process, and channels between ranks. Plain C11; link with
 * libhalyard. docs/collectives.md describes their use.
 *
 * A program that is compiled for several ranks creates channels (hal.channel.create) and exchanges tensors
 * over them. A rank is a process of an MPI job (`mpirun -n 4 ...`), or a thread of one process. A context
 * gets its rank from halyard_context_options_t.channels; without it, from the launcher of the process. A
 * process without a launcher is rank 0 of 1. Any thread may call these functions.
 */
#ifndef HALYARD_CHANNELS_H_
#define HALYARD_CHANNELS_H_

#include "halyard/halyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The launcher of this process, and the rank that it has assigned. Without a launcher: rank 0 of 1. */
typedef struct halyard_launch {
  uint32_t struct_size;
  uint32_t is_launched;
  uint32_t rank;
  uint32_t count;
  uint32_t local_rank; /* among the processes on this machine */
  uint32_t local_count;
  char launcher[32]; /* "openmpi", "mpich", "slurm"; "" without a launcher */
} halyard_launch_t;
/* Detects the launcher; reads only environment variables. INVALID_ARGUMENT: struct_size is not set. */
HALYARD_API halyard_status_t halyard_launch_detect(halyard_launch_t* out);

typedef struct halyard_channels_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* Path of a halyard-channel-NAME.so. Null or "": $HALYARD_CHANNEL_PROVIDER, or the library for the launcher
   * of this process; without either, a world of one rank. */
  const char* library;
  /* The expected rank of this process and number of ranks; -1: any. FAILED_PRECONDITION if the world differs.
   * Set both fields, because 0 is a valid rank. */
  int32_t rank;
  int32_t rank_count;
  /* Time limit for the other processes of the job to join, and later for collectives
   * (halyard_channels_set_timeout), in nanoseconds; 0: no limit. After this timeout the process cannot join
   * the job any more. */
  uint64_t timeout_ns;
} halyard_channels_options_t;
/* Joins the job; may wait for the other processes. `options` may be null. A process joins an MPI job once,
 * and leaves it when the process ends. Unless the process has initialized MPI, this function initializes it
 * (with MPI_THREAD_MULTIPLE if the library supports it), and it is finalized at exit. NOT_FOUND: no library
 * for the launcher; the message names the places searched. UNAVAILABLE: MPI does not work.
 * FAILED_PRECONDITION: the process has initialized MPI without MPI_THREAD_MULTIPLE; or the launcher's
 * environment variables and the job disagree about the rank, for example because the launcher belongs to
 * another MPI (not compared if `rank` and `rank_count` are given). DEADLINE_EXCEEDED: timeout_ns has
 * passed. */
HALYARD_API halyard_status_t halyard_channels_create(const halyard_channels_options_t* options,
                                                     halyard_channels_t* out);
/* Creates a world within this process: `count` handles, one for each rank, each for one context. Run each
 * rank on its own thread, because ranks wait for each other; or run all on one thread with asynchronous
 * functions. INVALID_ARGUMENT: `count` is 0 or more than 65535. */
HALYARD_API halyard_status_t halyard_channels_create_local(uint32_t count, halyard_channels_t* out);

typedef struct halyard_channels_world {
  uint32_t struct_size;
  uint32_t rank;
  uint32_t count;
  uint32_t local_rank; /* among the processes on this machine */
  uint32_t local_count;
  uint32_t reserved;
  const char* description; /* "Open MPI v4.1.4, MPI_THREAD_MULTIPLE"; lives as long as the handle */
} halyard_channels_world_t;
HALYARD_API halyard_status_t halyard_channels_world(halyard_channels_t channels,
                                                    halyard_channels_world_t* world);

/* Sets how long collectives that are submitted later may wait for other ranks, in nanoseconds; 0, the
 * default: no limit. A collective that waits longer fails with DEADLINE_EXCEEDED. Its channel then fails too,
 * here and on the ranks that can be notified. The message names the channel, the command and the missing
 * ranks. */
HALYARD_API halyard_status_t halyard_channels_set_timeout(halyard_channels_t channels, uint64_t timeout_ns);

/* Registers a communicator of the caller, so that programs get it from hal.channel.create with this id.
 * `kind` is the type of `handle`: "MPI_Comm", a handle of the MPI library that the provider uses (mpi4py:
 * MPI._handleof(comm)). All ranks of the communicator must call this function. The communicator is
 * duplicated; the caller may free it afterwards. ALREADY_EXISTS: the id is registered; UNIMPLEMENTED: a world
 * within one process. */
HALYARD_API halyard_status_t halyard_channels_import(halyard_channels_t channels, const char* id,
                                                     const char* kind, uint64_t handle);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_CHANNELS_H_ */
