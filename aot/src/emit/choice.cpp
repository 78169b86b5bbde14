#include "emit/choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "vm/text/vmasm_text.h"

namespace halyard::aot {

namespace {

constexpr CreatingImport kCreatingImports[] = {
    {"hal.executable.create", "0rIrrr_r",
     "%r0: !vm.ref<?>, %i0:1: i64, %r1: !vm.ref<?>, %r2: !vm.ref<?>, %r3: !vm.ref<?>",
     "%R0, %i0:1, %R1, %R2, %R3", 1, 2, 3, false},
    {"hal.executable.create", "0rrrr_r", "%r0: !vm.ref<?>, %r1: !vm.ref<?>, %r2: !vm.ref<?>, %r3: !vm.ref<?>",
     "%R0, %R1, %R2, %R3", 1, 2, 3, false},
    {"hal_loader.executable.load", "0rrr_r", "%r0: !vm.ref<?>, %r1: !vm.ref<?>, %r2: !vm.ref<?>",
     "%R0, %R1, %R2", 0, 1, 2, true},
};

// Registers of the function besides its parameters.
constexpr uint32_t kKeyRef = 5;
constexpr uint32_t kValueRef = 6;
constexpr uint32_t kFirstFlag = 8;  // after the affinity, and what a query returns

class ChoosingFunction {
 public:
  ChoosingFunction(const CreatingImport& creating, uint32_t import, std::span<const Processor> processors,
                   Additions& additions)
      : creating_(creating), import_(import), processors_(processors), additions_(additions) {}

  std::string text(std::span<const Choice> choices, std::string_view portable, std::string_view none) {
    create_ = 2 * choices.size();
    check_request(portable);
    line("%i7 = vm.const.i32.zero");
    for (const Processor& processor : processors_) {
      uint32_t all = format_flag(processor.format);
      for (const std::string& feature : processor.features) all = both(all, feature_flag(feature));
      flags_.push_back(all);
    }
    line("vm.br ^bb0");
    for (size_t i = 0; i < choices.size(); ++i) {
      block(2 * i);
      line("%r{} = vm.const.ref.rodata {}", kKeyRef, choices[i].portable);
      line("%i2 = vm.cmp.eq.ref %r{}, %r{}", kKeyRef, creating_.data);
      line("vm.cond_br %i2, ^bb{}, ^bb{}", 2 * i + 1, 2 * i + 2);
      block(2 * i + 1);
      if (!none.empty()) line("%r{} = vm.const.ref.rodata {}", creating_.format, additions_.constant(none));
      for (const auto& [processor, library] : choices[i].libraries) {
        line("%r{} = vm.const.ref.rodata {}", kKeyRef, additions_.constant(processors_[processor].format));
        select(processor, creating_.format);
        line("%r{} = vm.const.ref.rodata {}", kKeyRef, library);
        select(processor, creating_.data);
      }
      line("vm.br ^bb{}", create_);
    }
    block(create_);
    line("%r0 = vm.call import[{}]({})", import_, creating_.arguments);
    line("vm.return %R0");
    return fmt::format("vm.func @choose_executable({}) -> (!vm.ref<?>) {{\n{}}}\n", creating_.parameters,
                       text_);
  }

 private:
  void block(size_t number) { text_ += fmt::format("^bb{}:\n", number); }

  // Goes on if the format is `portable` and there are no constants; else creates what was asked for.
  void check_request(std::string_view portable) {
    const size_t first = create_ + 1;
    line("%i2 = vm.cmp.nz.ref %r{}", creating_.constants);
    line("vm.cond_br %i2, ^bb{}, ^bb{}", create_, first);
    block(first);
    line("%i2 = vm.cmp.nz.ref %r{}", creating_.format);
    line("vm.cond_br %i2, ^bb{}, ^bb{}", first + 1, create_);
    block(first + 1);
    line("%i4:5 = vm.buffer.length %r{}", creating_.format);
    line("%i6:7 = vm.const.i64 {}", portable.size());
    line("%i2 = vm.cmp.eq.i64 %i4:5, %i6:7");
    line("vm.cond_br %i2, ^bb{}, ^bb{}", first + 2, create_);
    block(first + 2);
    line("%r{} = vm.const.ref.rodata {}", kKeyRef, additions_.constant(portable));
    line("%i4:5 = vm.const.i64.zero");
    line("%i2 = vm.buffer.compare %r{}, %i4:5, %r{}, %i4:5, %i6:7", creating_.format, kKeyRef);
    line("vm.cond_br %i2, ^bb{}, ^bb{}", first + 3, create_);
    block(first + 3);
  }

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += "  " + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }

  void select(size_t processor, uint32_t ref) {
    line("%r{} = vm.select.ref %i{} ? %r{} : %r{} -> !vm.buffer", ref, flags_[processor], kKeyRef, ref);
  }

  uint32_t new_flag() { return next_flag_++; }
  uint32_t both(uint32_t x, uint32_t y) {
    const uint32_t flag = new_flag();
    line("%i{} = vm.and.i32 %i{}, %i{}", flag, x, y);
    return flag;
  }

  // Whether the device has something; asked once.
  uint32_t flag_of(const std::string& what, auto&& ask) {
    const auto [found, is_new] = known_.try_emplace(what);
    if (!is_new) return found->second;
    ask(found->second = new_flag());
    return found->second;
  }
  void query(uint32_t flag, std::string_view category, std::string_view key) {
    const uint32_t import = creating_.is_loader ? additions_.import("hal_inline.device.query.i64", "0rr_iI")
                                                : additions_.import("hal.device.query.i64", "0rrr_iI");
    line("%r{} = vm.const.ref.rodata {}", kKeyRef, additions_.constant(category));
    line("%r{} = vm.const.ref.rodata {}", kValueRef, additions_.constant(key));
    line("%i2, %i4:5 = vm.call import[{}]({}%r{}, %r{})", import, creating_.is_loader ? "" : "%r0, ", kKeyRef,
         kValueRef);
    line("%i{} = vm.cmp.nz.i64 %i4:5", flag);
    line("%i{0} = vm.select.i32 %i2 ? %i{0} : %i7", flag);
  }
  uint32_t format_flag(const std::string& format) {
    return flag_of("format " + format, [&](uint32_t flag) {
      if (!creating_.is_loader) return query(flag, "hal.executable.format", format);
      line("%r{} = vm.const.ref.rodata {}", kValueRef, additions_.constant(format));
      line("%i{} = vm.call import[{}](%r{})", flag,
           additions_.import("hal_loader.executable.query_support", "0r_i"), kValueRef);
    });
  }
  uint32_t feature_flag(const std::string& feature) {
    return flag_of("feature " + feature, [&](uint32_t flag) { query(flag, "hal.cpu", feature); });
  }

  const CreatingImport& creating_;
  const uint32_t import_;
  const std::span<const Processor> processors_;
  Additions& additions_;
  std::string text_;
  size_t create_ = 0;  // the block that creates
  std::map<std::string, uint32_t> known_;
  std::vector<uint32_t> flags_;  // by processor
  uint32_t next_flag_ = kFirstFlag;
};

}  // namespace

const CreatingImport* find_creating_import(std::string_view name, std::string_view convention) {
  const auto* const found = std::ranges::find_if(kCreatingImports, [&](const CreatingImport& each) {
    return each.name == name && each.convention == convention;
  });
  return found == std::end(kCreatingImports) ? nullptr : found;
}

Additions::Additions(const vm::BytecodeModule& module) : module_(module) {}

uint32_t Additions::constant(std::string_view text) {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  const auto found = std::ranges::find(constants, bytes);
  if (found == constants.end()) return constant(std::move(bytes));
  return static_cast<uint32_t>(module_.rodata().size() + static_cast<size_t>(found - constants.begin()));
}

uint32_t Additions::constant(std::vector<uint8_t> bytes) {
  constants.push_back(std::move(bytes));
  return static_cast<uint32_t>(module_.rodata().size() + constants.size() - 1);
}

uint32_t Additions::import(std::string_view name, std::string_view convention) {
  for (size_t i = 0; i < module_.imports().size(); ++i)
    if (module_.imports()[i].name == name && module_.imports()[i].convention == convention)
      return static_cast<uint32_t>(i);
  const auto found = std::ranges::find(imports, name, &NewImport::name);
  const auto at = static_cast<size_t>(found - imports.begin());
  if (found == imports.end()) imports.push_back({std::string(name), std::string(convention)});
  return static_cast<uint32_t>(module_.imports().size() + at);
}

std::string choosing_module(const vm::BytecodeModule& module, const CreatingImport& creating, uint32_t import,
                            std::span<const Processor> processors, std::span<const Choice> choices,
                            std::string_view portable, std::string_view none, Additions& additions) {
  const std::string function =
      ChoosingFunction(creating, import, processors, additions).text(choices, portable, none);
  std::string text = "vm.module @choice\n";
  for (size_t i = 0; i < module.type_names().size(); ++i)
    text += fmt::format("vm.type[{}] {}\n", i, vm::string_text(module.type_names()[i]));
  const auto add_import = [&](size_t ordinal, std::string_view name, std::string_view convention) {
    text += fmt::format("vm.import[{}] {} cconv {}\n", ordinal, vm::symbol_text(name),
                        vm::string_text(convention));
  };
  size_t imports = 0;
  for (const vm::Import& each : module.imports()) add_import(imports++, each.name, each.convention);
  for (const Additions::NewImport& each : additions.imports)
    add_import(imports++, each.name, each.convention);
  for (size_t i = 0; i < module.rodata().size() + additions.constants.size(); ++i)
    text += fmt::format("vm.rodata[{}] =\n", i);
  return text + function;
}

}  // namespace halyard::aot
