// What the operating system says about this machine, and the names derived from
// it. Nothing here is measured; see cpu_probe.h.
//
// Thread safety: free functions.
#ifndef REGATTA_DEVICE_AGENT_PROBE_MACHINE_H_
#define REGATTA_DEVICE_AGENT_PROBE_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "regatta/v1/build.pb.h"

namespace regatta {

struct Machine {
  std::string hostname;
  std::string machine_id;      // /etc/machine-id; "" when there is none
  std::string boot_id;         // differs after every boot
  std::string marketing_name;  // "AMD EPYC 9654"; "" when not told
  int64_t memory_bytes = 0;    // MachineMemoryBytes
};

// Of the machine, or the lowest limit of the control groups that this process
// is in, a container's for one, where that is lower. 0 when the system does not
// tell.
int64_t MachineMemoryBytes(const std::string& root);

// `root` is "" outside tests. What cannot be read stays empty or 0, except that
// a missing boot id is replaced by one of this process.
Machine ReadMachine(const std::string& root);

// What the kernel tells of these processors, at most 16 KiB.
v1::BoardProcessor ReadProcessor(const std::string& root,
                                 const std::vector<int>& cpus);

// Differs after every boot; "" when the kernel does not tell.
std::string ReadBootId(const std::string& root);

// The frequency governor of a processor ("performance"); "" when the system
// does not control its frequency.
std::string ReadGovernor(const std::string& root, int cpu);

// Processors that this process may run on, ascending.
std::vector<int> AllowedCpus();

// `text` as a list of processors ("0-3,8"), all of which must be allowed;
// everything allowed when it is empty. InvalidArgument names what is wrong.
absl::StatusOr<std::vector<int>> ChooseCpus(const std::string& text,
                                            const std::vector<int>& allowed);

// A name for the device that these cores are, the same at every start:
// "HOST-1f2e3d4c", from machine id, host name and cores. A machine without an
// id gets a random one, kept in `state_dir`.
absl::StatusOr<std::string> StableDeviceId(const Machine& machine,
                                           const std::string& cpu_list,
                                           const std::string& state_dir);

// 128 random bits as hexadecimal text.
std::string RandomId();

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_MACHINE_H_
