// regatta-run-worker: see run_session.h. Started by the spawner, once per
// trial, with a socket as descriptor 3; not for people.
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "device_agent/run/exit_codes.h"
#include "device_agent/run/instruction_clock.h"
#include "device_agent/run/run_session.h"

int main() {
  regatta::SetLogProgram("regatta-run-worker");
  // Executed by descriptor, which older kernels take for the name.
  prctl(PR_SET_NAME, "regatta-run-wor");
  regatta::FrameChannel agent{regatta::UniqueFd(3)};
  regatta::RunSession session(agent, regatta::RealClock(),
                              regatta::CallClock());
  const absl::Status status = session.Run();
  if (!status.ok()) LOG(kError) << status;
  // Threads of the module may still be there, and destructors would unmap what
  // they use.
  _exit(status.ok() ? 0 : regatta::kRunWorkerFault);
}
