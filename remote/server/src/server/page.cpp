// Boost.Beast reads and writes the messages.
#include "server/page.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>

namespace halyard::device_server {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr auto kLongest = std::chrono::seconds(10);
constexpr size_t kMaxHead = 8192;

// Runs on one strand, because the timer and the socket end each other.
class PageAnswer : public std::enable_shared_from_this<PageAnswer> {
 public:
  PageAnswer(asio::generic::stream_protocol::socket socket, std::function<std::string()> metrics)
      : socket_(std::move(socket)), metrics_(std::move(metrics)), timer_(socket_.get_executor()) {
    parser_.header_limit(kMaxHead);
    parser_.body_limit(std::uint64_t{0});
  }

  void start() {
    timer_.expires_after(kLongest);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      if (const auto self = weak.lock(); self && !error) self->shut();
    });
    http::async_read(socket_, buffer_, parser_,
                     [self = shared_from_this()](boost::system::error_code error, size_t) {
                       if (!error) self->write();
                     });
  }

 private:
  // The handlers of both may run at the same time: shutting down a socket is safe then, closing it is not.
  void shut() {
    boost::system::error_code ignored;
    socket_.shutdown(asio::socket_base::shutdown_both, ignored);
  }

  void write() {
    const http::request<http::empty_body>& request = parser_.get();
    const bool is_head = request.method() == http::verb::head;
    response_.version(request.version());
    response_.keep_alive(false);
    response_.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    if (request.method() != http::verb::get && !is_head) {
      response_.result(http::status::method_not_allowed);
      response_.set(http::field::allow, "GET, HEAD");
      response_.body() = "expected GET or HEAD\n";
    } else if (request.target() == "/metrics") {
      response_.body() = metrics_();
    } else if (request.target() == "/healthz") {
      response_.body() = "ok\n";
    } else {
      response_.result(http::status::not_found);
      response_.body() = "there are /metrics and /healthz\n";
    }
    response_.prepare_payload();
    if (is_head) response_.body().clear();
    http::async_write(socket_, response_,
                      [self = shared_from_this()](boost::system::error_code, size_t) { self->shut(); });
  }

  asio::generic::stream_protocol::socket socket_;
  const std::function<std::string()> metrics_;
  asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_{kMaxHead};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
};

}  // namespace

void answer_page(asio::generic::stream_protocol::socket socket, std::function<std::string()> metrics) {
  std::make_shared<PageAnswer>(std::move(socket), std::move(metrics))->start();
}

}  // namespace halyard::device_server
