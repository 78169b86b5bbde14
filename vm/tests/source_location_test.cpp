// Where a module says that its code comes from: every kind of location, by pc; cycles and long texts end.
#include "vm/module/source_location.h"

#include <bytecode_module_generated.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "module_builder.h"

namespace halyard::vm::test {
namespace {

using flatbuffers::FlatBufferBuilder;
using Locations = std::vector<std::pair<schema::Location, flatbuffers::Offset<void>>>;

// A module whose function 0 has location i at pc 10 * i, for as many as `fill` makes.
template <typename Fill>
Ref<LoadedModule> module_with(Fill fill) {
  ModuleParts parts = one_function({});
  parts.functions.emplace_back();
  parts.debug_database = [&](FlatBufferBuilder& builder) {
    Locations locations;
    fill(builder, locations);
    std::vector<schema::Location> kinds;
    std::vector<flatbuffers::Offset<void>> values;
    std::vector<schema::BytecodeLocation> places;
    for (const auto& [kind, value] : locations) {
      places.emplace_back(static_cast<int32_t>(10 * values.size()), static_cast<int32_t>(values.size()));
      kinds.push_back(kind);
      values.push_back(value);
    }
    places.emplace_back(1000, static_cast<int32_t>(values.size()));  // past the end
    places.emplace_back(1010, -1);
    const std::vector maps = {schema::CreateFunctionSourceMapDirect(builder, "main", &places)};
    const auto kind_vector = builder.CreateVector(kinds);
    const auto value_vector = builder.CreateVector(values);
    return schema::CreateDebugDatabase(builder, kind_vector, value_vector, builder.CreateVector(maps));
  };
  return load(parts.build()).value();
}

void add_file(FlatBufferBuilder& builder, Locations& to, const std::string& name, int line, int column) {
  to.emplace_back(schema::Location::FileLineColLocation,
                  schema::CreateFileLineColLocationDirect(builder, name.c_str(), line, column).Union());
}
void add_name(FlatBufferBuilder& builder, Locations& to, const std::string& name, int child) {
  to.emplace_back(schema::Location::NameLocation,
                  schema::CreateNameLocationDirect(builder, name.c_str(), child).Union());
}
void add_fused(FlatBufferBuilder& builder, Locations& to, const char* metadata,
               std::vector<int32_t> children) {
  to.emplace_back(schema::Location::FusedLocation,
                  schema::CreateFusedLocationDirect(builder, metadata, &children).Union());
}
void add_call(FlatBufferBuilder& builder, Locations& to, int callee, int caller) {
  to.emplace_back(schema::Location::CallSiteLocation,
                  schema::CreateCallSiteLocation(builder, callee, caller).Union());
}

std::string at(const Ref<LoadedModule>& module, uint32_t pc, uint32_t function = 0) {
  return source_location(*module, function, pc);
}

TEST(SourceLocation, EachKindAtItsPc) {
  const auto module = module_with([](FlatBufferBuilder& builder, Locations& to) {
    add_file(builder, to, "a.mlir", 3, 14);
    add_file(builder, to, "b.mlir", 1, 5);
    add_name(builder, to, "mul", 1);
    add_name(builder, to, "alone", -1);
    add_fused(builder, to, "why", {0, 2});
    add_fused(builder, to, nullptr, {});
    add_call(builder, to, 0, 2);
  });
  EXPECT_EQ(at(module, 0), "a.mlir:3:14");
  EXPECT_EQ(at(module, 10), "b.mlir:1:5");
  EXPECT_EQ(at(module, 20), "\"mul\"(b.mlir:1:5)");
  EXPECT_EQ(at(module, 30), "\"alone\"");
  EXPECT_EQ(at(module, 40), "<why>[\n    a.mlir:3:14,\n    \"mul\"(b.mlir:1:5)\n  ]");
  EXPECT_EQ(at(module, 50), "[\n\n  ]");
  EXPECT_EQ(at(module, 60), "a.mlir:3:14\n      at \"mul\"(b.mlir:1:5)");
}

TEST(SourceLocation, NothingIsKnownElsewhere) {
  const auto module =
      module_with([](FlatBufferBuilder& builder, Locations& to) { add_file(builder, to, "a.mlir", 3, 14); });
  EXPECT_EQ(at(module, 1), "");
  EXPECT_EQ(at(module, 999), "");
  EXPECT_EQ(at(module, 0, 1), "");  // there is a map for function 0 alone
  EXPECT_EQ(at(module, 0, 77), "");
  EXPECT_EQ(at(module, 1000), "[unknown]");
  EXPECT_EQ(at(module, 1010), "[unknown]");
  EXPECT_EQ(at(load(one_function({}).build()).value(), 0), "");
}

// Functions 0 and 1, of which "main" is exported as `exported`; the database has these names, each with the
// place "NAME:1:2".
Ref<LoadedModule> module_with_names(std::vector<std::string> names, uint32_t exported = 0) {
  ModuleParts parts = one_function({});
  parts.functions.emplace_back();
  parts.exports[0].second = static_cast<int>(exported);
  parts.debug_database = [names = std::move(names)](FlatBufferBuilder& builder) {
    std::vector<schema::Location> kinds;
    std::vector<flatbuffers::Offset<void>> values;
    std::vector<flatbuffers::Offset<schema::FunctionSourceMap>> maps;
    for (const std::string& name : names) {
      const std::vector<schema::BytecodeLocation> places = {{0, static_cast<int32_t>(values.size())}};
      maps.push_back(schema::CreateFunctionSourceMapDirect(builder, name.c_str(), &places));
      kinds.push_back(schema::Location::FileLineColLocation);
      values.push_back(schema::CreateFileLineColLocationDirect(builder, name.c_str(), 1, 2).Union());
    }
    const auto kind_vector = builder.CreateVector(kinds);
    const auto value_vector = builder.CreateVector(values);
    return schema::CreateDebugDatabase(builder, kind_vector, value_vector, builder.CreateVector(maps));
  };
  return load(parts.build()).value();
}

TEST(SourceLocation, ACompleteDatabaseIsByFunction) {
  const auto module = module_with_names({"f", "main"});
  EXPECT_EQ(at(module, 0, 0), "f:1:2");
  EXPECT_EQ(at(module, 0, 1), "main:1:2");
  EXPECT_EQ(module->function_name(0), "main");
  EXPECT_EQ(module->function_name(1), "main");
  EXPECT_EQ(at(module_with_names({"f", "g", "h"}), 0, 1), "g:1:2");
}

TEST(SourceLocation, TheOnlyFunctionMayHaveAnotherName) {
  ModuleParts parts = one_function({});
  parts.debug_names = {"inner"};
  parts.debug_locations.push_back({.function = 0, .pc = 0, .file = "f.mlir", .line = 1, .column = 2});
  EXPECT_EQ(at(load(parts.build()).value(), 0), "f.mlir:1:2");
}

// Some compilers record the last function only.
TEST(SourceLocation, AnIncompleteDatabaseIsByName) {
  for (const uint32_t exported : {0u, 1u}) {
    const auto module = module_with_names({"main"}, exported);
    EXPECT_EQ(at(module, 0, exported), "main:1:2");
    EXPECT_EQ(at(module, 0, 1 - exported), "");
    EXPECT_EQ(module->function_name(1 - exported), "");
  }
  const auto last = module_with_names({"private"});
  EXPECT_EQ(at(last, 0, 1), "private:1:2");
  EXPECT_EQ(at(last, 0, 0), "");
  EXPECT_EQ(last->function_name(1), "private");
  // The last function has another name.
  const auto neither = module_with_names({"private"}, 1);
  EXPECT_EQ(at(neither, 0, 0), "");
  EXPECT_EQ(at(neither, 0, 1), "");
  EXPECT_EQ(at(module_with_names({}), 0, 0), "");
}

TEST(SourceLocation, TheFirstKnownPlaceOfAFunction) {
  const auto first = [](auto fill) { return source_of(*module_with(fill), 0); };
  EXPECT_EQ(first([](FlatBufferBuilder& builder, Locations& to) {
              add_fused(builder, to, "why", {2, 1});
              add_file(builder, to, "a.mlir", 1, 5);
              add_file(builder, to, "b.mlir", 3, 14);
            }),
            "b.mlir:3:14");
  EXPECT_EQ(first([](FlatBufferBuilder& builder, Locations& to) {
              add_call(builder, to, 9, 1);  // of something unknown
              add_name(builder, to, "mul", 2);
              add_file(builder, to, "a.mlir", 1, 5);
            }),
            "\"mul\"(a.mlir:1:5)");
  EXPECT_EQ(first([](FlatBufferBuilder& builder, Locations& to) { add_fused(builder, to, nullptr, {}); }),
            "");
  EXPECT_EQ(first([](FlatBufferBuilder&, Locations&) {}), "");
  EXPECT_EQ(source_of(*load(one_function({}).build()).value(), 0), "");
  const auto module =
      module_with([](FlatBufferBuilder& builder, Locations& to) { add_file(builder, to, "a", 1, 2); });
  EXPECT_EQ(source_of(*module, 1), "");
  EXPECT_EQ(source_of(*module, 77), "");
}

// Bounded in time and size, whatever the database says.
TEST(SourceLocation, HostileDatabasesHaveShortPlaces) {
  const auto cycle = module_with([](FlatBufferBuilder& builder, Locations& to) {
    for (int i = 0; i < 1000; ++i) add_fused(builder, to, nullptr, std::vector<int32_t>(100, i));
  });
  EXPECT_EQ(source_of(*cycle, 0), "");
  const auto lines = module_with([](FlatBufferBuilder& builder, Locations& to) {
    add_file(builder, to, "\n\n at \n[\x1b[31mred", 1, 2);
  });
  EXPECT_EQ(source_of(*lines, 0).find('\n'), std::string::npos);
  const auto large = module_with([](FlatBufferBuilder& builder, Locations& to) {
    add_file(builder, to, std::string(1 << 20, 'x'), 1, 2);
  });
  EXPECT_EQ(source_of(*large, 0).size(), 4096u + 4);
}

TEST(SourceLocation, CyclesEnd) {
  const auto module = module_with([](FlatBufferBuilder& builder, Locations& to) {
    add_name(builder, to, "n", 0);
    add_call(builder, to, 1, 0);
    add_call(builder, to, 0, 2);
    add_fused(builder, to, nullptr, {3, 3});
  });
  // 17 levels, then the one that is too deep.
  const std::string names = at(module, 0);
  EXPECT_EQ(std::ranges::count(names, '('), 17);
  EXPECT_NE(names.find("([unknown])"), std::string::npos) << names;
  for (const uint32_t pc : {10u, 20u, 30u}) {
    const std::string text = at(module, pc);
    EXPECT_NE(text.find("[unknown]"), std::string::npos) << pc;
    EXPECT_LT(text.size(), 10'000u) << pc;
  }
}

TEST(SourceLocation, LongTextsAreCutOff) {
  const auto module = module_with([](FlatBufferBuilder& builder, Locations& to) {
    add_file(builder, to, std::string(5000, 'x'), 1, 2);
    add_file(builder, to, std::string(4092, 'y'), 1, 2);
    add_file(builder, to, std::string(4093, 'z'), 1, 2);
    add_call(builder, to, 1, 1);  // 4096 bytes, then the line of the caller, which is too long
    add_call(builder, to, 2, 2);
    add_fused(builder, to, nullptr, std::vector<int32_t>(100, 0));
    add_fused(builder, to, nullptr, {0, 3, 3});
    add_call(builder, to, 4, 4);
  });
  EXPECT_EQ(at(module, 0), std::string(4096, 'x') + ":1:2");
  EXPECT_EQ(at(module, 30), std::string(4092, 'y') + ":1:2\n      at ...");
  EXPECT_EQ(at(module, 40), std::string(4093, 'z') + ":1:2\n      at ...");
  EXPECT_EQ(at(module, 50), "[\n    " + std::string(4096, 'x') + ":1:2\n  ]");
  // It says once that something is left out.
  EXPECT_EQ(at(module, 70), std::string(4093, 'z') + ":1:2\n      at ...\n      at ...");
}

}  // namespace
}  // namespace halyard::vm::test
