// TLS 1.3 with both sides authenticated, over memory: this class turns bytes of a connection into bytes of
// the wire and back. remote/stream.h moves them.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "remote/failure.h"

namespace halyard::remote {

// PEM files: the own certificate (with its chain), its key, and the authorities that sign certificates of the
// other side.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string authorities;
};

enum class TlsSide : uint8_t { client, server };

// The certificates of a process. Thread-safe after its creation.
class TlsContext {
 public:
  // INVALID_ARGUMENT, with the file and OpenSSL's reason.
  static Result<std::shared_ptr<TlsContext>> create(TlsSide side, const TlsFiles& files);
  TlsSide side() const { return side_; }
  SSL_CTX* get() const { return context_.get(); }

  struct Free {
    void operator()(SSL_CTX* context) const;
  };
  TlsContext(TlsSide side, std::unique_ptr<SSL_CTX, Free> context)
      : side_(side), context_(std::move(context)) {}

 private:
  TlsSide side_;
  std::unique_ptr<SSL_CTX, Free> context_;
};

// One connection. One thread at a time.
class Tls {
 public:
  // `host`: for clients, the name that the certificate of the server must have.
  Tls(std::shared_ptr<TlsContext> context, const std::string& host);
  ~Tls();

  // Appends bytes for the wire. UNAVAILABLE.
  Result<> seal(std::span<const uint8_t> plain, std::vector<uint8_t>& wire);
  // Takes bytes of the wire.
  void feed(std::span<const uint8_t> wire);
  // Bytes for `plain`; 0: more bytes of the wire are needed. Appends handshake messages to `wire`.
  // UNAUTHENTICATED: no valid certificate. UNAVAILABLE: the other side has ended the connection.
  Result<size_t> open(std::span<uint8_t> plain, std::vector<uint8_t>& wire);
  // Whether bytes were fed that open() has not returned.
  bool has_pending() const;
  TlsSide side() const { return context_->side(); }
  // Whether both sides are authenticated. Clients call this until it is true.
  Result<bool> shake_hands(std::vector<uint8_t>& wire);

  // Of the certificate of the other side, after the handshake.
  std::string peer_name() const;    // its common name
  std::string peer_digest() const;  // SHA-256, in hex

 private:
  Failure failure_of(int result) const;
  void take_output(std::vector<uint8_t>& wire);

  std::shared_ptr<TlsContext> context_;
  SSL* ssl_;
  BIO* in_;   // owned by ssl_
  BIO* out_;  // owned by ssl_
};

}  // namespace halyard::remote
