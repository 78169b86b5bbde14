// A stream of bytes that a client sends, in pieces, through real connections of vm-serve on a socket. A
// second HTTP reader determines where requests end. The pieces change no answer, and no memory stays
// reserved.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"
#include "fuzzing.h"
#include "repository.h"
#include "run_files.h"
#include "scheduler.h"
#include "server.h"

using namespace halyard::tools;
using namespace halyard::tools::serve;

namespace {

// A server with one model, on the fuzzing thread only.
struct Host {
  Flags flags;
  Program program;
  Metrics metrics;
  Log log{metrics};
  boost::asio::io_context io{1};
  RequestTraces traces{{}, std::nullopt};
  Runtime runtime{flags, program, metrics, traces, io, std::chrono::seconds(10)};
  Scheduler scheduler{runtime, log, {.calls = 1, .contexts = 1, .queue = 4, .batch_delay = {}}};
  Repository repository{runtime, scheduler, log, sources(), "", {}};
  std::unique_ptr<Server> server;

  Host() {
    if (!make_instance(flags, program) || !repository.start())
      halyard::fuzz::finding("the server does not start");
    const ServerLimits limits = {.body = 4 << 10,
                                 .connections = 4,
                                 .request = std::chrono::seconds(10),
                                 .idle = std::chrono::seconds(10)};
    server = std::make_unique<Server>(runtime, scheduler, repository, metrics, log, limits, 64 << 10);
  }
  static std::vector<ModelSource> sources() {
    ModelSource source;
    source.name = "m";
    source.version = "1";
    source.file = halyard::fuzz::run_file(HALYARD_SOURCE_DIR "/examples/inline_mul.vmasm");
    source.is_named = true;
    return {source};
  }
};

// The server's answers until it closes the connection, after the client has sent all bytes.
std::string answers(Host& host, std::string_view stream, size_t piece) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    halyard::fuzz::finding("no sockets");
  ClientSocket socket(SocketExecutor(host.io.get_executor()));
  socket.assign(boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[1]);
  start_connection(*host.server, std::move(socket), true);
  std::string got;
  bool is_closed = false;
  const auto take = [&] {
    host.io.restart();
    host.io.poll();
    char bytes[4096];
    for (ssize_t size = 0; !is_closed && (size = ::read(ends[0], bytes, sizeof bytes)) >= 0;) {
      is_closed = size == 0;
      got.append(bytes, static_cast<size_t>(size));
    }
  };
  while (!stream.empty() && !is_closed) {
    const ssize_t size = ::send(ends[0], stream.data(), std::min(piece, stream.size()), MSG_NOSIGNAL);
    if (size > 0) stream.remove_prefix(static_cast<size_t>(size));
    take();
    if (size < 0 && errno == EPIPE) break;
  }
  ::shutdown(ends[0], SHUT_WR);
  constexpr int kRounds = 10000;
  for (int i = 0; i < kRounds && !is_closed; ++i) {
    take();
    if (!is_closed) host.io.run_one_for(std::chrono::milliseconds(1));
  }
  if (!is_closed) halyard::fuzz::finding("a connection that stays open");
  ::close(ends[0]);
  for (int i = 0; i < kRounds && host.metrics.connections.load() > 0; ++i) {
    host.io.restart();
    host.io.run_one_for(std::chrono::milliseconds(1));
  }
  if (host.metrics.connections.load() > 0) halyard::fuzz::finding("a connection that stays");
  if (host.metrics.request_bytes.load() != 0) halyard::fuzz::finding("memory that stays reserved");
  return got;
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return made;
}
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

struct Framing {
  std::vector<std::string> encodings, lengths;
  bool is_http11 = false;
};

// The fields of a header, line by line; a continued line belongs to its field.
Framing framing_of(std::string_view head) {
  Framing framing;
  std::vector<std::string> lines;
  while (!head.empty()) {
    const size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    if (!lines.empty() && (line.starts_with(' ') || line.starts_with('\t')))
      lines.back() += " " + std::string(trimmed(line));
    else
      lines.emplace_back(line);
  }
  if (!lines.empty()) framing.is_http11 = lines.front().ends_with("HTTP/1.1");
  for (const std::string& line : lines) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = lower(trimmed(std::string_view(line).substr(0, colon)));
    const std::string value(trimmed(std::string_view(line).substr(colon + 1)));
    if (name == "transfer-encoding") framing.encodings.push_back(lower(value));
    if (name == "content-length") framing.lengths.push_back(value);
  }
  return framing;
}

std::optional<size_t> number(std::string_view text, int base) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The text after a chunked body; no value if the body is malformed or incomplete.
std::optional<std::string_view> behind_chunks(std::string_view text) {
  for (;;) {
    const size_t line = text.find("\r\n");
    if (line == std::string_view::npos) return std::nullopt;
    const std::string_view head = text.substr(0, line);
    const auto size = number(trimmed(head.substr(0, head.find(';'))), 16);
    text.remove_prefix(line + 2);
    if (!size) return std::nullopt;
    if (*size == 0) break;
    if (text.size() < *size || text.size() - *size < 2 || text.substr(*size, 2) != "\r\n")
      return std::nullopt;
    text.remove_prefix(*size + 2);
  }
  // Trailers, and the empty line.
  for (;;) {
    const size_t line = text.find("\r\n");
    if (line == std::string_view::npos) return std::nullopt;
    text.remove_prefix(line + 2);
    if (line == 0) return text;
  }
}

// The methods of the requests, for a reader that stops where the end of a request is not certain. There are
// no more answers than methods.
std::vector<std::string_view> methods_of(std::string_view stream) {
  std::vector<std::string_view> methods;
  while (!stream.empty()) {
    methods.push_back(stream.substr(0, stream.find(' ')));
    const size_t end = stream.find("\r\n\r\n");
    if (end == std::string_view::npos) break;
    const Framing framing = framing_of(stream.substr(0, end));
    stream.remove_prefix(end + 4);
    if (!framing.encodings.empty()) {
      if (framing.encodings.size() > 1 || framing.encodings[0] != "chunked" || !framing.lengths.empty() ||
          !framing.is_http11)
        break;
      const auto rest = behind_chunks(stream);
      if (!rest) break;
      stream = *rest;
    } else if (!framing.lengths.empty()) {
      const auto length = number(framing.lengths[0], 10);
      if (framing.lengths.size() > 1 || !length || *length > stream.size()) break;
      stream.remove_prefix(*length);
    }
  }
  return methods;
}

struct Answer {
  std::string head;  // without its date
  std::string body;
  bool operator==(const Answer&) const = default;
};

// Splits the text into answers to requests with these methods, without interim answers.
std::vector<Answer> split(std::string_view text, std::span<const std::string_view> methods) {
  std::vector<Answer> made;
  constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
  while (!text.empty()) {
    if (text.starts_with(kInterim)) {
      text.remove_prefix(kInterim.size());
      continue;
    }
    const size_t end = text.find("\r\n\r\n");
    const size_t length = text.find("\r\nContent-Length: ");
    if (!text.starts_with("HTTP/1.1 ") || end == std::string_view::npos || length > end)
      halyard::fuzz::finding("an answer that is no HTTP");
    const size_t digits = length + sizeof("\r\nContent-Length: ") - 1;
    const auto size = number(text.substr(digits, text.find("\r\n", digits) - digits), 10);
    if (!size) halyard::fuzz::finding("an answer without a length");
    Answer answer{.head = std::string(text.substr(0, end)), .body = {}};
    const size_t date = answer.head.find("\r\nDate: ");
    if (date != std::string::npos) answer.head.erase(date, answer.head.find("\r\n", date + 2) - date);
    text.remove_prefix(end + 4);
    // The parser may report a malformed header before the client closes, or not.
    if (text.starts_with("{\"error\":\"the header is not valid HTTP/1.1")) {
      if (text.size() != *size) halyard::fuzz::finding("more than an answer after a malformed header");
      break;
    }
    if (made.size() == methods.size())
      halyard::fuzz::finding("more answers than requests: a body was read as a request");
    // An answer to HEAD has a length but no body.
    const bool has_body = methods[made.size()] != "HEAD";
    if (has_body && text.size() < *size) halyard::fuzz::finding("an answer that is cut off");
    const std::string_view body = text.substr(0, has_body ? *size : 0);
    text.remove_prefix(body.size());
    // Metrics and statistics change with every request.
    if (answer.head.contains("Cache-Control: no-store")) {
      answer.head = "no-store";
    } else {
      answer.body = body;
    }
    made.push_back(std::move(answer));
  }
  return made;
}

void print(const char* how, const std::vector<Answer>& answers) {
  for (const Answer& answer : answers)
    std::fprintf(stderr, "%s: %s\n%s\n", how, answer.head.c_str(), answer.body.c_str());
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Host& host = *new Host;
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto methods = methods_of(stream);
  const auto whole = split(answers(host, stream, stream.size() + 1), methods);
  for (size_t i = 0; i + 1 < whole.size(); ++i)
    if (whole[i].head.contains("\r\nConnection: close"))
      halyard::fuzz::finding("an answer behind the last one");
  const auto pieces = split(answers(host, stream, 1 + data[0] % 64), methods);
  if (pieces == whole) return 0;
  print("whole", whole);
  print("in pieces", pieces);
  halyard::fuzz::finding("other answers to the same bytes in other pieces");
}
