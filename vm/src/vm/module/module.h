// Module: the common part of bytecode and native modules: name, version, exports, imports, dependencies.
// Immutable; shared by contexts and threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/status.h"

namespace halyard::vm {

struct Attribute {
  std::string_view key;
  std::string_view value;
};

struct Export {
  std::string_view name;
  std::string_view convention;
  uint32_t function = 0;              // index of the function in the module
  std::vector<Attribute> attributes;  // reflection

  std::string_view attribute(std::string_view key) const;  // first match; empty if absent
};

struct Import {
  std::string_view name;        // "hal.fence.create", not empty
  std::string_view convention;  // empty: matches any convention
  bool optional = false;
};

struct Dependency {
  std::string_view name;
  uint32_t minimum_version = 0;
  bool required = true;   // REQUIRED bit: the version is checked
  bool optional = false;  // OPTIONAL bit: may be missing
};

enum class ModuleKind : uint8_t { bytecode, native };

class Module : public Object {
 public:
  ModuleKind kind() const { return kind_; }
  std::string_view name() const { return name_; }
  uint32_t version() const { return version_; }
  const std::vector<Export>& exports() const { return exports_; }
  const std::vector<Import>& imports() const { return imports_; }
  const std::vector<Dependency>& dependencies() const { return dependencies_; }
  const std::vector<Attribute>& attributes() const { return attributes_; }

  // Returns the first export with this name. A native module may have several, with different conventions.
  const Export* find_export(std::string_view name) const;
  // NOT_FOUND for a missing export; the message lists similar names, or all names.
  std::unexpected<Status> no_export(std::string_view name) const;
  // Resolves an import of `name` with `convention`: the export with the same convention or, if the import
  // states none, the last export of that name (in a compiled module, the first). NOT_FOUND lists similar
  // names; INCOMPATIBLE: no convention matches, and the message lists the existing ones.
  Result<const Export*> resolve(std::string_view name, std::string_view convention) const;

 protected:
  Module(const ObjectType* type, ModuleKind kind) : Object(type), kind_(kind) {}
  ~Module() = default;

  ModuleKind kind_;
  std::string_view name_;
  uint32_t version_ = 0;
  std::vector<Export> exports_;
  std::vector<Import> imports_;
  std::vector<Dependency> dependencies_;
  std::vector<Attribute> attributes_;
};

}  // namespace halyard::vm
