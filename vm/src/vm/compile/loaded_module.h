// LoadedModule: a bytecode module that can run, with the code of its functions. Functions are verified and
// decoded on their first call.
#pragma once

#include <memory>

#include "vm/compile/code_store.h"
#include "vm/module/bytecode_module.h"

namespace halyard::vm {

class LoadedModule final : public BytecodeModule {
 public:
  static const ObjectType kType;

  // Like BytecodeModule::load; with `verify_eagerly` also returns the statuses of the verifier.
  static Result<Ref<LoadedModule>> load(Ref<Bytes> bytes, const TypeRegistry& types,
                                        const LoadOptions& options = {});

  CodeStore& store() const { return *store_; }
  Result<const FunctionCode*> code(uint32_t function) const { return store_->code(function); }

  LoadedModule();
  ~LoadedModule();

 private:
  std::unique_ptr<CodeStore> store_;
};

}  // namespace halyard::vm
