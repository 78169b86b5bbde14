// Texts of requests, and the bytes of their bodies in every form that they may come in.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace halyard::tools::serve::testing_support {

inline constexpr std::string_view kLive = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
inline constexpr std::string_view kLiveBody = "{\"live\":true}\n";
inline constexpr size_t kMostSkipped = 256 << 10;  // of the body of a request that is refused

inline std::string request(std::string_view line, std::string_view headers, std::string_view body) {
  return fmt::format("{} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", line, headers,
                     body.size(), body);
}
inline std::string chunked(std::string_view line, std::string_view headers, std::string_view body,
                           size_t piece) {
  std::string text =
      fmt::format("{} HTTP/1.1\r\nHost: localhost\r\n{}Transfer-Encoding: chunked\r\n\r\n", line, headers);
  for (; !body.empty(); body.remove_prefix(std::min(piece, body.size())))
    text += fmt::format("{:x}\r\n{}\r\n", std::min(piece, body.size()), body.substr(0, piece));
  return text + "0\r\n\r\n";
}

inline constexpr std::string_view kInfer = "POST /v2/models/mul/infer";

// An inference request with these numbers, times 2 each.
inline std::string json_of(std::string_view numbers, std::string_view twos, size_t count,
                           size_t padding = 0) {
  const auto input = [&](std::string_view name, std::string_view data) {
    return fmt::format(R"({{"name":"{}","datatype":"FP32","shape":[{}],"data":[{}]}})", name, count, data);
  };
  return R"({"inputs":[)" + input("input0", numbers) + "," + input("input1", twos) + "]}" +
         std::string(padding, ' ');
}
inline const std::string& small_json() {
  static const std::string text = json_of("1,2.5", "2,2", 2);
  return text;
}
inline constexpr std::string_view kSmallData = R"("data":[2,5])";

// The same with binary tensors. `count` elements, i and 2.
struct Binary {
  std::string json, bytes, headers;
  std::string text() const { return json + bytes; }
};
inline Binary binary_of(size_t count, bool binary_output = false) {
  Binary made;
  const auto input = [&](std::string_view name) {
    return fmt::format(
        R"({{"name":"{}","datatype":"FP32","shape":[{}],"parameters":{{"binary_data_size":{}}}}})", name,
        count, 4 * count);
  };
  made.json = R"({"inputs":[)" + input("input0") + "," + input("input1") + "]" +
              (binary_output ? R"(,"parameters":{"binary_data_output":true})" : "") + "}";
  for (const bool is_second : {false, true})
    for (size_t i = 0; i < count; ++i) {
      const float value = is_second ? 2.0f : static_cast<float>(i % 1000);
      made.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  made.headers = fmt::format("Inference-Header-Content-Length: {}\r\n", made.json.size());
  return made;
}

inline std::string packed(std::string_view bytes, bool is_gzip = true) {
  z_stream stream = {};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, is_gzip ? 15 + 16 : 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string made(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  made.resize(stream.total_out);
  ::deflateEnd(&stream);
  return made;
}
inline std::string unpacked(std::string_view bytes) {
  z_stream stream = {};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 32), Z_OK);
  std::string made(8 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  made.resize(stream.total_out);
  ::inflateEnd(&stream);
  return made;
}

}  // namespace halyard::tools::serve::testing_support
