// Runs a few lines of PTX on one warp or block and gives what each thread left.
#ifndef REGATTA_TESTS_COMPILER_PTXSIM_SNIPPET_H_
#define REGATTA_TESTS_COMPILER_PTXSIM_SNIPPET_H_

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ptxsim/launch.h"

namespace regatta::ptxsim {

// A kernel around `body`. Parameters: four arrays of 64-bit words, a, b, c and
// out. Thread t finds a[t], b[t], c[t] in %d1 to %d3 and their low halves in
// %r1 to %r3 (also named %f1 to %f3: all 32-bit registers are typeless) and %h1
// to %h3; %r0 holds t. What %d0 holds at the end is stored to out[t]. Free:
// %p0..%p7, %h4.., %r4.., %f4.., %d4... `before` stands at module level,
// `declarations` at the start of the body.
std::string SnippetKernel(const std::string& body,
                          const std::string& declarations = "",
                          const std::string& before = "");

struct SnippetInput {
  std::vector<uint64_t> a, b, c;  // shorter ones are filled up with zeros
  uint32_t threads = 32;
  uint32_t dynamic_shared_bytes = 0;
};

// out of each thread; the report through `report` if that is not null.
// FailedPrecondition with the fault's text when the kernel faulted.
absl::StatusOr<std::vector<uint64_t>> RunSnippet(
    const std::string& kernel, const SnippetInput& input,
    LaunchReport* report = nullptr);

// The low 32 bits of %r9 of each thread after `body`.
std::vector<uint32_t> Run32(const std::string& body, const SnippetInput& input);
// %d9.
std::vector<uint64_t> Run64(const std::string& body, const SnippetInput& input);

// The fault of a kernel that is expected to have one; kTrap with the detail "no
// fault" when it has none.
Fault FaultOf(const std::string& kernel, const SnippetInput& input);

inline uint64_t Bits(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }
inline float AsFloat(uint64_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

}  // namespace regatta::ptxsim

#endif  // REGATTA_TESTS_COMPILER_PTXSIM_SNIPPET_H_
