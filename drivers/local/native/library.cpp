// Queries a library for its records.
#include "library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/cpu_features.h"
#include "halyard/abi.h"

namespace halyard::local {

namespace {

constexpr uint64_t kPage = 4096;  // local memory is a multiple of this
constexpr uint32_t kMaxCounts = 64;
// Much more than compilers produce.
constexpr uint32_t kMaxExports = 1u << 20;
constexpr uint32_t kMaxImports = 1u << 16;

constexpr const char* kSanitizers[] = {"none", "address", "memory", "thread", "undefined behavior"};

// The number that libraries use for the sanitizer of this program.
uint32_t own_sanitizer() {
  switch (HALYARD_SANITIZER_KIND) {
    case HALYARD_SANITIZER_ADDRESS:
      return 1;
    case HALYARD_SANITIZER_MEMORY:
      return 2;
    case HALYARD_SANITIZER_THREAD:
      return 3;
    default:
      return 0;
  }
}

Kernel kernel_of(const abi::ExportAttributes5& attributes) {
  return {.binding_count = attributes.binding_count,
          .constant_count = attributes.constant_count,
          .local_memory = attributes.local_memory_pages * kPage};
}
Kernel kernel_of(const abi::ExportAttributes6& attributes) {
  return {.binding_count = attributes.binding_count,
          .constant_count = attributes.constant_count,
          .local_memory = attributes.local_memory_pages * kPage,
          .workgroup_size = {attributes.workgroup_size_x, attributes.workgroup_size_y,
                             attributes.workgroup_size_z},
          .sequential = (attributes.flags & abi::kSequential) != 0};
}

// In revision 5, attributes are optional.
bool may_lack_attributes(const abi::ExportTable5&) { return true; }
bool may_lack_attributes(const abi::ExportTable6&) { return false; }

std::string source_text(const abi::SourceLocation& location) {
  constexpr uint32_t kMaxPath = 4096;
  if (!location.path || location.path_size == 0 || location.path_size > kMaxPath) return "";
  return fmt::format("{}:{}", std::string_view(location.path, location.path_size), location.line);
}

template <typename ExportTable>
Result<Library> read_library(const abi::Library<ExportTable>& from) {
  const ExportTable& exports = from.exports;
  if (exports.count > kMaxExports || from.imports.count > kMaxImports)
    return fail(Code::OUT_OF_RANGE,
                "the library has {} functions and {} imports, expected at most {} and {}; it is damaged",
                exports.count, from.imports.count, kMaxExports, kMaxImports);
  if ((exports.count != 0 && !exports.functions) || (from.imports.count != 0 && !from.imports.symbols))
    return fail(Code::FAILED_PRECONDITION,
                "the library has {} functions and {} imports, but no table of them; it is damaged",
                exports.count, from.imports.count);
  if (exports.count != 0 && !exports.attributes && !may_lack_attributes(exports))
    return fail(Code::FAILED_PRECONDITION,
                "the library does not say what its {} functions take (no attributes); compile it again",
                exports.count);
  Library library;
  library.constant_count = from.constants.count;
  library.imports = {from.imports.symbols, from.imports.count};
  library.functions = {exports.functions, exports.count};
  library.kernels.reserve(exports.count);
  for (uint32_t i = 0; i < exports.count; ++i) {
    Kernel kernel = {.binding_count = HALYARD_COUNT_UNDECLARED, .constant_count = HALYARD_COUNT_UNDECLARED};
    if (exports.attributes) {
      kernel = kernel_of(exports.attributes[i]);
      if (kernel.binding_count > kMaxCounts || kernel.constant_count > kMaxCounts)
        return fail(
            Code::OUT_OF_RANGE,
            "function {} of the library has {} bindings and {} constants; expected at most {} of each", i,
            kernel.binding_count, kernel.constant_count, kMaxCounts);
    }
    if (!exports.functions[i])
      return fail(Code::FAILED_PRECONDITION, "function {} of the library is null; it is damaged", i);
    if (exports.names && exports.names[i]) kernel.name = exports.names[i];
    if (exports.source_locations) kernel.source = source_text(exports.source_locations[i]);
    library.kernels.push_back(std::move(kernel));
  }
  return library;
}

}  // namespace

abi::Environment new_environment() {
  abi::Environment environment = {};
  std::ranges::copy(processor_data(), environment.processor);
  return environment;
}

Result<> check_sanitizer(uint32_t sanitizer, std::string_view what) {
  if (sanitizer == 0 || sanitizer == own_sanitizer()) return {};
  return fail(
      Code::UNAVAILABLE,
      "{} was compiled with the sanitizer {} ({}), which this program does not have; compile it without",
      what, sanitizer, sanitizer < std::size(kSanitizers) ? kSanitizers[sanitizer] : "not known");
}

Result<Library> query_library(const NativeCode& code, const abi::Environment& environment) {
  auto* query = code.find_function<abi::LibraryQuery>(abi::kLibraryQuery);
  if (!query)
    return fail(Code::FAILED_PRECONDITION, "the library has no function '{}', so it is no executable",
                abi::kLibraryQuery);
  // Each revision is queried separately, because a library answers only for its own.
  constexpr std::array<uint32_t, 2> kRevisions = {6, 5};
  for (const uint32_t revision : kRevisions) {
    const abi::LibraryHeader* const* const found = query(revision, &environment);
    if (!found) continue;
    const abi::LibraryHeader* const header = *found;
    if (!header || (header->revision != 5 && header->revision != 6))
      return fail(Code::FAILED_PRECONDITION,
                  "the library is of revision {}; this program runs the revisions 5 and 6",
                  header ? header->revision : 0);
    HALYARD_TRY(check_sanitizer(header->sanitizer, "the library"));
    if (header->features != 0)
      return fail(Code::UNIMPLEMENTED,
                  "the library needs the unknown features {:#x}; compile it for an older release",
                  header->features);
    return header->revision == 6 ? read_library(*reinterpret_cast<const abi::Library6*>(found))
                                 : read_library(*reinterpret_cast<const abi::Library5*>(found));
  }
  return fail(Code::FAILED_PRECONDITION,
              "the library supports neither revision 6 nor 5; compile it with a compiler release that writes "
              "one of them");
}

}  // namespace halyard::local
