// What an ARM processor says of itself in registers that any program may read.
// Behind QEMU's user mode they tell of the processor that is emulated, where
// /proc/cpuinfo tells of the one below.
#ifndef REGATTA_DEVICE_AGENT_PROBE_ARM_REGISTERS_H_
#define REGATTA_DEVICE_AGENT_PROBE_ARM_REGISTERS_H_

#include <cstdint>
#include <string>

namespace regatta {

struct ArmRegisters {
  uint64_t midr = 0;  // MIDR_EL1: whose design, which, and revision
  uint64_t hwcap = 0, hwcap2 = 0;  // what the kernel lets programs use
};

// Of the processor that runs this; false on others than 64-bit ARM.
bool ReadArmRegisters(ArmRegisters* registers);

// As Linux on such processors writes /proc/cpuinfo, for `count` of them. Names
// of features that are newer than this list are left out.
std::string ArmCpuInfo(const ArmRegisters& registers, int count);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_PROBE_ARM_REGISTERS_H_
