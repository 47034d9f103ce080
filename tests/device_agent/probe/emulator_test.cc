#include "device_agent/probe/emulator.h"

#include "device_agent/probe/arm_registers.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

// Behind QEMU: ArmAgentTest.
TEST(EmulatorTest, TestsRunByThemselves) {
  const auto emulator = FindEmulator();
  ASSERT_TRUE(emulator.ok()) << emulator.status();
  EXPECT_EQ(*emulator, "");
}

// A Raspberry Pi 4, as its kernel writes it.
TEST(ArmRegistersTest, TheTextIsThatOfLinux) {
  ArmRegisters registers;
  registers.midr = 0x410fd083;
  registers.hwcap = 0x887;
  EXPECT_EQ(ArmCpuInfo(registers, 1),
            "processor\t: 0\nFeatures\t: fp asimd evtstrm crc32 cpuid\n"
            "CPU implementer\t: 0x41\nCPU architecture: 8\n"
            "CPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n\n");
}

TEST(ArmRegistersTest, EveryProcessorIsListedAndFeaturesOfBothWords) {
  ArmRegisters registers;
  registers.midr = 0x414fd0c1;
  registers.hwcap = 1 << 20;
  registers.hwcap2 = uint64_t{3} << 13;
  const std::string text = ArmCpuInfo(registers, 2);
  EXPECT_NE(text.find("processor\t: 1\nFeatures\t: asimddp i8mm bf16\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("CPU variant\t: 0x4\nCPU part\t: 0xd0c"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace regatta
