/* The part of MPI that the channels' provider uses, for the fuzz target `peers`, which decides what messages
 * arrive, and for channels/tests/network.cpp, which moves them between ranks of one process. */
#ifndef HALYARD_FUZZ_FAKE_MPI_H_
#define HALYARD_FUZZ_FAKE_MPI_H_

#ifdef __cplusplus
extern "C" {
#endif

typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Request;
typedef struct MPI_Status {
  int MPI_SOURCE;
} MPI_Status;

enum {
  MPI_SUCCESS = 0,
  MPI_BYTE = 1,
  MPI_COMM_NULL = 0,
  MPI_REQUEST_NULL = -1,
  MPI_ANY_SOURCE = -1,
  MPI_UNDEFINED = -32766,
  MPI_MAX_ERROR_STRING = 64,
};
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)

int MPI_Isend(const void* bytes, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request* request);
int MPI_Issend(const void* bytes, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
               MPI_Request* request);
int MPI_Irecv(void* bytes, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request);
int MPI_Test(MPI_Request* request, int* is_done, MPI_Status* status);
int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]);
int MPI_Cancel(MPI_Request* request);
int MPI_Error_string(int error, char* text, int* size);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Allgather(const void* sent, int sent_count, MPI_Datatype sent_type, void* received,
                  int received_count, MPI_Datatype received_type, MPI_Comm comm);

#ifdef __cplusplus
}
#endif

#endif /* HALYARD_FUZZ_FAKE_MPI_H_ */
