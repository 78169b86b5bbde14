// Place: where the device of a URI is, and how to reach it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "halyard/driver.hpp"
#include "remote/address.h"
#include "remote/tls.h"

namespace halyard::remote {

namespace kit = halyard::kit;

inline constexpr char kTcpKind[] = "remote";
inline constexpr char kUnixKind[] = "remote+unix";

struct Place {
  Transport transport = Transport::tcp;
  HostPort tcp;
  std::string path;                       // of a Unix socket
  std::string device;                     // at the server; empty: its first
  std::optional<TlsFiles> tls;            // not for Unix sockets
  bool allows_plain = false;              // TCP without TLS, also to other machines
  std::chrono::milliseconds patience{};   // without an answer
  std::chrono::microseconds busy_poll{};  // before a thread that waits sleeps
  std::string digests;                    // the folder for KnownDigests; empty: none
  bool profile = false;                   // the server counts operations and bytes of traced kernels
  std::string files;                      // a folder that the server has as well; empty: none

  std::string text() const;  // "'build-box:9414'", for messages
};

// "remote://HOST:PORT/DEVICE?options", "remote+unix:///PATH?options". INVALID_ARGUMENT.
kit::Result<Place> place_of(const halyard_device_open_args_t& args);

}  // namespace halyard::remote
