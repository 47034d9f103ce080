// What builders and the boards that have their modules from them say first.
#ifndef REGATTA_TESTS_TRACKER_BUILDER_HELLOS_H_
#define REGATTA_TESTS_TRACKER_BUILDER_HELLOS_H_

#include <string>

#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

inline const std::string kBuilderKey(32, 'k');
inline constexpr char kMeasureOnlyTarget[] =
    "cpu,triple=aarch64-linux-gnu,mcpu=cortex-a76";

// `hello`: of an agent without devices; it builds for two architectures.
inline v1::Hello AsBuilder(v1::Hello hello, const std::string& compiler,
                           int slots = 1,
                           const std::string& key = kBuilderKey) {
  hello.mutable_builder()->set_public_key(key);
  hello.mutable_builder()->set_slots(slots);
  v1::KindReach& kind = *hello.mutable_builder()->mutable_reach()->add_kinds();
  kind.set_kind("cpu");
  kind.set_compiler_version(compiler);
  kind.set_space_version(1);
  kind.add_architectures("x86_64");
  kind.add_architectures("aarch64");
  return hello;
}

// `hello`: of a board, whose devices are built for by that compiler.
inline v1::Hello AsMeasureOnly(v1::Hello hello, const std::string& compiler) {
  for (v1::DeviceInfo& device : *hello.mutable_devices()) {
    device.set_target(kMeasureOnlyTarget);
    device.set_compiler_version(compiler);
    device.set_space("cpu");
    device.set_space_version(1);
  }
  hello.clear_compiler_version();
  hello.clear_space();
  hello.clear_space_version();
  hello.add_trusted_builders(kBuilderKey);
  return hello;
}

}  // namespace regatta

#endif  // REGATTA_TESTS_TRACKER_BUILDER_HELLOS_H_
