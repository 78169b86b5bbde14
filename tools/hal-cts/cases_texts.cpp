// Texts of a driver stay valid as long as the handle that they describe.
#include "cases.h"
#include "kernels.h"
#include "lasting_texts.h"

namespace halyard::cts {

void instance_texts_last(Session& s) {
  LastingTexts texts;
  const halyard_driver_request_t request = plain_request();
  halyard_driver_reply_t reply = {.struct_size = sizeof reply};
  if (s.negotiator()(&request, &reply) == 0) s.stop("R6", "negotiation", "agreement", "a refusal");
  for (uint32_t i = 0; i < reply.kind_count; ++i) {
    texts.add(fmt::format("the name of kind {}", i), reply.kinds[i].name);
    texts.add(fmt::format("the description of kind {}", i), reply.kinds[i].description);
  }
  halyard_driver_instance_t instance = s.initialize();
  const auto list = [&] {
    uint32_t count = 0;
    s.must("enumerate_devices", "enumerate_devices with capacity 0",
           s.take(s.table().enumerate_devices(instance, 0, nullptr, &count)));
    std::vector<halyard_device_info_t> infos(count);
    for (halyard_device_info_t& info : infos) info.struct_size = sizeof info;
    if (count > 0)
      s.must("enumerate_devices", "enumerate_devices",
             s.take(s.table().enumerate_devices(instance, count, infos.data(), &count)));
    return infos;
  };
  for (size_t i = 0; const halyard_device_info_t& info : list()) {
    texts.add(fmt::format("the kind of device {}", i), info.kind);
    texts.add(fmt::format("the path of device {}", i), info.path);
    texts.add(fmt::format("the name of device {}", i++), info.name);
  }
  texts.check(s, "after enumerate_devices");
  static_cast<void>(list());
  if (!s.target().kind.empty()) s.table().device_close(s.open(instance));
  texts.check(s, "after the devices were listed again, and one was opened and closed");
  s.table().shutdown(&instance);
}

void executable_names_last(Session& s) {
  for (const Program* program : s.programs()) {
    LastingTexts names;
    const Executable executable = s.executable(*program);
    each_function(s, executable, [&](uint32_t number, const auto&, std::string_view name) {
      names.add(fmt::format("the name of function {} of {}", number, program->origin), name);
    });
    names.check(s, "after all functions were asked for");
    const Executable other = s.executable(*program);
    each_function(s, other, [](uint32_t, const auto&, std::string_view) {});
    s.destroy(other);
    names.check(s, "after another executable was destroyed");
  }
}

}  // namespace halyard::cts
