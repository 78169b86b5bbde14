// Prepares calls from their conventions, and copies registers to C and back.
#include "vm/native/ffi_call.h"

#include "vm/native/module_services.h"
#include "vm/native/native_registers.h"

namespace halyard::vm {

namespace {

constexpr uint32_t kKnownFlags = HALYARD_PLAIN_HOST | HALYARD_PLAIN_STATE | HALYARD_PLAIN_STATUS;

ffi_type* parameter_type(char type) {
  switch (type) {
    case 'i':
      return &ffi_type_sint32;
    case 'I':
      return &ffi_type_sint64;
    case 'f':
      return &ffi_type_float;
    case 'F':
      return &ffi_type_double;
    default:
      return &ffi_type_pointer;
  }
}

// Storage for one result. libffi widens types narrower than ffi_arg; the low bytes come first.
union Room {
  ffi_arg widened;
  uint64_t bits;
  void* pointer;
};
static_assert(sizeof(Room) == sizeof(uint64_t));

}  // namespace

Result<std::unique_ptr<const PlainFunction>> PlainFunction::prepare(const Convention& convention,
                                                                    halyard_any_function_t function,
                                                                    uint32_t flags) {
  if (const uint32_t unknown = flags & ~kKnownFlags)
    return fail(Code::UNIMPLEMENTED, "flags {:#x} of a plain function are unknown; use a newer Halyard",
                unknown);
  if (convention.has_span)
    return fail(Code::INVALID_ARGUMENT,
                "a variable number of arguments (C...D) cannot be passed to a plain function; make it a "
                "frame function");
  std::unique_ptr<PlainFunction> plain(new PlainFunction(function, flags));
  std::vector<ffi_type*>& parameters = plain->parameters_;
  if (flags & HALYARD_PLAIN_HOST) parameters.push_back(&ffi_type_pointer);
  if (flags & HALYARD_PLAIN_STATE) parameters.push_back(&ffi_type_pointer);
  for (const ConventionItem& item : convention.arguments) {
    plain->arguments_ += item.type;
    parameters.push_back(parameter_type(item.type));
  }
  for (const ConventionItem& item : convention.results) plain->results_ += item.type;
  const bool returns_status = (flags & HALYARD_PLAIN_STATUS) != 0;
  plain->results_by_pointer_ = returns_status || plain->results_.size() > 1;
  ffi_type* returned = &ffi_type_void;
  if (returns_status) {
    returned = &ffi_type_pointer;
  } else if (plain->results_.size() == 1) {
    returned = parameter_type(plain->results_[0]);
  }
  if (plain->results_by_pointer_)
    parameters.insert(parameters.end(), plain->results_.size(), &ffi_type_pointer);
  const ffi_status status = ::ffi_prep_cif(
      &plain->cif_, FFI_DEFAULT_ABI, static_cast<unsigned>(parameters.size()), returned, parameters.data());
  if (status != FFI_OK)
    return fail(Code::UNIMPLEMENTED, "libffi cannot call a function with this signature (status {})",
                static_cast<int>(status));
  return plain;
}

Status PlainFunction::call(NativeCall& call) {
  const auto& self = *static_cast<const PlainFunction*>(call.function_data);
  const void* host = &module_services();
  void* parameters[2 + kMaxNativeArguments + kMaxNativeResults];
  void** parameter = parameters;
  if (self.flags_ & HALYARD_PLAIN_HOST) *parameter++ = &host;
  if (self.flags_ & HALYARD_PLAIN_STATE) *parameter++ = &call.state;
  const uint16_t* argument = call.arguments;
  for (const char type : self.arguments_) *parameter++ = register_address(call, *argument++, type);
  Room results[kMaxNativeResults];
  Room* addresses[kMaxNativeResults];
  if (self.results_by_pointer_) {
    for (size_t i = 0; i < self.results_.size(); ++i) {
      results[i].bits = 0;
      addresses[i] = &results[i];
      *parameter++ = &addresses[i];
    }
  }
  Room returned = {};
  ::ffi_call(const_cast<ffi_cif*>(&self.cif_), self.function_, &returned, parameters);
  if ((self.flags_ & HALYARD_PLAIN_STATUS) && returned.pointer)
    return Status::adopt(static_cast<halyard_status_t>(returned.pointer));
  const Room* result = self.results_by_pointer_ ? results : &returned;
  const uint16_t* reg = call.results;
  for (const char type : self.results_) store_result(call, *reg++, type, result++);
  return {};
}

}  // namespace halyard::vm
