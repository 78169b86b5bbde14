/* Preloaded into a rank: limits MPI to the level $HALYARD_TEST_THREAD_LEVEL (funneled, serialized), and ends
 * the process with a message at a call that this level forbids. Covers the functions that the channel
 * provider calls. */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_t initializer;
static int level = MPI_THREAD_MULTIPLE;
static atomic_int threads_inside;

static int given_level(int provided) {
  const char* const text = getenv("HALYARD_TEST_THREAD_LEVEL");
  const int most = !text                           ? MPI_THREAD_MULTIPLE
                   : strcmp(text, "funneled") == 0 ? MPI_THREAD_FUNNELED
                                                   : MPI_THREAD_SERIALIZED;
  return provided < most ? provided : most;
}

static void enter(const char* function) {
  const int others = atomic_fetch_add(&threads_inside, 1);
  if (level == MPI_THREAD_FUNNELED && !pthread_equal(pthread_self(), initializer)) {
    fprintf(stderr, "thread_level: %s was called by another thread than the one that initialized MPI\n",
            function);
    _Exit(3);
  }
  if (level == MPI_THREAD_SERIALIZED && others != 0) {
    fprintf(stderr, "thread_level: %s was called while another thread was in MPI\n", function);
    _Exit(3);
  }
}

static int leave(int result) {
  atomic_fetch_sub(&threads_inside, 1);
  return result;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  initializer = pthread_self();
  level = *provided = given_level(*provided);
  fprintf(stderr, "thread_level: %d\n", level);
  return result;
}

int MPI_Query_thread(int* provided) {
  *provided = level;
  return MPI_SUCCESS;
}

#define GUARD(NAME, PARAMETERS, ARGUMENTS) \
  int MPI_##NAME PARAMETERS {              \
    enter("MPI_" #NAME);                   \
    return leave(PMPI_##NAME ARGUMENTS);   \
  }

GUARD(Abort, (MPI_Comm comm, int code), (comm, code))
GUARD(Allgather,
      (const void* from, int from_count, MPI_Datatype from_type, void* to, int to_count, MPI_Datatype to_type,
       MPI_Comm comm),
      (from, from_count, from_type, to, to_count, to_type, comm))
GUARD(Cancel, (MPI_Request * request), (request))
GUARD(Comm_create_keyval,
      (MPI_Comm_copy_attr_function * copy, MPI_Comm_delete_attr_function* delete_, int* key, void* extra),
      (copy, delete_, key, extra))
GUARD(Comm_free, (MPI_Comm * comm), (comm))
GUARD(Comm_get_attr, (MPI_Comm comm, int key, void* value, int* flag), (comm, key, value, flag))
GUARD(Comm_group, (MPI_Comm comm, MPI_Group* group), (comm, group))
GUARD(Comm_idup, (MPI_Comm comm, MPI_Comm* made, MPI_Request* request), (comm, made, request))
GUARD(Comm_rank, (MPI_Comm comm, int* rank), (comm, rank))
GUARD(Comm_set_attr, (MPI_Comm comm, int key, void* value), (comm, key, value))
GUARD(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
GUARD(Comm_size, (MPI_Comm comm, int* size), (comm, size))
GUARD(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
      (comm, type, key, info, made))
GUARD(Group_free, (MPI_Group * group), (group))
GUARD(Group_translate_ranks, (MPI_Group a, int count, const int* ranks, MPI_Group b, int* found),
      (a, count, ranks, b, found))
GUARD(Irecv,
      (void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request),
      (buffer, count, type, source, tag, comm, request))
GUARD(Isend,
      (const void* buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
       MPI_Request* request),
      (buffer, count, type, target, tag, comm, request))
GUARD(Issend,
      (const void* buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
       MPI_Request* request),
      (buffer, count, type, target, tag, comm, request))
GUARD(Test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))
GUARD(Testsome, (int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses),
      (count, requests, done, indices, statuses))
GUARD(Wait, (MPI_Request * request, MPI_Status* status), (request, status))

/* The callback of at_finalize() calls no guarded function on this thread. */
int MPI_Finalize(void) {
  enter("MPI_Finalize");
  return leave(PMPI_Finalize());
}
