// Known bytes around a buffer, by which writes outside it show.
//
// Pure; thread-safe.
#ifndef REGATTA_DEVICE_AGENT_VERIFY_GUARD_BYTES_H_
#define REGATTA_DEVICE_AGENT_VERIFY_GUARD_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace regatta {

inline constexpr uint8_t kGuardByte = 0x5A;

// How many of `bytes` bytes at `from` are not kGuardByte.
int64_t DamagedBytes(const void* from, size_t bytes);

// "3 bytes before output C were overwritten"; "" when none were.
std::string DamageText(int64_t before, int64_t after, const std::string& name);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_VERIFY_GUARD_BYTES_H_
