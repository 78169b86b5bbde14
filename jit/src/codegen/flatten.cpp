// LLVM's linker (JITLink) reads the object and builds the address table. The blocks are laid out
// consecutively from address 0, where the linker applies the relocations between them.
#include "codegen/flatten.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/ExecutionEngine/JITLink/ELF.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/aarch64.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <vector>

#include "shared/symbols.h"

namespace halyard::jit {

namespace {

namespace jitlink = llvm::jitlink;

// The parts that depend on the processor.
struct X86 {
  using Got = jitlink::x86_64::GOTTableManager;
  using Plt = jitlink::x86_64::PLTTableManager;
  static constexpr jitlink::Edge::Kind kPointer = jitlink::x86_64::Pointer64;
  static llvm::Error apply(jitlink::LinkGraph& graph, jitlink::Block& block, const jitlink::Edge& edge) {
    return jitlink::x86_64::applyFixup(graph, block, edge, nullptr);
  }
};
struct Arm {
  using Got = jitlink::aarch64::GOTTableManager;
  using Plt = jitlink::aarch64::PLTTableManager;
  static constexpr jitlink::Edge::Kind kPointer = jitlink::aarch64::Pointer64;
  static llvm::Error apply(jitlink::LinkGraph& graph, jitlink::Block& block, const jitlink::Edge& edge) {
    return jitlink::aarch64::applyFixup(graph, block, edge);
  }
};

llvm::Error refused(const llvm::Twine& what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "LLVM's object file " + what);
}

template <typename Processor>
class Flattener {
 public:
  explicit Flattener(jitlink::LinkGraph& graph) : graph_(graph) {}

  llvm::Expected<Image> run(llvm::StringRef function) {
    typename Processor::Got got;
    typename Processor::Plt plt(got);
    jitlink::visitExistingEdges(graph_, got, plt);
    lay_out();
    for (jitlink::Block* const block : blocks_)
      if (llvm::Error error = fill_in(*block)) return error;
    for (jitlink::Block* const block : blocks_)
      image_.code.replace(block->getAddress().getValue(), block->getSize(), block->getContent().data(),
                          block->getSize());
    for (jitlink::Symbol* const symbol : graph_.defined_symbols()) {
      if (!symbol->hasName() || symbol->getName() != function) continue;
      image_.entry = static_cast<uint32_t>(symbol->getAddress().getValue());
      image_.entry_size = static_cast<uint32_t>(symbol->getSize());
      return std::move(image_);
    }
    return refused("does not define " + function);
  }

 private:
  // Code and data share one mapping, because no data is written.
  void lay_out() {
    uint64_t end = 0;
    for (jitlink::Section& section : graph_.sections()) {
      if (section.getMemLifetime() == llvm::orc::MemLifetime::NoAlloc) continue;
      for (jitlink::Block* const block : in_order(section)) {
        if (block->isZeroFill()) fill_with_zeros(*block);
        end = llvm::alignTo(end, block->getAlignment(), block->getAlignmentOffset());
        block->setAddress(llvm::orc::ExecutorAddr(end));
        end += block->getSize();
        blocks_.push_back(block);
      }
    }
    image_.code.resize(end);
  }

  // Sorts the blocks, so that the order is the same in every process. A section is one block, or has a block
  // for each symbol.
  static std::vector<jitlink::Block*> in_order(jitlink::Section& section) {
    std::vector<jitlink::Block*> blocks(section.blocks().begin(), section.blocks().end());
    std::ranges::sort(blocks, {}, [](const jitlink::Block* block) { return symbol_of(*block); });
    return blocks;
  }
  // The symbol whose address an entry of the table contains, or to which a stub jumps through the table.
  static llvm::StringRef symbol_of(const jitlink::Block& block) {
    const jitlink::Symbol* const target = first_target(block);
    const jitlink::Symbol* const through =
        target && target->isDefined() ? first_target(target->getBlock()) : target;
    return through && through->hasName() ? through->getName() : llvm::StringRef();
  }
  static const jitlink::Symbol* first_target(const jitlink::Block& block) {
    return block.edges_empty() ? nullptr : &block.edges().begin()->getTarget();
  }

  void fill_with_zeros(jitlink::Block& block) {
    const llvm::MutableArrayRef<char> zeros = graph_.allocateBuffer(block.getSize());
    std::ranges::fill(zeros, '\0');
    block.setMutableContent(zeros);
  }

  llvm::Error fill_in(jitlink::Block& block) {
    (void)block.getMutableContent(graph_);
    for (const jitlink::Edge& edge : block.edges()) {
      if (!edge.isRelocation()) continue;
      const jitlink::Symbol& target = edge.getTarget();
      if (edge.getKind() == Processor::kPointer) {
        add_fixup(block.getFixupAddress(edge).getValue(), target, edge.getAddend());
      } else if (target.isDefined()) {
        if (llvm::Error error = Processor::apply(graph_, block, edge)) return error;
      } else {
        return refused("refers to '" + target.getName() + "' in a way that depends on its address");
      }
    }
    return llvm::Error::success();
  }

  void add_fixup(uint64_t offset, const jitlink::Symbol& target, int64_t addend) {
    std::string name = kImage;
    if (target.isDefined()) {
      addend += static_cast<int64_t>(target.getAddress().getValue());
    } else {
      name = target.getName().str();
    }
    const auto [at, is_new] = symbols_.try_emplace(name, static_cast<uint32_t>(image_.symbols.size()));
    if (is_new) image_.symbols.push_back(name);
    image_.fixups.push_back({static_cast<uint32_t>(offset), at->second, addend});
  }

  jitlink::LinkGraph& graph_;
  std::vector<jitlink::Block*> blocks_;
  llvm::StringMap<uint32_t> symbols_;
  Image image_;
};

}  // namespace

llvm::Expected<Image> flatten(const llvm::MemoryBuffer& object, llvm::StringRef function) {
  auto graph = jitlink::createLinkGraphFromELFObject(object.getMemBufferRef());
  if (!graph) return graph.takeError();
  switch ((*graph)->getTargetTriple().getArch()) {
    case llvm::Triple::x86_64:
      return Flattener<X86>(**graph).run(function);
    case llvm::Triple::aarch64:
      return Flattener<Arm>(**graph).run(function);
    default:
      return refused("is for a processor that is not supported");
  }
}

}  // namespace halyard::jit
