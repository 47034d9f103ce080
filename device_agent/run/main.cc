// regatta-run-worker: see run_session.h. Started by the spawner, once per
// trial, or for several where starting is slow, with a socket as descriptor 3;
// not for people.
#include <sys/prctl.h>
#include <unistd.h>

#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "device_agent/probe/emulator.h"
#include "device_agent/run/cuda_api.h"
#include "device_agent/run/exit_codes.h"
#include "device_agent/run/instruction_clock.h"
#include "device_agent/run/run_session.h"

int main(int argc, char** argv) {
  regatta::SetLogProgram("regatta-run-worker");
  for (int i = 1; i < argc; i += 2) {
    if (std::string_view(argv[i]) != "--cuda-driver" || i + 1 == argc) {
      LOG(kError) << "unknown argument " << argv[i];
      return regatta::kRunWorkerFault;
    }
    regatta::cuda::UseDriver(argv[i + 1]);
  }
  if (const absl::Status own = regatta::CheckEmulation(); !own.ok()) {
    LOG(kError) << own.message();
    return regatta::kRunWorkerFault;
  }
  // Executed by descriptor, which older kernels take for the name.
  prctl(PR_SET_NAME, "regatta-run-wor");
  regatta::FrameChannel agent{regatta::UniqueFd(3)};
  absl::Status status;
  bool called = false;
  for (bool more = true; more && status.ok();) {
    regatta::RunSession session(agent, regatta::RealClock(),
                                regatta::CallClock());
    status = session.Run();
    more = session.reusable();
    // Of this trial: a worker is kept only where candidates cannot reach it.
    called = session.called();
  }
  if (!status.ok()) LOG(kError) << status;
  // Threads of the module may still be there, and destructors would unmap what
  // they use.
  _exit(status.ok() ? 0
        : called    ? regatta::kRunWorkerBroken
                    : regatta::kRunWorkerFault);
}
