// Inference requests as the protocol describes them, and what is wrong with others.
#include "infer_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "documents.h"
#include "halyard/element_type.h"

namespace halyard::tools::serve {
namespace {

TensorSpec tensor(std::string name, uint32_t element_type, std::vector<int64_t> shape) {
  return {.name = std::move(name),
          .type = datatype_of(element_type),
          .element_type = element_type,
          .shape = std::move(shape)};
}

// Two inputs and two outputs.
ModelSpec model() {
  return {.name = "m",
          .version = "1",
          .inputs = {tensor("x", HALYARD_ELEMENT_F32, {2, kAnySize}), tensor("y", HALYARD_ELEMENT_I32, {3})},
          .outputs = {tensor("sum", HALYARD_ELEMENT_F32, {2}), tensor("mask", HALYARD_ELEMENT_BOOL, {1})}};
}

ModelSpec model_of(uint32_t element_type) {
  return {.name = "m",
          .version = "1",
          .inputs = {tensor("x", element_type, {kAnySize})},
          .outputs = {tensor("y", element_type, {kAnySize})}};
}

std::string why_not(std::string_view json, const ModelSpec& spec = model()) {
  const auto request = parse_infer_request(json, spec);
  if (request) return "accepted";
  EXPECT_EQ(request.error().code, HALYARD_INVALID_ARGUMENT);
  return request.error().text;
}

template <typename T>
std::vector<T> elements(const RequestInput& input) {
  std::vector<T> values(input.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), input.data.data(), input.data.size());
  return values;
}

// A request for model_of(...) with this data.
std::string of_data(std::string_view type, std::string_view shape, std::string_view data) {
  return fmt::format(R"({{"inputs":[{{"name":"x","shape":{},"datatype":"{}","data":{}}}]}})", shape, type,
                     data);
}

constexpr std::string_view kBoth = R"({"id": "42", "inputs": [
  {"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [1, 2.5, -3, 4e2]},
  {"name": "y", "shape": [3], "datatype": "INT32", "data": [1, -2, 2147483647]}]})";

TEST(InferRequest, AsTheProtocolShowsIt) {
  const auto request = parse_infer_request(kBoth, model());
  ASSERT_TRUE(request) << request.error().text;
  EXPECT_EQ(request->id, "42");
  ASSERT_EQ(request->inputs.size(), 2u);
  EXPECT_EQ(request->inputs[0].index, 0u);
  EXPECT_EQ(request->inputs[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(elements<float>(request->inputs[0]), (std::vector<float>{1, 2.5, -3, 400}));
  EXPECT_EQ(elements<int32_t>(request->inputs[1]), (std::vector<int32_t>{1, -2, 2147483647}));
  ASSERT_EQ(request->outputs.size(), 2u);
  EXPECT_FALSE(request->outputs[0].is_binary);
  EXPECT_EQ(request->binary_size(), 0u);
}

TEST(InferRequest, MembersInAnyOrderAndUnknownOnes) {
  const auto request = parse_infer_request(
      R"({"later": {"a": [1, {"data": 2}]}, "inputs": [
        {"data": [[1, 2, 3]], "x": [], "datatype": "INT32", "shape": [3], "name": "y", "parameters": {"priority": 3, "p": {"q": []}}},
        {"data": [[1, 2], [3, 4]], "name": "x", "datatype": "FP32", "shape": [2, 2]}],
        "outputs": [{"parameters": {"binary_data": true}, "name": "mask"}], "parameters": {"sequence": "s"}, "id": null})",
      model());
  ASSERT_TRUE(request) << request.error().text;
  EXPECT_FALSE(request->id);
  EXPECT_EQ(request->inputs[0].index, 1u);
  EXPECT_EQ(elements<int32_t>(request->inputs[0]), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(elements<float>(request->inputs[1]), (std::vector<float>{1, 2, 3, 4}));
  ASSERT_EQ(request->outputs.size(), 1u);
  EXPECT_EQ(request->outputs[0].index, 1u);
  EXPECT_TRUE(request->outputs[0].is_binary);
}

// Where a double has no room for every integer, the text of the number may have been another one.
TEST(InferRequest, IntegersWrittenAsRealsMustBeBelowTwoToThe53) {
  const auto numbers = [](std::string_view data) {
    return of_data("INT64", "[1]", fmt::format("[{}]", data));
  };
  const ModelSpec spec = model_of(HALYARD_ELEMENT_I64);
  for (const std::string sign : {"", "-"}) {
    const auto request = parse_infer_request(numbers(sign + "9007199254740991.0"), spec);
    ASSERT_TRUE(request) << request.error().text;
    EXPECT_EQ(elements<int64_t>(request->inputs[0]).front(), (sign.empty() ? 1 : -1) * 9007199254740991);
    EXPECT_TRUE(parse_infer_request(numbers(sign + "9007199254740993"), spec)) << "not a real";
    for (const char* const number :
         {"9007199254740991.6", "9007199254740992.0", "9007199254740993.0", "1e16"})
      EXPECT_NE(why_not(numbers(sign + number), spec), "accepted") << sign << number;
  }
}

TEST(InferRequest, BinaryTensorsAreAnnounced) {
  const auto request = parse_infer_request(
      R"({"parameters": {"binary_data_output": true}, "inputs": [
        {"name": "x", "shape": [2, 1], "datatype": "FP32", "parameters": {"binary_data_size": 8}},
        {"name": "y", "shape": [3], "datatype": "INT32", "data": [1, 2, 3]}],
        "outputs": [{"name": "mask"}, {"name": "sum", "parameters": {"binary_data": false}}]})",
      model());
  ASSERT_TRUE(request) << request.error().text;
  EXPECT_TRUE(request->inputs[0].is_binary);
  EXPECT_EQ(request->inputs[0].byte_size, 8u);
  EXPECT_EQ(request->inputs[0].data.size(), 0u);
  EXPECT_FALSE(request->inputs[1].is_binary);
  EXPECT_EQ(request->binary_size(), 8u);
  EXPECT_TRUE(request->outputs[0].is_binary);
  EXPECT_FALSE(request->outputs[1].is_binary);
}

TEST(InferRequest, BinaryOutputsAreTheRulesOfTheWholeRequestWhereverTheyStand) {
  const auto request = parse_infer_request(
      R"({"outputs": [{"name": "sum"}], "inputs": [
        {"name": "x", "shape": [2, 0], "datatype": "FP32", "data": []},
        {"name": "y", "shape": [3], "datatype": "INT32", "data": [1, 2, 3]}],
        "parameters": {"binary_data_output": true}})",
      model());
  ASSERT_TRUE(request) << request.error().text;
  EXPECT_TRUE(request->outputs[0].is_binary);
}

TEST(InferRequest, EveryTypeAtItsEdges) {
  struct Case {
    uint32_t element_type;
    std::string_view type, good, bad_low, bad_high;
  };
  for (const Case& each : {
           Case{HALYARD_ELEMENT_BOOL, "BOOL", "[true,false,1,0]", "[-1]", "[2]"},
           Case{HALYARD_ELEMENT_I8, "INT8", "[-128,127,0,1.0]", "[-129]", "[128]"},
           Case{HALYARD_ELEMENT_I16, "INT16", "[-32768,32767,0,1]", "[-32769]", "[32768]"},
           Case{HALYARD_ELEMENT_I32, "INT32", "[-2147483648,2147483647,0,1e3]", "[-2147483649]",
                "[2147483648]"},
           Case{HALYARD_ELEMENT_I64, "INT64", "[-9223372036854775808,9223372036854775807,0,1]",
                "[-9223372036854775809]", "[9223372036854775808]"},
           Case{HALYARD_ELEMENT_UI8, "UINT8", "[0,255,1,2]", "[-1]", "[256]"},
           Case{HALYARD_ELEMENT_UI16, "UINT16", "[0,65535,1,2]", "[-1]", "[65536]"},
           Case{HALYARD_ELEMENT_UI32, "UINT32", "[0,4294967295,1,2]", "[-1]", "[4294967296]"},
           Case{HALYARD_ELEMENT_UI64, "UINT64", "[0,18446744073709551615,1,2]", "[-1]",
                "[18446744073709551616]"},
           Case{HALYARD_ELEMENT_F16, "FP16", R"([65504,-0.0,1e-8,"NaN"])", "[-65520]", "[65520]"},
           Case{HALYARD_ELEMENT_BF16, "BF16", R"([3.38e38,0,1,"-Infinity"])", "[-3.4e38]", "[3.4e38]"},
           Case{HALYARD_ELEMENT_F32, "FP32", R"([3.4e38,0,1,"Infinity"])", "[-1e39]", "[1e39]"},
           Case{HALYARD_ELEMENT_F64, "FP64", R"([1e308,0,1,"NaN"])", "[-1e309]", "[1e309]"},
       }) {
    const ModelSpec spec = model_of(each.element_type);
    EXPECT_EQ(why_not(of_data(each.type, "[4]", each.good), spec), "accepted") << each.type;
    EXPECT_NE(why_not(of_data(each.type, "[1]", each.bad_low), spec), "accepted") << each.type;
    EXPECT_NE(why_not(of_data(each.type, "[1]", each.bad_high), spec), "accepted") << each.type;
    EXPECT_NE(why_not(of_data(each.type, "[1]", R"(["1"])"), spec), "accepted") << each.type;
    EXPECT_NE(why_not(of_data(each.type, "[1]", "[null]"), spec), "accepted") << each.type;
    if (each.type[0] == 'I' || each.type[0] == 'U') {
      EXPECT_NE(why_not(of_data(each.type, "[1]", "[0.5]"), spec), "accepted") << each.type;
    }
  }
}

TEST(InferRequest, WhatDoesNotFitTheModel) {
  const auto replaced = [](std::string_view from, std::string_view to) {
    std::string json(kBoth);
    json.replace(json.find(from), from.size(), to);
    return why_not(json);
  };
  EXPECT_EQ(replaced("[2, 2]", "[3, 2]"), "input 'x' has the shape [3,2]; model 'm' takes [2,-1]");
  EXPECT_EQ(replaced("[2, 2]", "[4]"), "input 'x' has the shape [4]; model 'm' takes [2,-1]");
  EXPECT_EQ(replaced("[2, 2]", "[2, 3]"), "'data' of input 'x' has 4 elements, but its shape [2,3] has 6");
  EXPECT_EQ(replaced("FP32", "FP64"), "input 'x' is FP64; model 'm' takes FP32");
  EXPECT_EQ(replaced("\"y\"", "\"z\""), "model 'm' has no input 'z'; it takes 'x', 'y'");
  EXPECT_EQ(replaced("\"y\"", "\"x\""), "the request has input 'x' twice");
  EXPECT_NE(replaced("FP32", "float").find("'float'; this server has BOOL, INT8"), std::string::npos);
  EXPECT_EQ(replaced("-2,", "-2.5,"), "element 1 of input 'y' is not of type INT32");
  EXPECT_EQ(replaced("[2, 2]", "[2, -2]"),
            "'shape' of an input has a dimension that is not a whole number from 0 on");
  EXPECT_EQ(why_not(R"({"inputs": []})"), "the request lacks input 'x'; model 'm' takes 'x', 'y'");
  EXPECT_EQ(why_not("{}"), "the request has no member 'inputs'; the model takes 'x', 'y'");
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F32);
  EXPECT_EQ(why_not(R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32"}]})", spec),
            "input 'x' has neither 'data' nor the parameter 'binary_data_size'");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":5}}]})",
          spec),
      "input 'x' has binary_data_size 5, but 1 elements of FP32 have 4 bytes");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1],"parameters":{"binary_data_size":4}}]})",
          spec),
      "input 'x' has both 'data' and 'binary_data_size'; expected one of them");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"outputs":[{"name":"z"}]})",
          spec),
      "model 'm' has no output 'z'; it has 'y'");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"outputs":[{"name":"y"},{"name":"y"}]})",
          spec),
      "the request names output 'y' twice");
}

TEST(InferRequest, TheLargestFloatAsItsTextIs) {
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F32);
  const float largest = std::numeric_limits<float>::max();
  const auto request = parse_infer_request(
      of_data("FP32", "[4]", "[3.4028235e+38,-3.4028235e+38,3.4028234663852886e38,3.40282356e38]"), spec);
  ASSERT_TRUE(request) << request.error().text;
  EXPECT_EQ(elements<float>(request->inputs[0]), (std::vector<float>{largest, -largest, largest, largest}));
  // From the middle to the next power of two on it would be infinity.
  EXPECT_NE(why_not(of_data("FP32", "[1]", "[3.4028235677973366e38]"), spec), "accepted");
  EXPECT_NE(why_not(of_data("FP32", "[1]", "[-3.4028236e38]"), spec), "accepted");
  // What the server writes, it reads.
  const std::vector<OutputTensor> outputs = {
      {.spec = spec.outputs.data(), .shape = {1}, .bytes = std::as_bytes(std::span(&largest, 1))}};
  EXPECT_NE(infer_document(spec, std::nullopt, outputs).find("[3.4028235e+38]"), std::string::npos);
}

TEST(InferRequest, FloatsThatAreNoNumbersAsClientsWriteThem) {
  for (const auto& [element_type, type] :
       {std::pair(HALYARD_ELEMENT_F32, "FP32"), std::pair(HALYARD_ELEMENT_F64, "FP64"),
        std::pair(HALYARD_ELEMENT_F16, "FP16")}) {
    const ModelSpec spec = model_of(element_type);
    EXPECT_EQ(why_not(of_data(type, "[6]", "[NaN, Infinity,-Infinity,Inf,\n-Inf,1]"), spec), "accepted");
    EXPECT_EQ(
        why_not(of_data(type, "[7]", R"(["NaN","nan","inf","-inf","Infinity","-Infinity","+INF"])"), spec),
        "accepted");
    EXPECT_EQ(
        why_not(of_data(type, "[1]", "[null]"), spec),
        "element 0 of input 'x' is null, but a float without a number in JSON is \"NaN\", \"Infinity\" or "
        "\"-Infinity\"");
    for (const char* data : {"[nan]", "[Infinit]", "[+Infinity]", "[-NaN]", "[NaNs]", "[1NaN]", "[NaN 1]",
                             "[N]", R"(["NaNs"])", R"(["infi"])", R"([""])", R"(["1"])"})
      EXPECT_NE(why_not(of_data(type, "[1]", data), spec), "accepted") << data;
  }
  const auto request =
      parse_infer_request(of_data("FP32", "[3]", "[NaN,Infinity,-Infinity]"), model_of(HALYARD_ELEMENT_F32));
  ASSERT_TRUE(request) << request.error().text;
  const auto values = elements<float>(request->inputs[0]);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], std::numeric_limits<float>::infinity());
  EXPECT_EQ(values[2], -std::numeric_limits<float>::infinity());
  // Integers, shapes, keys and texts have none; in strings they are letters.
  const ModelSpec integers = model_of(HALYARD_ELEMENT_I32);
  EXPECT_EQ(why_not(of_data("INT32", "[1]", "[NaN]"), integers),
            "element 0 of input 'x' is not of type INT32");
  EXPECT_NE(why_not(of_data("INT32", "[NaN]", "[1]"), integers), "accepted");
  EXPECT_NE(why_not(R"({NaN:1,"inputs":[]})"), "accepted");
  EXPECT_NE(why_not("NaN"), "accepted");
  EXPECT_NE(why_not(R"({"inputs":[{"name":NaN}]})"), "accepted");
  EXPECT_EQ(
      why_not(R"({"a":"[NaN,\"Infinity","b":Infinity,)" + of_data("INT32", "[1]", "[1]").substr(1), integers),
      "accepted");
}

TEST(InferRequest, NoMemberStandsTwice) {
  const auto of_input = [](std::string_view members) {
    return R"({"inputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1,2])" + std::string(members) +
           "}]}";
  };
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F32);
  EXPECT_EQ(why_not(of_input(""), spec), "accepted");
  for (const auto& [members, name] :
       {std::pair(R"(,"datatype":"FP32")", "datatype"), std::pair(R"(,"name":"x")", "name"),
        std::pair(R"(,"shape":[2])", "shape"), std::pair(R"(,"data":[1,2])", "data"),
        std::pair(R"(,"parameters":{},"parameters":{})", "parameters"),
        std::pair(R"(,"parameters":null,"parameters":{})", "parameters")})
    EXPECT_EQ(why_not(of_input(members), spec), fmt::format("an input has '{}' twice", name));
  // Four half floats are no two floats.
  EXPECT_EQ(
      why_not(R"({"inputs":[{"name":"x","datatype":"FP16","data":[1,2,3,4],"shape":[2],"datatype":"FP32"}]})",
              spec),
      "an input has 'datatype' twice");
  EXPECT_NE(
      why_not(R"({"inputs":[{"name":"x","datatype":"FP16","shape":[2],"data":[1,2,3,4],"datatype":"FP32"}]})",
              spec),
      "accepted");
  const auto of_request = [](std::string_view members) {
    return R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}])" + std::string(members) +
           "}";
  };
  for (const auto& [members, name] :
       {std::pair(R"(,"id":"1","id":"2")", "the request has 'id'"),
        std::pair(R"(,"id":null,"id":"2")", "the request has 'id'"),
        std::pair(R"(,"inputs":[])", "the request has 'inputs'"),
        std::pair(R"(,"outputs":[],"outputs":[{"name":"y"}])", "the request has 'outputs'"),
        std::pair(R"(,"parameters":{"binary_data_output":true},"parameters":{})",
                  "the request has 'parameters'"),
        std::pair(R"(,"parameters":{"binary_data_output":true,"binary_data_output":false})",
                  "an object 'parameters' has 'binary_data_output'"),
        std::pair(R"(,"outputs":[{"name":"y","name":"y"}])", "an output has 'name'"),
        std::pair(R"(,"outputs":[{"name":"y","parameters":{"binary_data":true,"binary_data":false}}])",
                  "an object 'parameters' has 'binary_data'")})
    EXPECT_EQ(why_not(of_request(members), spec), std::string(name) + " twice");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4,"binary_data_size":4}}]})",
          spec),
      "an object 'parameters' has 'binary_data_size' twice");
  // Names of one object are no names of another, and what has no meaning may stand as it likes.
  EXPECT_EQ(why_not(of_request(R"(,"outputs":[{"name":"y","parameters":{"name":1}}],"name":"x","a":1,"a":2)"),
                    spec),
            "accepted");
  EXPECT_NE(why_not(of_request(R"(,"parameters":{"binary_data_output":"true"})"), spec), "accepted");
  EXPECT_NE(why_not(of_request(R"(,"parameters":{"binary_data_output":[true]})"), spec), "accepted");
}

TEST(InferRequest, MemoryIsReservedForWhatStandsThere) {
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F64);
  std::string data = "[1";
  for (int i = 1; i < 1000; ++i) data += ",1";
  data += "]";
  uint64_t most = 0, reserved = 0;
  const Reserve reserve = [&](uint64_t bytes) {
    if (reserved + bytes > most) return false;
    reserved += bytes;
    return true;
  };
  // In every order it is that of the elements.
  for (const char* form : {R"({{"inputs":[{{"name":"x","shape":[1000],"datatype":"FP64","data":{}}}]}})",
                           R"({{"inputs":[{{"data":{},"shape":[1000],"datatype":"FP64","name":"x"}}]}})",
                           R"({{"inputs":[{{"datatype":"FP64","data":{},"shape":[1000],"name":"x"}}]}})"}) {
    const std::string json = fmt::format(fmt::runtime(form), data);
    most = 8000;
    reserved = 0;
    const auto request = parse_infer_request(json, spec, reserve);
    ASSERT_TRUE(request) << request.error().text;
    EXPECT_EQ(reserved, 8000u);
    EXPECT_EQ(elements<double>(request->inputs[0]), std::vector<double>(1000, 1.0));
    most = 7999;
    reserved = 0;
    const auto refused = parse_infer_request(json, spec, reserve);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, HALYARD_UNAVAILABLE);
  }
  // A shape that promises more takes no more than can stand in the text.
  most = 1000;
  reserved = 0;
  EXPECT_EQ(parse_infer_request(of_data("FP64", "[1000000000000]", "[1]"), spec, reserve).error().code,
            HALYARD_INVALID_ARGUMENT);
  EXPECT_EQ(why_not(of_data("FP64", "[1]", "[1,2]"), spec),
            "'data' of input 'x' has more than the 1 elements of its shape");
}

TEST(InferRequest, NoMemoryForPromises) {
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F64);
  EXPECT_EQ(why_not(of_data("FP64", "[1000000000000]", "[1]"), spec),
            "'data' of input 'x' has 1 elements, but its shape [1000000000000] has 1000000000000");
  EXPECT_EQ(why_not(of_data("FP64", "[9223372036854775807]", "[1]"), spec),
            "input 'x' has the shape [9223372036854775807], which is too large");
  EXPECT_NE(why_not(of_data("FP64", "[18446744073709551616]", "[1]"), spec), "accepted");
}

TEST(InferRequest, MalformedJson) {
  for (const char* json : {"", " ", "{", "[", "}", "nul", "{\"inputs\":}", "{\"inputs\":[}",
                           "{\"inputs\":[]}x", "{\"a\":1e999}", "{\"inputs\":[],}", "{'inputs':[]}",
                           "\"\\ud800\"", "{\"a\":\"\xff\"}", "{\"a\":01}", "{\"a\":\"\t\"}"}) {
    EXPECT_NE(why_not(json), "accepted") << json;
  }
  EXPECT_EQ(why_not("[]"), "the request is an array; expected an object with the member 'inputs'");
  EXPECT_EQ(why_not("7"),
            "the request is a number, a truth value or null; expected an object with the member 'inputs'")
      << "a number";
  for (const char* json :
       {R"({"inputs":{}})", R"({"inputs":[1]})", R"({"inputs":[[]]})", R"({"inputs":"x"})",
        R"({"id":1,"inputs":[]})", R"({"inputs":[{"name":1}]})", R"({"inputs":[{"name":"x","shape":"1"}]})",
        R"({"inputs":[{"shape":[[1]]}]})", R"({"inputs":[{"shape":[1],"shape":[1]}]})",
        R"({"inputs":[],"inputs":[]})", R"({"outputs":[1],"inputs":[]})",
        R"({"parameters":{"binary_data_output":1},"inputs":[]})", R"({"inputs":[{"data":{}}]})",
        R"({"inputs":[{"parameters":{"binary_data_size":-1}}]})"})
    EXPECT_NE(why_not(json), "accepted") << json;
}

TEST(InferRequest, DeepNesting) {
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_EQ(why_not(deep), "the request is nested deeper than 64");
  std::string objects;
  for (int i = 0; i < 1000; ++i) objects += "{\"a\":";
  EXPECT_EQ(why_not(objects), "the request is nested deeper than 64");
  for (const int depth : {63, 64}) {  // in the request itself
    const std::string just = of_data("FP32", "[0]", "[]");
    const std::string more =
        fmt::format(R"({{"a":{}{},{})", std::string(depth, '['), std::string(depth, ']'), just.substr(1));
    EXPECT_EQ(why_not(more, model_of(HALYARD_ELEMENT_F32)),
              depth == 63 ? "accepted" : "the request is nested deeper than 64");
  }
}

TEST(InferRequest, WhyAnElementIsNone) {
  EXPECT_EQ(why_not(of_data("FP32", "[1]", "[null]"), model_of(HALYARD_ELEMENT_F32)),
            "element 0 of input 'x' is null, but a float without a number in JSON is \"NaN\", \"Infinity\" "
            "or \"-Infinity\"");
  EXPECT_EQ(why_not(of_data("FP32", "[1]", "[1e39]"), model_of(HALYARD_ELEMENT_F32)),
            "element 0 of input 'x' is not of type FP32");
  EXPECT_EQ(why_not(of_data("INT32", "[1]", "[null]"), model_of(HALYARD_ELEMENT_I32)),
            "element 0 of input 'x' is not of type INT32");
}

TEST(InferRequest, NumbersThatJsonLacks) {
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F32);
  const auto request = parse_infer_request(
      of_data("FP32", "[8]", R"(["NAN","nan","-NaN","INF","+inf","-INFINITY","Infinity","iNf"])"), spec);
  ASSERT_TRUE(request) << request.error().text;
  const std::vector<float> values = elements<float>(request->inputs[0]);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(std::isnan(values[i]), i < 3) << i;
    EXPECT_EQ(std::isinf(values[i]), i >= 3) << i;
    EXPECT_EQ(std::signbit(values[i]), i == 2 || i == 5) << i;
  }
  for (const char* text : {"n", "nano", "in", "infi", "infinit", "--inf", "+-inf", "@nan", "[nf", "", "-"})
    EXPECT_NE(why_not(of_data("FP32", "[1]", fmt::format("[\"{}\"]", text)), spec), "accepted") << text;
}

// What is in a member that nobody knows counts for nothing.
TEST(InferRequest, UnknownMembersMayHaveAnything) {
  const std::string just = of_data("FP32", "[0]", "[]").substr(1);
  for (const char* unknown :
       {R"({"id":1,"id":2,"inputs":[]})", R"([{"name":"x","name":"x"},[[]],null,true,1e300])",
        R"({"inputs":[{"name":7}]})"})
    EXPECT_EQ(why_not(fmt::format(R"({{"later":{},{})", unknown, just), model_of(HALYARD_ELEMENT_F32)),
              "accepted")
        << unknown;
}

TEST(InferRequest, KnownMembersOfTheWrongKind) {
  const auto refusal = [](std::string_view member, std::string_view found) {
    return fmt::format("'{}' is {}, which the protocol does not allow", member, found);
  };
  for (const char* member : {"id", "inputs", "outputs"})
    EXPECT_EQ(why_not(fmt::format(R"({{"{}":{{}}}})", member)), refusal(member, "an object"));
  const auto scalar = [&](std::string_view member) {
    return refusal(member, "a number, a truth value or null");
  };
  for (const char* member : {"id", "inputs", "outputs", "parameters"})
    EXPECT_EQ(why_not(fmt::format(R"({{"{}":7}})", member)), scalar(member));
  for (const char* member : {"shape", "data"})
    EXPECT_EQ(why_not(fmt::format(R"({{"inputs":[{{"{}":"x"}}]}})", member)),
              fmt::format("'{}' of an input is a string; expected an array", member));
  for (const char* member : {"name", "datatype", "shape", "data"}) {
    EXPECT_EQ(why_not(fmt::format(R"({{"inputs":[{{"{}":true}}]}})", member)), scalar(member));
    EXPECT_EQ(why_not(fmt::format(R"({{"inputs":[{{"{}":null}}]}})", member)), scalar(member));
  }
  for (const char* member : {"id", "parameters"})
    EXPECT_EQ(why_not(fmt::format(R"({{"{}":[]}})", member)), refusal(member, "an array"));
  for (const char* member : {"name", "datatype", "shape", "data"})
    EXPECT_EQ(why_not(fmt::format(R"({{"inputs":[{{"{}":{{}}}}]}})", member)),
              fmt::format("'{}' is an object, which the protocol does not allow", member));
  for (const char* member : {"name", "datatype", "parameters"})
    EXPECT_EQ(why_not(fmt::format(R"({{"inputs":[{{"{}":[]}}]}})", member)),
              fmt::format("'{}' is an array, which the protocol does not allow", member));
  EXPECT_EQ(
      why_not(R"({"inputs":[{"name":"x","datatype":"FP32","data":[]}]})", model_of(HALYARD_ELEMENT_F32)),
      "input 'x' has no 'shape'; expected [-1]");
  EXPECT_EQ(why_not(R"({"inputs":[{"name":"x","shape":[0],"data":[]}]})", model_of(HALYARD_ELEMENT_F32)),
            "input 'x' has no 'datatype'; expected FP32");
}

TEST(InferRequest, NumbersByValue) {
  ModelSpec spec = model_of(HALYARD_ELEMENT_I32);
  spec.inputs[0].is_number = true;
  spec.inputs[0].shape = {1};
  EXPECT_EQ(why_not(of_data("INT32", "[1]", "[7]"), spec), "accepted");
  EXPECT_EQ(why_not(of_data("INT32", "[]", "[7]"), spec), "accepted");
  EXPECT_NE(why_not(of_data("INT32", "[2]", "[7,8]"), spec), "accepted");
}

TEST(Documents, InferenceResponse) {
  const ModelSpec spec = model();
  const float sums[] = {0.1f, -1e30f};
  const std::vector<OutputTensor> outputs = {
      {.spec = &spec.outputs[0], .shape = {2}, .bytes = std::as_bytes(std::span(sums))},
      {.spec = &spec.outputs[1],
       .shape = {1},
       .bytes = std::as_bytes(std::span(sums)).first(1),
       .is_binary = true}};
  EXPECT_EQ(infer_document(spec, "a\"b\xff", outputs),
            R"({"model_name":"m","model_version":"1","id":"a\"b)"
            "\xEF\xBF\xBD"
            R"(","outputs":[{"name":"sum","shape":[2],"datatype":"FP32","data":[0.1,-1e+30]},)"
            R"({"name":"mask","shape":[1],"datatype":"BOOL","parameters":{"binary_data_size":1}}]})");
}

TEST(Documents, WhatJsonHasNoNumberFor) {
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F64);
  const double values[] = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN(), -0.0};
  const std::vector<OutputTensor> outputs = {
      {.spec = spec.outputs.data(), .shape = {4}, .bytes = std::as_bytes(std::span(values))}};
  EXPECT_GE(infer_document_bound(spec, std::nullopt, outputs),
            infer_document(spec, std::nullopt, outputs).size());
  EXPECT_TRUE(
      infer_document(spec, std::nullopt, outputs).contains(R"("data":["Infinity","-Infinity","NaN",-0])"));
}

TEST(Documents, NoAnswerIsLargerThanItsBound) {
  for (const DataType& type : datatypes()) {
    const ModelSpec spec = model_of(type.element_type);
    // Every byte the same: small and large numbers of each type, with many digits.
    for (int byte = 0; byte < 256; ++byte) {
      const std::vector<std::byte> bytes(64 * type.size, static_cast<std::byte>(byte));
      const std::vector<OutputTensor> outputs = {
          {.spec = spec.outputs.data(), .shape = {64}, .bytes = bytes, .is_binary = false}};
      const std::string id(100, '\x01');
      EXPECT_LE(infer_document(spec, id, outputs).size(), infer_document_bound(spec, id, outputs))
          << type.name;
    }
  }
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F64);
  const std::vector<double> values(1000, -2.2250738585072014e-308);
  const std::vector<OutputTensor> outputs = {
      {.spec = spec.outputs.data(), .shape = {1000}, .bytes = std::as_bytes(std::span(values))}};
  EXPECT_LE(infer_document(spec, std::nullopt, outputs).size(),
            infer_document_bound(spec, std::nullopt, outputs));
}

TEST(Documents, Metadata) {
  const std::vector<std::string> versions = {"1", "2"};
  EXPECT_EQ(
      model_document(model(), versions),
      R"({"name":"m","versions":["1","2"],"platform":"iree_vmfb","inputs":[{"name":"x","datatype":"FP32","shape":[2,-1]},)"
      R"({"name":"y","datatype":"INT32","shape":[3]}],"outputs":[{"name":"sum","datatype":"FP32","shape":[2]},)"
      R"({"name":"mask","datatype":"BOOL","shape":[1]}]})"
      "\n");
}

}  // namespace
}  // namespace halyard::tools::serve
