// Options, with defaults from the environment: certificates are not a part of every URI.
#include "place.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "failures.h"
#include "known_digests.h"

namespace halyard::remote {

namespace {

// The option, or the environment's variable, which set-uid programs ignore.
std::string text_of(kit::Options& options, const char* key, const char* variable) {
  if (const auto given = options.text(key)) return std::string(*given);
  const char* const found = ::secure_getenv(variable);
  return found ? found : "";
}

kit::Result<std::optional<TlsFiles>> tls_of(kit::Options& options) {
  TlsFiles files = {text_of(options, "cert", "HALYARD_REMOTE_CERT"),
                    text_of(options, "key", "HALYARD_REMOTE_KEY"),
                    text_of(options, "ca", "HALYARD_REMOTE_CA")};
  const int given = !files.certificate.empty() + !files.key.empty() + !files.authorities.empty();
  if (given == 0) return std::optional<TlsFiles>();
  if (given < 3)
    return kit::Failure{
        HALYARD_INVALID_ARGUMENT,
        "TLS needs the options 'cert', 'key' and 'ca' (or HALYARD_REMOTE_CERT, HALYARD_REMOTE_KEY "
        "and HALYARD_REMOTE_CA), found " +
            std::to_string(given) + " of them"};
  return std::optional(std::move(files));
}

}  // namespace

std::string Place::text() const {
  return "'" + (transport == Transport::unix_socket ? path : tcp.text()) + "'";
}

kit::Result<Place> place_of(const halyard_device_open_args_t& args) {
  kit::Options options(args);
  Place place;
  place.device = options.text("device").value_or("");
  place.patience =
      std::chrono::milliseconds(HALYARD_KIT_TRY(options.number("timeout", 30000, 100, 86400000)));
  place.busy_poll = std::chrono::microseconds(HALYARD_KIT_TRY(options.number("busy_poll", 50, 0, 1000)));
  place.profile = HALYARD_KIT_TRY(options.flag("profile", false));
  const auto folder = options.text("digests");
  place.digests = folder ? std::string(*folder) : KnownDigests::default_folder();
  if (const auto files = options.text("files")) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(std::string(*files).c_str(), nullptr),
                                                      ::free);
    if (!real)
      return kit::Failure{HALYARD_NOT_FOUND,
                          "option 'files': there is no folder '" + std::string(*files) + "'"};
    place.files = real.get();
  }
  const std::string_view path = kit::view(args.path);
  if (kit::view(args.kind) == kUnixKind) {
    place.transport = Transport::unix_socket;
    place.path = path;
    HALYARD_KIT_TRY(options.finish());
    if (!path.starts_with('/')) {
      const kit::Failure refusal = {
          path.empty() ? HALYARD_INVALID_ARGUMENT : HALYARD_NOT_FOUND,
          "no Unix socket '" + std::string(path) +
              "'; expected the absolute path of one, as in remote+unix:///run/halyard.sock"};
      return refusal;
    }
    return place;
  }
  place.tls = HALYARD_KIT_TRY(tls_of(options));
  place.allows_plain = HALYARD_KIT_TRY(options.flag("insecure", false));
  HALYARD_KIT_TRY(options.finish());
  const size_t slash = std::min(path.find('/'), path.size());
  if (slash < path.size() && place.device.empty()) place.device = path.substr(slash + 1);
  place.tcp = HALYARD_KIT_TRY(to_kit(parse_host_port(path.substr(0, slash))));
  place.transport = place.tls ? Transport::tls : Transport::tcp;
  return place;
}

}  // namespace halyard::remote
