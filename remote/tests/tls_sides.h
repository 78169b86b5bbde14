// For tests of TLS: two sides with certificates of one authority, that of the server for "build-box".
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "remote/tls.h"

namespace halyard::remote {

struct TlsIdentity {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  TlsIdentity() = default;
  TlsIdentity(TlsIdentity&& other) noexcept
      : key(std::exchange(other.key, nullptr)), certificate(std::exchange(other.certificate, nullptr)) {}
  ~TlsIdentity() {
    EVP_PKEY_free(key);
    X509_free(certificate);
  }
};

// Signed by `authority`, or by itself.
inline TlsIdentity make_tls_identity(const char* name, const TlsIdentity* authority, bool is_authority) {
  TlsIdentity made;
  X509* const it = made.certificate;
  X509_set_version(it, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(it), 1);
  X509_gmtime_adj(X509_getm_notBefore(it), -3600);
  X509_gmtime_adj(X509_getm_notAfter(it), 365L * 86400);
  X509_set_pubkey(it, made.key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(it), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509_set_issuer_name(it, X509_get_subject_name(authority ? authority->certificate : it));
  const auto extend = [&](int kind, const char* value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(it, extension, -1);
    X509_EXTENSION_free(extension);
  };
  extend(NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (!is_authority) extend(NID_subject_alt_name, "DNS:build-box");
  X509_sign(it, authority ? authority->key : made.key, EVP_sha256());
  return made;
}

struct TlsSides {
  std::shared_ptr<TlsContext> server, client;
};

// Files that begin with `prefix` are written and removed. Throws std::runtime_error.
inline TlsSides make_tls_sides(const std::string& prefix) {
  const auto write_pem = [](const std::string& path, auto write) {
    FILE* const file = std::fopen(path.c_str(), "w");
    if (!file || write(file) != 1 || std::fclose(file) != 0) throw std::runtime_error("cannot write " + path);
  };
  const TlsFiles files = {prefix + "-cert.pem", prefix + "-key.pem", prefix + "-ca.pem"};
  const TlsIdentity authority = make_tls_identity("authority", nullptr, true);
  write_pem(files.authorities, [&](FILE* file) { return PEM_write_X509(file, authority.certificate); });
  TlsSides sides;
  for (const bool is_server : {true, false}) {
    const TlsIdentity side = make_tls_identity(is_server ? "build-box" : "laptop", &authority, false);
    write_pem(files.certificate, [&](FILE* file) { return PEM_write_X509(file, side.certificate); });
    write_pem(files.key, [&](FILE* file) {
      return PEM_write_PrivateKey(file, side.key, nullptr, nullptr, 0, nullptr, nullptr);
    });
    auto made = TlsContext::create(is_server ? TlsSide::server : TlsSide::client, files);
    if (!made) throw std::runtime_error(made.error().message);
    (is_server ? sides.server : sides.client) = *made;
  }
  for (const std::string& path : {files.certificate, files.key, files.authorities}) ::unlink(path.c_str());
  return sides;
}

}  // namespace halyard::remote
