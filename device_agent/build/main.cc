// regatta-build-worker: see build_server.h. Started by the spawner with a
// socket as descriptor 3; not for people.
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "device_agent/build/build_server.h"
#include "device_agent/build/compiler_module_source.h"
#include "device_agent/probe/emulator.h"

int main() {
  regatta::SetLogProgram("regatta-build-worker");
  // Executed by descriptor, which older kernels take for the name.
  prctl(PR_SET_NAME, "regatta-build-w");
  regatta::FrameChannel agent{regatta::UniqueFd(3)};
  regatta::CompilerModuleSource source(regatta::RealClock());
  absl::Status status = regatta::CheckEmulation();
  if (status.ok()) {
    status = regatta::ServeBuilds(agent, source, regatta::RealClock());
  }
  if (!status.ok()) LOG(kError) << status.message();
  return status.ok() ? 0 : 1;
}
