// The records of native libraries, without machine code: damaged tables, counts beyond what compilers write,
// what another program would be needed for.
#include "native/library.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

namespace halyard::local {
namespace {

int entry(const abi::Environment*, const abi::DispatchState*, const abi::WorkgroupState*) { return 0; }

// A library whose records the test changes.
struct Records {
  abi::LibraryHeader header = {.revision = 6, .name = "library", .features = 0, .sanitizer = 0};
  abi::LibraryHeader header5 = {.revision = 5, .name = "library", .features = 0, .sanitizer = 0};
  abi::EntryFunction functions[2] = {entry, entry};
  abi::ExportAttributes6 attributes[2] = {{.local_memory_pages = 1, .constant_count = 3, .binding_count = 2},
                                          {}};
  abi::ExportAttributes5 attributes5[2] = {{.local_memory_pages = 2, .constant_count = 1, .binding_count = 4},
                                           {}};
  const char* names[2] = {"first", "second"};
  abi::SourceLocation places[2] = {{12, 3, "a.c"}, {0, 0, nullptr}};
  const char* imports[1] = {"add"};
  abi::Library6 six = {};
  abi::Library5 five = {};

  Records() {
    six.header = &header;
    five.header = &header5;
    six.imports = five.imports = {1, imports};
    six.exports = {.count = 2,
                   .functions = functions,
                   .attributes = attributes,
                   .names = names,
                   .source_locations = places};
    five.exports = {.count = 2,
                    .functions = functions,
                    .attributes = attributes5,
                    .names = names,
                    .source_locations = places};
    six.constants.count = five.constants.count = 7;
  }
};

Records* records = nullptr;  // of the library that is asked

const abi::LibraryHeader* const* answer_6(uint32_t revision, const abi::Environment*) {
  return revision == 6 ? &records->six.header : nullptr;
}
const abi::LibraryHeader* const* answer_5(uint32_t revision, const abi::Environment*) {
  return revision == 5 ? &records->five.header : nullptr;
}
const abi::LibraryHeader* const* answer_none(uint32_t, const abi::Environment*) { return nullptr; }

class FakeCode final : public NativeCode {
 public:
  explicit FakeCode(abi::LibraryQuery* query) : query_(query) {}
  void* find(const char* name) const override {
    return std::strcmp(name, abi::kLibraryQuery) == 0 ? reinterpret_cast<void*>(query_) : nullptr;
  }

 private:
  abi::LibraryQuery* query_;
};

// The message, or "OK".
std::string outcome_of(abi::LibraryQuery* query, const std::function<void(Records&)>& change) {
  Records own;
  change(own);
  records = &own;
  const Result<Library> library = query_library(FakeCode(query), new_environment());
  return library ? "OK" : std::string(library.error().message());
}
#define EXPECT_REFUSED(part, query, ...)                     \
  do {                                                       \
    const std::string text = outcome_of(query, __VA_ARGS__); \
    EXPECT_NE(text.find(part), std::string::npos) << text;   \
  } while (false)

TEST(LibraryRecords, AreReadInBothRevisions) {
  Records own;
  records = &own;
  for (abi::LibraryQuery* const query : {answer_6, answer_5}) {
    const Result<Library> library = query_library(FakeCode(query), new_environment());
    ASSERT_TRUE(library);
    const bool six = query == answer_6;
    EXPECT_EQ(library->constant_count, 7u);
    EXPECT_EQ(library->imports.size(), 1u);
    ASSERT_EQ(library->kernels.size(), 2u);
    EXPECT_EQ(library->functions.size(), 2u);
    EXPECT_EQ(library->kernels[0].name, "first");
    EXPECT_EQ(library->kernels[0].source, "a.c:12");
    EXPECT_EQ(library->kernels[1].source, "");
    EXPECT_EQ(library->kernels[0].binding_count, six ? 2u : 4u);
    EXPECT_EQ(library->kernels[0].constant_count, six ? 3u : 1u);
    EXPECT_EQ(library->kernels[0].local_memory, six ? 4096u : 8192u);
  }
}

TEST(LibraryRecords, WithoutALibraryOrARevisionThereIsNoExecutable) {
  const auto same = [](Records&) {};
  EXPECT_REFUSED("has no function 'iree_hal_executable_library_query'", nullptr, same);
  EXPECT_REFUSED("neither revision 6 nor 5", answer_none, same);
  EXPECT_REFUSED("is of revision 0;", answer_6, [](Records& all) { all.six.header = nullptr; });
  EXPECT_REFUSED("is of revision 7;", answer_6, [](Records& all) { all.header.revision = 7; });
  EXPECT_REFUSED("is of revision 4;", answer_5, [](Records& all) { all.header5.revision = 4; });
}

TEST(LibraryRecords, AnotherSanitizerOrFeatureIsRefused) {
  for (const auto& [sanitizer, name] :
       std::initializer_list<std::pair<uint32_t, const char*>>{{2, "sanitizer 2 (memory)"},
                                                               {4, "sanitizer 4 (undefined behavior)"},
                                                               {5, "sanitizer 5 (not known)"}})
    EXPECT_REFUSED(name, answer_6, [number = sanitizer](Records& all) { all.header.sanitizer = number; });
  EXPECT_REFUSED("unknown features 0x8", answer_6, [](Records& all) { all.header.features = 8; });
}

TEST(LibraryRecords, DamagedTablesAreRefused) {
  EXPECT_REFUSED("the library has 1048577 functions and 1 imports, expected at most 1048576 and 65536",
                 answer_6, [](Records& all) { all.six.exports.count = (1u << 20) + 1; });
  EXPECT_REFUSED("the library has 2 functions and 65537 imports", answer_6,
                 [](Records& all) { all.six.imports.count = (1u << 16) + 1; });
  EXPECT_REFUSED("no table of them", answer_6, [](Records& all) { all.six.exports.functions = nullptr; });
  EXPECT_REFUSED("no table of them", answer_5, [](Records& all) { all.five.exports.functions = nullptr; });
  EXPECT_REFUSED("no table of them", answer_6, [](Records& all) { all.six.imports.symbols = nullptr; });
  EXPECT_REFUSED("does not say what its 2 functions take", answer_6,
                 [](Records& all) { all.six.exports.attributes = nullptr; });
  EXPECT_REFUSED("function 1 of the library is null", answer_6,
                 [](Records& all) { all.functions[1] = nullptr; });
  EXPECT_REFUSED("function 1 of the library has 65 bindings and 0 constants", answer_6,
                 [](Records& all) { all.attributes[1].binding_count = 65; });
  EXPECT_REFUSED("function 0 of the library has 4 bindings and 65 constants", answer_5,
                 [](Records& all) { all.attributes5[0].constant_count = 65; });
}

TEST(LibraryRecords, MayLackWhatIsOptional) {
  const auto is_read = [](abi::LibraryQuery* query, const std::function<void(Records&)>& change) {
    return outcome_of(query, change) == "OK";
  };
  EXPECT_TRUE(is_read(answer_5, [](Records& all) { all.five.exports.attributes = nullptr; }));
  EXPECT_TRUE(is_read(answer_6, [](Records& all) { all.six.exports.names = nullptr; }));
  EXPECT_TRUE(is_read(answer_6, [](Records& all) { all.names[1] = nullptr; }));
  EXPECT_TRUE(is_read(answer_6, [](Records& all) { all.six.exports.source_locations = nullptr; }));
  EXPECT_TRUE(is_read(answer_6, [](Records& all) { all.places[0].path_size = 5000; })) << "no place";
  EXPECT_TRUE(is_read(answer_6, [](Records& all) { all.attributes[1].binding_count = 64; }));
  EXPECT_TRUE(is_read(answer_6, [](Records& all) { all.six.imports = {}; }));
  // Nothing in it.
  for (const bool has_tables : {true, false})
    EXPECT_TRUE(is_read(answer_6, [&](Records& all) {
      all.six.exports.count = 0;
      if (!has_tables) all.six.exports = {};
    }));
}

}  // namespace
}  // namespace halyard::local
