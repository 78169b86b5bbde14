// Inference requests as the protocol describes them, and what is wrong with others.
#include "infer_request.h"

#include <gtest/gtest.h>

#include <cstring>

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
  EXPECT_EQ(replaced("[2, 2]", "[2, 3]"), "'data' of input 'x' has 4 elements; its shape [2,3] has 6");
  EXPECT_EQ(replaced("FP32", "FP64"), "input 'x' is FP64; model 'm' takes FP32");
  EXPECT_EQ(replaced("\"y\"", "\"z\""), "model 'm' has no input 'z'; it takes 'x', 'y'");
  EXPECT_EQ(replaced("\"y\"", "\"x\""), "the request has input 'x' twice");
  EXPECT_NE(replaced("FP32", "float").find("'float'; this server has BOOL, INT8"), std::string::npos);
  EXPECT_EQ(replaced("-2,", "-2.5,"), "element 1 of input 'y' is no INT32");
  EXPECT_EQ(replaced("[2, 2]", "[2, -2]"),
            "'shape' of an input has a dimension that is no whole number from 0 on");
  EXPECT_EQ(why_not(R"({"inputs": []})"), "the request lacks input 'x'; model 'm' takes 'x', 'y'");
  EXPECT_EQ(why_not("{}"), "the request has no member 'inputs'; expected the model's: 'x', 'y'");
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F32);
  EXPECT_EQ(why_not(R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32"}]})", spec),
            "input 'x' has neither 'data' nor the parameter 'binary_data_size'");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":5}}]})",
          spec),
      "input 'x' has binary_data_size 5; 1 elements of FP32 have 4 bytes");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1],"parameters":{"binary_data_size":4}}]})",
          spec),
      "input 'x' has both 'data' and 'binary_data_size'; expected one of them");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"outputs":[{"name":"z"}]})",
          spec),
      "model 'm' has no output 'z'; it gives 'y'");
  EXPECT_EQ(
      why_not(
          R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"outputs":[{"name":"y"},{"name":"y"}]})",
          spec),
      "the request names output 'y' twice");
}

TEST(InferRequest, NoMemoryForPromises) {
  const ModelSpec spec = model_of(HALYARD_ELEMENT_F64);
  EXPECT_EQ(why_not(of_data("FP64", "[1000000000000]", "[1]"), spec),
            "'data' of input 'x' has 1 elements; its shape [1000000000000] has 1000000000000");
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
  EXPECT_EQ(why_not(deep), "the request nests deeper than 64");
  std::string objects;
  for (int i = 0; i < 1000; ++i) objects += "{\"a\":";
  EXPECT_EQ(why_not(objects), "the request nests deeper than 64");
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
  EXPECT_NE(infer_document(spec, std::nullopt, outputs).find(R"("data":["Infinity","-Infinity","NaN",-0])"),
            std::string::npos);
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
