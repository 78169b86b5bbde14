// Inference requests, each behind the byte that chooses a model, and paths.
#include <string>

#include "seeds.h"

namespace halyard::fuzz {

void write_requests(const std::filesystem::path& folder) {
  constexpr std::string_view kTypes[] = {"BOOL",   "INT8",   "INT16", "INT32", "INT64", "UINT8", "UINT16",
                                         "UINT32", "UINT64", "FP16",  "BF16",  "FP32",  "FP64"};
  const auto write = [&](char which, const std::string& text) {
    const std::string seed = which + text;
    static int number = 0;
    write_seed(folder / std::to_string(number++), seed.data(), seed.size());
  };
  std::string all;
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    const std::string type(kTypes[i]);
    const auto which = static_cast<char>(i + 1);
    const auto input = [&](const std::string& name, const std::string& rest) {
      return R"({"name":")" + name + R"(","datatype":")" + type + R"(","shape":[2,1],)" + rest + "}";
    };
    write(which, R"({"id":"1","inputs":[)" + input("x", R"("data":[[0],[1]])") + "]}");
    write(which, R"({"inputs":[{"data":[1,0],"name":"x","shape":[1,2],"datatype":")" + type +
                     R"("}],"outputs":[{"name":"x","parameters":{"binary_data":true}}]})");
    const size_t size = type == "BOOL" || type.ends_with("T8") ? 1
                        : type.ends_with("16")                 ? 2
                        : type.ends_with("32")                 ? 4
                                                               : 8;
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

}  // namespace halyard::fuzz
