// OpenSSL with memory BIOs.
#include "remote/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "remote/digest.h"

namespace halyard::remote {

namespace {

std::string openssl_reason() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason ? reason : "no reason is known";
}

Result<> accept(int result, const char* what, const std::string& file) {
  if (result == 1) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "cannot use '{}' as {}: {}; expected a file in PEM format", file,
              what, openssl_reason());
}

bool is_ip_address(const std::string& host) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

void TlsContext::Free::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

Result<std::shared_ptr<TlsContext>> TlsContext::create(TlsSide side, const TlsFiles& files) {
  std::unique_ptr<SSL_CTX, Free> context(SSL_CTX_new(TLS_method()));
  if (!context) return fail(HALYARD_RESOURCE_EXHAUSTED, "OpenSSL made no context: {}", openssl_reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context.get(), 0);  // connections are not resumed
  SSL_CTX_set_mode(context.get(), SSL_MODE_AUTO_RETRY);
  REMOTE_TRY(accept(SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()),
                    "a certificate", files.certificate));
  REMOTE_TRY(accept(SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM),
                    "the key of the certificate", files.key));
  REMOTE_TRY(accept(SSL_CTX_load_verify_locations(context.get(), files.authorities.c_str(), nullptr),
                    side == TlsSide::client ? "the authority of servers" : "the authority of clients",
                    files.authorities));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return std::make_shared<TlsContext>(side, std::move(context));
}

Tls::Tls(std::shared_ptr<TlsContext> context, const std::string& host)
    : context_(std::move(context)),
      ssl_(SSL_new(context_->get())),
      in_(BIO_new(BIO_s_mem())),
      out_(BIO_new(BIO_s_mem())) {
  SSL_set_bio(ssl_, in_, out_);
  if (context_->side() == TlsSide::server) {
    SSL_set_accept_state(ssl_);
    return;
  }
  SSL_set_connect_state(ssl_);
  if (is_ip_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), host.c_str());
  } else {
    SSL_set1_host(ssl_, host.c_str());
    SSL_set_tlsext_host_name(ssl_, host.c_str());
  }
}

Tls::~Tls() { SSL_free(ssl_); }

Failure Tls::failure_of(int result) const {
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_ZERO_RETURN || kind == SSL_ERROR_SYSCALL)
    return {HALYARD_UNAVAILABLE, "the other side has ended the TLS connection"};
  const long verdict = SSL_get_verify_result(ssl_);
  std::string reason = openssl_reason();
  if (verdict != X509_V_OK) reason += fmt::format(" ({})", X509_verify_cert_error_string(verdict));
  return {HALYARD_UNAUTHENTICATED, fmt::format("no TLS 1.3 connection with two certificates: {}; check the "
                                               "certificates, the names in them and the "
                                               "authorities of both sides",
                                               reason)};
}

void Tls::take_output(std::vector<uint8_t>& wire) {
  for (size_t pending = BIO_ctrl_pending(out_); pending > 0; pending = BIO_ctrl_pending(out_)) {
    const size_t before = wire.size();
    wire.resize(before + pending);
    const int taken = BIO_read(out_, wire.data() + before, static_cast<int>(pending));
    wire.resize(before + static_cast<size_t>(std::max(taken, 0)));
    if (taken <= 0) return;
  }
}

Result<> Tls::seal(std::span<const uint8_t> plain, std::vector<uint8_t>& wire) {
  ERR_clear_error();
  while (!plain.empty()) {
    constexpr size_t kRecord = 16384;
    const int sealed = SSL_write(ssl_, plain.data(), static_cast<int>(std::min(plain.size(), kRecord)));
    if (sealed <= 0) return std::unexpected(failure_of(sealed));
    plain = plain.subspan(static_cast<size_t>(sealed));
    take_output(wire);
  }
  return {};
}

void Tls::feed(std::span<const uint8_t> wire) {
  if (!wire.empty()) BIO_write(in_, wire.data(), static_cast<int>(wire.size()));
}

Result<size_t> Tls::open(std::span<uint8_t> plain, std::vector<uint8_t>& wire) {
  ERR_clear_error();
  const int opened = SSL_read(ssl_, plain.data(), static_cast<int>(std::min<size_t>(plain.size(), 1 << 30)));
  take_output(wire);
  if (opened > 0) return static_cast<size_t>(opened);
  const int kind = SSL_get_error(ssl_, opened);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return size_t{0};
  return std::unexpected(failure_of(opened));
}

bool Tls::has_pending() const { return BIO_ctrl_pending(in_) > 0 || SSL_pending(ssl_) > 0; }

Result<bool> Tls::shake_hands(std::vector<uint8_t>& wire) {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  take_output(wire);
  if (done == 1) return true;
  if (SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ) return false;
  return std::unexpected(failure_of(done));
}

std::string Tls::peer_name() const {
  X509* const certificate = SSL_get0_peer_certificate(ssl_);
  char name[256] = {};
  if (certificate)
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  // The name goes to logs, where it must not look like another line.
  std::string text = name;
  std::ranges::replace_if(text, [](unsigned char each) { return each < ' ' || each == 0x7F; }, '?');
  return text;
}

std::string Tls::peer_digest() const {
  X509* const certificate = SSL_get0_peer_certificate(ssl_);
  if (!certificate) return {};
  Sha256 digest = {};
  unsigned size = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  return hex(digest);
}

}  // namespace halyard::remote
