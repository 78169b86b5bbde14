// Halyard's embedding ABI for C++20. Header only, over halyard/halyard.h; link with libhalyard.
//
//   auto instance = halyard::Instance::create();
//   auto device = instance.open("local-sync");
//   auto module = halyard::Module::load(instance, "model.vmfb");
//   auto context = halyard::Context::create(instance, {.modules = {module}, .devices = {device}});
//   auto function = context.find("mul");
//   auto x = halyard::Tensor::create<float>(device, {2, 2}, {1, 2, 3, 4});
//   auto product = function.call<halyard::Tensor>(x, x);
//   std::vector<float> elements = product.read<float>();
//
// OWNERSHIP. An object owns one reference, or is empty; copies share the referenced object. Arguments are
// borrowed.
//
// FAILURES are thrown as halyard::Error. Without exceptions, or with HALYARD_CPP_EXCEPTIONS defined as 0,
// functions that can fail return expected<T, Error>; the functions have the same names. Result<T> stands for
// either form.
//
// THREADS. As in the C header: one thread at a time uses a Call, a Function or a Context; any thread uses the
// rest.
//
// The whole C ABI is reachable: get() returns the C handle of an object. docs/embedding.md has complete
// programs. halyard/asio.hpp is a separate header for Asio's event loops.
//
// This is a header, not an ABI: every program compiles its own copy.
#ifndef HALYARD_HALYARD_HPP_
#define HALYARD_HALYARD_HPP_

#if __cplusplus < 202002L
#error "halyard/halyard.hpp needs C++20; compile with -std=c++20"
#else

#include "halyard/cpp/capture.hpp"
#include "halyard/cpp/channels.hpp"
#include "halyard/cpp/context.hpp"
#include "halyard/cpp/error.hpp"
#include "halyard/cpp/fence.hpp"
#include "halyard/cpp/handle.hpp"
#include "halyard/cpp/instance.hpp"
#include "halyard/cpp/module.hpp"
#include "halyard/cpp/native.hpp"
#include "halyard/cpp/tensor.hpp"
#include "halyard/cpp/value.hpp"

#endif  // C++20

#endif  // HALYARD_HALYARD_HPP_
