// Creates pipelines from a container: checks features, creates layouts, compiles.
#include "executable.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "device.h"
#include "subgroups.h"

namespace halyard::vulkan {

namespace {

std::string known_formats(const Device& device) {
  std::string known;
  for (const ExecutableFormat& format : kExecutableFormats)
    if (!format.needs_addresses || device.features().buffer_addresses())
      known += fmt::format("{}'{}'", known.empty() ? "" : ", ", format.name);
  return known;
}

Result<const ExecutableFormat*> format_for(const Device& device, std::string_view name) {
  const ExecutableFormat* format = find_format(name);
  if (!format)
    return fail(HALYARD_NOT_FOUND, "no executable format '{}'; this device has {}", name,
                known_formats(device));
  if (format->needs_addresses && !device.features().buffer_addresses())
    return fail(HALYARD_NOT_FOUND,
                "executable format '{}' needs buffer device addresses, which this device lacks; it has {}",
                name, known_formats(device));
  return format;
}

uint32_t most_push_bytes(const Device& device) {
  return std::min(device.features().limits.maxPushConstantsSize, kMaxPushBytes);
}

// Checks, before anything is created, that the device has the features that the pipelines need, and selects
// subgroup sizes. If the device lacks the size, only that pipeline is refused, when it is dispatched, because
// others of the program may not depend on it.
Result<> check_needs(const Device& device, std::span<const uint32_t> compiled, ExecutableImage& image) {
  const Features& features = device.features();
  for (PipelineImage& pipeline : image.pipelines) {
    for (const std::array<uint32_t, 3>& sizes : {pipeline.local_size, pipeline.workgroup_size}) {
      const VkPhysicalDeviceLimits& limits = features.limits;
      uint64_t invocations = 1;
      bool fits = true;
      for (size_t i = 0; i < 3 && fits; ++i) {
        invocations *= std::max(sizes[i], 1u);
        fits = sizes[i] <= limits.maxComputeWorkGroupSize[i] &&
               invocations <= limits.maxComputeWorkGroupInvocations;
      }
      if (fits) continue;
      const uint32_t(&most)[3] = limits.maxComputeWorkGroupSize;
      return fail(
          HALYARD_INCOMPATIBLE,
          "pipeline '{}' has workgroups of {}x{}x{}, but this device has {}x{}x{} and {} invocations at "
          "most; compile it for this device",
          pipeline.name, sizes[0], sizes[1], sizes[2], most[0], most[1], most[2],
          limits.maxComputeWorkGroupInvocations);
    }
    Result<uint32_t> size = subgroup_size_for(pipeline, compiled, features, device.name());
    if (size) {
      pipeline.subgroup_size = *size;
    } else {
      pipeline.refusal = std::move(size.failure().message);
    }
  }
  return {};
}

// Checks that the device supports the number of descriptors of pipeline layout `number`.
Result<> check_descriptors(const Features& features, size_t number, const Pipeline& form) {
  const VkPhysicalDeviceLimits& limits = features.limits;
  const auto storage = static_cast<uint64_t>(
      std::ranges::count(form.bindings, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, &BindingPlace::type));
  const uint64_t uniform = form.bindings.size() - storage;
  const uint64_t most_storage =
      std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers);
  const uint64_t most_uniform =
      std::min(limits.maxPerStageDescriptorUniformBuffers, limits.maxDescriptorSetUniformBuffers);
  if (storage <= most_storage && uniform <= most_uniform &&
      form.bindings.size() <= limits.maxPerStageResources)
    return {};
  return fail(
      HALYARD_INCOMPATIBLE,
      "pipeline layout {} binds {} storage and {} uniform buffers, this device has {} and {} at most, {} "
      "together; compile for buffer device addresses",
      number, storage, uniform, most_storage, most_uniform, limits.maxPerStageResources);
}

}  // namespace

Result<std::unique_ptr<halyard_driver_executable>> Executable::create(Device& device,
                                                                      const halyard_executable_args_t& args) {
  const ExecutableFormat* format = HALYARD_KIT_TRY(format_for(device, view(args.format)));
  const std::span<const uint8_t> data(static_cast<const uint8_t*>(args.data), args.data_size);
  const SpirvJudge judge = {device.options().spirv, device.features(), device.name()};
  ExecutableImage image = HALYARD_KIT_TRY(read_executable(*format, data, most_push_bytes(device), judge));
  for (PipelineImage& pipeline : image.pipelines)
    for (size_t i = 0; i < 3; ++i)
      if (const auto constant = pipeline.workgroup_constants[i]; constant && *constant < args.constant_count)
        pipeline.workgroup_size[i] = args.constants[*constant];
  std::span<const uint32_t> compiled;
  if (HALYARD_HAS_FIELD(&args, halyard_executable_args_t, subgroup_size_count))
    compiled = {args.subgroup_sizes, args.subgroup_size_count};
  HALYARD_KIT_TRY(check_needs(device, compiled, image));
  auto executable = std::make_unique<halyard_driver_executable>(device);
  HALYARD_KIT_TRY(executable->build(image, args));
  HALYARD_KIT_TRY(device.no_messages());
  return executable;
}

Executable::~Executable() {
  const DeviceFunctions& vk = device_.vk();
  for (const Pipeline& pipeline : pipelines_)
    if (pipeline.pipeline) vk.DestroyPipeline(device_.handle(), pipeline.pipeline, nullptr);
  for (const VkPipelineLayout layout : layouts_) vk.DestroyPipelineLayout(device_.handle(), layout, nullptr);
  for (const VkDescriptorSetLayout set : sets_) vk.DestroyDescriptorSetLayout(device_.handle(), set, nullptr);
  for (const VkShaderModule module : modules_) vk.DestroyShaderModule(device_.handle(), module, nullptr);
}

Result<> Executable::build(const ExecutableImage& image, const halyard_executable_args_t& args) {
  const DeviceFunctions& vk = device_.vk();
  modules_.reserve(image.modules.size());
  for (const ModuleImage& source : image.modules) {
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = source.words.size() * sizeof(uint32_t),
                                           .pCode = source.words.data()};
    VkShaderModule module = VK_NULL_HANDLE;
    HALYARD_KIT_TRY(
        check(vk.CreateShaderModule(device_.handle(), &info, nullptr, &module), "vkCreateShaderModule"));
    modules_.push_back(module);
  }
  HALYARD_KIT_TRY(make_layouts(image));
  HALYARD_KIT_TRY(make_pipelines(image, args));
  for (const VkShaderModule module : modules_) vk.DestroyShaderModule(device_.handle(), module, nullptr);
  modules_.clear();
  return {};
}

Result<> Executable::make_layouts(const ExecutableImage& image) {
  const DeviceFunctions& vk = device_.vk();
  const Features& features = device_.features();

  // Determines how each pipeline layout is bound.
  std::vector<Pipeline> bound(image.layouts.size());
  std::vector<bool> pushed(image.sets.size(), false);
  std::vector<bool> allocated(image.sets.size(), false);
  for (size_t i = 0; i < image.layouts.size(); ++i) {
    const LayoutImage& layout = image.layouts[i];
    Pipeline& form = bound[i];
    form.push_size = layout.push_size;
    for (uint32_t set = 0; set < layout.sets.size(); ++set) {
      uint32_t descriptors = 0;
      for (const SetBinding& binding : image.sets[layout.sets[set]]) {
        for (uint32_t element = 0; element < binding.count; ++element)
          form.bindings.push_back(
              {set, binding.binding, element, static_cast<VkDescriptorType>(binding.type)});
        descriptors += binding.count;
      }
      form.descriptor_count = std::max(form.descriptor_count, descriptors);
    }
    HALYARD_KIT_TRY(check_descriptors(features, i, form));
    form.pushes_descriptors = device_.uses_push_descriptors() && layout.sets.size() == 1 &&
                              !form.bindings.empty() && form.bindings.size() <= features.max_push_descriptors;
    for (const uint32_t set : layout.sets) (form.pushes_descriptors ? pushed : allocated)[set] = true;
  }

  // A set layout is either for push descriptors or for allocation, so a layout that is used both ways is
  // created twice.
  std::vector<VkDescriptorSetLayout> for_pushing(image.sets.size());
  std::vector<VkDescriptorSetLayout> for_allocation(image.sets.size());
  sets_.reserve(2 * image.sets.size());
  const auto make = [&](const std::vector<SetBinding>& set, VkDescriptorSetLayoutCreateFlags flags,
                        VkDescriptorSetLayout& made) -> Result<> {
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (const SetBinding& binding : set)
      bindings.push_back({.binding = binding.binding,
                          .descriptorType = static_cast<VkDescriptorType>(binding.type),
                          .descriptorCount = binding.count,
                          .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT});
    const VkDescriptorSetLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .flags = flags,
        .bindingCount = static_cast<uint32_t>(bindings.size()),
        .pBindings = bindings.data()};
    HALYARD_KIT_TRY(check(vk.CreateDescriptorSetLayout(device_.handle(), &info, nullptr, &made),
                          "vkCreateDescriptorSetLayout"));
    sets_.push_back(made);
    return {};
  };
  for (size_t i = 0; i < image.sets.size(); ++i) {
    if (pushed[i])
      HALYARD_KIT_TRY(
          make(image.sets[i], VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR, for_pushing[i]));
    if (allocated[i]) HALYARD_KIT_TRY(make(image.sets[i], 0, for_allocation[i]));
  }

  layouts_.reserve(image.layouts.size());
  for (size_t i = 0; i < image.layouts.size(); ++i) {
    Pipeline& form = bound[i];
    for (const uint32_t set : image.layouts[i].sets)
      form.sets.push_back((form.pushes_descriptors ? for_pushing : for_allocation)[set]);
    if (form.sets.size() > features.limits.maxBoundDescriptorSets)
      return fail(HALYARD_INCOMPATIBLE,
                  "pipeline layout {} has {} descriptor sets, this device has {} at most", i,
                  form.sets.size(), features.limits.maxBoundDescriptorSets);
    const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = form.push_size};
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = static_cast<uint32_t>(form.sets.size()),
                                             .pSetLayouts = form.sets.data(),
                                             .pushConstantRangeCount = form.push_size != 0 ? 1u : 0u,
                                             .pPushConstantRanges = &range};
    HALYARD_KIT_TRY(check(vk.CreatePipelineLayout(device_.handle(), &info, nullptr, &form.layout),
                          "vkCreatePipelineLayout"));
    layouts_.push_back(form.layout);
  }
  pipelines_.reserve(image.pipelines.size());
  for (const PipelineImage& source : image.pipelines) {
    Pipeline pipeline = bound[source.layout];
    pipeline.name = source.name;
    pipeline.source = source.source;
    pipeline.refusal = source.refusal;
    pipeline.workgroup_size = source.workgroup_size;
    pipeline.by_address = source.by_address;
    pipeline.addresses = source.addresses;
    pipelines_.push_back(std::move(pipeline));
  }
  return {};
}

Result<> Executable::make_pipelines(const ExecutableImage& image, const halyard_executable_args_t& args) {
  std::vector<VkSpecializationMapEntry> entries(args.constant_count);
  for (uint32_t i = 0; i < args.constant_count; ++i) entries[i] = {i, i * 4, 4};
  const VkSpecializationInfo constants = {.mapEntryCount = args.constant_count,
                                          .pMapEntries = entries.data(),
                                          .dataSize = args.constant_count * sizeof(uint32_t),
                                          .pData = args.constants};
  const size_t count = image.pipelines.size();
  std::vector<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo> sizes(count);
  std::vector<VkComputePipelineCreateInfo> infos(count);
  for (size_t i = 0; i < count; ++i) {
    const PipelineImage& source = image.pipelines[i];
    sizes[i] = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
                .requiredSubgroupSize = source.subgroup_size};
    infos[i] = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                          .pNext = source.subgroup_size != 0 ? &sizes[i] : nullptr,
                          .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                          .module = modules_[source.module],
                          .pName = source.name.c_str(),
                          .pSpecializationInfo = args.constant_count != 0 ? &constants : nullptr},
                .layout = pipelines_[i].layout};
  }

  // Compiles part p of n, on any thread. Created pipelines are stored in pipelines_ even if another one
  // fails.
  const size_t parts = std::min<size_t>(device_.options().compile_threads, count);
  std::vector<VkResult> results(parts, VK_SUCCESS);
  const auto compile = [&](size_t part) noexcept {
    for (size_t i = part; i < count; i += parts) {
      if (!pipelines_[i].refusal.empty()) continue;
      VkPipeline& target = pipelines_[i].pipeline;
      const VkResult result = device_.vk().CreateComputePipelines(
          device_.handle(), device_.pipeline_cache().handle(), 1, &infos[i], nullptr, &target);
      if (result != VK_SUCCESS && results[part] == VK_SUCCESS) results[part] = result;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (size_t part = 1; part < parts; ++part) helpers.emplace_back(compile, part);
    compile(0);
  }
  for (const VkResult result : results) HALYARD_KIT_TRY(check(result, "vkCreateComputePipelines"));
  device_.pipeline_cache().grew();
  return {};
}

const Services& Executable::services() const { return device_.services(); }

Result<halyard_function_info_t> Executable::function_info(uint32_t function) const {
  if (function >= pipelines_.size())
    return fail(HALYARD_OUT_OF_RANGE, "no function {}; the executable has {}", function, pipelines_.size());
  const Pipeline& pipeline = pipelines_[function];
  halyard_function_info_t info = {};
  uint32_t flags = HALYARD_FUNCTION_CONSTANT_RANGE;
  if (pipeline.by_address) {
    const size_t bindings = pipeline.addresses.bindings.size();
    info.binding_count = bindings == 0 ? HALYARD_COUNT_UNDECLARED : static_cast<uint32_t>(bindings);
    info.constant_count = pipeline.addresses.constant_count;
  } else {
    info.binding_count = static_cast<uint32_t>(pipeline.bindings.size());
    info.constant_count = pipeline.push_size / 4;
    flags |= HALYARD_FUNCTION_FEWER_CONSTANTS;
  }
  std::copy_n(pipeline.workgroup_size.begin(), 3, info.workgroup_size);
  info.name = {pipeline.name.data(), pipeline.name.size()};
  info.source = {pipeline.source.data(), pipeline.source.size()};
  info.flags = flags;
  return info;
}

uint32_t grade_executable(const Device& device, std::string_view name, std::span<const uint8_t> data,
                          std::string& reason) {
  Result<const ExecutableFormat*> format = format_for(device, name);
  if (!format) {
    reason = std::move(format.failure().message);
    return find_format(name) ? HALYARD_GRADE_RECOMPILE : HALYARD_GRADE_NO;
  }
  if (data.empty()) return HALYARD_GRADE_NATIVE;
  Result<> glanced = glance_at(**format, data);
  if (glanced) return HALYARD_GRADE_NATIVE;
  reason = std::move(glanced.failure().message);
  return HALYARD_GRADE_NO;
}

}  // namespace halyard::vulkan
