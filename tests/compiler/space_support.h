// What the tests of spaces share: spaces on named targets, inputs, and the
// comparison of a schedule's loops with the interpreter.
#ifndef REGATTA_TESTS_COMPILER_SPACE_SUPPORT_H_
#define REGATTA_TESTS_COMPILER_SPACE_SUPPORT_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/interp/interpreter.h"
#include "compiler/space/space.h"
#include "gtest/gtest.h"
#include "tests/support/scale.h"

namespace regatta {

inline constexpr const char* kAvx512 =
    "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
    "vector_registers=32";
inline constexpr const char* kAvx2 =
    "cpu,triple=x86_64-linux-gnu,mcpu=haswell,vector_bits=256,"
    "vector_registers=16";
inline constexpr const char* kNeon =
    "cpu,triple=aarch64-linux-gnu,mcpu=cortex-a72,vector_bits=128,"
    "vector_registers=32";
// A device with many small work-items, and one that is a processor.
inline constexpr const char* kMali =
    "opencl,vector_bits=128,max_group=256,local_bytes=32768,"
    "image_width=16384,image_height=16384";
inline constexpr const char* kPocl =
    "opencl,vector_bits=512,max_group=4096,local_bytes=524288";

// Devices with matrix units: with copies that run by themselves, and without.
inline constexpr const char* kSm80 =
    "cuda,mcpu=sm_80,features=+copy_async,vector_bits=128,max_group=1024,"
    "local_bytes=166912,subgroup=32,max_registers=255,"
    "products=bf16x16x8x16+f16x16x8x16+i8x16x8x32";
inline constexpr const char* kSm75 =
    "cuda,mcpu=sm_75,vector_bits=128,max_group=1024,local_bytes=65536,"
    "subgroup=32,max_registers=255,products=f16x16x8x8+i8x8x8x16";

// With instructions that sum several products.
inline constexpr const char* kVnni =
    "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
    "vector_registers=32,products=ui8x4";
inline constexpr const char* kMatrixNeon =
    "cpu,triple=aarch64-linux-gnu,mcpu=neoverse-v1,vector_bits=128,"
    "vector_registers=32,products=bf16x2x2x4+i8x2x2x8+i8x4";

// Aborts when either text is wrong: tests give right ones.
Workload WorkloadOf(const std::string& text);
Space SpaceOf(const std::string& workload, const std::string& target = kAvx512,
              int threads = 1);

// Values in [-1, 1] or small integers, as the tensors' types hold them.
std::vector<TensorValues> RandomInputs(const Workload& workload, uint64_t seed);

// One workload, its inputs and what the interpreter makes of them.
class Oracle {
 public:
  explicit Oracle(const Workload& workload, uint64_t seed = 1);

  // The schedule's loops pass the verifier and give the interpreter's result.
  // A failure names the schedule.
  testing::AssertionResult Agrees(const Space& space,
                                  const Schedule& schedule) const;
  // The same for loops from elsewhere, called `name` in failures.
  testing::AssertionResult Agrees(const loop::Program& program,
                                  const std::string& name) const;

 private:
  Workload workload_;
  std::vector<TensorValues> inputs_, expected_;
  double terms_ = 1;  // of the longest sum
};

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_SPACE_SUPPORT_H_
