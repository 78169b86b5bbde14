#include "emit/microkernels.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Passes/PassBuilder.h>

#include <algorithm>

#include "emit/elementwise_loops.h"
#include "emit/float_mode.h"
#include "emit/loop_writer.h"
#include "emit/packed_product.h"
#include "emit/target.h"
#include "emit/tile_copies.h"
#include "emit/vector_set.h"

namespace halyard::jit {

namespace {

constexpr std::string_view kModule = "vmvx.";
constexpr std::string_view kBinary = "0rIIIrIIIrIIIII_v";
constexpr std::string_view kUnary = "0rIIIrIIIII_v";

struct OtherFunction {
  std::string_view name;
  std::string_view convention;
  bool is_float;
};
constexpr OtherFunction kOtherFunctions[] = {{"fill.2d.x32", "0irIIII_v", false},
                                             {"mmt4d", "0rIIrIIrIIIIIiiii_v", true},
                                             {"pack", "0rIIIrIIIIIIIIIIi_v", false},
                                             {"unpack", "0rIIIrIIIIIIIIIi_v", false},
                                             {"query_tile_sizes.2d", "0IIi_II", false}};

struct Found {
  std::string_view name;  // without the module's
  std::string_view convention;
  bool is_float;
  const ElementFunction* element;
};
Found find(std::string_view name) {
  if (!name.starts_with(kModule)) return {};
  name.remove_prefix(kModule.size());
  if (const ElementFunction* const function = find_element_function(name))
    return {name, function->inputs == 2 ? kBinary : kUnary, function->is_float, function};
  const auto* const other = std::ranges::find(kOtherFunctions, name, &OtherFunction::name);
  if (other == std::end(kOtherFunctions)) return {};
  return {name, other->convention, other->is_float, nullptr};
}

void write_body(LoopWriter& w, const Found& found, const VectorSet& vectors,
                const std::function<void()>& begin) {
  if (found.name == "mmt4d") return write_packed_product(w, vectors, begin);
  begin();
  if (found.element) return write_elementwise(w, *found.element, vectors);
  if (found.name == "pack") return write_pack(w);
  if (found.name == "unpack") return write_unpack(w);
  if (found.name == "fill.2d.x32") return write_fill(w);
  write_tile_sizes(w, vectors);
}

// No pass may call functions of the C library, which is not there.
void optimize(llvm::Module& module, llvm::LLVMTargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager groups;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions options;
  options.LoopVectorization = true;
  options.LoopInterleaving = true;
  llvm::PassBuilder builder(&machine, options);
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(groups);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, groups, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

}  // namespace

bool is_microkernel(std::string_view name, std::string_view convention) {
  const Found found = find(name);
  return !found.name.empty() && found.convention == convention;
}

std::string microkernel_symbol(std::string_view name) { return std::string(name); }

llvm::FunctionType* microkernel_type(std::string_view convention, llvm::LLVMContext& context) {
  std::vector<llvm::Type*> parameters;
  bool is_result = false;
  for (const char kind : convention.substr(1)) {
    if (kind == '_')
      is_result = true;
    else if (kind == 'r' || (is_result && kind != 'v'))
      parameters.push_back(llvm::PointerType::get(context, 0));
    else if (kind != 'v')
      parameters.push_back(llvm::Type::getIntNTy(context, kind == 'I' ? 64 : 32));
  }
  return llvm::FunctionType::get(llvm::Type::getInt32Ty(context), parameters, false);
}

void write_microkernels(const std::set<std::string>& names, llvm::Module& module,
                        llvm::LLVMTargetMachine& machine) {
  const VectorSet vectors = vector_set(machine);
  LoopWriter w(module);
  for (const std::string& name : names) {
    const Found found = find(name);
    const std::string symbol = microkernel_symbol(name);
    llvm::FunctionType* const type = microkernel_type(found.convention, module.getContext());
    write_body(w, found, vectors, [&] {
      w.begin(found.is_float ? symbol + ".loops" : symbol, type->getReturnType(), type->params(),
              !found.is_float);
    });
    if (!found.is_float) continue;
    llvm::Function* const loops = w.function();
    loops->addFnAttr(llvm::Attribute::NoInline);
    llvm::Function* const made = w.begin(symbol, type->getReturnType(), type->params(), true);
    llvm::SmallVector<llvm::Value*, 16> arguments;
    for (llvm::Argument& each : made->args()) arguments.push_back(&each);
    const FloatMode mode(w.b, Denormals::flushed);  // exec-vmvx.md, section 3
    llvm::Value* const status = w.b.CreateCall(loops, arguments);
    mode.restore(w.b);
    w.b.CreateRet(status);
  }
  for (llvm::Function& each : module)
    if (!each.isDeclaration()) set_processor(each, machine);
  optimize(module, machine);
}

}  // namespace halyard::jit
