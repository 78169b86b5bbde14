// The flags that only vm-device has.
#pragma once

#include "common/flags.h"

namespace halyard::tools::flag {

// ---- Devices

inline constexpr List offered_device = {"device", "URI",
                                        "A device to offer: driver[://path][?key=value&...]. May be "
                                        "repeated; clients name one of them, or get the first.",
                                        "--device=local-task"};
inline constexpr Toggle run_native = {
    "allow_native",
    "Runs machine code of clients, in this process and with its rights. Only for clients that may do "
    "anything that this "
    "process may do. Without this flag clients get an error for such programs.",
    "--allow_native"};

inline constexpr Toggle one_process = {
    "one_process",
    "Serves all connections in one process: a driver that crashes then ends the work of all clients. For "
    "devices that only one process can open. Without this flag each connection has a process of its own.",
    "--one_process"};

inline constexpr List files = {
    "files", "FOLDER",
    "A folder whose regular files may be read in place of bytes that a client would "
    "send: parameters that are here already. Clients name a file by its path below "
    "the folder, and get nothing but bytes whose SHA-256 they know. Symbolic links "
    "are not followed. May be repeated.",
    "--files=/srv/models"};

// ---- Connections

inline constexpr List listen = {"listen", "ADDRESS",
                                "An address for clients: tls://HOST:PORT, unix:///PATH, or tcp://HOST:PORT "
                                "without encryption, which is only for "
                                "loopback addresses unless --insecure is given. Port 0: any free port, which "
                                "is printed. fd://: the sockets that systemd passes, with TLS unless they "
                                "are Unix sockets. May be repeated.",
                                "--listen=tls://0.0.0.0:9414"};
inline constexpr Text cert = {"cert", "FILE", "The certificate of this server, with its chain, in PEM (TLS).",
                              "--cert=server.pem"};
inline constexpr Text key = {"key", "FILE", "The key of the certificate, in PEM (TLS).", "--key=server.key"};
inline constexpr Text client_ca = {"client_ca", "FILE",
                                   "The authorities whose certificates clients must have, in PEM (TLS).",
                                   "--client_ca=ca.pem"};
inline constexpr Text metrics = {"metrics", "HOST:PORT",
                                 "An address at which GET /metrics gives numbers for Prometheus, and GET "
                                 "/healthz answers as long as this server serves, both over HTTP for "
                                 "everybody who can reach it.",
                                 "--metrics=127.0.0.1:9415"};
inline constexpr List allow_user = {
    "allow_user", "NAME",
    "A user who may connect to Unix sockets, besides root and the user of this process. May be repeated.",
    "--allow_user=alice"};
inline constexpr Toggle insecure = {"insecure",
                                    "Listens on tcp:// addresses of other interfaces than loopback: "
                                    "everybody who can reach the port may use the devices, "
                                    "and everybody on the way can read and change all data.",
                                    "--insecure"};

// ---- Limits

inline constexpr Number device_connections = {"max_connections", "N",
                                              "The maximum number of connections of all clients (256). Of "
                                              "clients that have not said who they are there are at most "
                                              "64 more: the oldest one ends for a new one.",
                                              "--max_connections=64", 256};
inline constexpr Number client_connections = {"max_client_connections", "N",
                                              "The maximum number of connections of one client (32).",
                                              "--max_client_connections=4", 32};
inline constexpr Number max_handles = {
    "max_handles", "N",
    "The maximum number of objects of a connection, and of its submissions in flight (65536).",
    "--max_handles=10000", 65536};
inline constexpr Size client_memory = {
    "max_client_memory", "SIZE", "The maximum memory of one client, with its recordings and code (4GiB).",
    "--max_client_memory=1GiB"};
inline constexpr Size max_cache = {"max_cache", "SIZE",
                                   "The maximum size of constants and code that are kept for one client, "
                                   "also for its next connection (2GiB). They count as "
                                   "its memory.",
                                   "--max_cache=8GiB"};
inline constexpr Duration max_time = {"max_time", "TIME",
                                      "The maximum time of a submission, with its waits, and of loading code "
                                      "(10min). Then it is stopped.",
                                      "--max_time=30s"};
inline constexpr Number device_threads = {
    "threads", "N",
    "The number of threads that handle messages: with --one_process of all connections (default: the number "
    "of "
    "processors, but at least 4), otherwise of each, at most 2 (default).",
    "--threads=1"};
inline constexpr Number busy_poll = {
    "busy_poll", "US",
    "The microseconds for which a thread that receives looks for the next message before it sleeps (50), "
    "while "
    "messages do come within this time and no other thread wants the processor. 0: it sleeps at once.",
    "--busy_poll=0", 50};

}  // namespace halyard::tools::flag
