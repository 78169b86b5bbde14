// The flags of vm-dump.
#pragma once

#include "common/flags.h"

namespace halyard::tools {

enum class Output { summary, disassembly, json, native, memory, page };

namespace flag {

inline constexpr Toggle disassemble = {
    "disassemble",
    "Prints the module as text (docs/vmasm.md) that vm-as can assemble. Also: -d, --output=disassembly.",
    "--disassemble"};
inline constexpr Toggle offsets = {
    "offsets", "With --disassemble: prints the pc before each instruction, as in messages.", "--offsets"};
inline constexpr Toggle json = {"json",
                                "Prints the complete description as JSON; with --memory, the analysis. Also: "
                                "--output=json.",
                                "--json"};
inline constexpr Choice output = {"output", "metadata|disassembly|json",
                                  "What to print; metadata, the default, is the summary.",
                                  "--output=disassembly", Output::summary};
inline constexpr Toggle jit = {"jit",
                               "Prints for each function and bytecode kernel the result of the compiler "
                               "(docs/jit.md): the LLVM IR and the "
                               "assembly for this processor, or the reason why it stays interpreted.",
                               "--jit"};
inline constexpr Toggle memory = {
    "memory",
    "Prints the peak of device memory of each function, computed from the allocations in its bytecode: what "
    "is "
    "alive then, and where it was allocated. Sizes that depend on the inputs are expressions.",
    "--memory"};
inline constexpr Text html = {"html", "FILE",
                              "Writes a page for browsers, complete in one file: functions, the graph of "
                              "dispatches with their tensors, memory, constants, parameters, requirements.",
                              "--html=model.html"};
inline constexpr List dump_input = {
    "input", "SHAPE",
    "With --memory or --html: an input of the function, such as 1x224x224x3xf32, @input.npy, or 5 for a "
    "number. Once for each input, in order. Values of tensors have no effect and may be omitted.",
    "--input=1x4xf32"};
inline constexpr Text dump_function = {
    "function", "NAME", "With --jit, --memory or --html: only functions and kernels of this name.",
    "--function=main"};

}  // namespace flag

}  // namespace halyard::tools
