// Reads and validates containers.
#include "executable_format.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "loader.h"
#include "vulkan_executable_generated.h"

namespace halyard::vulkan {

namespace {

constexpr size_t kHeaderSize = 64;
constexpr uint32_t kMaxSets = 32;
constexpr uint32_t kMaxBindings = 1024;  // in a set, including array elements
constexpr uint32_t kMaxAddressBindings = 1024;
constexpr uint32_t kMaxPath = 4096;  // bytes; a longer path is left out

bool is_aligned_to_4(uint32_t offset, uint32_t size) { return offset % 4 == 0 && size % 4 == 0; }

uint32_t length_of(const auto* vector) { return vector ? vector->size() : 0; }

// Whether the text can be an entry point name: Vulkan requires UTF-8.
bool is_text(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

// The FlatBuffer, with or without a header before it.
Result<std::span<const uint8_t>> flatbuffer_in(std::span<const uint8_t> data) {
  if (data.size() < 4 || std::memcmp(data.data(), format::ExecutableIdentifier(), 4) != 0) return data;
  if (data.size() < kHeaderSize)
    return fail(HALYARD_INVALID_ARGUMENT, "a Vulkan executable's header has {} bytes; found {}", kHeaderSize,
                data.size());
  uint32_t version = 0;
  uint64_t size = 0;
  std::memcpy(&version, data.data() + 4, sizeof version);
  std::memcpy(&size, data.data() + 8, sizeof size);
  if (version != 0)
    return fail(HALYARD_INVALID_ARGUMENT,
                "a Vulkan executable's header says version {}, expected 0; compile for an older release",
                version);
  if (size > data.size() - kHeaderSize)
    return fail(HALYARD_INVALID_ARGUMENT,
                "a Vulkan executable's header says {} bytes of content, but {} bytes follow", size,
                data.size() - kHeaderSize);
  return data.subspan(kHeaderSize, size);
}

Result<> read_module(ModuleImage& module, const SpirvJudge& judge) {
  HALYARD_KIT_TRY(check_spirv(module.words, judge));
  module.spirv = HALYARD_KIT_TRY(read_spirv(module.words));
  return {};
}

// The properties of the entry point.
void describe_entry(const SpirvModule& module, const SpirvEntry& entry, PipelineImage& pipeline) {
  pipeline.version = module.version;
  pipeline.local_size = entry.local_size;
  pipeline.workgroup_size = entry.workgroup_size;
  pipeline.workgroup_constants = entry.workgroup_constants;
  pipeline.subgroups = entry.subgroups;
}

class FlatbufferReader {
 public:
  FlatbufferReader(const ExecutableFormat& format, uint32_t most_push_bytes, const SpirvJudge& judge)
      : format_(format), most_push_bytes_(most_push_bytes), judge_(judge) {}

  Result<ExecutableImage> read(const format::Executable& executable) {
    HALYARD_KIT_TRY(read_modules(executable));
    HALYARD_KIT_TRY(read_sets(executable));
    HALYARD_KIT_TRY(read_layouts(executable));
    const uint32_t count = length_of(executable.pipelines());
    if (count == 0)
      return fail(HALYARD_INVALID_ARGUMENT, "the executable has no pipelines; expected one or more");
    for (uint32_t i = 0; i < count; ++i) HALYARD_KIT_TRY(read_pipeline(executable.pipelines()->Get(i), i));
    return std::move(image_);
  }

 private:
  Result<> read_modules(const format::Executable& executable) {
    for (uint32_t i = 0; i < length_of(executable.shader_modules()); ++i) {
      const auto* code = executable.shader_modules()->Get(i)->code();
      ModuleImage module;
      if (code) module.words.assign(code->begin(), code->end());
      if (Result<> read = read_module(module, judge_); !read)
        return fail(read.failure().code, "shader module {}: {}", i, read.failure().message);
      image_.modules.push_back(std::move(module));
    }
    return {};
  }

  Result<> read_sets(const format::Executable& executable) {
    for (uint32_t i = 0; i < length_of(executable.set_layouts()); ++i) {
      const auto* bindings = executable.set_layouts()->Get(i)->bindings();
      std::vector<SetBinding> set;
      uint64_t descriptors = 0;
      for (uint32_t j = 0; j < length_of(bindings); ++j) {
        const format::Binding& binding = *bindings->Get(j);
        if (binding.type() != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER &&
            binding.type() != VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER)
          return fail(
              HALYARD_INVALID_ARGUMENT,
              "set layout {}: binding {} has descriptor type {}, expected {} (uniform buffer) or {} (storage "
              "buffer)",
              i, binding.binding(), binding.type(), VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER + 0,
              VK_DESCRIPTOR_TYPE_STORAGE_BUFFER + 0);
        if (!(binding.stages() & VK_SHADER_STAGE_COMPUTE_BIT))
          return fail(HALYARD_INVALID_ARGUMENT,
                      "set layout {}: binding {} has stages 0x{:x}, which lack compute (0x20)", i,
                      binding.binding(), binding.stages());
        if (std::ranges::any_of(set,
                                [&](const SetBinding& other) { return other.binding == binding.binding(); }))
          return fail(HALYARD_INVALID_ARGUMENT, "set layout {}: binding {} occurs twice", i,
                      binding.binding());
        descriptors += binding.count();
        if (descriptors > kMaxBindings || binding.binding() >= kMaxBindings)
          return fail(HALYARD_INVALID_ARGUMENT,
                      "set layout {}: binding {} makes {} descriptors; this driver has bindings below {}", i,
                      binding.binding(), descriptors, kMaxBindings);
        set.push_back({binding.binding(), binding.type(), binding.count()});
      }
      image_.sets.push_back(std::move(set));
    }
    return {};
  }

  Result<> read_layouts(const format::Executable& executable) {
    for (uint32_t i = 0; i < length_of(executable.pipeline_layouts()); ++i) {
      const format::PipelineLayout& layout = *executable.pipeline_layouts()->Get(i);
      LayoutImage image;
      for (uint32_t j = 0; j < length_of(layout.sets()); ++j) {
        const uint32_t set = layout.sets()->Get(j);
        if (set >= image_.sets.size())
          return fail(HALYARD_INVALID_ARGUMENT,
                      "pipeline layout {} names set layout {}; the executable has {}", i, set,
                      image_.sets.size());
        image.sets.push_back(set);
      }
      if (image.sets.size() > kMaxSets)
        return fail(HALYARD_INVALID_ARGUMENT, "pipeline layout {} has {} sets, expected {} at most", i,
                    image.sets.size(), kMaxSets);
      for (uint32_t j = 0; j < length_of(layout.push_constants()); ++j) {
        const format::PushConstantRange& range = *layout.push_constants()->Get(j);
        const uint64_t end = uint64_t{range.offset()} + range.size();
        if (!is_aligned_to_4(range.offset(), range.size()) || range.size() == 0 ||
            !(range.stages() & VK_SHADER_STAGE_COMPUTE_BIT) || end > most_push_bytes_)
          return fail(
              HALYARD_INVALID_ARGUMENT,
              "pipeline layout {}: push constants of {} bytes from byte {} for stages 0x{:x}; expected "
              "multiples of 4, compute (0x20) and {} bytes in all at most",
              i, range.size(), range.offset(), range.stages(), most_push_bytes_);
        image.push_size = std::max(image.push_size, static_cast<uint32_t>(end));
      }
      image_.layouts.push_back(std::move(image));
    }
    return {};
  }

  Result<> read_pipeline(const format::Pipeline* source, uint32_t number) {
    PipelineImage pipeline;
    pipeline.name = source->entry_point() ? source->entry_point()->str() : "";
    if (!is_text(pipeline.name))
      return fail(HALYARD_INVALID_ARGUMENT, "pipeline {} names no entry point: expected printable ASCII",
                  number);
    if (const format::ExportInfo* const info = source->export_info(); info && info->location()) {
      const flatbuffers::String* const file = info->location()->file();
      if (file && file->size() != 0 && file->size() <= kMaxPath)
        pipeline.source = fmt::format("{}:{}", file->string_view(), info->location()->line());
    }
    pipeline.module = source->shader_module();
    pipeline.layout = source->layout();
    pipeline.subgroup_size = source->subgroup_size();
    if (pipeline.module >= image_.modules.size() || pipeline.layout >= image_.layouts.size())
      return fail(HALYARD_INVALID_ARGUMENT,
                  "pipeline '{}' names shader module {} and pipeline layout {}; the executable has {} and {}",
                  pipeline.name, pipeline.module, pipeline.layout, image_.modules.size(),
                  image_.layouts.size());
    const auto& entries = image_.modules[pipeline.module].spirv.entries;
    const auto entry = std::ranges::find(entries, pipeline.name, &SpirvEntry::name);
    if (entry == entries.end())
      return fail(HALYARD_INVALID_ARGUMENT,
                  "pipeline '{}': shader module {} has no compute entry point of that name", pipeline.name,
                  pipeline.module);
    describe_entry(image_.modules[pipeline.module].spirv, *entry, pipeline);
    HALYARD_KIT_TRY(check_interface(pipeline, *entry));
    pipeline.by_address = source->abi() == format::Abi::Addresses;
    const bool knows_abi = pipeline.by_address || source->abi() == format::Abi::Descriptors;
    if (!knows_abi || pipeline.by_address != format_.by_address)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "pipeline '{}' has dispatch ABI {}, but executables of format '{}' have {}", pipeline.name,
                  static_cast<int>(source->abi()), format_.name, format_.by_address ? 1 : 0);
    if (pipeline.by_address) {
      HALYARD_KIT_TRY(read_addresses(source->addresses(), pipeline));
    } else if (source->addresses()) {
      return fail(HALYARD_INVALID_ARGUMENT,
                  "pipeline '{}' is bound by descriptors, but has a layout of addresses", pipeline.name);
    }
    image_.pipelines.push_back(std::move(pipeline));
    return {};
  }

  // Checks that the layout contains everything that the kernel uses, because Vulkan implementations assume
  // that.
  Result<> check_interface(const PipelineImage& pipeline, const SpirvEntry& entry) const {
    const LayoutImage& layout = image_.layouts[pipeline.layout];
    for (const SpirvDescriptor& used : entry.descriptors) {
      const SetBinding* found = nullptr;
      if (used.set < layout.sets.size())
        for (const SetBinding& binding : image_.sets[layout.sets[used.set]])
          if (binding.binding == used.binding) found = &binding;
      const uint32_t type =
          used.is_uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      if (!used.is_buffer || !found || found->type != type || used.count == 0 || used.count > found->count)
        return fail(
            HALYARD_INVALID_ARGUMENT,
            "pipeline '{}' uses {} {}s at set {}, binding {}, but its layout has {}", pipeline.name,
            used.count,
            !used.is_buffer   ? "image"
            : used.is_uniform ? "uniform buffer"
                              : "storage buffer",
            used.set, used.binding,
            found ? fmt::format("{} of descriptor type {} there", found->count, found->type) : "none there");
    }
    for (const auto& members : image_.modules[pipeline.module].spirv.push_constants)
      for (const uint32_t offset : members)
        if (offset >= layout.push_size && image_.modules[pipeline.module].spirv.entries.size() == 1)
          return fail(HALYARD_INVALID_ARGUMENT,
                      "pipeline '{}' has a push constant at byte {}, but its layout has {} bytes",
                      pipeline.name, offset, layout.push_size);
    return {};
  }

  Result<> read_addresses(const format::AddressLayout* source, PipelineImage& pipeline) {
    const LayoutImage& layout = image_.layouts[pipeline.layout];
    if (!source || !layout.sets.empty())
      return fail(
          HALYARD_INVALID_ARGUMENT,
          "pipeline '{}' is bound by addresses; expected a layout of addresses and no descriptor sets",
          pipeline.name);
    if (source->version() != 1 || source->root_length() != AddressLayout::kRootSize ||
        source->entry_type() != format::EntryType::Address)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "pipeline '{}': version {}, {} bytes of root, entry type {}; expected 1, {} and 0",
                  pipeline.name, source->version(), source->root_length(),
                  static_cast<int>(source->entry_type()), AddressLayout::kRootSize);
    const uint64_t root = source->root_offset();
    const uint64_t constants = source->constant_offset();
    const uint64_t constants_end = constants + uint64_t{source->constant_count()} * 4;
    const bool overlap =
        source->constant_count() != 0 && constants < root + AddressLayout::kRootSize && root < constants_end;
    const bool outside = root + AddressLayout::kRootSize > layout.push_size ||
                         (source->constant_count() != 0 && constants_end > layout.push_size);
    if (root % 4 != 0 || constants % 4 != 0 || overlap || outside)
      return fail(
          HALYARD_INVALID_ARGUMENT,
          "pipeline '{}': {} bytes of root at byte {} and {} constants at byte {} do not fit into {} bytes "
          "of push constants",
          pipeline.name, AddressLayout::kRootSize, root, source->constant_count(), constants,
          layout.push_size);
    if (source->binding_count() > kMaxAddressBindings ||
        (length_of(source->bindings()) != 0 && length_of(source->bindings()) != source->binding_count()))
      return fail(HALYARD_INVALID_ARGUMENT,
                  "pipeline '{}': {} bindings, {} of them described; expected {} at most", pipeline.name,
                  source->binding_count(), length_of(source->bindings()), kMaxAddressBindings);
    AddressLayout& target = pipeline.addresses;
    target.root_offset = source->root_offset();
    target.constant_offset = source->constant_offset();
    target.constant_count = source->constant_count();
    target.bindings.resize(source->binding_count());
    for (uint32_t i = 0; i < length_of(source->bindings()); ++i) {
      const format::AddressBinding& binding = *source->bindings()->Get(i);
      target.bindings[i] = {std::max(binding.minimum_alignment(), 1u), binding.minimum_length()};
    }
    return {};
  }

  const ExecutableFormat& format_;
  const uint32_t most_push_bytes_;
  const SpirvJudge& judge_;
  ExecutableImage image_;
};

Result<ExecutableImage> read_flatbuffer(const ExecutableFormat& format, std::span<const uint8_t> data,
                                        uint32_t most_push_bytes, const SpirvJudge& judge) {
  const std::span<const uint8_t> content = HALYARD_KIT_TRY(flatbuffer_in(data));
  // The verifier requires an alignment of 8 bytes.
  std::vector<uint64_t> words((content.size() + 7) / 8);
  if (!content.empty()) std::memcpy(words.data(), content.data(), content.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  flatbuffers::Verifier verifier(bytes, content.size());
  if (content.size() < 8 || !format::VerifyExecutableBuffer(verifier))
    return fail(HALYARD_INVALID_ARGUMENT,
                "the {} bytes are no Vulkan executable: expected a FlatBuffer with identifier '{}'",
                content.size(), format::ExecutableIdentifier());
  return FlatbufferReader(format, most_push_bytes, judge).read(*format::GetExecutable(bytes));
}

// ---- Stand-alone SPIR-V

constexpr uint32_t kAddressCapability = 5347;  // PhysicalStorageBufferAddresses
constexpr uint32_t kMemoryModelCapability = 5345;
constexpr uint32_t kAddressing64 = 5348;  // PhysicalStorageBuffer64
constexpr uint32_t kModelGlsl = 1;
constexpr uint32_t kModelVulkan = 3;
constexpr std::string_view kPrefix = "iree.vulkan.bda.v1";

// A string in the module that overrides a default: "KEY=NUMBER" or "KEY=NUMBER,NUMBER".
struct Override {
  std::string_view key;
  uint64_t numbers[2] = {};
  int count = 0;
};

Result<Override> parse_override(std::string_view text) {
  Override result;
  const size_t equals = text.find('=');
  result.key = text.substr(0, equals);
  std::string_view rest = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  while (result.count < 2 && !rest.empty()) {
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), result.numbers[result.count]);
    if (error != std::errc()) break;
    ++result.count;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (rest.empty()) return result;
    if (rest.front() != ',') break;
    rest.remove_prefix(1);
  }
  return fail(HALYARD_INVALID_ARGUMENT, "the module says '{}.{}'; expected KEY=NUMBER or KEY=NUMBER,NUMBER",
              kPrefix, text);
}

Result<> apply_override(const Override& given, AddressLayout& layout) {
  constexpr uint64_t kMaxNumber = std::numeric_limits<uint32_t>::max();
  const bool fits = given.numbers[0] <= kMaxNumber;
  if (given.key == "root" && given.count == 2 && fits && given.numbers[1] == AddressLayout::kRootSize) {
    layout.root_offset = static_cast<uint32_t>(given.numbers[0]);
  } else if (given.key == "constant_offset" && given.count == 1 && fits) {
    layout.constant_offset = static_cast<uint32_t>(given.numbers[0]);
  } else if (given.key == "constants" && given.count == 1 && given.numbers[0] <= kMaxNumber / 4) {
    layout.constant_count = static_cast<uint32_t>(given.numbers[0]);
  } else if (given.key == "bindings" && given.count == 1 && given.numbers[0] <= kMaxAddressBindings) {
    layout.bindings.resize(std::max<size_t>(layout.bindings.size(), given.numbers[0]));
  } else if (given.key.starts_with("binding.") && given.count == 2 && fits) {
    const std::string_view digits = given.key.substr(8);
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number >= kMaxAddressBindings)
      return fail(HALYARD_INVALID_ARGUMENT, "the module says '{}.{}'; expected the number of a binding",
                  kPrefix, given.key);
    layout.bindings.resize(std::max<size_t>(layout.bindings.size(), number + 1));
    layout.bindings[number] = {std::max(static_cast<uint32_t>(given.numbers[0]), 1u), given.numbers[1]};
  } else {
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "the module says '{}.{}' with {} numbers; expected root=OFFSET,32, constant_offset=, constants=, "
        "bindings= or binding.N=ALIGNMENT,LENGTH",
        kPrefix, given.key, given.count);
  }
  return {};
}

Result<ExecutableImage> read_raw(std::span<const uint8_t> data, uint32_t most_push_bytes,
                                 const SpirvJudge& judge) {
  if (data.size() % 4 != 0)
    return fail(HALYARD_INVALID_ARGUMENT, "a SPIR-V module has a multiple of 4 bytes; found {}", data.size());
  ModuleImage module;
  module.words.resize(data.size() / 4);
  if (!data.empty()) std::memcpy(module.words.data(), data.data(), data.size());
  HALYARD_KIT_TRY(read_module(module, judge));
  const SpirvModule& spirv = module.spirv;
  const bool has_model = spirv.memory_model == kModelGlsl ||
                         (spirv.memory_model == kModelVulkan && spirv.has_capability(kMemoryModelCapability));
  if (!spirv.has_capability(kAddressCapability) || spirv.addressing_model != kAddressing64 || !has_model)
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "the module has addressing model {} and memory model {}; expected PhysicalStorageBuffer64 with its "
        "capability, and GLSL450 or Vulkan",
        spirv.addressing_model, spirv.memory_model);
  if (spirv.has_descriptors)
    return fail(HALYARD_INVALID_ARGUMENT,
                "the module has variables with a descriptor set or binding; expected none, all by address");
  const std::vector<uint32_t> members = {0, 8, 16, 20, 24, 28};
  AddressLayout layout;
  bool is_described = false;
  for (const std::string& text : spirv.processed) {
    if (text == kPrefix) is_described = true;
    if (!text.starts_with(std::string(kPrefix) + '.')) continue;
    is_described = true;
    HALYARD_KIT_TRY(apply_override(
        HALYARD_KIT_TRY(parse_override(std::string_view(text).substr(kPrefix.size() + 1))), layout));
  }
  const bool is_plain = spirv.push_constants.size() == 1 && spirv.push_constants[0] == members;
  if (spirv.push_constants.size() != 1 || (!is_plain && !is_described))
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "the module has {} push constant variables; expected one block with six members at bytes 0, 8, 16, "
        "20, 24, 28",
        spirv.push_constants.size());
  const uint64_t root_end = uint64_t{layout.root_offset} + AddressLayout::kRootSize;
  const uint64_t constants_end = layout.constant_offset + uint64_t{layout.constant_count} * 4;
  const uint64_t end = layout.constant_count == 0 ? root_end : std::max(root_end, constants_end);
  const bool overlap =
      layout.constant_count != 0 && layout.constant_offset < root_end && layout.root_offset < constants_end;
  if (end > most_push_bytes || !is_aligned_to_4(layout.root_offset, layout.constant_offset) || overlap)
    return fail(HALYARD_INVALID_ARGUMENT,
                "the module's root at byte {} and {} constants at byte {} do not fit into {} bytes of push "
                "constants",
                layout.root_offset, layout.constant_count, layout.constant_offset, most_push_bytes);
  for (const SpirvEntry& entry : spirv.entries)
    if (!is_text(entry.name))
      return fail(HALYARD_INVALID_ARGUMENT, "an entry point's name is not printable ASCII");
  if (spirv.entries.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "the module has no compute entry point; expected one or more");
  ExecutableImage image;
  image.layouts.push_back({.push_size = static_cast<uint32_t>(end)});
  for (const SpirvEntry& entry : spirv.entries) {
    PipelineImage& pipeline = image.pipelines.emplace_back();
    pipeline.name = entry.name;
    pipeline.by_address = true;
    pipeline.addresses = layout;
    describe_entry(spirv, entry, pipeline);
  }
  image.modules.push_back(std::move(module));
  return image;
}

}  // namespace

const ExecutableFormat* find_format(std::string_view name) {
  const auto* found = std::ranges::find_if(
      kExecutableFormats, [&](const ExecutableFormat& format) { return name == format.name; });
  return found == std::end(kExecutableFormats) ? nullptr : found;
}

Result<ExecutableImage> read_executable(const ExecutableFormat& format, std::span<const uint8_t> data,
                                        uint32_t most_push_bytes, const SpirvJudge& judge) {
  if (format.container == ContainerKind::spirv) return read_raw(data, most_push_bytes, judge);
  return read_flatbuffer(format, data, most_push_bytes, judge);
}

Result<> glance_at(const ExecutableFormat& format, std::span<const uint8_t> data) {
  if (format.container == ContainerKind::flatbuffer) {
    const std::span<const uint8_t> content = HALYARD_KIT_TRY(flatbuffer_in(data));
    if (content.size() >= 8 && std::memcmp(content.data() + 4, format::ExecutableIdentifier(), 4) == 0)
      return {};
    return fail(HALYARD_INVALID_ARGUMENT, "expected a FlatBuffer with identifier '{}'",
                format::ExecutableIdentifier());
  }
  uint32_t magic = 0;
  if (data.size() >= sizeof magic) std::memcpy(&magic, data.data(), sizeof magic);
  if (magic == kSpirvMagic) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "expected SPIR-V, which begins with 0x{:08x}", kSpirvMagic);
}

}  // namespace halyard::vulkan
