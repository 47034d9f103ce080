#include "device_agent/probe/arm_registers.h"

#include <sys/auxv.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace regatta {
namespace {

// By bit, as the kernel numbers and names them.
constexpr const char* kFeatures[] = {
    "fp",     "asimd",   "evtstrm",  "aes",     "pmull", "sha1",     "sha2",
    "crc32",  "atomics", "fphp",     "asimdhp", "cpuid", "asimdrdm", "jscvt",
    "fcma",   "lrcpc",   "dcpop",    "sha3",    "sm3",   "sm4",      "asimddp",
    "sha512", "sve",     "asimdfhm", "dit",     "uscat", "ilrcpc",   "flagm",
    "ssbs",   "sb",      "paca",     "pacg"};
constexpr const char* kFeatures2[] = {
    "dcpodp", "sve2",  "sveaes",  "svepmull", "svebitperm", "svesha3", "svesm4",
    "flagm2", "frint", "svei8mm", "svef32mm", "svef64mm",   "svebf16", "i8mm",
    "bf16",   "dgh",   "rng",     "bti",      "mte"};

std::string Names(uint64_t bits, absl::Span<const char* const> names) {
  std::string text;
  for (size_t bit = 0; bit < names.size(); ++bit) {
    if ((bits >> bit & 1) != 0) absl::StrAppend(&text, " ", names[bit]);
  }
  return text;
}

}  // namespace

bool ReadArmRegisters(ArmRegisters* registers) {
#if defined(__aarch64__)
  constexpr uint64_t kMidrReadable = uint64_t{1} << 11;  // "cpuid"
  registers->hwcap = getauxval(AT_HWCAP);
  registers->hwcap2 = getauxval(AT_HWCAP2);
  if ((registers->hwcap & kMidrReadable) == 0) return false;
  asm("mrs %0, MIDR_EL1" : "=r"(registers->midr));
  return true;
#else
  (void)registers;
  return false;
#endif
}

std::string ArmCpuInfo(const ArmRegisters& registers, int count) {
  const uint64_t midr = registers.midr;
  const auto field = [&](int from, int bits) {
    return static_cast<unsigned>(midr >> from & ((uint64_t{1} << bits) - 1));
  };
  std::string text;
  for (int cpu = 0; cpu < count; ++cpu) {
    absl::StrAppendFormat(
        &text,
        "processor\t: %d\nFeatures\t:%s%s\nCPU implementer\t: 0x%02x\n"
        "CPU architecture: 8\nCPU variant\t: 0x%x\nCPU part\t: 0x%03x\n"
        "CPU revision\t: %u\n\n",
        cpu, Names(registers.hwcap, kFeatures),
        Names(registers.hwcap2, kFeatures2), field(24, 8), field(20, 4),
        field(4, 12), field(0, 4));
  }
  return text;
}

}  // namespace regatta
