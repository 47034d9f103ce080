// Whether this process runs on the processor that its code is for, or behind a
// program that interprets it (QEMU's user mode, Valgrind).
//
// The kernel knows what it executed: /proc/thread-self/exe. Emulators hide
// themselves in /proc/self/exe, but not there. On a processor of its own that
// file is one of the objects that this process has loaded, which its program
// headers show; behind an emulator it is the emulator.
//
// It cannot tell a whole machine that is emulated, kernel and all, from a
// virtual one; nor an emulator that hides itself there too.
#ifndef REGATTA_DEVICE_AGENT_PROBE_EMULATOR_H_
#define REGATTA_DEVICE_AGENT_PROBE_EMULATOR_H_

#include <string>

#include "absl/status/statusor.h"

namespace regatta {

// The path of the emulator that executes this process; "" when it runs by
// itself. Unavailable when the kernel does not tell (no /proc).
absl::StatusOr<std::string> FindEmulator();

// In the environment of workers whose spawner an emulator runs.
inline constexpr char kEmulatedVariable[] = "REGATTA_EMULATED";

// For workers: FailedPrecondition when an emulator runs this process and not
// the spawner, so that its times would pass for those of a real processor.
absl::Status CheckEmulation();

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_EMULATOR_H_
