// Writes inference requests in JSON and as messages of protocol buffers, each after the byte that selects a
// model, and paths; and streams of requests, each after the byte that determines the pieces.
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "seeds.h"

namespace halyard::fuzz {

namespace {

std::vector<std::string_view> types_of_protocol() {
  std::vector<std::string_view> types;
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, numpy, buffer, npy, safetensors, \
                             protocol, ...)                                                            \
  if (!std::string_view(protocol).empty()) types.push_back(protocol);
#include "halyard/element_types.inc"
  return types;
}

size_t size_of_type(std::string_view type) {
  return type == "BOOL" || type.ends_with("T8") ? 1 : type.ends_with("16") ? 2 : type.ends_with("32") ? 4 : 8;
}

// A field of bytes of a message of protocol buffers.
std::string field(int number, const std::string& content) {
  return std::string({static_cast<char>(number << 3 | 2), static_cast<char>(content.size())}) + content;
}

}  // namespace

void write_messages(const std::filesystem::path& folder) {
  int number = 0;
  char which = 1;
  for (const std::string_view type : types_of_protocol()) {
    const size_t size = size_of_type(type);
    const std::string tensor = field(1, "x") + field(2, std::string(type)) + field(3, std::string("\2\1", 2));
    // The field of the type, if it has one, with two numbers.
    const bool is_float = type == "FP32" || type == "FP64";
    const int contents = type == "BOOL"           ? 1
                         : type == "FP32"         ? 6
                         : type == "FP64"         ? 7
                         : type.starts_with("UI") ? (size == 8 ? 5 : 4)
                                                  : (size == 8 ? 3 : 2);
    const std::string numbers = is_float ? std::string(2 * size, '\1') : std::string("\0\1", 2);
    for (const std::string& message :
         {field(1, "m") + field(5, tensor + field(5, field(contents, numbers))) + field(6, field(1, "x")),
          field(3, "id") + field(5, tensor) + field(7, std::string(2 * size, '\1'))}) {
      const std::string seed = std::string({which, '\3'}) + message;
      write_seed(folder / std::to_string(number++), seed.data(), seed.size());
    }
    ++which;
  }
}

void write_requests(const std::filesystem::path& folder) {
  const std::vector<std::string_view> types = types_of_protocol();
  const auto write = [&](char which, const std::string& text) {
    const std::string seed = which + text;
    static int number = 0;
    write_seed(folder / std::to_string(number++), seed.data(), seed.size());
  };
  std::string all;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string type(types[i]);
    const auto which = static_cast<char>(i + 1);
    const auto input = [&](const std::string& name, const std::string& rest) {
      return R"({"name":")" + name + R"(","datatype":")" + type + R"(","shape":[2,1],)" + rest + "}";
    };
    write(which, R"({"id":"1","inputs":[)" + input("x", R"("data":[[0],[1]])") + "]}");
    write(which, R"({"inputs":[{"data":[1,0],"name":"x","shape":[1,2],"datatype":")" + type +
                     R"("}],"outputs":[{"name":"x","parameters":{"binary_data":true}}]})");
    const size_t size = size_of_type(type);
    write(which, R"({"inputs":[)" +
                     input("x", R"("parameters":{"binary_data_size":)" + std::to_string(2 * size) + "}") +
                     R"(],"parameters":{"binary_data_output":true}})");
    all += (all.empty() ? "" : ",") + input(type, R"("data":[0,1])");
  }
  write(0, R"({"inputs":[)" + all + R"(,{"name":"n","datatype":"INT32","shape":[],"data":[7]}]})");
  for (const char* path :
       {"/", "/v2", "/v2/health/live", "/v2/models/m%2e/versions/1/infer", "http://h/v2/models/m/ready?x"})
    write(15, path);
}

void write_streams(const std::filesystem::path& folder) {
  const std::string json = R"({"inputs":[{"name":"input0","datatype":"FP32","shape":[1],"data":[3]},)"
                           R"({"name":"input1","datatype":"FP32","shape":[1],"data":[4]}]})";
  const std::string tensors =
      R"({"inputs":[{"name":"input0","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}},)"
      R"({"name":"input1","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}]})";
  const auto post = [](const std::string& lines, const std::string& body) {
    return "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n" + lines + "\r\n" + body;
  };
  const auto with_length = [&](const std::string& lines, const std::string& body) {
    return post("Content-Length: " + std::to_string(body.size()) + "\r\n" + lines, body);
  };
  const auto chunks = [](const std::string& body) {
    char size[17];
    const auto end = std::to_chars(size, size + sizeof size, body.size(), 16).ptr;
    return std::string(size, end) + "\r\n" + body + "\r\n0\r\n\r\n";
  };
  const std::string live = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string header = "Inference-Header-Content-Length: " + std::to_string(tensors.size()) + "\r\n";
  const std::string binary = tensors + std::string(8, '\0');
  // "{}" in the formats of gzip and zlib, stored.
  const std::string gzip("\x1f\x8b\x08\0\0\0\0\0\0\3\xab\xae\5\0\x43\xbf\xa6\xa3\2\0\0\0", 22);
  const std::string zlib("\x78\x9c\xab\xae\5\0\1\x75\0\xf9", 10);
  int number = 0;
  for (const std::string& stream :
       {live + live, with_length("", json) + live, with_length(header, binary) + live,
        post("Transfer-Encoding: chunked\r\n", chunks(json)) + live,
        post("Transfer-Encoding: chunked\r\n" + header, chunks(binary)) + live,
        with_length("Content-Encoding: gzip\r\n", gzip) + live,
        with_length("Content-Encoding: deflate\r\n", zlib) + live,
        post("Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", chunks(gzip)) + live,
        with_length("Expect: 100-continue\r\n", json) + live,
        with_length("Connection: close\r\n", json) + live,
        with_length("Origin: http://evil.example\r\n", "12345") + live,
        std::string("POST /v2/repository/index HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\n"
                    "{\"ready\":true}") +
            live,
        std::string("POST /v2/repository/models/m/load HTTP/1.1\r\nHost: localhost\r\n\r\n") + live,
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n") + live,
        std::string("GET /v2/models/stats HTTP/1.1\r\nHost: localhost\r\n\r\n") + live,
        std::string("HEAD /none HTTP/1.1\r\nHost: localhost\r\n\r\n") + live,
        std::string("GET /v2 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n") + live,
        std::string("GET /v2 HTTP/1.0\r\n\r\n"), std::string("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")}) {
    const std::string seed = '\7' + stream;
    write_seed(folder / std::to_string(number++), seed.data(), seed.size());
  }
}

}  // namespace halyard::fuzz
