// Halyard's embedding ABI for C++20: header only, over halyard/halyard.h; link with libhalyard.
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
// OWNERSHIP. Objects own one reference, or nothing; copies share what they refer to. Arguments are borrowed.
//
// FAILURES are thrown as halyard::Error. Compiled without exceptions, or with HALYARD_CPP_EXCEPTIONS defined
// as 0, functions that can fail return expected<T, Error> instead, with the same names. Result<T> is either.
//
// THREADS. As the C header says: a Call, a Function and a Context by one thread at a time, the rest by any.
//
// ALL OF THE C ABI is reachable; get() gives the C handle of each object. docs/embedding.md has complete
// programs. halyard/asio.hpp, a header of its own, is for Asio's event loops.
//
// It is a header, not an ABI: every program has its own copy.
#ifndef HALYARD_HALYARD_HPP_
#define HALYARD_HALYARD_HPP_

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

#endif  // HALYARD_HALYARD_HPP_
