// Failures: a code of halyard/status.h and a message. The provider converts them to statuses of the host
// where it returns them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>

#include "halyard/channel.h"

namespace halyard::mpi {

struct Failure {
  halyard_status_code_t code = HALYARD_OK;
  std::string text;

  explicit operator bool() const { return code != HALYARD_OK; }
};

inline halyard_status_t to_status(const halyard_host_services_t& services, const Failure& failure) {
  if (!failure) return nullptr;
  return services.status_create(services.host, failure.code, failure.text.data(), failure.text.size());
}

// "MPI_Isend: MPI_ERR_RANK: invalid rank".
inline std::string error_text(const char* function, int error) {
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int size = 0;
  if (MPI_Error_string(error, text, &size) != MPI_SUCCESS) size = 0;
  return std::string(function) + ": " + std::string(text, static_cast<size_t>(size));
}

}  // namespace halyard::mpi
